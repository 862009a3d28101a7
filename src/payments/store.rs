//! SQL of payments.
//!
//! Beside the states that are shown, a payment may be
//! - `Pending`: the gateway is being asked; it counts as taken, and is not shown;
//! - `Abandoned`: what became of the charge is unknown; the gateway is to undo it, then the payment goes; it is not shown.
//!
//! The SQL of what is given back is in `refund_store`.

use super::model::{LeftRow, PaymentRow, ShownRow};
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::base::money::Money;
use crate::base::paging::{Paging, Rows};
use crate::db::{Query, Tx};
use crate::error::Result;
use crate::ledger::Tickets;

const SHOWN: &str = "p.*, p.status as shown";
const FROM_SHOWN: &str = "from payments p where p.status not in ('Pending', 'Abandoned')";

/// Payments of an order, the oldest first.
pub async fn list(tx: &mut Tx, order: Id, paging: Paging) -> Result<Rows<ShownRow>> {
    tx.list(SHOWN, FROM_SHOWN).and("p.order_id = ?", Some(order)).page("p.id", paging).await
}

pub async fn find(tx: &mut Tx, order: Id, id: Id) -> Result<Option<ShownRow>> {
    let mut found =
        tx.select(&format!("{SHOWN} {FROM_SHOWN}")).and("p.order_id = ?", Some(order)).and("p.id = ?", Some(id)).all().await?;
    Ok(found.pop())
}

/// What is left of the payments of these orders, the newest first.
pub async fn left(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<Vec<LeftRow>> {
    let payments = tx.select(
        "p.id, p.order_id, p.method,
         p.amount - coalesce((select cast(sum(r.amount) as bigint) from refunds r where r.payment_id = p.id), 0) as amount
         from payments p where p.status = 'Confirmed'",
    );
    let payments: Vec<LeftRow> = payments.and_in("p.order_id", orders).push(" order by p.id desc").all().await?;
    Ok(payments.into_iter().filter(|payment| payment.amount > Money::ZERO).collect())
}

/// What is being taken for an order just now.
pub async fn pending(tx: &mut Tx, order: Id) -> Result<Money> {
    tx.query("select coalesce(cast(sum(amount) as bigint), 0) from payments where order_id = $1 and status = 'Pending'")
        .bind(order)
        .scalar()
        .await
}

/// What an order's tickets cost, item by item. Those of an order that is open or fulfilled have their events.
pub async fn tickets(tx: &mut Tx, order: Id) -> Result<Vec<Tickets>> {
    tx.query(
        "select i.section_id, e.host_id, i.quantity, i.unit_price, i.unit_fee
         from order_items i join events e on e.id = i.event_id where i.order_id = $1 order by i.position",
    )
    .bind(order)
    .all()
    .await
}

/// Keeps a new payment in this state. Where another server has drawn its identifier too, the primary key refuses it, and the
/// transaction is run again.
pub async fn insert(tx: &mut Tx, row: &PaymentRow, status: &'static str) -> Result<()> {
    let insert =
        "insert into payments (id, order_id, method, amount, status, reference, placed) values ($1, $2, $3, $4, $5, $6, $7)";
    bind(tx.query(insert), row, status).execute().await?;
    Ok(())
}

/// Keeps a payment in this state whose charge was begun, whether it is kept still or was forgotten meanwhile.
pub async fn put(tx: &mut Tx, row: &PaymentRow, status: &'static str) -> Result<()> {
    let put = tx.query(
        "insert into payments (id, order_id, method, amount, status, reference, placed) values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (id) do update set status = excluded.status, reference = excluded.reference",
    );
    bind(put, row, status).execute().await?;
    Ok(())
}

fn bind<'a>(query: Query<'a>, row: &PaymentRow, status: &'static str) -> Query<'a> {
    query
        .bind(row.id)
        .bind(row.order_id)
        .bind(row.method)
        .bind(row.amount)
        .bind(status)
        .bind(row.reference.clone())
        .bind(row.placed)
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
         where status in ('Pending', 'Abandoned') and status = 'Pending' and placed <= $1",
    )
    .bind(before)
    .execute()
    .await?;
    Ok(())
}

/// Forgets a payment whose charge the gateway has undone.
pub async fn forget_abandoned(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from payments where id = $1 and status = 'Abandoned'").bind(id).execute().await?;
    Ok(())
}

/// Marks those of these payments as given back of which all has been.
pub async fn close_refunded(tx: &mut Tx, payments: impl IntoIterator<Item = Id>) -> Result<()> {
    let all = "payments set status = 'Refunded' where status = 'Confirmed' and amount =
        (select cast(sum(r.amount) as bigint) from refunds r where r.payment_id = payments.id and r.status = 'Done')";
    let _closed: Vec<(Id,)> = tx.update(all).and_in("id", payments).push(" returning id").all().await?;
    Ok(())
}
