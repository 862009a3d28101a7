//! Taking tickets of a fulfilled order back: returned, and their money given back, or made void without.
//!
//! The order is locked first, then its events, then the open transfers of its tickets, which end with them, then the tickets, so that
//! no gate lets somebody in with a ticket that is being paid back; then the sections, ascending, as everyone does.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;

use super::model::{Order, OrderReturnCreate, OrderRow, OrderStatus, OrderVoidCreate, Revocation};
use super::{service, store};
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::kernel::db::{self, Tx, transaction};
use boxoffice_http::error::{Code, Error, Result};
use crate::features::sales::tickets::{self, Serial, TicketRow, TicketStatus};
use crate::features::sales::payments;
use crate::features::sales::transfers;

/// Returns tickets of an order, or all that were not used. What they have cost is given back afterwards, because no transaction
/// waits for the gateway; what the gateway fails to give back now, a job asks it for again.
pub async fn return_tickets(app: &App, caller: &Caller, id: Id, asked: &OrderReturnCreate) -> Result<Order> {
    let order = transaction!(app.db, |tx| return_in_tx(app, tx, caller, id, asked).await)?;
    db::after_commit(app, move |app| payments::process_refunds(app, id).boxed()).await;
    Ok(order)
}

async fn return_in_tx(app: &App, tx: &mut Tx, caller: &Caller, id: Id, asked: &OrderReturnCreate) -> Result<Order> {
    let order = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    require_hosts(tx, caller, id).await?;
    let tickets = lock_tickets(app, tx, id, asked.tickets.as_deref()).await?;
    let named = asked.tickets.as_deref().map(|serials| select_by_serial(&tickets, serials)).transpose()?;
    require_fulfilled(&order, "returned")?;
    let wanted: Vec<&TicketRow> = match named {
        Some(named) => {
            require_valid(&named)?;
            named
        }
        None => tickets.iter().filter(|ticket| is_valid(ticket)).collect(),
    };
    if wanted.is_empty() {
        return Err(Code::TicketNotIssued.with_message("None of this order's tickets can be returned: all of them were used."));
    }

    let returned = void_tickets(app, tx, &wanted).await?;
    payments::schedule_ticket_refunds(app, tx, id, &returned).await?;
    let gone = tickets.iter().filter(|ticket| ticket.status == TicketStatus::Void).count() + wanted.len();
    let left = if gone < tickets.len() { OrderStatus::Fulfilled } else { OrderStatus::Returned };
    store::set_ended(tx, id, left).await?;
    let revocation = revocation(app, caller, id, wanted.len(), asked.reason.clone().unwrap_or_default());
    store::insert_revocation(tx, &revocation, "Return").await?;
    service::view(tx, caller, order.ended(left), app.clock.now()).await
}

/// Voids an order: whatever of its tickets was not used is void, and nothing is given back.
pub async fn void(app: &App, caller: &Caller, id: Id, asked: &OrderVoidCreate) -> Result<Order> {
    transaction!(app.db, |tx| void_in(app, tx, caller, id, asked).await)
}

async fn void_in(app: &App, tx: &mut Tx, caller: &Caller, id: Id, asked: &OrderVoidCreate) -> Result<Order> {
    let order = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    require_fulfilled(&order, "voided")?;
    let tickets = lock_tickets(app, tx, id, None).await?;
    let valid: Vec<&TicketRow> = tickets.iter().filter(|ticket| is_valid(ticket)).collect();
    void_tickets(app, tx, &valid).await?;
    store::set_ended(tx, id, OrderStatus::Voided).await?;
    let revocation = revocation(app, caller, id, valid.len(), asked.reason.0.clone());
    store::insert_revocation(tx, &revocation, "Void").await?;
    service::view(tx, caller, order.ended(OrderStatus::Voided), app.clock.now()).await
}

