//! SQL of tickets.

use super::model::{TicketRow, TicketStatus};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};
use crate::kernel::db::Tx;
use boxoffice_http::error::Result;
use crate::features::catalog::tokens::{self, AdmissionScope};

/// The valid tickets of what is within reach of an event, the oldest first.
pub async fn list_of_event(
    tx: &mut Tx,
    event: Id,
    reach: AdmissionScope,
    modified_since: Option<Timestamp>,
    paging: PageRequest,
) -> Result<PagedRows<TicketRow>> {
    tx.list("*", "from tickets where status <> 'Void'")
        .and_where("event_id = ?", Some(event))
        .and_where(&tokens::covers_sql("section_id"), reach.token())
        .and_where("modified >= ?", modified_since)
        .page("id", paging)
        .await
}

/// What an account holds, the oldest first.
pub async fn list_of_account(tx: &mut Tx, account: Id, paging: PageRequest) -> Result<PagedRows<TicketRow>> {
    tx.list("*", "from tickets where true").and_where("owner_id = ?", Some(account)).page("id", paging).await
}

pub async fn find(tx: &mut Tx, id: Id) -> Result<Option<TicketRow>> {
    tx.query("select * from tickets where id = $1").bind(id).optional().await
}

/// Whether an account holds a ticket that could still be used, for an event that takes place and has
/// not ended.
///
/// # Errors
/// When the database fails.
pub async fn has_upcoming(tx: &mut Tx, account: Id, now: Timestamp) -> Result<bool> {
    let held = "select exists (select 1 from tickets t join events e on e.id = t.event_id
        where t.owner_id = $1 and t.status in ('Issued', 'Pending') and e.ends > $2
        and e.status <> 'Cancelled')";
    tx.query(held).bind(account).bind(now).scalar().await
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

/// Makes everyone else who changes the tickets of these serials wait until this transaction ends.
///
/// # Errors
/// When the database fails.
pub async fn lock_all(tx: &mut Tx, serials: impl IntoIterator<Item = String>) -> Result<()> {
    let for_update = for_update(tx);
    let locked = tx.select("id from tickets where true").and_in("serial", serials).push(" order by id").push(for_update);
    let _locked: Vec<(Id,)> = locked.all().await?;
    Ok(())
}

/// Redeems those of these tickets that are Issued and within reach, and gives them, in no order. They are [locked](lock_all).
///
/// The update asks for the status that it replaces, so that of two gates with the same ticket exactly one gets it: the other waits
/// for the first one's commit and then finds it Redeemed.
///
/// # Errors
/// When the database fails.
pub async fn redeem(
    tx: &mut Tx,
    event: Id,
    serials: Vec<String>,
    reach: AdmissionScope,
    now: Timestamp,
) -> Result<Vec<TicketRow>> {
    tx.update("tickets")
        .push_bind(" set status = ?", TicketStatus::Redeemed)
        .push_bind(", redeemed = ?, modified = ?", now)
        .push_bind(" where status = ?", TicketStatus::Issued)
        .and_where("event_id = ?", Some(event))
        .and_in("serial", serials)
        .and_where(&tokens::covers_sql("section_id"), reach.token())
        .push(" returning *")
        .all()
        .await
}

/// Those tickets of an account that have these serials, by ascending identifier, as they are after everyone else's changes, which
/// then wait until this transaction ends. In whatever state they are.
///
/// # Errors
/// When the database fails.
pub async fn lock_own(tx: &mut Tx, owner: Id, serials: impl IntoIterator<Item = String>) -> Result<Vec<TicketRow>> {
    let for_update = for_update(tx);
    let tickets = tx.select("* from tickets where true").and_where("owner_id = ?", Some(owner)).and_in("serial", serials);
    tickets.push(" order by id").push(for_update).all().await
}

/// PostgreSQL updates the rows of one statement in no order, so whoever changes several locks them before, in ascending order: then
/// transactions never wait for one another in a circle. On SQLite a transaction is alone from its beginning.
fn for_update(tx: &Tx) -> &'static str {
    if tx.is_postgres() { " for update" } else { "" }
}

/// Offers those of these tickets that are Issued and this account's: they are Pending. Gives those that it changed.
///
/// # Errors
/// When the database fails.
pub async fn mark_pending(tx: &mut Tx, tickets: &[Id], owner: Id, now: Timestamp) -> Result<Vec<Id>> {
    let offered: Vec<(Id,)> = tx
        .update("tickets")
        .push_bind(" set status = ?", TicketStatus::Pending)
        .push_bind(", modified = ?", now)
        .push_bind(" where status = ?", TicketStatus::Issued)
        .and_where("owner_id = ?", Some(owner))
        .and_in("id", tickets.to_vec())
        .push(" returning id")
        .all()
        .await?;
    Ok(offered.into_iter().map(|(id,)| id).collect())
}

/// Ends the offer of these tickets of `from`: they are Issued, and `to`'s, who may be the same. Tells whether all of them were
/// Pending; where one was not, the transaction is not to be committed.
///
/// # Errors
/// When the database fails.
pub async fn return_to_owner(tx: &mut Tx, tickets: &[Id], from: Id, to: Id, now: Timestamp) -> Result<bool> {
    let for_update = for_update(tx);
    let locked = tx.select("id from tickets where true").and_in("id", tickets.to_vec()).push(" order by id");
    let _locked: Vec<(Id,)> = locked.push(for_update).all().await?;
    let released: Vec<(Id,)> = tx
        .update("tickets")
        .push_bind(" set status = ?", TicketStatus::Issued)
        .push_bind(", owner_id = ?", to)
        .push_bind(", modified = ?", now)
        .push_bind(" where status = ?", TicketStatus::Pending)
        .and_where("owner_id = ?", Some(from))
        .and_in("id", tickets.to_vec())
        .push(" returning id")
        .all()
        .await?;
    Ok(released.len() == tickets.len())
}

/// The tickets of an order, the oldest first.
///
/// # Errors
/// When the database fails.
pub async fn find_by_order(tx: &mut Tx, order: Id) -> Result<Vec<TicketRow>> {
    tx.query("select * from tickets where order_id = $1 order by id").bind(order).all().await
}

/// The same, as they are after everyone else's changes, which then wait until this transaction ends.
///
/// # Errors
/// When the database fails.
pub async fn lock_of_order(tx: &mut Tx, order: Id) -> Result<Vec<TicketRow>> {
    let for_update = for_update(tx);
    tx.select("* from tickets where true")
        .and_where("order_id = ?", Some(order))
        .push(" order by id")
        .push(for_update)
        .all()
        .await
}

/// Makes tickets void, which are locked.
///
/// # Errors
/// When the database fails.
pub async fn void(tx: &mut Tx, tickets: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<()> {
    let update = tx.update("tickets set status = 'Void'").push_bind(", modified = ? where true", now);
    let _voided: Vec<(Id,)> = update.and_in("id", tickets).push(" returning id").all().await?;
    Ok(())
}
