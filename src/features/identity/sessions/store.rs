//! SQL of sessions.

use super::model::{Credentials, SessionRow};
use crate::features::identity::accounts;
use crate::kernel::auth::KeyKind;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};
use crate::kernel::db::Tx;
use boxoffice_http::error::Result;

/// The account with this username or e-mail address. It can only be one: no username has an `@`.
pub async fn credentials(tx: &mut Tx, identification: &str) -> Result<Option<Credentials>> {
    if !accounts::is_allowed_region(identification) {
        return Ok(None);
    }
    tx.query("select * from accounts where (lower(username) = lower($1) or lower(email) = lower($1)) and removed = false")
        .bind(identification.to_owned())
        .optional()
        .await
}

/// Whether this is still the hash of the account's password, which then is `better`, and the account active. Until the transaction
/// ends, nobody can change either, so that a change ends the session that is being opened too, or comes before it.
pub async fn lock(tx: &mut Tx, account: Id, password_hash: &str, better: &str) -> Result<bool> {
    let held = tx
        .query("update accounts set password_hash = $3 where id = $1 and password_hash = $2 and activated")
        .bind(account)
        .bind(password_hash.to_owned())
        .bind(better.to_owned())
        .execute()
        .await?;
    Ok(held == 1)
}

/// When this key was made.
pub async fn started_at(tx: &mut Tx, key: Id) -> Result<Timestamp> {
    tx.query("select created from api_keys where id = $1").bind(key).scalar().await
}

/// The sessions of an account, the oldest first.
pub async fn list(tx: &mut Tx, account: Id, paging: PageRequest) -> Result<PagedRows<SessionRow>> {
    tx.list("id, created, expires, last_used, ended", "from api_keys where true")
        .and_where("account_id = ?", Some(account))
        .and_where("kind = ?", Some(KeyKind::Session))
        .page("id", paging)
        .await
}

pub async fn find(tx: &mut Tx, account: Id, id: Id) -> Result<Option<SessionRow>> {
    tx.query("select id, created, expires, last_used, ended from api_keys where id = $1 and account_id = $2 and kind = $3")
        .bind(id)
        .bind(account)
        .bind(KeyKind::Session)
        .optional()
        .await
}

/// Ends a session that is open; tells whether it was.
pub async fn end(tx: &mut Tx, id: Id, now: Timestamp) -> Result<bool> {
    let end = "update api_keys set ended = $2 where id = $1 and ended is null and (expires is null or expires > $2)";
    Ok(tx.query(end).bind(id).bind(now).execute().await? == 1)
}
