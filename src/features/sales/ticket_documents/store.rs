//! SQL of tickets in documents.

use boxoffice_http::error::Result;

use super::model::DocumentTicketRow;
use crate::features::sales::{tickets, transfers};
use crate::kernel::db::{Reader, define_sql};
use crate::kernel::types::id::Id;

// The columns of `DocumentTicketRow` beside those of the ticket and its source, and the tables beside that of the tickets.
define_sql!(columns, ", e.title, e.starts, v.name as venue, v.address, s.name as section ");
define_sql!(
    joins,
    " join events e on e.id = t.event_id join venues v on v.id = e.venue_id join sections s on s.id = t.section_id "
);

/// Returns the Issued tickets of these orders that still belong to the customer, the oldest first.
pub async fn of_orders(reader: &mut Reader, orders: impl IntoIterator<Item = Id>) -> Result<Vec<DocumentTicketRow>> {
    let tickets = reader.select(concat!(
        "o.id as source_id, ",
        tickets::joined_columns!(),
        columns!(),
        "from orders o join tickets t on t.order_id = o.id and t.owner_id = o.account_id",
        joins!(),
        "where t.status = 'Issued'"
    ));
    tickets.and_in("o.id", orders).push(" order by t.id").all().await
}

/// Returns the tickets of these transfers, the oldest first.
pub async fn of_transfers(reader: &mut Reader, transfers: impl IntoIterator<Item = Id>) -> Result<Vec<DocumentTicketRow>> {
    let tickets = reader.select(concat!(
        "f.id as source_id, ",
        tickets::joined_columns!(),
        columns!(),
        transfers::from_transfers_and_tickets!(),
        joins!(),
        "where true"
    ));
    tickets.and_in("f.id", transfers).push(" order by t.id").all().await
}
