//! SQL of revocations: returns and voids of orders.

use boxoffice_http::error::Result;

use super::model::{RevocationRow, RevocationType};
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `RevocationRow`.
define_sql!(columns, "id, order_id, tickets, amount, reason, account_id, revoked");

/// Returns a page of the returns of an order, the oldest first.
pub async fn list_returns(reader: &mut Reader, order: Id, paging: PageRequest) -> Result<PagedRows<RevocationRow>> {
    let returns = reader.list(columns!(), "from revocations where type = 'Return'");
    returns.and_where("order_id = ?", Some(order)).page("id", paging).await
}

/// Returns a page of the voids of an order, of which there is at most one.
pub async fn list_voids(reader: &mut Reader, order: Id, paging: PageRequest) -> Result<PagedRows<RevocationRow>> {
    let voids = reader.list(columns!(), "from revocations where type = 'Void'");
    voids.and_where("order_id = ?", Some(order)).page("id", paging).await
}

/// Returns a return of an order.
pub async fn find_return(reader: &mut Reader, order: Id, id: Id) -> Result<Option<RevocationRow>> {
    let returns = reader.select(concat!(columns!(), " from revocations where type = 'Return'"));
    returns.and_where("order_id = ?", Some(order)).and_where("id = ?", Some(id)).optional().await
}

pub async fn insert(tx: &mut Tx, row: &RevocationRow, kind: RevocationType) -> Result<()> {
    tx.query(
        "insert into revocations (id, order_id, type, tickets, amount, reason, account_id, revoked)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(row.id)
    .bind(row.order_id)
    .bind(kind)
    .bind(row.tickets)
    .bind(row.amount)
    .bind(row.reason.clone())
    .bind(row.account_id)
    .bind(row.revoked)
    .execute()
    .await
}
