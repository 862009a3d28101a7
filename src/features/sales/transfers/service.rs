//! What the transfer operations mean: an owner offers, the recipient claims or rejects, and either of them cancels.

use std::collections::HashSet;

use anyhow::anyhow;

use super::model::{
    Transfer, TransferCreate, TransferFilter, TransferRow, TransferStatus, TransferTicket, TransferTicketRow,
    TransferTicketStatus,
};
use super::store;
use crate::features::identity::accounts::{self, Account, AccountNumber};
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::kernel::types::api_types::{OffsetSeconds, Uri};
use crate::kernel::db::{Tx, transaction};
use boxoffice_http::error::{Code, Error, FieldError, Result};
use crate::features::catalog::sections::{self, Section};
use crate::features::sales::tickets::{self, Redeemed, Serial, TicketRow};

pub async fn list_of_account(
    app: &App,
    caller: &Caller,
    number: &AccountNumber,
    filter: &TransferFilter,
) -> Result<Page<Transfer>> {
    let mut tx = app.db.read().await?;
    let account = accounts::load(&mut tx, caller, number).await?;
    let found = store::list_of_account(&mut tx, account.id, filter).await?;
    let entries = views(&mut tx, caller, found.rows, app.clock.now()).await?;
    Ok(filter.paging.page(found.total, entries))
}

pub async fn create(app: &App, caller: &Caller, new: &TransferCreate) -> Result<Transfer> {
    transaction!(app.db, |tx| create_in_tx(app, tx, caller, new).await)
}

pub async fn get(app: &App, caller: &Caller, id: Id) -> Result<Transfer> {
    let mut tx = app.db.read().await?;
    let row = load(&mut tx, id).await?;
    if !caller.is(row.sender_id) {
        caller.require_account(row.recipient_id)?;
    }
    view(&mut tx, caller, row, app.clock.now()).await
}

/// Takes the tickets over.
pub async fn claim(app: &App, caller: &Caller, id: Id) -> Result<Transfer> {
    transaction!(app.db, |tx| respond(app, tx, caller, id, TransferStatus::Claimed).await)
}

/// Turns the tickets down.
pub async fn reject(app: &App, caller: &Caller, id: Id) -> Result<Transfer> {
    transaction!(app.db, |tx| respond(app, tx, caller, id, TransferStatus::Rejected).await)
}

pub async fn cancel(app: &App, caller: &Caller, id: Id) -> Result<()> {
    transaction!(app.db, |tx| {
        let row = load(tx, id).await?;
        if !caller.is(row.sender_id) && !caller.is(row.recipient_id) {
            return Err(Error::FORBIDDEN);
        }
        close(app, tx, row, TransferStatus::Cancelled).await
    })?;
    Ok(())
}

/// Cancels every open transfer that an account has sent or received.
///
/// # Errors
/// When the database fails.
pub async fn cancel_for_account(app: &App, tx: &mut Tx, account: Id) -> Result<()> {
    for row in store::lock_open_of(tx, account).await? {
        close(app, tx, row, TransferStatus::Cancelled).await?;
    }
    Ok(())
}

/// Cancels every open transfer that offers any of these tickets, so that they are their senders' again.
///
/// # Errors
/// When the database fails.
pub async fn cancel_for_tickets(app: &App, tx: &mut Tx, tickets: impl IntoIterator<Item = Id>) -> Result<()> {
    let tickets: Vec<Id> = tickets.into_iter().collect();
    if tickets.is_empty() {
        return Ok(());
    }
    for row in store::lock_open_holding(tx, tickets).await? {
        close(app, tx, row, TransferStatus::Cancelled).await?;
    }
    Ok(())
}

/// Offers the tickets, all of them or none.
async fn create_in_tx(app: &App, tx: &mut Tx, caller: &Caller, new: &TransferCreate) -> Result<Transfer> {
    let sender = caller.account.ok_or(Error::FORBIDDEN)?;
    let recipient = recipient(tx, sender, &new.recipient).await?;
    // Removed since its key was asked for, it must not leave an offer behind.
    accounts::lock(tx, sender).await?.ok_or(Code::KeyRefused)?;
    let tickets = own_tickets(tx, sender, &new.tickets.0).await?;
    let (recipient, tickets) = match (recipient, tickets) {
        (Ok(recipient), Ok(tickets)) => (recipient, tickets),
        (recipient, tickets) => return Err(Error::Invalid(recipient.err().into_iter().chain(tickets.err()).collect())),
    };
    let now = app.clock.now();
    let ids: Vec<Id> = tickets.iter().map(|ticket| ticket.id).collect();
    let offered = tickets::mark_pending(tx, &ids, sender, now).await?;
    let refused = tickets.iter().filter(|ticket| !offered.contains(&ticket.id));
    let refused: Vec<&str> = refused.map(|ticket| ticket.serial.as_str()).collect();
    if !refused.is_empty() {
        return Err(not_issued(&refused));
    }
    let id = app.clock.next_id();
    let row = TransferRow { id, status: TransferStatus::Pending, sender_id: sender, recipient_id: recipient };
    store::insert(tx, &row).await?;
    store::insert_tickets(tx, id, &ids).await?;
    view(tx, caller, row, now).await
}

