//! What the host operations mean, and who acts for a host.

use super::model::{Host, HostCreate, HostFilter, HostRow, HostUpdate};
use super::store;
use crate::features::identity::accounts::{self, Account, AccountNumber};
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::types::api_types::Uri;
use crate::kernel::db::{Tx, ViolationExt, transaction};
use boxoffice_http::error::{Code, Error, Result};

/// Succeeds for an administrator of the host and for the platform's staff.
///
/// # Errors
/// [`Error::NOT_YOURS`] for anyone else.
pub async fn require_administrator(tx: &mut Tx, caller: &Caller, host: Id) -> Result<()> {
    if caller.is_administrator() {
        return Ok(());
    }
    let account = caller.account.ok_or(Error::FORBIDDEN)?;
    if store::is_administrator(tx, host, account).await? { Ok(()) } else { Err(Error::FORBIDDEN) }
}

/// Succeeds for a host that may still act: list events, sell tickets. It is not removed before this transaction ends.
///
/// # Errors
/// [`Code::HostRemoved`] for one that was removed, [`Error::NOT_FOUND`] for one that never was.
pub async fn require_active(tx: &mut Tx, host: Id) -> Result<()> {
    match store::lock_shared(tx, host).await? {
        Some(false) => Ok(()),
        Some(true) => Err(Code::HostRemoved.into()),
        None => Err(Error::NOT_FOUND),
    }
}

/// Succeeds for a host that has a URI: one that was not removed.
///
/// # Errors
/// [`Error::NOT_FOUND`] for any other.
pub async fn require_exists(tx: &mut Tx, host: Id) -> Result<()> {
    store::find(tx, host).await?.map(|_| ()).ok_or(Error::NOT_FOUND)
}

/// The same, for an administrator of the host and for the platform's staff.
///
/// # Errors
/// [`Error::NOT_FOUND`] for a host that was removed or never was, [`Error::NOT_YOURS`] for anyone else.
pub async fn require_can_manage(tx: &mut Tx, caller: &Caller, host: Id) -> Result<()> {
    require_exists(tx, host).await?;
    require_administrator(tx, caller, host).await
}

pub async fn list(app: &App, filter: &HostFilter) -> Result<Page<Host>> {
    let found = store::list(&mut app.db.read().await?, filter).await?;
    Ok(filter.paging.page(found.total, found.rows.into_iter().map(view).collect()))
}

pub async fn list_of_account(app: &App, caller: &Caller, number: AccountNumber, paging: PageRequest) -> Result<Page<Host>> {
    let mut tx = app.db.read().await?;
    accounts::load(&mut tx, caller, &number).await?;
    let found = store::list(&mut tx, &HostFilter { paging, account: Some(number) }).await?;
    Ok(paging.page(found.total, found.rows.into_iter().map(view).collect()))
}

pub async fn create(app: &App, caller: &Caller, new: &HostCreate) -> Result<Host> {
    let no_account = || Code::ResourceNotYours.with_message("This key acts for no account that could administer the host.");
    let account = caller.account.ok_or_else(no_account)?;
    let row = transaction!(app.db, |tx| {
        // Removed since its key was asked for, it must not come to administer anything.
        accounts::lock(tx, account).await?.ok_or(Code::KeyRefused)?;
        let row = store::insert(tx, app.clock.next_id(), new).await.on_unique("hosts_name_key", Code::HostTaken)?;
        store::insert_administrator(tx, row.id, account).await.map(|_| row)
    })?;
    Ok(view(row))
}

