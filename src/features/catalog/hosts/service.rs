//! Operations on hosts, and the permission to act for a host.

use boxoffice_http::error::{Code, Error, Result, reject_if};

use super::model::{Host, HostCreate, HostFilter, HostRow, HostUpdate};
use super::store;
use crate::features::codes;
use crate::features::identity::accounts::{self, Account, AccountNumber};
use crate::kernel::auth::{self, Caller};
use crate::kernel::db::{Reader, Tx, ViolationExt, transaction};
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::Ctx;

/// Maximum number of hosts that an account administers when it creates another one.
const MAX_HOSTS: i64 = 1000;

/// Requires an administrator of the host or a platform administrator.
///
/// # Errors
/// [`Error::FORBIDDEN`] for any other caller.
pub async fn require_administrator(reader: &mut Reader, caller: &Caller, host: Id) -> Result<()> {
    if caller.is_administrator() {
        return Ok(());
    }
    require_is_administrator(reader, caller, host).await
}

/// Requires an administrator of the host or a platform administrator, and keeps the account from being removed from the host's
/// administrators until this transaction ends. Call it before a change: without the lock, an administrator who is removed while the
/// request waits could still make it.
///
/// # Errors
/// Like [`require_administrator`].
pub async fn lock_administrator(tx: &mut Tx, caller: &Caller, host: Id) -> Result<()> {
    if !caller.is_administrator() {
        store::lock_shared(tx, host).await?;
    }
    require_administrator(tx, caller, host).await
}

/// Requires a host that has not been removed, and so may still list events and sell tickets. It can't be removed before this
/// transaction ends.
///
/// # Errors
/// [`codes::HOST_REMOVED`] if the host was removed, [`Error::NOT_FOUND`] if it never existed.
pub async fn require_active(tx: &mut Tx, host: Id) -> Result<()> {
    match store::lock_shared(tx, host).await? {
        Some(false) => Ok(()),
        Some(true) => Err(codes::HOST_REMOVED.into()),
        None => Err(Error::NOT_FOUND),
    }
}

/// Returns whether the caller manages a host that has not been removed, as its administrator or as a platform administrator.
///
/// # Errors
/// [`Error::NOT_FOUND`] if the host was removed or never existed.
pub async fn is_managed_by(reader: &mut Reader, caller: &Caller, host: Id) -> Result<bool> {
    let is_administered = store::is_administered(reader, host, caller.account).await?.ok_or(Error::NOT_FOUND)?;
    Ok(is_administered || caller.is_administrator())
}

/// Requires a host that has not been removed, and a caller who is its administrator or a platform administrator.
///
/// # Errors
/// [`Error::NOT_FOUND`] if the host was removed or never existed, [`Error::FORBIDDEN`] for any other caller.
pub async fn require_can_manage(reader: &mut Reader, caller: &Caller, host: Id) -> Result<()> {
    if is_managed_by(reader, caller, host).await? { Ok(()) } else { Err(Error::FORBIDDEN) }
}

/// Requires a caller who may read the ledger and the reports of a host: a platform administrator, even if the host was removed, or
/// an administrator of a host that has not been removed.
///
/// # Errors
/// [`Error::NOT_FOUND`] if the host never existed, or was removed and the caller is no platform administrator;
/// [`Error::FORBIDDEN`] for any other caller.
pub async fn require_can_audit(reader: &mut Reader, caller: &Caller, host: Id) -> Result<()> {
    if caller.is_administrator() {
        return if store::exists(reader, host).await? { Ok(()) } else { Err(Error::NOT_FOUND) };
    }
    require_can_manage(reader, caller, host).await
}

pub async fn list(ctx: &Ctx, filter: &HostFilter) -> Result<Page<Host>> {
    Ok(store::list(&mut ctx.unit.read().await?, filter).await?.map(view))
}

pub async fn list_of_account(ctx: &Ctx, caller: &Caller, number: AccountNumber, paging: PageRequest) -> Result<Page<Host>> {
    let mut reader = ctx.unit.read().await?;
    accounts::load(&mut reader, caller, &number).await?;
    Ok(store::list(&mut reader, &HostFilter { paging, account: Some(number) }).await?.map(view))
}

pub async fn create(ctx: &Ctx, caller: &Caller, new: &HostCreate) -> Result<Host> {
    // A key without an account: the host would have no administrator.
    let account = caller.account.ok_or(Error::FORBIDDEN)?;
    let row = transaction!(ctx.unit, |tx| {
        // The account may have been removed since its key was checked, and must not administer anything then.
        accounts::lock(tx, account).await?.ok_or(Code::KEY_REFUSED)?;
        reject_if(store::count_administered(tx, account).await? >= MAX_HOSTS, codes::HOST_TOO_MANY)?;
        let row = store::insert(tx, ctx.app.clock.next_id(), new).await.on_taken("hosts", "name", codes::HOST_TAKEN)?;
        store::insert_administrator(tx, row.id, account).await.map(|_| row)
    })?;
    Ok(view(row))
}

