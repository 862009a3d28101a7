//! SQL of tickets.

use super::model::{TicketRow, TicketStatus};
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::base::paging::{Paging, Rows};
use crate::db::Tx;
use crate::error::Result;
use crate::tokens::{self, Reach};

/// The valid tickets of what is within reach of an event, the oldest first.
pub async fn list_of_event(
    tx: &mut Tx,
    event: Id,
    reach: Reach,
    modified_since: Option<Timestamp>,
    paging: Paging,
) -> Result<Rows<TicketRow>> {
    tx.list("* from tickets where status <> 'Void'")
        .and("event_id = ?", Some(event))
        .and(&tokens::covers("section_id"), reach.token())
        .and("modified >= ?", modified_since)
        .push(" order by id")
        .page(paging)
        .await
}

/// What an account holds, the oldest first.
pub async fn list_of_account(tx: &mut Tx, account: Id, paging: Paging) -> Result<Rows<TicketRow>> {
    tx.list("* from tickets where true").and("owner_id = ?", Some(account)).push(" order by id").page(paging).await
}

pub async fn find(tx: &mut Tx, id: Id) -> Result<Option<TicketRow>> {
    tx.query("select * from tickets where id = $1").bind(id).optional().await
}

pub async fn insert(tx: &mut Tx, tickets: &[TicketRow]) -> Result<()> {
    let into = "tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, redeemed, modified)";
    tx.insert_rows(into, tickets, |ticket, values| {
        values
            .bind(ticket.id)
            .bind(ticket.serial.clone())
            .bind(ticket.order_id)
            .bind(ticket.event_id)
            .bind(ticket.section_id)
            .bind(ticket.owner_id)
            .bind(ticket.status)
            .bind(ticket.issued)
            .bind(ticket.redeemed)
            .bind(ticket.modified);
    })
    .await
}

/// Redeems those of these tickets that are Issued and within reach, and gives them, in no order.
///
/// One update that asks for the status it replaces, so that of two gates with the same ticket exactly one gets it: the other
/// waits for the first one's commit and then finds it Redeemed.
///
/// # Errors
/// When the database fails.
pub async fn redeem(tx: &mut Tx, event: Id, serials: &[String], reach: Reach, now: Timestamp) -> Result<Vec<TicketRow>> {
    tx.update("tickets")
        .with(" set status = ?", TicketStatus::Redeemed)
        .with(", redeemed = ?, modified = ?", now)
        .with(" where status = ?", TicketStatus::Issued)
        .and("event_id = ?", Some(event))
        .and_in("serial", serials.to_vec())
        .and(&tokens::covers("section_id"), reach.token())
        .push(" returning *")
        .all()
        .await
}

/// The tickets of an order as they are after everyone else's changes, which then wait until this transaction ends; the oldest
/// first.
///
/// # Errors
/// When the database fails.
pub async fn lock_of_order(tx: &mut Tx, order: Id) -> Result<Vec<TicketRow>> {
    let locked = tx.query("update tickets set status = status where order_id = $1 returning *").bind(order);
    let mut tickets: Vec<TicketRow> = locked.all().await?;
    tickets.sort_by_key(|ticket| ticket.id);
    Ok(tickets)
}

/// Makes tickets void, which are locked.
///
/// # Errors
/// When the database fails.
pub async fn void(tx: &mut Tx, tickets: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<()> {
    let update = tx.update("tickets set status = 'Void'").with(", modified = ? where true", now);
    let _voided: Vec<(Id,)> = update.and_in("id", tickets).push(" returning id").all().await?;
    Ok(())
}
