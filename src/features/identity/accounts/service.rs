//! Operations on accounts.

use std::collections::HashMap;
use std::net::IpAddr;

use boxoffice_http::error::{Code, Error, FieldError, Result, ensure_no_field_errors, reject_if};
use boxoffice_http::rate_limit::CountedUse;
use boxoffice_openapi::BIRTH_DATE_DESCRIPTION;

use super::folded_names::folded_names;
use super::model::{
    Account, AccountCreate, AccountFilter, AccountNumber, AccountRole, AccountRow, AccountUpdate, LanguageInput, OptionalDate,
    Password, Profile,
};
use super::notice::{self, ChangedBy, Credential};
use super::store;
use crate::features::codes;
use crate::kernel::auth::{self, Caller, HashRequester};
use crate::kernel::db::{Reader, StaleRead, Tx, ViolationExt, transaction};
use crate::kernel::outbox;
use crate::kernel::types::api_types::{BirthDate, Uri};
use crate::kernel::types::id::Id;
use crate::kernel::types::language::Language;
use crate::kernel::types::paging::Page;
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

pub async fn list(ctx: &Ctx, filter: &AccountFilter) -> Result<Page<Account>> {
    Ok(store::list(&mut ctx.unit.read().await?, filter).await?.map(view))
}

/// A new account that [`insert`] or [`insert_guests`] can insert.
#[derive(Clone)]
pub struct PreparedAccount {
    /// Its row, without an identifier.
    pub row: AccountRow,
    password_hash: String,
}

/// Creates an account. Every caller may create a customer; only a platform administrator may create an administrator.
/// Without a language in the body, the account has the one that the client's `Accept-Language` prefers.
pub async fn sign_up(
    ctx: &Ctx,
    caller: &Caller,
    address: IpAddr,
    preferred: Option<Language>,
    mut new: AccountCreate,
) -> Result<Account> {
    reject_if(new.role == Some(AccountRole::Administrator) && !caller.is_administrator(), Error::FORBIDDEN)?;
    new.profile.language = new.profile.language.or(Some(LanguageInput(preferred)));
    limit_taken_names(ctx, caller, address, create(ctx, Some((caller, address)), new)).await
}

/// Creates an account of any role, for a caller at this address or for a command. The calling code must have validated the fields
/// as the contract does.
///
/// # Errors
/// [`Error::Invalid`] if the password is too common or the date of birth is in the future, [`codes::ACCOUNT_TAKEN`] if another account
/// has the username or e-mail address.
pub async fn create(ctx: &Ctx, caller: Option<(&Caller, IpAddr)>, new: AccountCreate) -> Result<Account> {
    let future_birth = future_birth(ctx, new.profile.date_of_birth.as_ref());
    let (row, password) = new_row(new);
    let weakness = ctx.app.passwords.weakness(&password, &[&row.username, &row.email]);
    ensure_no_field_errors([weakness, future_birth].into_iter().flatten().collect())?;
    // Before the password is hashed, which is expensive, and once more with the insert.
    require_free(&mut ctx.unit.read().await?, Id::NONE, Some(&row.username), Some(&row.email)).await?;
    let requester = HashRequester { account: None, address: caller.map(|(_, address)| address) };
    let password_hash = ctx.app.passwords.hash(requester, password).await?;
    let new = PreparedAccount { row, password_hash };
    let inserted = transaction!(ctx.unit, |tx| {
        if let Some((caller, _)) = caller {
            auth::require_not_revoked(tx, caller).await?;
        }
        insert(&ctx.app, tx, new.clone()).await
    });
    let row = inserted
        .on_unique("accounts_username_key", conflict_error(&["username"]))
        .on_unique("accounts_email_key", conflict_error(&["email"]))?;
    Ok(view(row))
}

/// Checks and hashes the password of a new account, outside of any transaction because it takes long.
///
/// # Errors
/// [`Error::Invalid`] if the password is too common.
pub async fn prepare(app: &App, new: AccountCreate) -> Result<PreparedAccount> {
    let (row, password) = new_row(new);
    ensure_no_field_errors(app.passwords.weakness(&password, &[&row.username, &row.email]).into_iter().collect())?;
    let by_command = HashRequester { account: None, address: None };
    Ok(PreparedAccount { row, password_hash: app.passwords.hash(by_command, password).await? })
}

