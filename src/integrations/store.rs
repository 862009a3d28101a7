//! SQL of integrations.

use super::model::IntegrationRow;
use crate::auth::KeyKind;
use crate::base::id::Id;
use crate::db::Tx;
use crate::error::Result;

/// An integration that has not been ended. A key that belongs to nobody is an application's, and none of them.
pub async fn find(tx: &mut Tx, id: Id) -> Result<Option<IntegrationRow>> {
    tx.query(
        "select k.id, k.name, k.role, a.number, k.created, k.expires from api_keys k join accounts a on a.id = k.account_id
         where k.id = $1 and k.kind = $2 and k.ended is null",
    )
    .bind(id)
    .bind(KeyKind::Integration)
    .optional()
    .await
}
