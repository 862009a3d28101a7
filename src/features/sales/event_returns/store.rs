//! SQL of returns of events.

use boxoffice_http::error::Result;

use super::model::EventReturnRow;
use crate::features::sales::orders::ReturnedTickets;
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `EventReturnRow`.
define_sql!(columns, "id, event_id, status, reason, account_id, last_order, orders, tickets, amount, failed, started, finished");

/// The fulfilled orders of a run's event that were not processed yet. `?` is the event.
const REMAINING: &str = "from order_items i join orders o on o.id = i.order_id where o.status = 'Fulfilled' and i.event_id = ?";

/// Returns a page of the runs of an event, the oldest first.
pub async fn list(reader: &mut Reader, event: Id, paging: PageRequest) -> Result<PagedRows<EventReturnRow>> {
    reader.list(columns!(), "from event_returns where true").and_where("event_id = ?", Some(event)).page("id", paging).await
}

pub async fn find(reader: &mut Reader, event: Id, id: Id) -> Result<Option<EventReturnRow>> {
    let runs = reader.select(concat!(columns!(), " from event_returns where true"));
    runs.and_where("event_id = ?", Some(event)).and_where("id = ?", Some(id)).optional().await
}

/// Returns whether an event has a run that is not done.
pub async fn is_running(reader: &mut Reader, event: Id) -> Result<bool> {
    let query = "select exists (select 1 from event_returns where event_id = $1 and status = 'Running')";
    reader.query(query).bind(event).scalar().await
}

/// Returns the number of orders of a run that were not processed yet. An order that has no valid ticket of the event counts, too.
pub async fn count_remaining(reader: &mut Reader, run: &EventReturnRow) -> Result<i64> {
    let orders = reader.select("count(distinct i.order_id) ").push_bind(REMAINING, run.event_id);
    let count = orders.and_where("i.order_id > ?", Some(run.last_order)).optional_scalar().await?;
    Ok(count.unwrap_or(0))
}

/// Locks and returns a run that is due and that no other server works on. It is a random one, so that a long run does not keep the job
/// from the others. The cancellation is mailed before, because its recipients are the holders of valid tickets.
pub async fn lock_running(tx: &mut Tx, now: Timestamp) -> Result<Option<EventReturnRow>> {
    let runs = tx.select(concat!(columns!(), " from event_returns where status = 'Running'")).and_where("due <= ?", Some(now));
    let is_mailed =
        " and not exists (select 1 from event_notices n where n.event_id = event_returns.event_id and n.kind = 'Cancelled')";
    runs.push(is_mailed).push(" order by random() limit 1").push_lock(" for no key update skip locked").optional().await
}

/// Returns the next order of a run.
pub async fn next_order(reader: &mut Reader, run: &EventReturnRow) -> Result<Option<Id>> {
    let next = reader.select("i.order_id ").push_bind(REMAINING, run.event_id);
    let next = next.and_where("i.order_id > ?", Some(run.last_order)).push(" order by i.order_id limit 1");
    next.optional_scalar().await
}

pub async fn insert(tx: &mut Tx, row: &EventReturnRow) -> Result<()> {
    tx.query(
        "insert into event_returns (id, event_id, status, reason, account_id, last_order, orders, tickets, amount, started)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(row.id)
    .bind(row.event_id)
    .bind(row.status)
    .bind(row.reason.clone())
    .bind(row.account_id)
    .bind(row.last_order)
    .bind(row.orders)
    .bind(row.tickets)
    .bind(row.amount)
    .bind(row.started)
    .execute()
    .await
}

/// Records that an order of a locked run was processed and what was returned of it.
pub async fn record_progress(tx: &mut Tx, run: Id, order: Id, returned: Option<ReturnedTickets>) -> Result<()> {
    let ReturnedTickets { tickets, amount } = returned.unwrap_or_default();
    tx.query(
        "update event_returns set last_order = $2, orders = orders + $3, tickets = tickets + $4, amount = amount + $5,
         failed = case when last_order = 0 then 0 else failed end where id = $1",
    )
    .bind(run)
    .bind(order)
    .bind(i64::from(returned.is_some()))
    .bind(tickets)
    .bind(amount)
    .execute()
    .await
}

/// Records that an order could not be returned, unless another server has processed it meanwhile.
pub async fn record_failure(tx: &mut Tx, run: &EventReturnRow, order: Id) -> Result<()> {
    tx.query(
        "update event_returns set last_order = $3, failed = case when last_order = 0 then 1 else failed + 1 end
         where id = $1 and last_order = $2 and status = 'Running'",
    )
    .bind(run.id)
    .bind(run.last_order)
    .bind(order)
    .execute()
    .await
}

/// Has a run begin again with its first order at this time.
pub async fn begin_again(tx: &mut Tx, id: Id, due: Timestamp) -> Result<()> {
    let update = "update event_returns set last_order = $2, due = $3 where id = $1";
    tx.query(update).bind(id).bind(Id::NONE).bind(due).execute().await
}

/// Makes runs due at `latest` that are due later. Returns their number.
pub async fn correct_future(tx: &mut Tx, latest: Timestamp) -> Result<u64> {
    let update = "update event_returns set due = $1 where status = 'Running' and due > $1";
    tx.query(update).bind(latest).rows_affected().await
}

/// Ends a run.
pub async fn finish(tx: &mut Tx, id: Id, now: Timestamp) -> Result<()> {
    tx.query("update event_returns set status = 'Done', failed = 0, finished = $2 where id = $1")
        .bind(id)
        .bind(now)
        .execute()
        .await
}
