//! SQL of tickets in documents.

use boxoffice_http::error::Result;

use super::model::DocumentTicketRow;
use crate::kernel::db::{Reader, define_sql};
use crate::kernel::types::id::Id;

// The columns of `DocumentTicketRow` but its source, and the tables beside that of the tickets.
define_sql!(
    columns,
    "t.id, t.serial, t.order_id, t.event_id, t.section_id, t.owner_id, t.status, t.issued, t.redeemed, t.modified,
     e.title, e.starts, v.name as venue, v.address, s.name as section"
);
define_sql!(
    joins,
    " join events e on e.id = t.event_id join venues v on v.id = e.venue_id join sections s on s.id = t.section_id "
);

/// Returns the Issued tickets of these orders that still belong to the customer, the oldest first.
pub async fn of_orders(reader: &mut Reader, orders: impl IntoIterator<Item = Id>) -> Result<Vec<DocumentTicketRow>> {
    let tickets = reader.select(concat!(
        "o.id as source_id, ",
        columns!(),
        " from orders o join tickets t on t.order_id = o.id and t.owner_id = o.account_id",
        joins!(),
        "where t.status = 'Issued'"
    ));
    tickets.and_in("o.id", orders).push(" order by t.id").all().await
}

/// Returns the tickets of these transfers, the oldest first: those that are offered, or after a claim those that have replaced
/// them.
pub async fn of_transfers(reader: &mut Reader, transfers: impl IntoIterator<Item = Id>) -> Result<Vec<DocumentTicketRow>> {
    let tickets = reader.select(concat!(
        "f.id as source_id, ",
        columns!(),
        " from transfers f join transfer_tickets o on o.transfer_id = f.id join tickets p on p.id = o.ticket_id
          join tickets t on t.id = case when f.status = 'Claimed' then coalesce(p.replaced_by, p.id) else p.id end",
        joins!(),
        "where true"
    ));
    tickets.and_in("f.id", transfers).push(" order by t.id").all().await
}
