//! SQL of reports.

use boxoffice_http::error::Result;

use super::model::{SalesDayFilter, SalesDayRow, SectionSalesRow, SoldRow};
use crate::kernel::db::Tx;
use crate::kernel::types::clock::DAY_MICROS;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;
use crate::kernel::types::period::Period;

/// The joined tables of sold tickets: tickets, their orders, and the order items with the prices.
const SOLD: &str = "tickets t join orders o on o.id = t.order_id and o.status = 'Fulfilled'
    join order_items i on i.order_id = t.order_id and i.section_id = t.section_id and t.status <> 'Void'";

/// Returns the sums over all events of a host.
pub async fn sold_by_host(tx: &mut Tx, host: Id) -> Result<SoldRow> {
    sold(tx, "t.event_id in (select e.id from events e where e.host_id = ?)", host).await
}

/// Returns the sums over an event.
pub async fn sold_by_event(tx: &mut Tx, event: Id) -> Result<SoldRow> {
    sold(tx, "t.event_id = ?", event).await
}

async fn sold(tx: &mut Tx, condition: &str, value: Id) -> Result<SoldRow> {
    let sums = "count(*) as tickets, count(distinct t.order_id) as orders, count(distinct o.account_id) as customers,
        coalesce(cast(sum(i.unit_price) as bigint), 0) as revenue";
    let mut rows = tx.select(&format!("{sums} from {SOLD} where true")).and_where(condition, Some(value)).all().await?;
    rows.pop().ok_or_else(|| anyhow::anyhow!("a row that was locked is missing").into())
}

/// Returns the number of events of a host, with any status.
pub async fn count_events(tx: &mut Tx, host: Id) -> Result<i64> {
    tx.query("select count(*) from events where host_id = $1").bind(host).scalar().await
}

/// Returns the number of places in all sections of an event.
pub async fn capacity(tx: &mut Tx, event: Id) -> Result<i64> {
    let capacity = "select coalesce(cast(sum(capacity) as bigint), 0) from sections where event_id = $1";
    tx.query(capacity).bind(event).scalar().await
}

/// Returns the sums over each section of an event, the oldest section first. Counts orders that were fulfilled in this period.
pub async fn sales(tx: &mut Tx, event: Id, period: Period) -> Result<Vec<SectionSalesRow>> {
    tx.select(
        "s.id, s.name, count(x.unit_price) as units, coalesce(cast(sum(x.unit_price) as bigint), 0) as sales,
         coalesce(cast(sum(x.unit_fee) as bigint), 0) as fees
         from sections s left join (select t.section_id, i.unit_price, i.unit_fee from ",
    )
    .push(SOLD)
    .push_bind(" where t.event_id = ?", event)
    .and_where("o.fulfilled >= ?", period.start())
    .and_where("o.fulfilled < ?", period.end())
    .push_bind(") x on x.section_id = s.id where s.event_id = ? group by s.id, s.name order by s.id", event)
    .all()
    .await
}

/// Returns a page of the days on which tickets of an event were sold, the earliest first. Counts orders by the day in UTC on which
/// they were fulfilled.
pub async fn sales_by_day(tx: &mut Tx, event: Id, filter: &SalesDayFilter) -> Result<PagedRows<SalesDayRow>> {
    let day = format!("o.fulfilled / {DAY_MICROS}");
    let sums = format!(
        "from (select {day} as day, count(distinct t.order_id) as orders, count(*) as units,
         cast(sum(i.unit_price) as bigint) as sales, cast(sum(i.unit_fee) as bigint) as fees from {SOLD} where t.event_id = ?"
    );
    tx.list("day, orders, units, sales, fees", "")
        .push_bind(&sums, event)
        .and_where("o.fulfilled >= ?", filter.period.start())
        .and_where("o.fulfilled < ?", filter.period.end())
        .push(&format!(" group by {day}) as days"))
        .page("day", filter.paging)
        .await
}
