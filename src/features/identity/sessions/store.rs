//! SQL of sessions.

use boxoffice_http::error::Result;

use super::model::{Credentials, SessionRow};
use crate::features::identity::accounts;
use crate::kernel::auth::KeyKind;
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `SessionRow`.
define_sql!(columns, "id, created, expires, last_used, ended");

/// Returns the account with this username or e-mail address, without spaces around it, and its password hash. At most one account
/// matches, because no username contains an `@`.
pub async fn credentials(reader: &mut Reader, identification: &str) -> Result<Option<Credentials>> {
    let identification = identification.trim();
    if !accounts::can_be_identification(identification) {
        return Ok(None);
    }
    let credentials = concat!(
        "select ",
        accounts::columns!(),
        ", password_hash from accounts where (lower(username) = lower($1) or lower(email) = lower($1)) and removed = false"
    );
    reader.query(credentials).bind(identification.to_owned()).optional().await
}

/// Locks the account and sets its password hash to `new_hash`, if the hash is still `password_hash` and the account is active.
/// Returns whether that was so. Later changes of the password or the activation wait until this transaction ends, and then end
/// the new session too.
pub async fn lock(tx: &mut Tx, account: Id, password_hash: &str, new_hash: &str) -> Result<bool> {
    let active = tx.select("id from accounts where activated").and_where("id = ?", Some(account));
    let is_unchanged = active.and_where("password_hash = ?", Some(password_hash.to_owned())).for_update().exists().await?;
    if is_unchanged && new_hash != password_hash {
        let update = "update accounts set password_hash = $2 where id = $1";
        tx.query(update).bind(account).bind(new_hash.to_owned()).execute().await?;
    }
    Ok(is_unchanged)
}

/// Returns the creation time of this key.
pub async fn started_at(reader: &mut Reader, key: Id) -> Result<Timestamp> {
    reader.query("select created from api_keys where id = $1").bind(key).scalar().await
}

/// Returns a page of the account's sessions, the oldest first.
pub async fn list(reader: &mut Reader, account: Id, paging: PageRequest) -> Result<PagedRows<SessionRow>> {
    reader
        .list(columns!(), "from api_keys where true")
        .and_where("account_id = ?", Some(account))
        .and_where("kind = ?", Some(KeyKind::Session))
        .page("id", paging)
        .await
}

pub async fn find(reader: &mut Reader, account: Id, id: Id) -> Result<Option<SessionRow>> {
    reader
        .query(concat!("select ", columns!(), " from api_keys where id = $1 and account_id = $2 and kind = $3"))
        .bind(id)
        .bind(account)
        .bind(KeyKind::Session)
        .optional()
        .await
}

/// Ends a session. Returns whether it was open.
pub async fn end(tx: &mut Tx, id: Id, now: Timestamp) -> Result<bool> {
    let end = "update api_keys set ended = $2 where id = $1 and ended is null and (expires is null or expires > $2)";
    Ok(tx.query(end).bind(id).bind(now).rows_affected().await? == 1)
}

/// Ends all open sessions of an account, and returns their number.
pub async fn end_all(tx: &mut Tx, account: Id, now: Timestamp) -> Result<u64> {
    let end = "update api_keys set ended = $3 where account_id = $1 and kind = $2 and ended is null and expires > $3";
    tx.query(end).bind(account).bind(KeyKind::Session).bind(now).rows_affected().await
}

/// Returns whether someone has signed in to the account from this address since then.
pub async fn is_known_address(reader: &mut Reader, account: Id, digest: &str, since: Timestamp) -> Result<bool> {
    let known = "select exists (select 1 from login_addresses where account_id = $1 and address = $2 and seen > $3)";
    reader.query(known).bind(account).bind(digest.to_owned()).bind(since).scalar().await
}

/// Stores the time of the last log-in from an address.
pub async fn remember_address(tx: &mut Tx, account: Id, digest: &str, now: Timestamp) -> Result<()> {
    tx.query(
        "insert into login_addresses (account_id, address, seen) values ($1, $2, $3)
         on conflict (account_id, address) do update set seen = excluded.seen",
    )
    .bind(account)
    .bind(digest.to_owned())
    .bind(now)
    .execute()
    .await
}

/// Deletes all addresses of an account except the ones that were used last.
pub async fn delete_older_addresses(tx: &mut Tx, account: Id, most: i64) -> Result<()> {
    let delete = "delete from login_addresses where account_id = $1 and address not in
        (select address from login_addresses where account_id = $1 order by seen desc, address limit $2)";
    tx.query(delete).bind(account).bind(most).execute().await
}

/// Deletes some of the addresses of all accounts that were last used before this time, and returns their number.
pub async fn delete_addresses_before(tx: &mut Tx, before: Timestamp) -> Result<u64> {
    let delete = "delete from login_addresses where (account_id, address) in
        (select account_id, address from login_addresses where seen <= $1 order by seen limit 1000)";
    tx.query(delete).bind(before).rows_affected().await
}

/// Deletes some of the sessions that expired before this time, and returns their number. The kind is part of the SQL text, so that
/// the database can use the partial index of sessions.
pub async fn delete_expired_before(tx: &mut Tx, before: Timestamp) -> Result<u64> {
    let delete = "delete from api_keys where kind = 'session' and id in
        (select id from api_keys where kind = 'session' and expires < $1 order by expires limit 500)";
    tx.query(delete).bind(before).rows_affected().await
}
