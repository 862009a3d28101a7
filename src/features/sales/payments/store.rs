//! SQL of payments. The SQL of refunds is in `refund_store`.

use boxoffice_http::error::Result;

use super::model::{PaymentRow, PaymentViewRow, RefundableRow, StoredPaymentStatus};
use crate::features::sales::ledger::TicketCosts;
use crate::kernel::db::{Columns, Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// SQL expression of the sum of the refunds of a payment `p`, made or scheduled.
define_sql!(refunded, "coalesce((select cast(sum(r.amount) as bigint) from refunds r where r.payment_id = p.id), 0)");

const VIEW_COLUMNS: &str =
    concat!("p.id, p.order_id, p.method, p.amount, p.reference, p.placed, p.status, ", refunded!(), " as refunded");
const FROM_VISIBLE: &str = "from payments p where p.status not in ('Pending', 'Abandoned')";

/// Returns a page of the payments of an order, the oldest first.
pub async fn list(reader: &mut Reader, order: Id, paging: PageRequest) -> Result<PagedRows<PaymentViewRow>> {
    reader.list(VIEW_COLUMNS, FROM_VISIBLE).and_where("p.order_id = ?", Some(order)).page("p.id", paging).await
}

pub async fn find(reader: &mut Reader, order: Id, id: Id) -> Result<Option<PaymentViewRow>> {
    let payment = reader.select(&format!("{VIEW_COLUMNS} {FROM_VISIBLE}"));
    payment.and_where("p.order_id = ?", Some(order)).and_where("p.id = ?", Some(id)).optional().await
}

/// Returns the refundable rests of the payments of these orders, the newest first.
pub async fn refundable(reader: &mut Reader, orders: impl IntoIterator<Item = Id>) -> Result<Vec<RefundableRow>> {
    let payments = reader.select(concat!(
        "p.id, p.order_id, p.method, p.amount - ",
        refunded!(),
        " as amount from payments p where p.status = 'Confirmed'"
    ));
    let payments: Vec<RefundableRow> = payments.and_in("p.order_id", orders).push(" order by p.id desc").all().await?;
    Ok(payments.into_iter().filter(|payment| payment.amount > Money::ZERO).collect())
}

/// A payment that counts for the balance of its order: a confirmed or a pending one.
#[derive(sqlx_macros::FromRow)]
pub struct CountingPaymentRow {
    pub order_id: Id,
    /// True if it is pending, false if it is confirmed.
    pub pending: bool,
    /// Its amount, minus refunds that were made or scheduled.
    pub amount: Money,
}

/// Returns the confirmed and the pending payments of these orders.
pub async fn counting_payments(reader: &mut Reader, orders: impl IntoIterator<Item = Id>) -> Result<Vec<CountingPaymentRow>> {
    let payments = reader.select(concat!(
        "p.order_id, p.status = 'Pending' as pending, p.amount - ",
        refunded!(),
        " as amount from payments p where p.status in ('Confirmed', 'Pending')"
    ));
    payments.and_in("p.order_id", orders).all().await
}

/// Returns the cost of the tickets of an order, item by item. The order must be open or fulfilled, so that its events still exist.
pub async fn ticket_costs(reader: &mut Reader, order: Id) -> Result<Vec<TicketCosts>> {
    let tickets = "select i.section_id, e.host_id, i.quantity, i.unit_price, i.unit_fee
                   from order_items i join events e on e.id = i.event_id where i.order_id = $1 order by i.position";
    reader.query(tickets).bind(order).all().await
}

const INSERT_COLUMNS: &str = "payments (id, order_id, method, amount, status, reference, placed)";

/// Inserts new payments with this status. If another server has generated the same identifier, the primary key rejects it and the
/// transaction is retried.
pub async fn insert(tx: &mut Tx, rows: impl IntoIterator<Item = &PaymentRow>, status: StoredPaymentStatus) -> Result<()> {
    tx.insert_rows(INSERT_COLUMNS, rows, |columns| add_columns(columns, status)).await
}

/// Inserts or updates payments with this status, because a job may have deleted them since their charges began.
pub async fn upsert(tx: &mut Tx, rows: &[&PaymentRow], status: StoredPaymentStatus) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let insert = tx.insert(INSERT_COLUMNS).values(rows, |columns| add_columns(columns, status));
    insert.push(" on conflict (id) do update set status = excluded.status, reference = excluded.reference").execute().await
}

fn add_columns(columns: &mut Columns<'_, '_, &PaymentRow>, status: StoredPaymentStatus) {
    columns.add(|row| row.id).add(|row| row.order_id).add(|row| row.method).add(|row| row.amount);
    columns.add(|_| status).add(|row| row.reference.clone()).add(|row| row.placed);
}

/// Sets the status of the pending ones among these payments, and returns their identifiers.
pub async fn end_pending(
    tx: &mut Tx,
    rows: impl IntoIterator<Item = &PaymentRow>,
    status: StoredPaymentStatus,
) -> Result<Vec<Id>> {
    let rows: Vec<&PaymentRow> = rows.into_iter().collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let update = tx.update("payments").push_bind(" set status = ?", status).push(", reference = v.column2 from (");
    let update = update.values(&rows, |columns| _ = columns.add(|row| row.id).add(|row| row.reference.clone()));
    let condition = ") as v where payments.id = v.column1 and payments.status = 'Pending' returning id";
    update.push(condition).scalars().await
}

/// Abandons every payment that has been pending since `before`, because its request has ended. On PostgreSQL it skips payments
/// that another transaction has locked; SQLite has one writer at a time.
pub async fn abandon_pending(tx: &mut Tx, before: Timestamp) -> Result<()> {
    // The first condition is the condition of the partial index.
    let update = if tx.is_postgres() {
        "update payments set status = 'Abandoned' where id = any(array(
             select id from payments where status in ('Pending', 'Abandoned') and status = 'Pending' and placed <= $1
             for no key update skip locked))"
    } else {
        "update payments set status = 'Abandoned'
         where status in ('Pending', 'Abandoned') and status = 'Pending' and placed <= $1"
    };
    tx.query(update).bind(before).execute().await
}

/// Corrects the pending payments that were begun while the clock was ahead: at a time after `latest`. Returns their number.
pub async fn correct_future(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    // The first condition is the condition of the partial index.
    tx.query(
        "update payments set placed = $1
         where status in ('Pending', 'Abandoned') and status = 'Pending' and placed > $2",
    )
    .bind(now)
    .bind(latest)
    .rows_affected()
    .await
}

/// Deletes an abandoned payment after the gateway has cancelled its charge.
pub async fn delete_abandoned(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from payments where id = $1 and status = 'Abandoned'").bind(id).execute().await
}

/// Marks the completely refunded ones among these payments as refunded.
pub async fn mark_refunded(tx: &mut Tx, payments: impl IntoIterator<Item = Id>) -> Result<()> {
    let all = "payments set status = 'Refunded' where status = 'Confirmed' and amount =
        (select cast(sum(r.amount) as bigint) from refunds r where r.payment_id = payments.id and r.status = 'Done')";
    tx.update(all).and_in("id", payments).execute().await
}