pub async fn get(app: &App, id: Id) -> Result<Host> {
    let row = store::find(&mut app.db.read().await?, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok(view(row))
}

pub async fn update(app: &App, caller: &Caller, id: Id, change: &HostUpdate) -> Result<Host> {
    let row = transaction!(app.db, |tx| {
        require_can_manage(tx, caller, id).await?;
        store::update(tx, id, change).await.on_unique("hosts_name_key", Code::HostTaken)
    })?;
    Ok(view(row.ok_or(Error::NOT_FOUND)?))
}

pub async fn delete(app: &App, caller: &Caller, id: Id) -> Result<()> {
    transaction!(app.db, |tx| {
        require_can_manage(tx, caller, id).await?;
        let removed = store::remove(tx, id).await?;
        if removed { Ok(()) } else { Err(Error::NOT_FOUND) }
    })
}

pub async fn list_administrators(app: &App, caller: &Caller, id: Id, paging: PageRequest) -> Result<Page<Account>> {
    let mut tx = app.db.read().await?;
    require_can_manage(&mut tx, caller, id).await?;
    let found = store::administrators(&mut tx, id, paging).await?;
    let mut accounts = accounts::views_for(&mut tx, caller, found.rows.iter().map(|row| row.account_id)).await?;
    let entries = found.rows.iter().filter_map(|row| accounts.remove(&row.account_id)).collect();
    Ok(paging.page(found.total, entries))
}

pub async fn add_administrator(app: &App, caller: &Caller, id: Id, account: &AccountNumber) -> Result<Account> {
    transaction!(app.db, |tx| grant(tx, caller, id, account).await)
}

async fn grant(tx: &mut Tx, caller: &Caller, id: Id, account: &AccountNumber) -> Result<Account> {
    // The account is locked before the host, in which order everyone locks the two, though its absence is told last.
    let account = match accounts::find_by_number(tx, account).await? {
        Some(found) => accounts::lock(tx, found.id).await?,
        None => None,
    };
    lock_for_grant(tx, caller, id).await?;
    let account = account.ok_or_else(|| Error::invalid("account", "names no account"))?;
    let added = store::insert_administrator(tx, id, account.id).await?;
    if added { Ok(accounts::view_for_others(account)) } else { Err(Code::AdministratorTaken.into()) }
}

pub async fn remove_administrator(app: &App, caller: &Caller, id: Id, account: &AccountNumber) -> Result<()> {
    transaction!(app.db, |tx| revoke(tx, caller, id, account).await)
}

async fn revoke(tx: &mut Tx, caller: &Caller, id: Id, account: &AccountNumber) -> Result<()> {
    lock_own(tx, caller, id).await?;
    let account = accounts::find_by_number(tx, account).await?.ok_or(Error::NOT_FOUND)?;
    if !store::delete_administrator(tx, id, account.id).await? {
        return Err(Error::NOT_FOUND);
    }
    // Counted after the deletion, which a refusal takes back.
    if store::count_administrators(tx, id).await? > 0 { Ok(()) } else { Err(Code::AdministratorLast.into()) }
}

/// Locks a host for one who administers it, so that its administrators change one by one: two of them can't remove each other.
/// The platform's staff are none of them.
async fn lock_own(tx: &mut Tx, caller: &Caller, id: Id) -> Result<()> {
    lock(tx, id).await?;
    require_is_administrator(tx, caller, id).await
}

/// The same; but a host whose administrators' accounts were all removed is left to the platform's staff, who give it another.
async fn lock_for_grant(tx: &mut Tx, caller: &Caller, id: Id) -> Result<()> {
    lock(tx, id).await?;
    if caller.is_administrator() && store::count_administrators(tx, id).await? == 0 {
        return Ok(());
    }
    require_is_administrator(tx, caller, id).await
}

async fn lock(tx: &mut Tx, id: Id) -> Result<()> {
    if store::lock(tx, id).await? { Ok(()) } else { Err(Error::NOT_FOUND) }
}

async fn require_is_administrator(tx: &mut Tx, caller: &Caller, id: Id) -> Result<()> {
    let account = caller.account.ok_or(Error::FORBIDDEN)?;
    if store::is_administrator(tx, id, account).await? { Ok(()) } else { Err(Error::FORBIDDEN) }
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