pub async fn get(ctx: &Ctx, caller: &Caller, number: &AccountNumber) -> Result<Account> {
    Ok(view(load(&mut ctx.unit.read().await?, caller, number).await?))
}

/// Updates an account for a caller at this address.
pub async fn update(
    ctx: &Ctx,
    caller: &Caller,
    address: IpAddr,
    number: &AccountNumber,
    change: AccountUpdate,
) -> Result<Account> {
    let account = load(&mut ctx.unit.read().await?, caller, number).await?;
    let is_new = |name: &Option<String>, own: &str| name.as_ref().is_some_and(|name| !name.eq_ignore_ascii_case(own));
    let has_new_name = is_new(&change.username, &account.username) || is_new(&change.email, &account.email);
    let update = change_account(ctx, caller, address, account, change);
    if has_new_name { limit_taken_names(ctx, caller, address, update).await } else { update.await }
}

/// Checks everything that could reject the change before the password is hashed, which is expensive.
async fn change_account(
    ctx: &Ctx,
    caller: &Caller,
    address: IpAddr,
    account: AccountRow,
    mut change: AccountUpdate,
) -> Result<Account> {
    let new_email = change.email.as_ref().filter(|email| !email.eq_ignore_ascii_case(&account.email));
    let changes_credentials = change.password.is_some() || new_email.is_some();
    if changes_credentials {
        require_session(caller)?;
    }
    let password = change.password.take();
    if password.is_some()
        && let Some(precondition) = ctx.unit.precondition()
    {
        precondition.check_once().await?;
    }
    let own_names = [change.username.as_ref().unwrap_or(&account.username), change.email.as_ref().unwrap_or(&account.email)];
    let weakness = password.as_ref().and_then(|password| ctx.app.passwords.weakness(&password.0, &own_names.map(String::as_str)));
    let future_birth = future_birth(ctx, change.profile.date_of_birth.as_ref());
    ensure_no_field_errors([weakness, future_birth].into_iter().flatten().collect())?;
    let (username, email) = (change.username.as_deref(), change.email.as_deref());
    require_free(&mut ctx.unit.read().await?, account.id, username, email).await?;
    let counted = if changes_credentials { Some(ctx.app.limits.credential_changes.count(account.id)?) } else { None };
    let hash = match password {
        Some(password) => {
            let requester = HashRequester { account: Some(account.id), address: Some(address) };
            let hash = ctx.app.passwords.hash(requester, password.0).await;
            if hash.is_err() {
                counted.into_iter().for_each(CountedUse::release);
            }
            Some(hash?)
        }
        None => None,
    };
    let row = transaction!(ctx.unit, |tx| change_account_in_tx(&ctx.app, tx, caller, account.id, &change, hash.as_deref()).await)
        .on_unique("accounts_username_key", conflict_error(&["username"]))
        .on_unique("accounts_email_key", conflict_error(&["email"]))?;
    Ok(view(row))
}

/// Rejects a change of credentials with a key of a program, unless it is a platform administrator's. Such a key has a role and an end.
/// Its holder could set a password and log in.
fn require_session(caller: &Caller) -> Result<()> {
    if caller.is_session || caller.is_administrator() {
        return Ok(());
    }
    Err(Code::RESOURCE_NOT_YOURS.with_message("Only a session can change the password or the e-mail address."))
}

/// Runs a request that reveals if another account has a username or an e-mail address, and limits how often a caller can find
/// that out.
async fn limit_taken_names<T>(ctx: &Ctx, caller: &Caller, address: IpAddr, work: impl Future<Output = Result<T>>) -> Result<T> {
    // Counted before the work, so that concurrent requests can't exceed the limits. Only rejections because of a name stay counted.
    let counted = ctx.app.limits.count_name(caller, address)?;
    let outcome = work.await;
    if !matches!(outcome, Err(Error::Rejected(codes::ACCOUNT_TAKEN, _))) {
        counted.into_iter().for_each(CountedUse::release);
    }
    outcome
}