/// The tickets of an order, locked, and the open transfers ended that offer those of these serials, or any.
async fn lock_tickets(app: &App, tx: &mut Tx, order: Id, serials: Option<&[Serial]>) -> Result<Vec<TicketRow>> {
    let events = store::events(tx, [order]).await?;
    store::lock_events(tx, events.into_iter().map(|(_, event)| event)).await?;
    let is_wanted = |ticket: &TicketRow| serials.is_none_or(|serials| serials.iter().any(|serial| serial.0 == ticket.serial));
    let is_offered = |ticket: &TicketRow| is_wanted(ticket) && ticket.status == TicketStatus::Pending;
    let offered = tickets::find_by_order(tx, order).await?.into_iter().filter(is_offered).map(|ticket| ticket.id);
    transfers::cancel_for_tickets(app, tx, offered).await?;
    let tickets = tickets::lock_of_order(tx, order).await?;
    // Offered after they were read and before they were locked.
    transfers::cancel_for_tickets(app, tx, tickets.iter().filter(|ticket| is_offered(ticket)).map(|ticket| ticket.id)).await?;
    Ok(tickets)
}

/// Succeeds for who administers the host of every event in the order, and for the platform's staff.
async fn require_hosts(tx: &mut Tx, caller: &Caller, order: Id) -> Result<()> {
    if caller.is_administrator() {
        return Ok(());
    }
    let account = caller.account.ok_or(Error::FORBIDDEN)?;
    if store::is_of_hosts_of(tx, order, account).await? { Ok(()) } else { Err(Error::FORBIDDEN) }
}

/// The tickets that were named, each once.
fn select_by_serial<'a>(tickets: &'a [TicketRow], serials: &[Serial]) -> Result<Vec<&'a TicketRow>> {
    let serials: BTreeSet<&str> = serials.iter().map(|serial| serial.0.as_str()).collect();
    let named: Vec<&TicketRow> = tickets.iter().filter(|ticket| serials.contains(ticket.serial.as_str())).collect();
    let known: BTreeSet<&str> = named.iter().map(|ticket| ticket.serial.as_str()).collect();
    let unknown: Vec<&str> = serials.difference(&known).copied().collect();
    if unknown.is_empty() {
        return Ok(named);
    }
    Err(Error::invalid("tickets", format!("names no tickets of this order (at {})", unknown.join(", "))))
}

fn is_valid(ticket: &TicketRow) -> bool {
    matches!(ticket.status, TicketStatus::Issued | TicketStatus::Pending)
}

fn require_valid(tickets: &[&TicketRow]) -> Result<()> {
    let used: Vec<&str> = tickets.iter().filter(|ticket| !is_valid(ticket)).map(|ticket| ticket.serial.as_str()).collect();
    if used.is_empty() {
        return Ok(());
    }
    Err(Code::TicketNotIssued.with_message(format!("These tickets were used or are void already: {}.", used.join(", "))))
}

fn require_fulfilled(order: &OrderRow, done: &str) -> Result<()> {
    if order.stored() == OrderStatus::Fulfilled {
        return Ok(());
    }
    Err(Code::OrderNotFulfilled.with_message(format!("This order is not fulfilled, so it can't be {done}.")))
}

/// Makes tickets void, which are locked: their places are free again, and no longer count for their events. Tells how many there
/// were of each section.
async fn void_tickets(app: &App, tx: &mut Tx, tickets: &[&TicketRow]) -> Result<BTreeMap<Id, i64>> {
    let (mut sections, mut events) = (BTreeMap::<Id, i64>::new(), BTreeMap::<Id, i64>::new());
    for ticket in tickets {
        *sections.entry(ticket.section_id).or_default() += 1;
        *events.entry(ticket.event_id).or_default() += 1;
    }
    tickets::void(tx, tickets.iter().map(|ticket| ticket.id), app.clock.now()).await?;
    store::lock_sections(tx, sections.keys().copied()).await?;
    store::adjust_counts(tx, &sections.iter().map(|(&section, &quantity)| (section, (0, -quantity))).collect()).await?;
    for (&event, &quantity) in &events {
        store::raise_popularity(tx, event, -quantity).await?;
    }
    Ok(sections)
}

fn revocation(app: &App, caller: &Caller, order_id: Id, tickets: usize, reason: String) -> Revocation {
    let tickets = i64::try_from(tickets).unwrap_or(i64::MAX);
    Revocation { id: app.clock.next_id(), order_id, tickets, reason, account_id: caller.account, revoked: app.clock.now() }
}