/// Whom the tickets are offered to. The account is held, so that it is not deactivated before the transfer is there to be ended.
async fn recipient(tx: &mut Tx, sender: Id, number: &AccountNumber) -> Result<Result<Id, FieldError>> {
    let found = accounts::lock_active(tx, number).await?;
    Ok(match found {
        None => Err(FieldError::invalid("recipient", "names no active account")),
        Some(account) if account.id == sender => Err(FieldError::invalid("recipient", "must be somebody else")),
        Some(account) => Ok(account.id),
    })
}

/// The tickets of these serials, locked. Somebody else's ticket is told no differently from none.
async fn own_tickets(tx: &mut Tx, owner: Id, serials: &[Serial]) -> Result<Result<Vec<TicketRow>, FieldError>> {
    let tickets = tickets::lock_own(tx, owner, serials.iter().map(|serial| serial.0.clone())).await?;
    let known: HashSet<&str> = tickets.iter().map(|ticket| ticket.serial.as_str()).collect();
    let unknown: Vec<&str> = serials.iter().map(|serial| serial.0.as_str()).filter(|serial| !known.contains(serial)).collect();
    if unknown.is_empty() {
        return Ok(Ok(tickets));
    }
    Ok(Err(FieldError::invalid("tickets", format!("names no ticket of yours (at {})", unknown.join(", ")))))
}

fn not_issued(serials: &[&str]) -> Error {
    let are = if serials.len() == 1 { "is" } else { "are" };
    let serials = serials.join(" and ");
    Code::TicketNotIssued.with_message(format!("Only a ticket that is Issued can be transferred, and {serials} {are} not."))
}

/// Ends a transfer as its recipient says.
async fn respond(app: &App, tx: &mut Tx, caller: &Caller, id: Id, status: TransferStatus) -> Result<Transfer> {
    let row = load(tx, id).await?;
    if !caller.is(row.recipient_id) {
        return Err(Error::FORBIDDEN);
    }
    // Its removal waits, or has come before: nothing is given to an account that is gone.
    accounts::lock(tx, row.recipient_id).await?.ok_or(Error::NOT_FOUND)?;
    let ended = close(app, tx, row, status).await?;
    view(tx, caller, ended, app.clock.now()).await
}

/// Ends an open transfer in this state: its tickets are Issued again, and whose the state says.
async fn close(app: &App, tx: &mut Tx, row: TransferRow, status: TransferStatus) -> Result<TransferRow> {
    if !store::end(tx, row.id, status).await? {
        return Err(Code::TransferNotOpen.into());
    }
    let ended = TransferRow { status, ..row };
    let tickets: Vec<Id> = store::offers(tx, [row.id]).await?.into_iter().map(|offer| offer.ticket_id).collect();
    if !tickets::return_to_owner(tx, &tickets, row.sender_id, ended.owner(), app.clock.now()).await? {
        return Err(anyhow!("a ticket of the open transfer {} is not Pending", row.id).into());
    }
    Ok(ended)
}

async fn load(tx: &mut Tx, id: Id) -> Result<TransferRow> {
    store::find(tx, id).await?.ok_or(Error::NOT_FOUND)
}

async fn view(tx: &mut Tx, caller: &Caller, row: TransferRow, now: Timestamp) -> Result<Transfer> {
    views(tx, caller, vec![row], now).await?.pop().ok_or(Error::NOT_FOUND)
}

/// Transfers with their tickets, as this caller reads them; sections and accounts are loaded once.
async fn views(tx: &mut Tx, caller: &Caller, rows: Vec<TransferRow>, now: Timestamp) -> Result<Vec<Transfer>> {
    let mut offers = store::offers(tx, rows.iter().map(|row| row.id)).await?;
    let sections = sections::find_by_ids(tx, offers.iter().map(|offer| offer.section_id), now).await?;
    let accounts = accounts::views_for(tx, caller, rows.iter().flat_map(|row| [row.sender_id, row.recipient_id])).await?;
    let account = |id: Id| accounts.get(&id).cloned().ok_or_else(|| anyhow!("there is no account {id}"));
    let transfers = rows.into_iter().map(|row| {
        let tickets = offers.extract_if(.., |offer| offer.transfer_id == row.id).map(|offer| {
            let section = sections.get(&offer.section_id);
            let section = section.ok_or_else(|| anyhow!("the ticket {} has no section", offer.ticket_id))?;
            Ok(ticket_view(caller, &row, offer, sections::view_long(section, now), account(row.owner())?))
        });
        Ok(Transfer {
            uri: Uri(format!("/transfers/{}", row.id)),
            status: row.status,
            sender: account(row.sender_id)?,
            recipient: account(row.recipient_id)?,
            tickets: tickets.collect::<Result<_>>()?,
        })
    });
    transfers.collect()
}

/// A ticket of a transfer. A recipient that could read the serial before it claims could use a ticket that is then not its own.
fn ticket_view(caller: &Caller, row: &TransferRow, offer: TransferTicketRow, section: Section, owner: Account) -> TransferTicket {
    let is_hidden = caller.is(row.recipient_id) && row.status != TransferStatus::Claimed;
    let is_open = row.status == TransferStatus::Pending;
    TransferTicket {
        uri: tickets::uri(offer.ticket_id),
        serial: (!is_hidden).then_some(Serial(offer.serial)),
        status: if is_open { TransferTicketStatus::Pending } else { TransferTicketStatus::Issued },
        section,
        owner,
        issued: OffsetSeconds(offer.issued.format_rfc3339()),
        redeemed: Redeemed("N/A".to_owned()),
    }
}
