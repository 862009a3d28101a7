//! SQL of transfers.

use boxoffice_http::error::Result;

use super::model::{Direction, TransferFilter, TransferRow, TransferStatus, TransferTicketRow};
use crate::features::identity::accounts;
use crate::features::sales::tickets;
use crate::kernel::db::{Statement, Tx};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

/// The columns of [`TransferRow`]. A macro, because statements are literals.
macro_rules! columns {
    () => {
        "id, status, sender_id, recipient_id"
    };
}

/// Returns the SQL expression for the size of a transfer in a page, in bytes: with its tickets, sender and recipient.
fn bytes_sql() -> String {
    let (sender, recipient) = (accounts::bytes_sql("sender_id"), accounts::bytes_sql("recipient_id"));
    let ticket = tickets::bytes_sql("t.section_id", "sender_id");
    format!(
        "(500 + {sender} + {recipient} + coalesce((select sum({ticket}) from transfer_tickets o
          join tickets t on t.id = o.ticket_id where o.transfer_id = transfers.id), 0))"
    )
}

/// Returns a page of the transfers that an account has sent or received, the oldest first.
pub async fn list_of_account(tx: &mut Tx, account: Id, filter: &TransferFilter) -> Result<PagedRows<TransferRow>> {
    let transfers = select_of_account(tx, account, filter.direction).and_where("status = ?", filter.status);
    transfers.sized_page("id", &bytes_sql(), filter.paging).await
}

/// Returns a page of the transfers that an account has sent or received, the newest first.
pub async fn list_newest_of_account(tx: &mut Tx, account: Id, paging: PageRequest) -> Result<PagedRows<TransferRow>> {
    select_of_account(tx, account, None).sized_page("id desc", &bytes_sql(), paging).await
}

/// Begins a list of the transfers that an account has sent, has received, or both.
fn select_of_account(tx: &mut Tx, account: Id, direction: Option<Direction>) -> Statement<'_> {
    const SENT: &str = "select id, status, sender_id, recipient_id from transfers where sender_id = ?";
    const RECEIVED: &str = "select id, status, sender_id, recipient_id from transfers where recipient_id = ?";
    let (sides, counts): (String, &[&str]) = match direction {
        // Not one condition with `or`, for which SQLite would read and sort all transfers of the account.
        None => (format!("{SENT} union all {RECEIVED}"), &["sent transfers", "received transfers"]),
        Some(Direction::Sent) => (SENT.to_owned(), &["sent transfers"]),
        Some(Direction::Received) => (RECEIVED.to_owned(), &["received transfers"]),
    };
    let transfers = tx.list(columns!(), "from ").push_bind(&format!("({sides}) transfers where true"), account);
    counts.iter().fold(transfers, |transfers, count| transfers.push_list_count(count, account))
}

/// Returns a page of the transfers of the tickets of an order, the newest first.
pub async fn list_of_order(tx: &mut Tx, order: Id, paging: PageRequest) -> Result<PagedRows<TransferRow>> {
    let of_order =
        "id in (select o.transfer_id from transfer_tickets o join tickets t on t.id = o.ticket_id where t.order_id = ?)";
    tx.list(columns!(), "from transfers where true")
        .and_where(of_order, Some(order))
        .sized_page("id desc", &bytes_sql(), paging)
        .await
}

pub async fn find(tx: &mut Tx, id: Id) -> Result<Option<TransferRow>> {
    tx.query(concat!("select ", columns!(), " from transfers where id = $1")).bind(id).optional().await
}

pub async fn insert(tx: &mut Tx, row: &TransferRow) -> Result<()> {
    tx.query("insert into transfers (id, status, sender_id, recipient_id) values ($1, $2, $3, $4)")
        .bind(row.id)
        .bind(row.status)
        .bind(row.sender_id)
        .bind(row.recipient_id)
        .execute()
        .await?;
    Ok(())
}

pub async fn insert_tickets(tx: &mut Tx, transfer: Id, tickets: &[Id]) -> Result<()> {
    tx.insert_rows("transfer_tickets (transfer_id, ticket_id)", tickets.iter().copied(), |columns| {
        columns.add(|_| transfer).add(|ticket| *ticket);
    })
    .await
}

/// Locks by ascending identifier and returns the open transfers that an account has sent or received.
pub async fn lock_open_of(tx: &mut Tx, account: Id) -> Result<Vec<TransferRow>> {
    let open = tx.select("id, status, sender_id, recipient_id from transfers where status = 'Pending'");
    open.and_where("(sender_id = ? or recipient_id = ?)", Some(account)).for_update().all().await
}

/// Locks by ascending identifier and returns the open transfers that offer any of these tickets.
pub async fn lock_open_holding(tx: &mut Tx, tickets: impl IntoIterator<Item = Id>) -> Result<Vec<TransferRow>> {
    let open = tx.select("id, status, sender_id, recipient_id from transfers where status = 'Pending'");
    let offers = open.push(" and id in (select transfer_id from transfer_tickets where true").and_in("ticket_id", tickets);
    offers.push(")").for_update().all().await
}

/// Cancels transfers that are open and [locked](lock_open_of).
pub async fn cancel_all(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<()> {
    tx.update("transfers set status = 'Cancelled' where status = 'Pending'").and_in("id", ids).execute().await?;
    Ok(())
}

/// Sets the final status of a transfer if it is open. Returns whether it was.
pub async fn end(tx: &mut Tx, id: Id, status: TransferStatus) -> Result<bool> {
    let update = "update transfers set status = $2 where id = $1 and status = 'Pending'";
    Ok(tx.query(update).bind(id).bind(status).execute().await? == 1)
}

/// Returns the tickets that these transfers offer, ascending.
pub async fn offered_tickets(tx: &mut Tx, transfers: impl IntoIterator<Item = Id>) -> Result<Vec<Id>> {
    let tickets = tx.select("ticket_id from transfer_tickets where true").and_in("transfer_id", transfers);
    let tickets: Vec<(Id,)> = tickets.push(" order by ticket_id").all().await?;
    Ok(tickets.into_iter().map(|(ticket,)| ticket).collect())
}

/// Returns the tickets of these transfers, the oldest ticket first: those that are offered, or after a claim those that have
/// replaced them. (Tickets that were claimed by an earlier version of the server were not replaced.)
pub async fn tickets(tx: &mut Tx, transfers: impl IntoIterator<Item = Id>) -> Result<Vec<TransferTicketRow>> {
    tx.select(
        "f.id as transfer_id, t.id as ticket_id, t.serial, t.section_id, t.issued
         from transfers f join transfer_tickets o on o.transfer_id = f.id join tickets p on p.id = o.ticket_id
         join tickets t on t.id = case when f.status = 'Claimed' then coalesce(p.replaced_by, p.id) else p.id end where true",
    )
    .and_in("f.id", transfers)
    .push(" order by t.id")
    .all()
    .await
}
