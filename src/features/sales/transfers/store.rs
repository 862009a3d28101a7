//! SQL of transfers.

use std::collections::HashMap;

use boxoffice_http::error::Result;

use super::model::{Direction, TransferFilter, TransferRow, TransferStatus, TransferTicketRow};
use crate::features::catalog::sections;
use crate::features::identity::accounts;
use crate::features::sales::tickets;
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows, SortOrder};

// The columns of `TransferRow`.
define_sql!(columns, "id, status, sender_id, recipient_id");
// The transfers `f` with their tickets `t`: those that are offered, or after a claim those that have replaced them. (Tickets that were
// claimed by an earlier version of the server were not replaced.)
define_sql!(
    from_transfers_and_tickets,
    "from transfers f join transfer_tickets o on o.transfer_id = f.id join tickets p on p.id = o.ticket_id
     join tickets t on t.id = case when f.status = 'Claimed' then coalesce(p.replaced_by, p.id) else p.id end"
);
pub(in crate::features) use from_transfers_and_tickets;

/// Maximum number of tickets that are loaded with transfers. A page has fewer, because its size is limited.
pub const MAX_TICKETS: usize = 5_000;

/// Size of a transfer in a page without its tickets, sender and recipient, in bytes.
const BYTES: i64 = 500;

/// Returns the SQL expression for the size of a transfer in a page, in bytes: with its tickets, sender and recipient.
fn bytes_sql() -> String {
    let (sender, recipient) = (accounts::bytes_sql("sender_id"), accounts::bytes_sql("recipient_id"));
    let ticket = tickets::bytes_sql("t.section_id", "sender_id");
    format!(
        "({BYTES} + {sender} + {recipient} + coalesce((select sum({ticket}) from transfer_tickets o
          join tickets t on t.id = o.ticket_id where o.transfer_id = transfers.id), 0))"
    )
}

/// The transfers that an account has sent: the column with the account, and the name of their number.
const SENT: (&str, &str) = ("sender_id", "sent transfers");
/// The transfers that an account has received, like [`SENT`].
const RECEIVED: (&str, &str) = ("recipient_id", "received transfers");

/// Returns the sides of the transfers in a list.
fn sides(filter: &TransferFilter) -> &'static [(&'static str, &'static str)] {
    match filter.direction {
        None => &[SENT, RECEIVED],
        Some(Direction::Sent) => &[SENT],
        Some(Direction::Received) => &[RECEIVED],
    }
}

/// Returns the first page of the transfers of each of these accounts like [`list_of_account`], whatever its size, without the empty
/// pages.
pub async fn first_pages_of_accounts(
    reader: &mut Reader,
    accounts: &[Id],
    filter: &TransferFilter,
    order: SortOrder,
) -> Result<HashMap<Id, (i64, Vec<TransferRow>)>> {
    let mut pages: HashMap<Id, (i64, Vec<TransferRow>)> = HashMap::new();
    for (side, count) in sides(filter) {
        let transfers = reader.list(columns!(), "from transfers where true").with_list_counts(count);
        let transfers = transfers.and_where("status = ?", filter.status);
        let pages_of_side: HashMap<Id, PagedRows<TransferRow>> =
            transfers.pages_by_key("transfers", side, accounts.iter().copied(), order, filter.paging).await?;
        for (account, page) in pages_of_side {
            let (total, rows) = pages.entry(account).or_default();
            *total += page.total;
            rows.extend(page.rows);
        }
    }
    for (_, rows) in pages.values_mut() {
        rows.sort_unstable_by_key(|row| row.id);
        if order == SortOrder::Desc {
            rows.reverse();
        }
        rows.truncate(filter.paging.limit() as usize);
    }
    Ok(pages)
}

/// Returns the sizes of transfers with these tickets in a page, in bytes, as [`bytes_sql`] does. Reads each account and each
/// section once.
pub async fn sizes(
    reader: &mut Reader,
    transfers: &[TransferRow],
    tickets: &HashMap<Id, Vec<TransferTicketRow>>,
) -> Result<HashMap<Id, i64>> {
    let accounts = accounts::sizes(reader, transfers.iter().flat_map(|row| [row.sender_id, row.recipient_id])).await?;
    let sections = sections::sizes(reader, tickets.values().flatten().map(|ticket| ticket.section_id)).await?;
    let size_of = |sizes: &HashMap<Id, i64>, id: Id| sizes.get(&id).copied().unwrap_or_default();
    let size = |row: &TransferRow| {
        let (sender, recipient) = (size_of(&accounts, row.sender_id), size_of(&accounts, row.recipient_id));
        let ticket = |ticket: &TransferTicketRow| tickets::BYTES + size_of(&sections, ticket.section_id) + sender;
        (row.id, BYTES + sender + recipient + tickets.get(&row.id).into_iter().flatten().map(ticket).sum::<i64>())
    };
    Ok(transfers.iter().map(size).collect())
}

