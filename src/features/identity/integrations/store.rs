//! SQL of integrations.

use boxoffice_http::error::Result;

use super::model::{IntegrationRow, ProgramKeyRow};
use crate::kernel::auth::KeyKind;
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `IntegrationRow` and `ProgramKeyRow`.
define_sql!(columns, "k.id, k.name, k.role, a.number, k.created, k.expires, k.last_used");

/// Returns a page of integrations that have not ended, the oldest first. Keys without an account belong to client applications
/// and are left out. The account of a public key may have been removed.
pub async fn list(reader: &mut Reader, paging: PageRequest) -> Result<PagedRows<IntegrationRow>> {
    // The kind is part of the SQL text, so that the database can use the partial index of integrations.
    reader
        .list(
            columns!(),
            "from api_keys k join accounts a on a.id = k.account_id
         where k.kind = 'integration' and k.ended is null",
        )
        .page("k.id", paging)
        .await
}

/// Returns an integration that has not ended.
pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<IntegrationRow>> {
    reader
        .query(concat!(
            "select ",
            columns!(),
            " from api_keys k join accounts a on a.id = k.account_id
         where k.id = $1 and k.kind = $2 and k.ended is null"
        ))
        .bind(id)
        .bind(KeyKind::Integration)
        .optional()
        .await
}

/// Ends an integration. Returns whether there was one to end.
pub async fn end(tx: &mut Tx, id: Id, now: Timestamp) -> Result<bool> {
    let end = "update api_keys set ended = $3 where id = $1 and kind = $2 and ended is null and account_id is not null";
    Ok(tx.query(end).bind(id).bind(KeyKind::Integration).bind(now).rows_affected().await? == 1)
}

/// Returns a page of all keys of client programs that have not ended, the oldest first, also of those without an account.
pub async fn list_keys(reader: &mut Reader, paging: PageRequest) -> Result<PagedRows<ProgramKeyRow>> {
    reader
        .list(
            columns!(),
            "from api_keys k left join accounts a on a.id = k.account_id where k.kind = 'integration' and k.ended is null",
        )
        .page("k.id", paging)
        .await
}

/// Ends a key of a client program, also of one without an account. Returns whether there was one to end.
pub async fn end_key(tx: &mut Tx, id: Id, now: Timestamp) -> Result<bool> {
    let end = "update api_keys set ended = $3 where id = $1 and kind = $2 and ended is null";
    Ok(tx.query(end).bind(id).bind(KeyKind::Integration).bind(now).rows_affected().await? == 1)
}
