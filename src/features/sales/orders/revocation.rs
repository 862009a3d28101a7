//! Revoking tickets of a fulfilled order: returned with a refund, or voided without one.
//!
//! It locks the order, its events, its sections, the open transfers of its tickets, and the tickets (see the lock order in
//! CONTRIBUTING.md). The transfers end together with the tickets. The ticket locks keep a ticket from being redeemed while it is
//! refunded.

use std::collections::{BTreeMap, BTreeSet};

use boxoffice_http::error::{Error, Result};

use super::model::{Order, OrderRow, OrderStatus, RevocationRow, RevocationType};
use super::returns::OrderReturnCreate;
use super::voids::OrderVoidCreate;
use super::{revocation_store, service, store};
use crate::features::catalog::events;
use crate::features::catalog::sections;
use crate::features::codes;
use crate::features::sales::mail_values::SalesMail;
use crate::features::sales::payments;
use crate::features::sales::tickets::{self, SerialInput, TicketRow, TicketStatus};
use crate::features::sales::transfers;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Tx, transaction};
use crate::kernel::outbox::{self, MailCounts, MailTemplate};
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::state::{App, Ctx};

/// Returns the tickets that the request names, or all unused tickets of the order. Their cost is refunded after the commit,
/// because no transaction waits for the gateway; a job retries refunds that fail.
pub async fn return_tickets(ctx: &Ctx, caller: &Caller, id: Id, request: &OrderReturnCreate) -> Result<Order> {
    let mails = MailCounts::default();
    let order = transaction!(ctx.unit, |tx| return_tickets_in_tx(&ctx.app, tx, caller, id, request, &mails).await)?;
    payments::process_after_commit(ctx, id).await;
    Ok(order)
}

async fn return_tickets_in_tx(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    id: Id,
    request: &OrderReturnCreate,
    mails: &MailCounts,
) -> Result<Order> {
    let order = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    service::require_hosts(tx, caller, id).await?;
    let is_named = |ticket: &TicketRow| {
        request.tickets.as_ref().is_none_or(|serials| serials.iter().any(|serial| serial.0 == ticket.serial))
    };
    let tickets = lock_tickets(app, tx, id, is_named).await?;
    // The caller may have been removed from the host's administrators while it waited for the locks.
    service::require_hosts(tx, caller, id).await?;
    let selected = request.tickets.as_deref().map(|serials| select_by_serial(&tickets, serials)).transpose()?;
    require_fulfilled(&order, "returned")?;
    let to_return: Vec<&TicketRow> = match selected {
        Some(selected) => {
            require_valid(&selected)?;
            selected
        }
        None => tickets.iter().filter(|ticket| is_valid(ticket)).collect(),
    };
    if to_return.is_empty() {
        return Err(codes::TICKET_NOT_ISSUED
            .with_message("None of this order's tickets can be returned: each was used, returned or voided."));
    }

    let reason = request.reason.clone().unwrap_or_default();
    let (status, revocation, returned) = return_locked(app, tx, &order, &tickets, &to_return, reason, caller.account).await?;
    mail_return(app, tx, &order, &revocation, &returned, mails).await?;
    service::view(tx, caller, order.with_status(status), app.clock.now()).await
}

/// Tickets of an order that were returned.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReturnedTickets {
    /// The number of tickets.
    pub tickets: i64,
    /// The refunds, made or scheduled, including fees.
    pub amount: Money,
}

/// Returns the unused tickets of an order for one of its events. Returns `None`, and changes nothing, if there are none. The
/// refunds are scheduled.
pub async fn return_tickets_of_event(
    app: &App,
    tx: &mut Tx,
    order: Id,
    event: Id,
    reason: &str,
    account: Option<Id>,
    mails: &MailCounts,
) -> Result<Option<ReturnedTickets>> {
    let order = store::lock(tx, order).await?.ok_or(Error::NOT_FOUND)?;
    if order.stored_status != OrderStatus::Fulfilled {
        return Ok(None);
    }
    let tickets = lock_tickets(app, tx, order.id, |ticket| ticket.event_id == event).await?;
    let to_return: Vec<&TicketRow> = tickets.iter().filter(|ticket| ticket.event_id == event && is_valid(ticket)).collect();
    if to_return.is_empty() {
        return Ok(None);
    }
    let (_, revocation, returned) = return_locked(app, tx, &order, &tickets, &to_return, reason.to_owned(), account).await?;
    mail_return(app, tx, &order, &revocation, &returned, mails).await?;
    Ok(Some(ReturnedTickets { tickets: revocation.tickets, amount: revocation.amount.unwrap_or(Money::ZERO) }))
}

