//! SQL of accounts.

use std::collections::HashMap;

use boxoffice_http::error::Result;

use super::folded_names::folded_names;
use super::model::{AccountFilter, AccountNumber, AccountRow, AccountUpdate, Role};
use crate::kernel::auth::KeyKind;
use crate::kernel::db::{Reader, Tx, Writes, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::language::Language;
use crate::kernel::types::paging::PagedRows;

// The columns of `AccountRow`.
define_sql!(
    columns,
    "id, number, username, email, role, verified, activated, first_name, last_name, title, date_of_birth, phone, \
     country, first_address_line, second_address_line, city, state, language, guest, removed"
);
pub(in crate::features) use columns;

/// SQL expression for the size of an account `p` in a page, in bytes.
const BYTES: &str = "600 + octet_length(p.first_name) + octet_length(p.last_name) + octet_length(p.country)
     + octet_length(p.first_address_line) + octet_length(p.second_address_line) + octet_length(p.city) + octet_length(p.state)";

/// Returns the SQL expression for the size of an account in a page, in bytes, by the column with its identifier.
pub fn bytes_sql(id: &str) -> String {
    format!("coalesce((select {BYTES} from accounts p where p.id = {id}), 600)")
}

/// Returns the sizes of these accounts in a page, in bytes.
pub async fn sizes(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, i64>> {
    let sizes = reader.select(&format!("p.id, cast({BYTES} as bigint) from accounts p where true"));
    Ok(sizes.and_in("p.id", ids).all::<(Id, i64)>().await?.into_iter().collect())
}

/// Returns the SQL expression for the text in which the names of an account are searched, by the column with its identifier. A
/// server of an earlier version doesn't write it, so it may be missing until the next start.
pub fn folded_names_sql(id: &str) -> String {
    format!(
        "(select coalesce(p.folded_names, lower(p.first_name || ' ' || p.last_name || ' ' || p.username || ' ' || p.email))
          from accounts p where p.id = {id})"
    )
}

/// Locks and returns some accounts whose names were written by an earlier version.
pub async fn lock_without_folded_names(tx: &mut Tx, most: i64) -> Result<Vec<AccountRow>> {
    let accounts = tx.select(concat!(columns!(), " from accounts where folded_names is null order by id"));
    accounts.push_bind(" limit ?", most).push_lock(" for no key update").all().await
}

/// Sets the texts in which the names of locked accounts are searched.
pub async fn set_folded_names(tx: &mut Tx, texts: &[(Id, String)]) -> Result<()> {
    if texts.is_empty() {
        return Ok(());
    }
    let update = tx.update("accounts set folded_names = v.column2 from (").values(texts, |columns| {
        columns.add(|(id, _)| *id).add(|(_, text)| text.clone());
    });
    update.push(") as v where accounts.id = v.column1").execute().await
}

/// Returns whether any account exists.
pub async fn exists_any(reader: &mut Reader) -> Result<bool> {
    reader.query("select exists (select 1 from accounts)").scalar().await
}

/// Returns the account with this identifier, removed or not.
pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<AccountRow>> {
    reader.query(concat!("select ", columns!(), " from accounts where id = $1")).bind(id).optional().await
}

/// Returns the account with this number, unless it has been removed.
pub async fn find_by_number(reader: &mut Reader, number: impl AsRef<str>) -> Result<Option<AccountRow>> {
    let find = reader.query(concat!("select ", columns!(), " from accounts where number = $1 and removed = false"));
    find.bind(number.as_ref().to_owned()).optional().await
}

/// Returns the accounts with these numbers that have not been removed, in no particular order.
pub async fn find_by_numbers(reader: &mut Reader, numbers: Vec<String>) -> Result<Vec<AccountRow>> {
    reader.select(concat!(columns!(), " from accounts where removed = false")).and_in("number", numbers).all().await
}

/// Returns the identifier by which a list is filtered, for the number of an account in a filter, removed or not: orders and the audit
/// log keep the data of removed accounts. [`Id::NONE`], which filters everything out, if no account has the number.
pub async fn id_for_filter(reader: &mut Reader, number: Option<&AccountNumber>) -> Result<Option<Id>> {
    match number {
        Some(number) => Ok(Some(id_of(reader, number).await?.unwrap_or(Id::NONE))),
        None => Ok(None),
    }
}

/// Returns the identifier of the account with this number, removed or not.
pub async fn id_of(reader: &mut Reader, number: impl AsRef<str>) -> Result<Option<Id>> {
    reader.query("select id from accounts where number = $1").bind(number.as_ref().to_owned()).optional_scalar().await
}

/// Locks and returns the account, unless it has been removed. The row includes all earlier changes; later changes by other
/// transactions wait until this one ends. Lock an account before adding anything that a removed account must not have.
pub async fn lock(tx: &mut Tx, id: Id) -> Result<Option<AccountRow>> {
    Ok(lock_all(tx, [id]).await?.pop())
}

/// Locks and returns several accounts like [`lock`], by ascending identifier and without the removed ones.
pub async fn lock_all(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<Vec<AccountRow>> {
    tx.select(concat!(columns!(), " from accounts where removed = false")).and_in("id", ids).for_update().all().await
}

/// Serializes the transactions that activate or deactivate platform administrators. Locks the oldest administrator's row on
/// behalf of all: roles never change and rows are never deleted, so it is always the same row.
pub async fn lock_administrators(tx: &mut Tx) -> Result<()> {
    let oldest = tx.select("id from accounts where id = (select min(id) from accounts where role = 'administrator')");
    oldest.for_update().lock().await
}

/// Returns the active platform administrators, the oldest account first.
pub async fn administrators(reader: &mut Reader) -> Result<Vec<Id>> {
    let administrators = reader.query("select id from accounts where role = 'administrator' and activated order by id");
    administrators.scalars().await
}

/// Returns whether a platform administrator other than this one is active.
pub async fn has_other_administrators(reader: &mut Reader, id: Id) -> Result<bool> {
    let other = "select exists (select 1 from accounts where role = 'administrator' and activated and id <> $1)";
    reader.query(other).bind(id).scalar().await
}

/// Returns the accounts with these identifiers, in no particular order.
pub async fn find_all(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<Vec<AccountRow>> {
    reader.select(concat!(columns!(), " from accounts where true")).and_in("id", ids).all().await
}

/// Returns a page of accounts, the oldest first.
pub async fn list(reader: &mut Reader, filter: &AccountFilter) -> Result<PagedRows<AccountRow>> {
    reader
        .list(columns!(), "from accounts a where a.removed = false")
        .push_list_count("accounts", Id(0))
        .and_where("a.number = ?", filter.number.clone().map(|number| number.0))
        .and_where("lower(a.email) = lower(?)", filter.email.clone())
        .and_where("lower(a.username) = lower(?)", filter.username.clone())
        .page("a.id", filter.paging)
        .await
}

/// Returns whether an account other than `id` has this username, and whether one has this e-mail address.
pub async fn conflicting_fields(
    reader: &mut Reader,
    id: Id,
    username: Option<&str>,
    email: Option<&str>,
) -> Result<(bool, bool)> {
    let conflicts = reader.query(
        "select exists (select 1 from accounts where lower(username) = lower($2) and id <> $1),
         exists (select 1 from accounts where lower(email) = lower($3) and id <> $1)",
    );
    conflicts.bind(id).bind(username.map(str::to_owned)).bind(email.map(str::to_owned)).one().await
}

/// Inserts accounts, each with the hash of its password.
pub fn insert<'a, 'r>(writes: Writes<'a>, accounts: impl IntoIterator<Item = (&'r AccountRow, &'r str)>) -> Writes<'a> {
    let into =
        "accounts (id, number, username, email, password_hash, role, verified, activated, guest, first_name, last_name, title,
        date_of_birth, phone, country, first_address_line, second_address_line, city, state, language, folded_names)";
    writes.insert_rows(into, accounts, |columns| {
        columns.add(|(row, _)| row.id).add(|(row, _)| row.number.clone()).add(|(row, _)| row.username.clone());
        columns.add(|(row, _)| row.email.clone()).add(|(_, password_hash)| (*password_hash).to_owned()).add(|(row, _)| row.role);
        columns.add(|(row, _)| row.verified).add(|(row, _)| row.activated).add(|(row, _)| row.guest);
        columns.add(|(row, _)| row.first_name.clone()).add(|(row, _)| row.last_name.clone()).add(|(row, _)| row.title.clone());
        columns.add(|(row, _)| row.date_of_birth.clone()).add(|(row, _)| row.phone.clone()).add(|(row, _)| row.country.clone());
        columns.add(|(row, _)| row.first_address_line.clone()).add(|(row, _)| row.second_address_line.clone());
        columns.add(|(row, _)| row.city.clone()).add(|(row, _)| row.state.clone()).add(|(row, _)| row.language);
        columns.add(|(row, _)| folded_names(row));
    })
}

/// Updates the fields present in `change` and leaves the others unchanged. A changed e-mail address is no longer verified.
pub async fn update(tx: &mut Tx, id: Id, change: &AccountUpdate, password_hash: Option<&str>) -> Result<Option<AccountRow>> {
    let profile = &change.profile;
    tx.query(concat!(
        "update accounts set username = coalesce($2, username), email = coalesce($3, email),
         verified = verified and lower(coalesce($3, email)) = lower(email), password_hash = coalesce($4, password_hash),
         guest = guest and $4 is null, first_name = coalesce($5, first_name), last_name = coalesce($6, last_name),
         title = coalesce($7, title),
         date_of_birth = nullif(coalesce($8, date_of_birth), ''), phone = coalesce($9, phone), country = coalesce($10, country),
         first_address_line = coalesce($11, first_address_line), second_address_line = coalesce($12, second_address_line),
         city = coalesce($13, city), state = coalesce($14, state),
         language = nullif(coalesce($15, language), '') where id = $1 and removed = false returning ",
        columns!()
    ))
    .bind(id)
    .bind(change.username.clone())
    .bind(change.email.clone())
    .bind(password_hash.map(str::to_owned))
    .bind(profile.first_name.clone())
    .bind(profile.last_name.clone())
    .bind(profile.title.clone().map(|title| title.0))
    .bind(profile.date_of_birth.clone().map(|date| date.0.unwrap_or_default()))
    .bind(profile.phone.clone())
    .bind(profile.country.clone())
    .bind(profile.first_address_line.clone())
    .bind(profile.second_address_line.clone())
    .bind(profile.city.clone())
    .bind(profile.state.clone())
    .bind(profile.language.as_ref().map(|language| language.0.map(Language::code).unwrap_or_default().to_owned()))
    .optional()
    .await
}

/// Returns whether `identification` can be a username or an e-mail address. Both are ASCII, for which all databases fold case
/// alike. Other text is not looked up, because some databases fold `İ` or the Kelvin sign to an ASCII letter.
pub fn can_be_identification(identification: &str) -> bool {
    identification.is_ascii()
}

/// Returns whether an account has this username or e-mail address, without spaces around it, and this role if one is set.
pub async fn exists(reader: &mut Reader, identification: &str, role: Option<Role>) -> Result<bool> {
    let identification = identification.trim();
    if !can_be_identification(identification) {
        return Ok(false);
    }
    reader
        .query(
            "select exists (select 1 from accounts
         where (lower(username) = lower($1) or lower(email) = lower($1)) and role = coalesce($2, role)
         and removed = false)",
        )
        .bind(identification.to_owned())
        .bind(role)
        .scalar()
        .await
}

/// Returns the identifier of the active account with this e-mail address.
pub async fn id_of_email(reader: &mut Reader, email: &str) -> Result<Option<Id>> {
    if !can_be_identification(email) {
        return Ok(None);
    }
    let query = "select id from accounts where lower(email) = lower($1) and removed = false and activated";
    reader.query(query).bind(email.to_owned()).optional_scalar().await
}

/// Returns the accounts with these e-mail addresses that have not been removed, in no particular order.
pub async fn find_by_emails(reader: &mut Reader, emails: impl IntoIterator<Item = &str>) -> Result<Vec<AccountRow>> {
    let emails: Vec<String> =
        emails.into_iter().filter(|email| can_be_identification(email)).map(str::to_ascii_lowercase).collect();
    reader.select(concat!(columns!(), " from accounts where removed = false")).and_in("lower(email)", emails).all().await
}

/// Locks and returns the account with this e-mail address, like [`lock`].
pub async fn lock_by_email(tx: &mut Tx, email: &str) -> Result<Option<AccountRow>> {
    if !can_be_identification(email) {
        return Ok(None);
    }
    let account = tx.select(concat!(columns!(), " from accounts where removed = false"));
    let account = account.and_where("lower(email) = lower(?)", Some(email.to_owned()));
    account.for_update().optional().await
}

/// Marks the account's e-mail address as verified.
pub async fn set_verified(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("update accounts set verified = true where id = $1").bind(id).execute().await
}

/// Sets another password, and ends every session of the account.
pub async fn set_password(tx: &mut Tx, id: Id, password_hash: &str, now: Timestamp) -> Result<()> {
    let update = "update accounts set password_hash = $2, guest = false where id = $1";
    tx.query(update).bind(id).bind(password_hash.to_owned()).execute().await?;
    end_sessions(tx, id, Id::NONE, now).await
}

/// Ends every session of the account except the one with the key `except`.
pub async fn end_sessions(tx: &mut Tx, account: Id, except: Id, now: Timestamp) -> Result<()> {
    tx.query("update api_keys set ended = $4 where account_id = $1 and kind = $2 and id <> $3 and ended is null")
        .bind(account)
        .bind(KeyKind::Session)
        .bind(except)
        .bind(now)
        .execute()
        .await
}

/// Closes the pending password resets of the account, because they were requested before the new password was set, and also its
/// verifications if it has another e-mail address. Writes the `codes` table directly: `verification_codes` depends on this module, not
/// the other way round.
pub async fn close_codes(tx: &mut Tx, account: Id, has_other_email: bool) -> Result<()> {
    let close = "update codes set status = 'Closed' where account_id = $1 and status = 'Pending' and (kind = 'reset' or $2)";
    tx.query(close).bind(account).bind(has_other_email).execute().await
}

/// Ends every key that acts for the account. A public key that was created for it acts for no account.
pub async fn end_keys(tx: &mut Tx, account: Id, now: Timestamp) -> Result<()> {
    let end = tx.query("update api_keys set ended = $2 where account_id = $1 and role <> 'public' and ended is null");
    end.bind(account).bind(now).execute().await
}

pub async fn set_activated(tx: &mut Tx, id: Id, activated: bool) -> Result<Option<AccountRow>> {
    let update = tx.query(concat!("update accounts set activated = $2 where id = $1 returning ", columns!()));
    update.bind(id).bind(activated).optional().await
}

/// Deletes the addresses from which someone has signed in to the account. Writes the table directly: `sessions` depends on this
/// module, not the other way round.
pub async fn delete_login_addresses(tx: &mut Tx, account: Id) -> Result<()> {
    tx.query("delete from login_addresses where account_id = $1").bind(account).execute().await
}

/// Erases all data of an account except its number and role, to which the ledger refers.
pub async fn erase(tx: &mut Tx, id: Id, username: &str, email: &str, password_hash: &str) -> Result<()> {
    tx.query(
        "update accounts set username = $2, email = $3, password_hash = $4, verified = false, activated = false, guest = false,
         first_name = '', last_name = '', title = '', date_of_birth = null, phone = '', country = '',
         first_address_line = '', second_address_line = '', city = '', state = '', language = null, folded_names = '',
         removed = true where id = $1",
    )
    .bind(id)
    .bind(username.to_owned())
    .bind(email.to_owned())
    .bind(password_hash.to_owned())
    .execute()
    .await
}
