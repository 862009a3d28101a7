//! SQL of integrations.

use super::model::IntegrationRow;
use crate::kernel::auth::KeyKind;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};
use crate::kernel::db::Tx;
use boxoffice_http::error::Result;

/// Integrations that have not been ended, the oldest first. A key that belongs to nobody is an application's, and none of them.
pub async fn list(tx: &mut Tx, paging: PageRequest) -> Result<PagedRows<IntegrationRow>> {
    // The kind is in the text, which lets the partial index of integrations be used.
    tx.list(
        "k.id, k.name, k.role, a.number, k.created, k.expires, k.last_used",
        "from api_keys k join accounts a on a.id = k.account_id
         where k.kind = 'integration' and k.ended is null and a.removed = false",
    )
    .page("k.id", paging)
    .await
}

/// One of them.
pub async fn find(tx: &mut Tx, id: Id) -> Result<Option<IntegrationRow>> {
    tx.query(
        "select k.id, k.name, k.role, a.number, k.created, k.expires, k.last_used from api_keys k join accounts a on a.id = k.account_id
         where k.id = $1 and k.kind = $2 and k.ended is null and a.removed = false",
    )
    .bind(id)
    .bind(KeyKind::Integration)
    .optional()
    .await
}

/// Ends one of them; tells whether there was one.
pub async fn end(tx: &mut Tx, id: Id, now: Timestamp) -> Result<bool> {
    let end = "update api_keys set ended = $3 where id = $1 and kind = $2 and ended is null
        and account_id in (select a.id from accounts a where a.removed = false)";
    Ok(tx.query(end).bind(id).bind(KeyKind::Integration).bind(now).execute().await? == 1)
}
