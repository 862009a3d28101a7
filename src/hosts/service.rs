//! What the host operations mean, and who acts for a host.

use super::model::{Host, HostCreate, HostFilter, HostRow, HostUpdate};
use super::store;
use crate::app::App;
use crate::auth::Caller;
use crate::base::id::Id;
use crate::base::paging::Page;
use crate::base::wire::Uri;
use crate::db::{Tx, ViolationExt, transaction};
use crate::error::{Code, Error, Result};

/// Succeeds for an administrator of the host and for the platform's staff.
///
/// # Errors
/// [`Error::NOT_YOURS`] for anyone else.
pub async fn require_administrator(tx: &mut Tx, caller: &Caller, host: Id) -> Result<()> {
    if caller.is_administrator() {
        return Ok(());
    }
    let account = caller.account.ok_or(Error::NOT_YOURS)?;
    if store::is_administrator(tx, host, account).await? { Ok(()) } else { Err(Error::NOT_YOURS) }
}

/// Succeeds for a host that may still act: list events, sell tickets.
///
/// # Errors
/// [`Code::HostRemoved`] for one that was removed, [`Error::NOT_FOUND`] for one that never was.
pub async fn require_active(tx: &mut Tx, host: Id) -> Result<()> {
    match store::is_removed(tx, host).await? {
        Some(false) => Ok(()),
        Some(true) => Err(Code::HostRemoved.into()),
        None => Err(Error::NOT_FOUND),
    }
}

/// Succeeds for a host that has not been removed, below which there is something to be read.
///
/// # Errors
/// [`Error::NOT_FOUND`] for any other.
pub async fn require_present(tx: &mut Tx, host: Id) -> Result<()> {
    if store::is_removed(tx, host).await? == Some(false) { Ok(()) } else { Err(Error::NOT_FOUND) }
}

pub async fn list(app: &App, filter: &HostFilter) -> Result<Page<Host>> {
    let found = store::list(&mut app.db.read().await?, filter).await?;
    Ok(filter.paging.page(found.total, found.rows.into_iter().map(view).collect()))
}

pub async fn create(app: &App, caller: &Caller, new: &HostCreate) -> Result<Host> {
    let no_account = || Code::ResourceNotYours.because("This key acts for no account that could administer the host.");
    let account = caller.account.ok_or_else(no_account)?;
    let row = transaction!(app.db, |tx| {
        let row = store::insert(tx, app.clock.next_id(), new).await.or_unique("hosts_name_key", Code::HostTaken)?;
        store::insert_administrator(tx, row.id, account).await.map(|()| row)
    })?;
    Ok(view(row))
}

pub async fn get(app: &App, id: Id) -> Result<Host> {
    let row = store::find(&mut app.db.read().await?, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok(view(row))
}

pub async fn update(app: &App, caller: &Caller, id: Id, change: &HostUpdate) -> Result<Host> {
    let row = transaction!(app.db, |tx| {
        store::find(tx, id).await?.ok_or(Error::NOT_FOUND)?;
        require_administrator(tx, caller, id).await?;
        store::update(tx, id, change).await.or_unique("hosts_name_key", Code::HostTaken)
    })?;
    Ok(view(row.ok_or(Error::NOT_FOUND)?))
}

fn view(row: HostRow) -> Host {
    Host {
        uri: Uri(format!("/hosts/{}", row.id)),
        name: row.name,
        contact: row.contact,
        email: row.email,
        description: row.description,
        phone: row.phone,
        website: row.website,
        country: row.country,
        first_address_line: row.first_address_line,
        second_address_line: row.second_address_line,
        city: row.city,
        state: row.state,
        business_no: row.business_no,
    }
}
