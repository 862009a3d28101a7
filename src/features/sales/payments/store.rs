//! SQL of payments.
//!
//! Beside the states that are shown, a payment may be
//! - `Pending`: the gateway is being asked; it counts as taken, and is not shown;
//! - `Abandoned`: what became of the charge is unknown; the gateway is to undo it, then the payment goes; it is not shown.
//!
//! The SQL of what is given back is in `refund_store`.

use super::model::{PaidTicketsRow, PaymentRow, PaymentViewRow, RefundableRow};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::{PageRequest, PagedRows};
use crate::kernel::db::{Tx, Values};
use boxoffice_http::error::Result;

const SHOWN: &str = "p.*, p.status as shown";
const FROM_SHOWN: &str = "from payments p where p.status not in ('Pending', 'Abandoned')";

/// Payments of an order, the oldest first.
pub async fn list(tx: &mut Tx, order: Id, paging: PageRequest) -> Result<PagedRows<PaymentViewRow>> {
    tx.list(SHOWN, FROM_SHOWN).and_where("p.order_id = ?", Some(order)).page("p.id", paging).await
}

pub async fn find(tx: &mut Tx, order: Id, id: Id) -> Result<Option<PaymentViewRow>> {
    let mut found = tx
        .select(&format!("{SHOWN} {FROM_SHOWN}"))
        .and_where("p.order_id = ?", Some(order))
        .and_where("p.id = ?", Some(id))
        .all()
        .await?;
    Ok(found.pop())
}

/// What is left of the payments of these orders, the newest first.
pub async fn left(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<Vec<RefundableRow>> {
    let payments = tx.select(
        "p.id, p.order_id, p.method,
         p.amount - coalesce((select cast(sum(r.amount) as bigint) from refunds r where r.payment_id = p.id), 0) as amount
         from payments p where p.status = 'Confirmed'",
    );
    let payments: Vec<RefundableRow> = payments.and_in("p.order_id", orders).push(" order by p.id desc").all().await?;
    Ok(payments.into_iter().filter(|payment| payment.amount > Money::ZERO).collect())
}

/// What is being taken for each of these orders just now, where anything is.
pub async fn pending(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<Vec<(Id, Money)>> {
    let pending = tx.select("order_id, cast(sum(amount) as bigint) from payments where status = 'Pending'");
    pending.and_in("order_id", orders).push(" group by order_id").all().await
}

/// What the tickets of these orders cost, item by item. Those of an order that is open or fulfilled have their events.
pub async fn tickets(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<Vec<PaidTicketsRow>> {
    let tickets = tx.select(
        "i.order_id, i.section_id, e.host_id, i.quantity, i.unit_price, i.unit_fee
         from order_items i join events e on e.id = i.event_id where true",
    );
    tickets.and_in("i.order_id", orders).push(" order by i.order_id, i.position").all().await
}

const ROW: &str = "payments (id, order_id, method, amount, status, reference, placed)";

/// Keeps new payments in this state. Where another server has drawn an identifier too, the primary key refuses it, and the
/// transaction is run again.
pub async fn insert(tx: &mut Tx, rows: impl IntoIterator<Item = &PaymentRow>, status: &'static str) -> Result<()> {
    tx.insert_rows(ROW, rows, |row, values| bind(row, status, values)).await
}

/// Keeps payments in this state whose charges were begun, whether they are kept still or were forgotten meanwhile.
pub async fn put(tx: &mut Tx, rows: &[&PaymentRow], status: &'static str) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let insert = tx.insert(ROW).values(rows, |row, values| bind(row, status, values));
    insert.push(" on conflict (id) do update set status = excluded.status, reference = excluded.reference").execute().await?;
    Ok(())
}

fn bind(row: &PaymentRow, status: &'static str, values: &mut Values<'_>) {
    values.bind(row.id).bind(row.order_id).bind(row.method).bind(row.amount);
    values.bind(status).bind(row.reference.clone()).bind(row.placed);
}

/// Gives those of these payments that are pending another state, and tells which were.
pub async fn end_pending(tx: &mut Tx, rows: impl IntoIterator<Item = &PaymentRow>, status: &'static str) -> Result<Vec<Id>> {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return Ok(Vec::new());
    }
    let update = tx.update("payments").push_bind(" set status = ?", status).push(", reference = v.column2 from (");
    let update = update.values(rows, |row, values| _ = values.bind(row.id).bind(row.reference.clone()));
    let own = ") as v where payments.id = v.column1 and payments.status = 'Pending' returning id";
    let ended: Vec<(Id,)> = update.push(own).all().await?;
    Ok(ended.into_iter().map(|(id,)| id).collect())
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
