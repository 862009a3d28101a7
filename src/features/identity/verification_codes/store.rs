//! SQL of verification codes.

use boxoffice_http::error::Result;

use super::model::{CodeGroup, CodePurpose, CodeRow};
use crate::kernel::db::{Reader, Tx};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

pub async fn insert(tx: &mut Tx, row: &CodeRow) -> Result<()> {
    tx.query(
        "insert into codes (hash, kind, account_id, email, code_hash, expires, tries, status, known_address)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(row.hash.clone())
    .bind(row.kind)
    .bind(row.account_id)
    .bind(row.email.clone())
    .bind(row.code_hash.clone())
    .bind(row.expires)
    .bind(row.tries)
    .bind(row.status)
    .bind(row.known_address)
    .execute()
    .await
}

pub async fn find(reader: &mut Reader, kind: CodePurpose, hash: &str) -> Result<Option<CodeRow>> {
    let find = "select hash, kind, account_id, email, code_hash, expires, tries, status, known_address from codes
        where hash = $1 and kind = $2";
    reader.query(find).bind(hash.to_owned()).bind(kind).optional().await
}

/// Returns the number of attempts at these codes that expire after `since`.
pub async fn tries_since(reader: &mut Reader, codes: CodeGroup, since: Timestamp) -> Result<i64> {
    let tries = "select coalesce(cast(sum(tries) as bigint), 0) from codes
        where account_id = $1 and kind = $2 and known_address = $3 and expires > $4";
    reader.query(tries).bind(codes.account).bind(codes.kind).bind(codes.known_address).bind(since).scalar().await
}

/// Returns the first end of these codes that were tried and expire after `since`.
pub async fn first_end(reader: &mut Reader, codes: CodeGroup, since: Timestamp) -> Result<Option<Timestamp>> {
    let first = "select expires from codes where account_id = $1 and kind = $2 and known_address = $3 and expires > $4
        and tries > 0 order by expires limit 1";
    reader.query(first).bind(codes.account).bind(codes.kind).bind(codes.known_address).bind(since).optional_scalar().await
}

/// Deletes the codes of an account that expired at or before this time.
pub async fn delete_expired(tx: &mut Tx, account: Id, before: Timestamp) -> Result<()> {
    tx.query("delete from codes where account_id = $1 and expires <= $2").bind(account).bind(before).execute().await
}

/// Deletes some of the codes of all accounts that expired before this time, and returns their number.
pub async fn delete_expired_before(tx: &mut Tx, before: Timestamp) -> Result<u64> {
    let delete = "delete from codes where hash in (select hash from codes where expires < $1 order by expires limit 1000)";
    tx.query(delete).bind(before).rows_affected().await
}

/// Replaces the end of codes that end after `latest`. Returns their number.
pub async fn set_end(tx: &mut Tx, latest: Timestamp, end: Timestamp) -> Result<u64> {
    tx.query("update codes set expires = $1 where expires > $2").bind(end).bind(latest).rows_affected().await
}

/// Closes those of these codes that are pending.
pub async fn close(tx: &mut Tx, codes: CodeGroup) -> Result<()> {
    let update = "update codes set status = 'Closed'
        where account_id = $1 and kind = $2 and known_address = $3 and status = 'Pending'";
    tx.query(update).bind(codes.account).bind(codes.kind).bind(codes.known_address).execute().await
}

/// Counts an attempt at a code. Returns false, and counts nothing, if the code is no longer valid.
pub async fn count_try(tx: &mut Tx, hash: &str, now: Timestamp, max_attempts: i64) -> Result<bool> {
    let updated = tx
        .query("update codes set tries = tries + 1 where hash = $1 and status = 'Pending' and expires > $2 and tries < $3")
        .bind(hash.to_owned())
        .bind(now)
        .bind(max_attempts)
        .rows_affected()
        .await?;
    Ok(updated == 1)
}

pub async fn set_used(tx: &mut Tx, hash: &str) -> Result<()> {
    tx.query("update codes set status = 'Used' where hash = $1").bind(hash.to_owned()).execute().await
}

/// Deletes every code of an account that is about to be erased.
pub async fn delete_of_account(tx: &mut Tx, account: Id) -> Result<()> {
    tx.query("delete from codes where account_id = $1").bind(account).execute().await
}
