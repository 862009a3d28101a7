//! What the account operations mean.

use std::collections::HashMap;

use super::model::{Account, AccountCreate, AccountFilter, AccountNumber, AccountRole, AccountRow, AccountUpdate, Date};
use super::store;
use crate::state::App;
use crate::kernel::auth::{self, Caller};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::kernel::types::secret;
use crate::kernel::types::api_types::Uri;
use crate::kernel::db::{Tx, ViolationExt, transaction};
use boxoffice_http::error::{Code, Error, Result};

pub async fn list(app: &App, filter: &AccountFilter) -> Result<Page<Account>> {
    let found = store::list(&mut app.db.read().await?, filter).await?;
    Ok(filter.paging.page(found.total, found.rows.into_iter().map(view).collect()))
}

/// Makes an account for whoever asks for one; staff only for staff.
pub async fn sign_up(app: &App, caller: &Caller, new: AccountCreate) -> Result<Account> {
    if new.role == Some(AccountRole::Administrator) && !caller.is_administrator() {
        return Err(Error::FORBIDDEN);
    }
    create(app, new).await
}

/// Makes an account, whatever its role: what the contract has checked of a request is for the caller to have checked.
///
/// # Errors
/// [`Error::Invalid`] when its password is too common, [`Code::AccountTaken`] when its username or e-mail address is another
/// account's.
pub async fn create(app: &App, new: AccountCreate) -> Result<Account> {
    let (row, password) = new_row(new);
    auth::require_uncommon(&password, [&row.username, &row.email])?;
    let hash = app.passwords.hash(password).await?;
    let row = transaction!(app.db, |tx| insert(app, tx, row.clone(), &hash).await)
        .on_unique("accounts_username_key", conflict_error(&["username"]))
        .on_unique("accounts_email_key", conflict_error(&["email"]))?;
    Ok(view(row))
}

pub async fn get(app: &App, caller: &Caller, number: &AccountNumber) -> Result<Account> {
    Ok(view(load(&mut app.db.read().await?, caller, number).await?))
}

pub async fn update(app: &App, caller: &Caller, number: &AccountNumber, mut change: AccountUpdate) -> Result<Account> {
    let account = load(&mut app.db.read().await?, caller, number).await?;
    let hash = match change.password.take() {
        Some(password) => {
            let username = change.username.as_ref().unwrap_or(&account.username);
            let email = change.email.as_ref().unwrap_or(&account.email);
            auth::require_uncommon(&password.0, [username, email])?;
            Some(app.passwords.hash(password.0).await?)
        }
        None => None,
    };
    let row = transaction!(app.db, |tx| apply(app, tx, caller, account.id, &change, hash.as_deref()).await)
        .on_unique("accounts_username_key", conflict_error(&["username"]))
        .on_unique("accounts_email_key", conflict_error(&["email"]))?;
    Ok(view(row))
}

/// The account of this number, for itself and for the platform's staff.
///
/// # Errors
/// [`Error::NOT_FOUND`], and [`Error::NOT_YOURS`] for anyone else.
pub async fn load(tx: &mut Tx, caller: &Caller, number: &AccountNumber) -> Result<AccountRow> {
    let row = store::find_by_number(tx, number).await?.ok_or(Error::NOT_FOUND)?;
    caller.require_account(row.id)?;
    Ok(row)
}

