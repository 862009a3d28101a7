//! SQL of payments.
//!
//! Beside the states that are shown, a payment may be
//! - `Pending`: the gateway is being asked; it counts as taken, and is not shown;
//! - `Abandoned`: what became of the charge is unknown; the gateway is to undo it, then the payment goes; it is not shown;
//! - `Refunding`: taken for an order that ended without it; the gateway is to give it back; it is shown as `Confirmed` until then.

use super::model::{PaymentRow, ShownRow};
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::base::money::Money;
use crate::base::paging::{Paging, Rows};
use crate::db::Tx;
use crate::error::Result;

/// Payments that the gateway is asked about at a time.
const UNSETTLED_BATCH: &str = "20";

const SHOWN: &str = "p.*, case when p.status = 'Refunding' then 'Confirmed' else p.status end as shown
    from payments p where p.status not in ('Pending', 'Abandoned')";

/// Payments of an order, the oldest first.
pub async fn list(tx: &mut Tx, order: Id, paging: Paging) -> Result<Rows<ShownRow>> {
    tx.list(SHOWN).and("p.order_id = ?", Some(order)).push(" order by p.id").page(paging).await
}

pub async fn find(tx: &mut Tx, order: Id, id: Id) -> Result<Option<ShownRow>> {
    let mut found = tx.select(SHOWN).and("p.order_id = ?", Some(order)).and("p.id = ?", Some(id)).all().await?;
    Ok(found.pop())
}

/// What has been taken for an order, and what is being taken just now.
pub async fn taken_and_pending(tx: &mut Tx, order: Id) -> Result<Money> {
    tx.query(
        "select coalesce(cast(sum(amount) as bigint), 0) from payments
         where order_id = $1 and status in ('Confirmed', 'Pending')",
    )
    .bind(order)
    .scalar()
    .await
}

/// What has been taken for an order.
pub async fn taken(tx: &mut Tx, order: Id) -> Result<Money> {
    tx.query("select coalesce(cast(sum(amount) as bigint), 0) from payments where order_id = $1 and status = 'Confirmed'")
        .bind(order)
        .scalar()
        .await
}

/// Keeps a payment in this state; one that is kept already changes to it.
pub async fn put(tx: &mut Tx, row: &PaymentRow, status: &'static str) -> Result<()> {
    tx.query(
        "insert into payments (id, order_id, method, amount, status, reference, placed) values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (id) do update set status = excluded.status, reference = excluded.reference",
    )
    .bind(row.id)
    .bind(row.order_id)
    .bind(row.method)
    .bind(row.amount)
    .bind(status)
    .bind(row.reference.clone())
    .bind(row.placed)
    .execute()
    .await?;
    Ok(())
}

/// Gives a payment that is pending another state, and tells whether it was.
pub async fn end_pending(tx: &mut Tx, row: &PaymentRow, status: &'static str) -> Result<bool> {
    let ended = tx.query("update payments set status = $2, reference = $3 where id = $1 and status = 'Pending'");
    Ok(ended.bind(row.id).bind(status).bind(row.reference.clone()).execute().await? == 1)
}

/// Abandons every payment that has been pending since `before`: whoever had begun it has gone.
pub async fn abandon_pending(tx: &mut Tx, before: Timestamp) -> Result<()> {
    // The first condition is that of the index.
    tx.query(
        "update payments set status = 'Abandoned'
         where status in ('Pending', 'Abandoned', 'Refunding') and status = 'Pending' and placed <= $1",
    )
    .bind(before)
    .execute()
    .await?;
    Ok(())
}

/// Marks what was taken for these orders, which have ended unpaid, as owed back. What was paid outside the platform is given
/// back outside it too, so that nothing is left to do for it here.
///
/// # Errors
/// When the database fails.
pub async fn owe(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<()> {
    let owed = "payments set status = case when method = 'card' then 'Refunding' else 'Refunded' end where status = 'Confirmed'";
    let _owed: Vec<(Id,)> = tx.update(owed).and_in("order_id", orders).push(" returning id").all().await?;
    Ok(())
}

/// The next payments after `after` that the gateway is to undo or give back: of one order, or of all.
pub async fn unsettled(tx: &mut Tx, order: Option<Id>, after: Id) -> Result<Vec<PaymentRow>> {
    tx.select("* from payments where status in ('Pending', 'Abandoned', 'Refunding') and status <> 'Pending'")
        .and("order_id = ?", order)
        .and("id > ?", Some(after))
        .push(" order by id limit ")
        .push(UNSETTLED_BATCH)
        .all()
        .await
}

/// Writes down that the gateway has undone a charge, or given a payment back.
pub async fn settle(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from payments where id = $1 and status = 'Abandoned'").bind(id).execute().await?;
    tx.query("update payments set status = 'Refunded' where id = $1 and status = 'Refunding'").bind(id).execute().await?;
    Ok(())
}