pub async fn get(ctx: &Ctx, id: Id) -> Result<Host> {
    let row = store::find(&mut ctx.unit.read().await?, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok(view(row))
}

pub async fn update(ctx: &Ctx, caller: &Caller, id: Id, change: &HostUpdate) -> Result<Host> {
    let row = transaction!(ctx.unit, |tx| {
        // First, because the caller may be removed while this waits.
        lock(tx, id).await?;
        require_can_manage(tx, caller, id).await?;
        store::update(tx, id, change).await.on_taken("hosts", "name", codes::HOST_TAKEN)
    })?;
    Ok(view(row.ok_or(Error::NOT_FOUND)?))
}

pub async fn delete(ctx: &Ctx, caller: &Caller, id: Id) -> Result<()> {
    transaction!(ctx.unit, |tx| {
        lock(tx, id).await?;
        auth::require_not_revoked(tx, caller).await?;
        require_can_manage(tx, caller, id).await?;
        store::remove(tx, id).await
    })
}

pub async fn list_administrators(ctx: &Ctx, caller: &Caller, id: Id, paging: PageRequest) -> Result<Page<Account>> {
    let mut reader = ctx.unit.read().await?;
    require_can_manage(&mut reader, caller, id).await?;
    let page = store::administrators(&mut reader, id, paging).await?;
    let mut accounts = accounts::views_for(&mut reader, caller, page.rows.iter().map(|row| row.account_id)).await?;
    let entries = page.rows.iter().filter_map(|row| accounts.remove(&row.account_id)).collect();
    Ok(paging.page(page.total, entries))
}

pub async fn add_administrator(ctx: &Ctx, caller: &Caller, id: Id, account: &AccountNumber) -> Result<Account> {
    transaction!(ctx.unit, |tx| add_administrator_in_tx(tx, caller, id, account).await)
}

async fn add_administrator_in_tx(tx: &mut Tx, caller: &Caller, id: Id, account: &AccountNumber) -> Result<Account> {
    // Lock order: the account before the host, as everywhere. An unknown account is still reported last.
    let account = match accounts::find_by_number(tx, account).await? {
        Some(row) => accounts::lock(tx, row.id).await?,
        None => None,
    };
    lock_for_grant(tx, caller, id).await?;
    auth::require_not_revoked(tx, caller).await?;
    let account = account.ok_or_else(|| Error::invalid("account", "names no account"))?;
    let added = store::insert_administrator(tx, id, account.id).await?;
    if added { Ok(accounts::view_for_others(account)) } else { Err(codes::ADMINISTRATOR_TAKEN.into()) }
}

pub async fn remove_administrator(ctx: &Ctx, caller: &Caller, id: Id, account: &AccountNumber) -> Result<()> {
    transaction!(ctx.unit, |tx| remove_administrator_in_tx(tx, caller, id, account).await)
}

async fn remove_administrator_in_tx(tx: &mut Tx, caller: &Caller, id: Id, account: &AccountNumber) -> Result<()> {
    lock_own(tx, caller, id).await?;
    let account = accounts::find_by_number(tx, account).await?.ok_or(Error::NOT_FOUND)?;
    reject_if(!store::delete_administrator(tx, id, account.id).await?, Error::NOT_FOUND)?;
    // Looked up after the deletion; an error rolls the deletion back.
    if store::has_active_administrator(tx, id).await? { Ok(()) } else { Err(codes::ADMINISTRATOR_LAST.into()) }
}

/// Locks a host for one of its administrators. Changes of its administrators are serialized, so that two of them can't remove
/// each other. Platform administrators are rejected.
async fn lock_own(tx: &mut Tx, caller: &Caller, id: Id) -> Result<()> {
    lock(tx, id).await?;
    require_is_administrator(tx, caller, id).await
}

/// Locks a host to add an administrator, like [`lock_own`]. If the accounts of all its administrators were removed or deactivated, a
/// platform administrator may add one.
async fn lock_for_grant(tx: &mut Tx, caller: &Caller, id: Id) -> Result<()> {
    lock(tx, id).await?;
    if caller.is_administrator() && !store::has_active_administrator(tx, id).await? {
        return Ok(());
    }
    require_is_administrator(tx, caller, id).await
}

async fn lock(tx: &mut Tx, id: Id) -> Result<()> {
    if store::lock(tx, id).await? { Ok(()) } else { Err(Error::NOT_FOUND) }
}

async fn require_is_administrator(reader: &mut Reader, caller: &Caller, id: Id) -> Result<()> {
    let account = caller.account.ok_or(Error::FORBIDDEN)?;
    if store::is_administrator(reader, id, account).await? { Ok(()) } else { Err(Error::FORBIDDEN) }
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
