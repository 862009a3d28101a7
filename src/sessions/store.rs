//! SQL of sessions.

use super::model::Credentials;
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::db::Tx;
use crate::error::Result;

/// The account with this username or e-mail address. It can only be one: no username has an `@`.
pub async fn credentials(tx: &mut Tx, identification: &str) -> Result<Option<Credentials>> {
    tx.query("select * from accounts where lower(username) = lower($1) or lower(email) = lower($1)")
        .bind(identification.to_owned())
        .optional()
        .await
}

/// Whether this is still the account's password, and it active. Until the transaction ends, nobody can change either, so
/// that a change ends the session that is being opened too, or comes before it.
pub async fn hold(tx: &mut Tx, account: Id, password_hash: &str) -> Result<bool> {
    let held = tx
        .query("update accounts set activated = activated where id = $1 and password_hash = $2 and activated")
        .bind(account)
        .bind(password_hash.to_owned())
        .execute()
        .await?;
    Ok(held == 1)
}

/// When this key was made.
pub async fn started(tx: &mut Tx, key: Id) -> Result<Timestamp> {
    tx.query("select created from api_keys where id = $1").bind(key).scalar().await
}