/// Returns some of the locked tickets of a fulfilled, locked order: schedules the refunds, and records the return with its reason
/// and the account. Returns the order's status, the record, and the number of tickets by section.
async fn return_locked(
    app: &App,
    tx: &mut Tx,
    order: &OrderRow,
    tickets: &[TicketRow],
    to_return: &[&TicketRow],
    reason: String,
    account: Option<Id>,
) -> Result<(OrderStatus, RevocationRow, BTreeMap<Id, i64>)> {
    let returned = void_tickets(app, tx, order, to_return).await?;
    let amount = payments::schedule_ticket_refunds(app, tx, order.id, &returned).await?;
    let void_count = tickets.iter().filter(|ticket| ticket.status == TicketStatus::Void).count() + to_return.len();
    let status = if void_count < tickets.len() { OrderStatus::Fulfilled } else { OrderStatus::Returned };
    store::set_ended(tx, order.id, status).await?;
    let revocation = RevocationRow { amount: Some(amount), ..revocation(app, account, order.id, to_return.len(), reason) };
    revocation_store::insert(tx, &revocation, RevocationType::Return).await?;
    Ok((status, revocation, returned))
}

/// Mails a return to the customer, unless there were many mails about free orders.
async fn mail_return(
    app: &App,
    tx: &mut Tx,
    order: &OrderRow,
    revocation: &RevocationRow,
    returned: &BTreeMap<Id, i64>,
    mails: &MailCounts,
) -> Result<()> {
    let (limit, customer) = (&app.limits.free_return_mails, order.account_id);
    if order.total() > Money::ZERO || mails.count(app, limit, customer, MailTemplate::TicketsReturned, customer) {
        let amount = revocation.amount.unwrap_or(Money::ZERO);
        let mail = SalesMail::TicketsReturned { order: order.id, tickets: returned, amount, reason: &revocation.reason };
        outbox::push(app, tx, [mail.to(customer)]).await?;
    }
    Ok(())
}

/// Voids an order: voids all its unused tickets, without a refund.
pub async fn void(ctx: &Ctx, caller: &Caller, id: Id, request: &OrderVoidCreate) -> Result<Order> {
    transaction!(ctx.unit, |tx| void_in_tx(&ctx.app, tx, caller, id, request).await)
}

async fn void_in_tx(app: &App, tx: &mut Tx, caller: &Caller, id: Id, request: &OrderVoidCreate) -> Result<Order> {
    let order = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    require_fulfilled(&order, "voided")?;
    let tickets = lock_tickets(app, tx, id, |_| true).await?;
    let valid: Vec<&TicketRow> = tickets.iter().filter(|ticket| is_valid(ticket)).collect();
    // Before the tickets, because the trigger of the order locks the sums of all its hosts, in their order.
    store::set_ended(tx, id, OrderStatus::Voided).await?;
    void_tickets(app, tx, &order, &valid).await?;
    let revocation = revocation(app, caller.account, id, valid.len(), request.reason.0.clone());
    revocation_store::insert(tx, &revocation, RevocationType::Void).await?;
    let mail = SalesMail::OrderVoided { order: id, reason: &revocation.reason };
    outbox::push(app, tx, [mail.to(order.account_id)]).await?;
    service::view(tx, caller, order.with_status(OrderStatus::Voided), app.clock.now()).await
}

