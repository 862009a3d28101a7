//! Whether an account is in use: activated, deactivated, or left behind empty.
//!
//! One administrator at least stays active, or nobody could make another one so.

use super::model::{Account, AccountNumber, AccountRow, Role};
use super::service::{load, view};
use super::store;
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::kernel::db::{Tx, transaction};
use boxoffice_http::error::{Code, Error, Result};
use crate::kernel::outbox::{self, Mail};

/// Deactivates an account that is active, and activates any other. Who may, the contract's scopes say.
pub async fn toggle(app: &App, number: &AccountNumber) -> Result<Account> {
    transaction!(app.db, |tx| toggle_in_tx(tx, number).await).map(view)
}

async fn toggle_in_tx(tx: &mut Tx, number: &AccountNumber) -> Result<AccountRow> {
    let row = store::find_by_number(tx, number).await?.ok_or(Error::NOT_FOUND)?;
    let row = lock_unless_last_admin(tx, &row).await?;
    store::set_activated(tx, row.id, !row.activated).await?.ok_or(Error::NOT_FOUND)
}

/// Deactivates an account whose removal is asked for, and ends its sessions.
pub async fn request_deletion(app: &App, caller: &Caller, number: &AccountNumber) -> Result<Account> {
    transaction!(app.db, |tx| deactivate_for_deletion(app, tx, caller, number).await).map(view)
}

async fn deactivate_for_deletion(app: &App, tx: &mut Tx, caller: &Caller, number: &AccountNumber) -> Result<AccountRow> {
    let row = load(tx, caller, number).await?;
    let row = lock_unless_last_admin(tx, &row).await?;
    if !row.activated {
        return Err(Code::AccountInactive.into());
    }
    store::end_sessions(tx, row.id, Id::NONE, app.clock.now()).await?;
    let row = store::set_activated(tx, row.id, false).await?.ok_or(Error::NOT_FOUND)?;
    notify_administrators(app, tx, &row).await?;
    Ok(row)
}

/// Mails every active administrator that the removal of an account is asked for. The account is told by its number alone: who may
/// know more of it can look it up.
async fn notify_administrators(app: &App, tx: &mut Tx, account: &AccountRow) -> Result<()> {
    let uri = format!("{}/accounts/{}", app.settings.public_url, account.number);
    let body = format!(
        "The removal of the account {number} was asked for.\n\nIt is deactivated, and its sessions are ended. To erase it, send \
         DELETE to {uri}; to let it be used again, POST to {uri}/toggles.\n",
        number = account.number,
    );
    let recipients = store::administrators_emails(tx).await?;
    let mail = |recipient| Mail { recipient, subject: "An account is to be removed", body: body.clone() };
    outbox::push(app, tx, recipients.iter().map(|recipient| mail(recipient.as_str()))).await
}

/// The account, locked, if the platform can do without it: it is not the last active administrator, and won't be before this
/// transaction ends.
///
/// # Errors
/// [`Error::NOT_FOUND`] when it has been removed meanwhile, [`Code::AccountLastAdministrator`].
pub async fn lock_unless_last_admin(tx: &mut Tx, row: &AccountRow) -> Result<AccountRow> {
    let is_administrator = row.role == Role::Administrator;
    if is_administrator {
        store::lock_administrators(tx).await?;
    }
    let row = store::lock(tx, row.id).await?.ok_or(Error::NOT_FOUND)?;
    if is_administrator && row.activated && !store::has_other_administrators(tx, row.id).await? {
        return Err(Code::AccountLastAdministrator.into());
    }
    Ok(row)
}

/// Empties an account that is locked of everything personal, and ends its keys of every kind. `password_hash` is of a password
/// that nobody knows: a hash like any other, so that nothing that reads one needs to know of this.
///
/// # Errors
/// When the database fails.
pub async fn erase(tx: &mut Tx, id: Id, password_hash: &str, now: Timestamp) -> Result<()> {
    store::end_keys(tx, id, now).await?;
    // Nobody else can hold these: the one is longer than a username may be, the other can't be guessed.
    let username = format!("deleted-{}", secret::api_key());
    let email = format!("{username}@deleted.invalid");
    store::erase(tx, id, &username, &email, password_hash).await
}