/// The accounts of these identifiers as they are answered to this caller, in one query: all of its own account and, for the
/// platform's staff, of everyone's; of others what [`view_for_others`] shows.
///
/// # Errors
/// When the database fails.
pub async fn views_for(tx: &mut Tx, caller: &Caller, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, Account>> {
    Ok(store::find_all(tx, ids).await?.into_iter().map(|row| (row.id, view_for(caller, row))).collect())
}

/// One of them.
pub fn view_for(caller: &Caller, row: AccountRow) -> Account {
    if caller.is_administrator() || caller.is(row.id) { view(row) } else { view_for_others(row) }
}

/// An account as somebody else sees it who has to do with its tickets or administers a host with it: who it is and its e-mail
/// address, and not where to find the person.
pub fn view_for_others(row: AccountRow) -> Account {
    let none = String::new;
    view(AccountRow {
        date_of_birth: None,
        phone: none(),
        country: none(),
        first_address_line: none(),
        second_address_line: none(),
        city: none(),
        state: none(),
        ..row
    })
}

/// An account as it is answered.
pub fn view(row: AccountRow) -> Account {
    Account {
        uri: Uri(format!("/accounts/{}", row.number)),
        preferences: Uri(format!("/accounts/{}/preferences", row.number)),
        number: AccountNumber(row.number),
        username: row.username,
        email: row.email,
        role: row.role,
        verified: row.verified,
        activated: row.activated,
        first_name: row.first_name,
        last_name: row.last_name,
        title: row.title,
        date_of_birth: row.date_of_birth.map(Date),
        phone: row.phone,
        country: row.country,
        first_address_line: row.first_address_line,
        second_address_line: row.second_address_line,
        city: row.city,
        state: row.state,
    }
}

/// The row of a new account, which [`insert`] gives its identifier, and its password in clear.
fn new_row(new: AccountCreate) -> (AccountRow, String) {
    let row = AccountRow {
        id: Id::NONE,
        number: secret::account_number(),
        username: new.username,
        email: new.email,
        role: new.role.unwrap_or_default().into(),
        verified: false,
        activated: true,
        first_name: new.first_name.unwrap_or_default(),
        last_name: new.last_name.unwrap_or_default(),
        title: new.title.map(|title| title.as_str().to_owned()).unwrap_or_default(),
        date_of_birth: new.date_of_birth.map(|date| date.0),
        phone: new.phone.unwrap_or_default(),
        country: new.country.unwrap_or_default(),
        first_address_line: new.first_address_line.unwrap_or_default(),
        second_address_line: new.second_address_line.unwrap_or_default(),
        city: new.city.unwrap_or_default(),
        state: new.state.unwrap_or_default(),
    };
    (row, new.password.0)
}

/// Inserts an account, with another number where its own is taken.
async fn insert(app: &App, tx: &mut Tx, mut row: AccountRow, hash: &str) -> Result<AccountRow> {
    row.id = app.clock.next_id();
    require_free(tx, row.id, Some(&row.username), Some(&row.email)).await?;
    while !store::insert(tx, &row, hash).await? {
        row.number = secret::account_number();
    }
    Ok(row)
}

/// Changes an account. With another password, whoever is signed in with the old one is signed in no more, and resets
/// that are open count no more.
async fn apply(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    id: Id,
    change: &AccountUpdate,
    hash: Option<&str>,
) -> Result<AccountRow> {
    require_free(tx, id, change.username.as_deref(), change.email.as_deref()).await?;
    let row = store::update(tx, id, change, hash).await?.ok_or(Error::NOT_FOUND)?;
    if hash.is_some() {
        store::end_sessions(tx, id, caller.key, app.clock.now()).await?;
        store::invalidate_resets(tx, id).await?;
    }
    Ok(row)
}

/// Refuses a username and an e-mail address that another account holds, naming both where both are.
///
/// The unique indexes stand behind this, for two requests at the same moment; of them the database names only one.
async fn require_free(tx: &mut Tx, id: Id, username: Option<&str>, email: Option<&str>) -> Result<()> {
    match store::conflicting_fields(tx, id, username, email).await? {
        (false, false) => Ok(()),
        (true, false) => Err(conflict_error(&["username"])),
        (false, true) => Err(conflict_error(&["email"])),
        (true, true) => Err(conflict_error(&["username", "email"])),
    }
}

fn conflict_error(arguments: &[&str]) -> Error {
    Code::AccountTaken.with_message(format!("Another account has this {}.", arguments.join(" and this ")))
}