/// Locks and returns the tickets of an order. Cancels the open transfers of the selected ones.
async fn lock_tickets(app: &App, tx: &mut Tx, order: Id, is_selected: impl Fn(&TicketRow) -> bool) -> Result<Vec<TicketRow>> {
    let items = store::items(tx, [order]).await?;
    events::lock_all(tx, items.iter().map(|item| item.event_id)).await?;
    sections::lock_all(tx, items.iter().map(|item| item.section_id)).await?;
    let is_offered = |ticket: &&TicketRow| is_selected(ticket) && ticket.status == TicketStatus::Pending;
    // No other ticket is offered before the transaction ends, because a new transfer locks the orders of its tickets.
    let tickets = tickets::find_by_order(tx, order).await?;
    let offered: Vec<Id> = tickets.iter().filter(is_offered).map(|ticket| ticket.id).collect();
    let all: Vec<Id> = tickets.iter().map(|ticket| ticket.id).collect();
    transfers::cancel_for_tickets(app, tx, &offered, &all).await?;
    tickets::lock_of_order(tx, order).await
}

/// Returns the tickets with these serial numbers, each once.
///
/// # Errors
/// Returns an error if a serial number is not one of this order's tickets.
fn select_by_serial<'a>(tickets: &'a [TicketRow], serials: &[SerialInput]) -> Result<Vec<&'a TicketRow>> {
    let serials: BTreeSet<&str> = serials.iter().map(|serial| serial.0.as_str()).collect();
    let selected: Vec<&TicketRow> = tickets.iter().filter(|ticket| serials.contains(ticket.serial.as_str())).collect();
    let selected_serials: BTreeSet<&str> = selected.iter().map(|ticket| ticket.serial.as_str()).collect();
    let unknown: Vec<&str> = serials.difference(&selected_serials).copied().collect();
    if unknown.is_empty() {
        return Ok(selected);
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
    Err(codes::TICKET_NOT_ISSUED.with_message(format!("These tickets were used or are void already: {}.", used.join(", "))))
}

fn require_fulfilled(order: &OrderRow, done: &str) -> Result<()> {
    if order.stored_status == OrderStatus::Fulfilled {
        return Ok(());
    }
    Err(codes::ORDER_NOT_FULFILLED.with_message(format!("This order is not fulfilled, so it can't be {done}.")))
}

/// Voids locked tickets of an order, whose sections and events are locked: frees their places, subtracts them from the popularity of
/// their events, and mails those to whom tickets were transferred. Returns the number of tickets by section.
async fn void_tickets(app: &App, tx: &mut Tx, order: &OrderRow, tickets: &[&TicketRow]) -> Result<BTreeMap<Id, i64>> {
    let (mut returned, mut events) = (BTreeMap::<Id, i64>::new(), BTreeMap::<Id, i64>::new());
    for ticket in tickets {
        *returned.entry(ticket.section_id).or_default() += 1;
        *events.entry(ticket.event_id).or_default() -= 1;
    }
    tickets::void(tx, tickets.iter().map(|ticket| ticket.id), app.clock.now()).await?;
    let freed = returned.iter().map(|(&section, &quantity)| (section, (0, -quantity))).collect();
    store::raise_popularity(sections::adjust_counts(tx.writes(), &freed), &events).execute().await?;
    mail_holders(app, tx, order, tickets).await?;
    Ok(returned)
}

/// Mails the holders of voided tickets other than the customer, who has a mail about the order: one mail for each event. It doesn't
/// have the reason, which they may not read.
async fn mail_holders(app: &App, tx: &mut Tx, order: &OrderRow, tickets: &[&TicketRow]) -> Result<()> {
    let mut voided: BTreeMap<(Id, Id), i64> = BTreeMap::new();
    for ticket in tickets.iter().filter(|ticket| ticket.owner_id != order.account_id) {
        *voided.entry((ticket.owner_id, ticket.event_id)).or_default() += 1;
    }
    if voided.is_empty() {
        return Ok(());
    }
    let mails = voided
        .into_iter()
        .map(|((holder, event), tickets)| SalesMail::TicketsVoided { order: order.id, event, tickets }.to(holder));
    outbox::push(app, tx, mails.collect::<Vec<_>>()).await
}

fn revocation(app: &App, account_id: Option<Id>, order_id: Id, tickets: usize, reason: String) -> RevocationRow {
    let tickets = i64::try_from(tickets).unwrap_or(i64::MAX);
    let (id, revoked) = (app.clock.next_id(), app.clock.now());
    RevocationRow { id, order_id, tickets, amount: None, reason, account_id, revoked }
}