/// Returns the account with this number, if the caller is that account or a platform administrator.
///
/// # Errors
/// [`Error::NOT_FOUND`] if there is no such account, [`Error::FORBIDDEN`] for any other caller.
pub async fn load(reader: &mut Reader, caller: &Caller, number: &AccountNumber) -> Result<AccountRow> {
    let row = store::find_by_number(reader, number).await?.ok_or(Error::NOT_FOUND)?;
    caller.require_account(row.id)?;
    Ok(row)
}

/// Returns the accounts with these identifiers as this caller may see them, in one query. The caller's own account has all
/// fields, and a platform administrator gets all fields of every account. Other accounts are reduced by [`view_for_others`].
pub async fn views_for(reader: &mut Reader, caller: &Caller, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, Account>> {
    Ok(store::find_all(reader, ids).await?.into_iter().map(|row| (row.id, view_for(caller, row))).collect())
}

/// Returns one account as this caller may see it; see [`views_for`].
pub fn view_for(caller: &Caller, row: AccountRow) -> Account {
    if caller.is_administrator() || caller.is(row.id) { view(row) } else { view_for_others(row) }
}

/// Returns an account as seen by other callers, who deal with its tickets or administer a host with it. It has the name and the
/// e-mail address, but no date of birth, phone number or address.
pub fn view_for_others(row: AccountRow) -> Account {
    let empty = String::new;
    view(AccountRow {
        date_of_birth: None,
        phone: empty(),
        country: empty(),
        first_address_line: empty(),
        second_address_line: empty(),
        city: empty(),
        state: empty(),
        language: None,
        ..row
    })
}

/// Returns the account with all fields.
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
        date_of_birth: OptionalDate(row.date_of_birth.unwrap_or_default()),
        phone: row.phone,
        country: row.country,
        first_address_line: row.first_address_line,
        second_address_line: row.second_address_line,
        city: row.city,
        state: row.state,
        language: row.language.map(Language::code).unwrap_or_default().to_owned(),
    }
}

/// Returns a field error of `dateOfBirth` if it is in the future.
fn future_birth(ctx: &Ctx, birth: Option<&BirthDate>) -> Option<FieldError> {
    let is_future = birth.is_some_and(|birth| birth.is_after(ctx.app.clock.now()));
    is_future.then(|| FieldError::invalid("dateOfBirth", format!("must be {BIRTH_DATE_DESCRIPTION}")))
}

/// Returns the row of a new account and its plain-text password. [`insert`] sets the row's identifier and number.
fn new_row(new: AccountCreate) -> (AccountRow, String) {
    let profile = new.profile;
    let row = AccountRow {
        id: Id::NONE,
        number: String::new(),
        username: new.username,
        email: new.email,
        role: new.role.unwrap_or_default().into(),
        verified: false,
        activated: true,
        first_name: profile.first_name.unwrap_or_default(),
        last_name: profile.last_name.unwrap_or_default(),
        title: profile.title.map(|title| title.0).unwrap_or_default(),
        date_of_birth: profile.date_of_birth.and_then(|date| date.0),
        phone: profile.phone.unwrap_or_default(),
        country: profile.country.unwrap_or_default(),
        first_address_line: profile.first_address_line.unwrap_or_default(),
        second_address_line: profile.second_address_line.unwrap_or_default(),
        city: profile.city.unwrap_or_default(),
        state: profile.state.unwrap_or_default(),
        language: profile.language.and_then(|language| language.0),
        guest: false,
        removed: false,
    };
    (row, new.password.0)
}

/// Inserts an account.
pub async fn insert(app: &App, tx: &mut Tx, new: PreparedAccount) -> Result<AccountRow> {
    let PreparedAccount { mut row, password_hash } = new;
    row.id = app.clock.next_id();
    row.number = secret::account_number();
    require_free(tx, row.id, Some(&row.username), Some(&row.email)).await?;
    let inserted = store::insert(tx.writes(), [(&row, &*password_hash)]).execute().await;
    inserted.on_unique("accounts_number_key", StaleRead)?;
    Ok(row)
}

