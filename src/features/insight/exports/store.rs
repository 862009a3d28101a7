//! SQL of exports. Each statement reads a batch of rows after an identifier.

use boxoffice_http::error::Result;

use super::model::{LedgerExportRow, OrderExportRow, TicketExportRow};
use super::table::BATCH;
use crate::kernel::db::Reader;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

/// Returns the next orders of an event, with the tickets of the event alone, and the share of its host of their refunds.
pub async fn orders(reader: &mut Reader, event: Id, host: Id, after: Id, now: Timestamp) -> Result<Vec<OrderExportRow>> {
    reader
        .select("o.id, ")
        .push_bind("case when o.status = 'Placed' and o.expires <= ? then 'Timed Out' else o.status end as status", now)
        .push_bind(
            ", coalesce((select cast(sum(s.amount) as bigint) from payments p join refunds r on r.payment_id = p.id
             join refund_shares s on s.refund_id = r.id where p.order_id = o.id and s.host_id = ?), 0) as refunded",
            host,
        )
        .push(
            ", o.placed, o.complimentary, a.number, a.first_name, a.last_name, a.email, x.tickets, x.price, x.fees from (
             select i.order_id, cast(sum(i.quantity) as bigint) as tickets,
             cast(sum(i.quantity * i.unit_price) as bigint) as price, cast(sum(i.quantity * i.unit_fee) as bigint) as fees
             from order_items i where true",
        )
        .and_key("i.event_id", event)
        .and_where("i.order_id > ?", Some(after))
        .push(" group by i.event_id, i.order_id order by i.event_id, i.order_id")
        .push(&format!(" limit {BATCH}"))
        .push(") x join orders o on o.id = x.order_id join accounts a on a.id = o.account_id order by o.id")
        .all()
        .await
}

/// Returns the next valid tickets of an event.
pub async fn tickets(reader: &mut Reader, event: Id, after: Id) -> Result<Vec<TicketExportRow>> {
    reader
        .select(
            "t.id, t.serial, s.name as section, t.status, a.first_name, a.last_name, a.email, t.order_id, t.redeemed
         from tickets t join sections s on s.id = t.section_id join accounts a on a.id = t.owner_id where t.status <> 'Void'",
        )
        .and_key("t.event_id", event)
        .and_where("t.id > ?", Some(after))
        .push(" order by t.event_id, t.id")
        .push(&format!(" limit {BATCH}"))
        .all()
        .await
}

/// Returns the next entries of the ledger with the share of a host, from a time until before another one.
pub async fn ledger(
    reader: &mut Reader,
    host: Id,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
    after: Id,
) -> Result<Vec<LedgerExportRow>> {
    reader
        .select(
            "t.id, t.type, t.placed, t.order_id, t.payment_id, s.amount, s.fees
         from transaction_shares s cross join transactions t where t.id = s.transaction_id",
        )
        .and_where("s.host_id = ?", Some(host))
        // For both tables, because PostgreSQL merges them by their identifiers, and would read the second one from its beginning. SQLite
        // begins a cross join with the first table, whose index has the order.
        .and_where("s.transaction_id > ? and t.id > ?", Some(after))
        .and_where("t.placed >= ?", from)
        .and_where("t.placed < ?", until)
        .push(" order by s.transaction_id")
        .push(&format!(" limit {BATCH}"))
        .all()
        .await
}
