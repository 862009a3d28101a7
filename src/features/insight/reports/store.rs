//! SQL of reports.

use boxoffice_http::error::Result;

use super::model::{EventSalesRow, HostSalesRow, SalesDayFilter, SalesDayRow, SectionSalesRow};
use crate::kernel::db::Reader;
use crate::kernel::types::clock::DAY_MICROS;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;
use crate::kernel::types::period::Period;

/// The joined tables of sold tickets: tickets, their orders, and the order items with the prices.
const SOLD: &str = "tickets t join orders o on o.id = t.order_id and o.status = 'Fulfilled'
    join order_items i on i.order_id = t.order_id and i.section_id = t.section_id and t.status <> 'Void'";

/// Returns the sums over all events of a host.
pub async fn sales_of_host(reader: &mut Reader, host: Id) -> Result<HostSalesRow> {
    let sums = "select cast(sum(tickets) as bigint) as tickets, cast(sum(orders) as bigint) as orders,
        cast(sum(customers) as bigint) as customers, cast(sum(sales) as bigint) as revenue
        from host_sales where host_id = $1 group by host_id";
    Ok(reader.query(sums).bind(host).optional().await?.unwrap_or_default())
}

/// Returns the sums over an event.
pub async fn sales_of_event(reader: &mut Reader, event: Id) -> Result<EventSalesRow> {
    let sums = "select cast(sum(tickets) as bigint) as tickets, cast(sum(orders) as bigint) as orders,
        cast(sum(sales) as bigint) as revenue
        from event_sales where event_id = $1 group by event_id";
    Ok(reader.query(sums).bind(event).optional().await?.unwrap_or_default())
}

/// Returns the number of events of a host, with any status.
pub async fn count_events(reader: &mut Reader, host: Id) -> Result<i64> {
    let count = "select coalesce(cast(sum(count) as bigint), 0) from list_counts
        where list in ('open events of host', 'closed events of host') and owner = $1";
    reader.query(count).bind(host).scalar().await
}

/// Returns the number of places in all sections of an event.
pub async fn capacity(reader: &mut Reader, event: Id) -> Result<i64> {
    let capacity = "select coalesce(cast(sum(capacity) as bigint), 0) from sections where event_id = $1";
    reader.query(capacity).bind(event).scalar().await
}

/// Returns the sums over each section of an event, the oldest section first. Counts orders that were fulfilled in this period.
///
/// The sums of whole days are kept. Those of any other period are computed from its tickets.
pub async fn sales(reader: &mut Reader, event: Id, period: Period) -> Result<Vec<SectionSalesRow>> {
    let select = reader.select(
        "s.id, s.name, coalesce(cast(sum(x.tickets) as bigint), 0) as units, coalesce(cast(sum(x.sales) as bigint), 0) as sales,
         coalesce(cast(sum(x.fees) as bigint), 0) as fees from sections s left join (select ",
    );
    let sold = match period.days() {
        Some((from, to)) => select
            .push_bind("section_id, tickets, sales, fees from event_sales where event_id = ?", event)
            .and_where("day >= ?", from)
            .and_where("day < ?", to),
        None => select
            .push("t.section_id, 1 as tickets, i.unit_price as sales, i.unit_fee as fees from ")
            .push(SOLD)
            .push_bind(" where t.event_id = ?", event)
            .and_where("o.fulfilled >= ?", period.start())
            .and_where("o.fulfilled < ?", period.end()),
    };
    sold.push_bind(") x on x.section_id = s.id where s.event_id = ? group by s.id, s.name order by s.id", event).all().await
}

/// Returns a page of the days on which tickets of an event were sold, the earliest first. Counts orders by the day in UTC on which
/// they were fulfilled.
///
/// Like [`sales`], it computes the sums only if the period begins or ends within a day.
pub async fn sales_by_day(reader: &mut Reader, event: Id, filter: &SalesDayFilter) -> Result<PagedRows<SalesDayRow>> {
    let list = reader.list("day, orders, units, sales, fees", "from (select ");
    let sums = match filter.period.days() {
        Some((from, to)) => list
            .push_bind(
                "day, cast(sum(orders) as bigint) as orders, cast(sum(tickets) as bigint) as units,
                 cast(sum(sales) as bigint) as sales, cast(sum(fees) as bigint) as fees from event_sales where event_id = ?",
                event,
            )
            .and_where("day >= ?", from)
            .and_where("day < ?", to)
            .push(" group by day having sum(tickets) > 0"),
        None => {
            let day = format!("o.fulfilled / {DAY_MICROS}");
            list.push(&format!(
                "{day} as day, count(distinct t.order_id) as orders, count(*) as units,
                 cast(sum(i.unit_price) as bigint) as sales, cast(sum(i.unit_fee) as bigint) as fees from {SOLD}"
            ))
            .push_bind(" where t.event_id = ?", event)
            .and_where("o.fulfilled >= ?", filter.period.start())
            .and_where("o.fulfilled < ?", filter.period.end())
            .push(&format!(" group by {day}"))
        }
    };
    sums.push(") as days").page("day", filter.paging).await
}