/// Returns a page of the transfers that an account has sent or received, sorted by identifier and therefore by time of creation.
pub async fn list_of_account(
    reader: &mut Reader,
    account: Id,
    filter: &TransferFilter,
    order: SortOrder,
) -> Result<PagedRows<TransferRow>> {
    let sides = sides(filter);
    let mut transfers = reader.list(columns!(), "from (");
    for (number, (side, _)) in sides.iter().enumerate() {
        let union = if number == 0 { "" } else { " union all " };
        let limit = transfers.limit_sql(filter.paging.end(), 0);
        let end_of_side = format!(" order by {side}{0}, id{0}{limit}) of_{side}", order.sql());
        // Each side ends with the page, so that no more of it is read in the order of its index. Not one condition with `or`, for
        // which all transfers of the account would be read and sorted.
        transfers = transfers
            .push(union)
            .push(concat!("select ", columns!(), " from (select ", columns!(), " from transfers where true"))
            .and_key(side, account)
            .and_where("status = ?", filter.status)
            .push(&end_of_side);
    }
    transfers = transfers.push(") transfers where true");
    for (number, (side, count)) in sides.iter().enumerate() {
        let plus = if number == 0 { "" } else { " + " };
        transfers = match filter.status {
            None => transfers.push_list_count(count, account),
            Some(status) => transfers
                .push_total(&format!("{plus}(select count(*) from transfers where {side} = ?"), account)
                .push_total(" and status = ?)", status),
        };
    }
    transfers.sized_page(&format!("id{}", order.sql()), &bytes_sql(), filter.paging).await
}

/// Returns a page of the transfers of the tickets of an order, the newest first.
pub async fn list_of_order(reader: &mut Reader, order: Id, paging: PageRequest) -> Result<PagedRows<TransferRow>> {
    let of_order =
        "id in (select o.transfer_id from transfer_tickets o join tickets t on t.id = o.ticket_id where t.order_id = ?)";
    reader
        .list(columns!(), "from transfers where true")
        .and_where(of_order, Some(order))
        .sized_page("id desc", &bytes_sql(), paging)
        .await
}

pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<TransferRow>> {
    reader.query(concat!("select ", columns!(), " from transfers where id = $1")).bind(id).optional().await
}

pub async fn insert(tx: &mut Tx, row: &TransferRow) -> Result<()> {
    tx.query("insert into transfers (id, status, sender_id, recipient_id) values ($1, $2, $3, $4)")
        .bind(row.id)
        .bind(row.status)
        .bind(row.sender_id)
        .bind(row.recipient_id)
        .execute()
        .await
}

pub async fn insert_tickets(tx: &mut Tx, transfer: Id, tickets: &[Id]) -> Result<()> {
    tx.insert_rows("transfer_tickets (transfer_id, ticket_id)", tickets.iter().copied(), |columns| {
        columns.add(|_| transfer).add(|ticket| *ticket);
    })
    .await
}

/// Locks by ascending identifier and returns the open transfers that an account has sent or received.
pub async fn lock_open_of(tx: &mut Tx, account: Id) -> Result<Vec<TransferRow>> {
    let open = tx.select(concat!(columns!(), " from transfers where status = 'Pending'"));
    open.and_where("(sender_id = ? or recipient_id = ?)", Some(account)).for_update().all().await
}

/// Locks by ascending identifier and returns the open transfers that offer any of these tickets.
pub async fn lock_open_holding(tx: &mut Tx, tickets: impl IntoIterator<Item = Id>) -> Result<Vec<TransferRow>> {
    let open = tx.select(concat!(columns!(), " from transfers where status = 'Pending'"));
    let offers = open.push(" and id in (select transfer_id from transfer_tickets where true").and_in("ticket_id", tickets);
    offers.push(")").for_update().all().await
}

/// Cancels transfers that are open and [locked](lock_open_of).
pub async fn cancel_all(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<()> {
    tx.update("transfers set status = 'Cancelled' where status = 'Pending'").and_in("id", ids).execute().await
}

/// Sets the final status of a transfer if it is open. Returns whether it was.
pub async fn end(tx: &mut Tx, id: Id, status: TransferStatus) -> Result<bool> {
    let update = "update transfers set status = $2 where id = $1 and status = 'Pending'";
    Ok(tx.query(update).bind(id).bind(status).rows_affected().await? == 1)
}

/// Returns the tickets that these transfers offer, ascending.
pub async fn offered_tickets(reader: &mut Reader, transfers: impl IntoIterator<Item = Id>) -> Result<Vec<Id>> {
    let tickets = reader.select("ticket_id from transfer_tickets where true").and_in("transfer_id", transfers);
    tickets.push(" order by ticket_id").scalars().await
}

/// Returns the tickets of these transfers, the oldest ticket first, at most [`MAX_TICKETS`].
pub async fn tickets(reader: &mut Reader, transfers: impl IntoIterator<Item = Id>) -> Result<Vec<TransferTicketRow>> {
    let tickets = reader.select(concat!(
        "f.id as transfer_id, t.id as ticket_id, t.serial, t.section_id, t.issued ",
        from_transfers_and_tickets!(),
        " where true"
    ));
    tickets.and_in("f.id", transfers).push(&format!(" order by t.id limit {MAX_TICKETS}")).all().await
}
