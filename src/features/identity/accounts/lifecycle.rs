//! Account life cycle: activation, deactivation, deletion requests and erasure.
//!
//! At least one platform administrator stays active. Without one, no caller could activate accounts any more.

use boxoffice_http::error::{Error, Result, reject_if};
use serde_json::json;

use super::model::{Account, AccountNumber, AccountRow, Role};
use super::service::{load, view};
use super::store;
use crate::features::codes;
use crate::kernel::auth::{self, Caller};
use crate::kernel::db::{Tx, transaction};
use crate::kernel::outbox::{self, Mail, MailTemplate, Recipient};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

/// Deactivates an active account, or activates an inactive one. Permissions are checked by the contract's scopes (`x-scopes`).
pub async fn toggle(ctx: &Ctx, caller: &Caller, number: &AccountNumber) -> Result<Account> {
    transaction!(ctx.unit, |tx| change_activation(tx, caller, number, |is_active| !is_active).await).map(view)
}

/// Activates or deactivates an account. Does nothing if it is in this state already.
pub async fn set_active(ctx: &Ctx, caller: &Caller, number: &AccountNumber, is_active: bool) -> Result<Account> {
    transaction!(ctx.unit, |tx| change_activation(tx, caller, number, |_| is_active).await).map(view)
}

/// Sets the state that `change` returns for the current one.
async fn change_activation(
    tx: &mut Tx,
    caller: &Caller,
    number: &AccountNumber,
    change: impl Fn(bool) -> bool + Send,
) -> Result<AccountRow> {
    let row = store::find_by_number(tx, number).await?.ok_or(Error::NOT_FOUND)?;
    let row = lock_unless_last_admin(tx, &row).await?;
    auth::require_not_revoked(tx, caller).await?;
    store::set_activated(tx, row.id, change(row.activated)).await?.ok_or(Error::NOT_FOUND)
}

/// Handles a deletion request: deactivates the account, ends its sessions, and mails the platform administrators.
pub async fn request_deletion(ctx: &Ctx, caller: &Caller, number: &AccountNumber) -> Result<Account> {
    transaction!(ctx.unit, |tx| request_deletion_in_tx(&ctx.app, tx, caller, number).await).map(view)
}

async fn request_deletion_in_tx(app: &App, tx: &mut Tx, caller: &Caller, number: &AccountNumber) -> Result<AccountRow> {
    let row = load(tx, caller, number).await?;
    let row = lock_unless_last_admin(tx, &row).await?;
    auth::require_not_revoked(tx, caller).await?;
    reject_if(!row.activated, codes::ACCOUNT_INACTIVE)?;
    store::end_sessions(tx, row.id, Id::NONE, app.clock.now()).await?;
    let row = store::set_activated(tx, row.id, false).await?.ok_or(Error::NOT_FOUND)?;
    notify_administrators(app, tx, &row).await?;
    Ok(row)
}

/// Mails every active platform administrator that the deletion of an account was requested. The mail names the account only by
/// its number; a reader with permission can look up the rest.
async fn notify_administrators(app: &App, tx: &mut Tx, account: &AccountRow) -> Result<()> {
    let uri = format!("{}/accounts/{}", app.settings.public_url, account.number);
    let recipients = store::administrators(tx).await?;
    let mail = |recipient| {
        let values = json!({ "number": account.number, "uri": uri });
        Mail { recipient: Recipient::Account(recipient), template: MailTemplate::DeletionRequested, values }
    };
    outbox::push(app, tx, recipients.into_iter().map(mail).collect::<Vec<_>>()).await
}

/// Locks and returns the account, unless it is the last active platform administrator. It can't become the last one before this
/// transaction ends.
///
/// # Errors
/// [`Error::NOT_FOUND`] if the account has been removed meanwhile, [`codes::ACCOUNT_LAST_ADMINISTRATOR`] if it is the last active
/// administrator.
pub async fn lock_unless_last_admin(tx: &mut Tx, row: &AccountRow) -> Result<AccountRow> {
    let is_administrator = row.role == Role::Administrator;
    if is_administrator {
        store::lock_administrators(tx).await?;
    }
    let row = store::lock(tx, row.id).await?.ok_or(Error::NOT_FOUND)?;
    if is_administrator && row.activated && !store::has_other_administrators(tx, row.id).await? {
        return Err(codes::ACCOUNT_LAST_ADMINISTRATOR.into());
    }
    Ok(row)
}

/// Erases all personal data of a locked account, and ends the keys of every kind that act for it. `password_hash` is the hash of a
/// random password that is stored nowhere. It has the usual format, so that code that reads password hashes needs no special case.
pub async fn erase(tx: &mut Tx, id: Id, password_hash: &str, now: Timestamp) -> Result<()> {
    store::end_keys(tx, id, now).await?;
    store::delete_login_addresses(tx, id).await?;
    // No other account can have these: the username is longer than the API allows, and the e-mail address contains a random key.
    let username = format!("deleted-{}", secret::api_key());
    let email = format!("{username}@deleted.invalid");
    store::erase(tx, id, &username, &email, password_hash).await
}