/// Prepares a guest: the account of an e-mail address that has none, for tickets that are given to it. Its password is unknown.
/// Only the owner of the address can reset it.
///
/// # Errors
/// [`Code::SERVER_UNAVAILABLE`] when too many passwords are being hashed.
pub async fn prepare_guest(app: &App, email: String) -> Result<PreparedAccount> {
    let number = secret::account_number();
    let username = format!("guest-{}", number.to_ascii_lowercase());
    let new = AccountCreate { username, password: Password(String::new()), email, profile: Profile::default(), role: None };
    let row = AccountRow { number, guest: true, ..new_row(new).0 };
    Ok(PreparedAccount { row, password_hash: app.passwords.unusable_hash().await? })
}

/// Inserts guests whose rows have identifiers.
///
/// # Errors
/// [`StaleRead`] if one of the addresses has an account by now.
pub async fn insert_guests(tx: &mut Tx, guests: impl IntoIterator<Item = &PreparedAccount>) -> Result<()> {
    let rows = guests.into_iter().map(|guest| (&guest.row, &*guest.password_hash));
    store::insert(tx.writes(), rows).execute().await.on_unique("accounts_email_key", StaleRead)
}

/// Updates an account. A new password or e-mail address ends all sessions of the account except the caller's, closes its pending
/// codes, and is reported to the old address, because it may be the work of an intruder.
async fn change_account_in_tx(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    id: Id,
    change: &AccountUpdate,
    hash: Option<&str>,
) -> Result<AccountRow> {
    let before = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    auth::require_not_revoked(tx, caller).await?;
    require_free(tx, id, change.username.as_deref(), change.email.as_deref()).await?;
    let row = store::update(tx, id, change, hash).await?.ok_or(Error::NOT_FOUND)?;
    let text = folded_names(&row);
    if text != folded_names(&before) {
        store::set_folded_names(tx, &[(id, text)]).await?;
    }
    let changed = match (hash.is_some(), !row.email.eq_ignore_ascii_case(&before.email)) {
        (false, false) => return Ok(row),
        (true, false) => Credential::Password,
        (false, true) => Credential::Email,
        (true, true) => Credential::Both,
    };
    // The address may have changed since the account was read.
    require_session(caller)?;
    store::end_sessions(tx, id, caller.key, app.clock.now()).await?;
    store::close_codes(tx, id, changed != Credential::Password).await?;
    let by = if caller.is(id) { ChangedBy::Owner } else { ChangedBy::Staff };
    outbox::push(app, tx, [notice::of_change(app, &before, changed, by)]).await?;
    Ok(row)
}

/// Sets another password after a password reset. Ends every session of the account, closes its other password resets, and reports the
/// change to its address.
pub async fn reset_password(app: &App, tx: &mut Tx, account: &AccountRow, password_hash: &str) -> Result<()> {
    store::set_password(tx, account.id, password_hash, app.clock.now()).await?;
    store::close_codes(tx, account.id, false).await?;
    outbox::push(app, tx, [notice::of_change(app, account, Credential::Password, ChangedBy::Code)]).await
}

/// Rejects a username or an e-mail address that another account has. If both are taken, the error names both.
///
/// The unique indexes reject concurrent requests as well, but the database reports only one of the two violations.
async fn require_free(reader: &mut Reader, id: Id, username: Option<&str>, email: Option<&str>) -> Result<()> {
    match store::conflicting_fields(reader, id, username, email).await? {
        (false, false) => Ok(()),
        (true, false) => Err(conflict_error(&["username"])),
        (false, true) => Err(conflict_error(&["email"])),
        (true, true) => Err(conflict_error(&["username", "email"])),
    }
}

fn conflict_error(fields: &[&str]) -> Error {
    let hint = if fields.contains(&"email") { " If the address is yours, reset the password of its account." } else { "" };
    codes::ACCOUNT_TAKEN.with_message(format!("Another account has this {}.{hint}", fields.join(" and this ")))
}
