//! The end of an order: fulfilled, cancelled or timed out. The cancellation of an event makes its open orders unpayable at once,
//! and a job cancels them.
//!
//! It locks the order, then its events, then its sections (see the lock order in CONTRIBUTING.md). The event locks keep an event
//! from being withdrawn or cancelled while its tickets are issued. The section locks guard the reservations and the counts.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use boxoffice_http::error::Result;

use super::model::{EventItemRow, ItemRow, OrderRow, OrderStatus, ReservationRow};
use super::store;
use crate::features::catalog::sections;
use crate::features::sales::mail_values::{CancellationCause, SalesMail};
use crate::features::sales::payments;
use crate::features::sales::tickets::{self, NewTickets};
use crate::kernel::db::{Tx, Writes, transaction};
use crate::kernel::outbox;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::state::{App, Ctx};

/// Fulfills open orders that are paid, whose `items` may have others among them: counts their places as sold and issues their tickets.
/// They and their sections must be locked.
///
/// Returns the orders that could not be fulfilled. They are timed out instead, because another server with a clock that is ahead
/// has already released their places.
pub async fn fulfill(
    app: &App,
    tx: &mut Tx,
    orders: &[&OrderRow],
    items: &[EventItemRow],
    now: Timestamp,
) -> Result<HashSet<Id>> {
    if orders.is_empty() {
        return Ok(HashSet::new());
    }
    let reservations = store::delete_reservations(tx, orders.iter().map(|order| order.id)).await?;
    let reservation_count = |order: Id| reservations.iter().filter(|reservation| reservation.order_id == order).count();
    let (fulfilled, unfulfilled): (Vec<&OrderRow>, Vec<&OrderRow>) =
        orders.iter().partition(|order| reservation_count(order.id) == items_of(items, order.id).count());
    let unfulfilled: HashSet<Id> = unfulfilled.into_iter().map(|order| order.id).collect();
    let mut changes = freed(&reservations);
    for bought in reservations.iter().filter(|reservation| !unfulfilled.contains(&reservation.order_id)) {
        let (_, sold) = changes.entry(bought.section_id).or_default();
        *sold += bought.quantity;
    }
    for order in &unfulfilled {
        end(app, tx, *order, OrderStatus::TimedOut).await?;
    }
    let writes = sections::adjust_counts(tx.writes(), &changes);
    let writes = store::set_fulfilled(writes, fulfilled.iter().map(|order| order.id), now);
    let items = fulfilled.iter().flat_map(|order| items_of(items, order.id).map(|item| (*order, item)));
    let writes = issue_tickets(app, writes, &items.collect::<Vec<_>>());
    let mails = fulfilled.iter().map(|order| SalesMail::OrderConfirmation { order: order.id }.to(order.account_id));
    outbox::write(app, writes, mails)?.execute().await?;
    Ok(unfulfilled)
}

fn items_of(items: &[EventItemRow], order: Id) -> impl Iterator<Item = &ItemRow> {
    items.iter().map(|row| &row.item).filter(move |item| item.order_id == order)
}

/// Ends an open, locked order with `status`: releases its places and schedules refunds of its payments.
pub async fn close(app: &App, tx: &mut Tx, order: Id, status: OrderStatus) -> Result<()> {
    release(tx, &[order]).await?;
    end(app, tx, order, status).await
}

/// Ends an open, locked order without reservations.
async fn end(app: &App, tx: &mut Tx, order: Id, status: OrderStatus) -> Result<()> {
    store::set_ended(tx, order, status).await?;
    payments::schedule_refunds(app, tx, [order]).await
}

/// Cancels every open order of an account and returns the orders. Their refunds are scheduled; the caller has the gateway
/// process them after the commit. The account must be locked, so that no order is placed at the same time.
pub async fn cancel_all(app: &App, tx: &mut Tx, account: Id) -> Result<Vec<Id>> {
    let orders = store::cancel_open(tx, account, app.clock.now()).await?;
    // At once, in the lock order, those whose waiting lists the account leaves if it is deleted.
    store::lock_sections_of_account(tx, account).await?;
    release(tx, &orders).await?;
    payments::schedule_refunds(app, tx, orders.clone()).await?;
    Ok(orders)
}

/// Job step: times out a few open orders whose reservations have expired, and cancels a few with a cancelled event. Schedules their
/// refunds. Returns the number of orders; call it until it returns 0.
pub async fn expire_due(ctx: &Ctx) -> Result<u64> {
    let now = ctx.app.clock.now();
    let timed_out = transaction!(ctx.unit, |tx| time_out(&ctx.app, tx, now).await)?;
    let cancelled = cancel_with_events(ctx, now).await?;
    Ok(timed_out + cancelled)
}

/// Job step: deletes some orders that were placed before this time and ended without any payment. Returns their number.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn delete_unpaid_before(ctx: &Ctx, before: Timestamp) -> Result<u64> {
    transaction!(ctx.unit, |tx| {
        let orders = store::lock_unpaid_before(tx, before).await?;
        store::delete(tx, orders).await
    })
}

/// Cancels the next few open orders with a cancelled event, which can't be paid any more. Returns their number.
async fn cancel_with_events(ctx: &Ctx, now: Timestamp) -> Result<u64> {
    let found = store::open_with_cancelled_event(&mut ctx.unit.read().await?, now).await?;
    if found.is_empty() {
        return Ok(0);
    }
    transaction!(ctx.unit, |tx| cancel_with_events_in_tx(&ctx.app, tx, &found, now).await)
}

async fn cancel_with_events_in_tx(app: &App, tx: &mut Tx, found: &[Id], now: Timestamp) -> Result<u64> {
    let locked = store::lock_all(tx, found.iter().copied()).await?;
    // An order may have been closed before it was locked.
    let orders: Vec<Id> = locked.iter().filter(|order| order.is_open(now)).map(|order| order.id).collect();
    store::set_cancelled(tx, &orders).await?;
    release(tx, &orders).await?;
    payments::schedule_refunds(app, tx, orders.iter().copied()).await?;
    let cause = CancellationCause::Event;
    let cancelled = locked.iter().filter(|order| orders.contains(&order.id));
    let mails = cancelled.map(|order| SalesMail::OrderCancelled { order: order.id, cause }.to(order.account_id));
    outbox::push(app, tx, mails.collect::<Vec<_>>()).await?;
    Ok(orders.len() as u64)
}

/// Corrects the open orders that were placed while the clock was ahead: at a time after `latest`. Their reservations end as if they
/// had been placed now. The time at which they were placed is not changed. Returns their number.
pub async fn correct_future(app: &App, tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    let reservation = app.settings.reservation;
    let orders = store::correct_open(tx, now.plus(reservation), latest, reservation).await?;
    let count = orders.len() as u64;
    store::copy_ends_to_reservations(tx, orders).await?;
    Ok(count)
}

async fn time_out(app: &App, tx: &mut Tx, now: Timestamp) -> Result<u64> {
    let ended = store::expire_due(tx, now).await?;
    app.clock.require_not_set_back(now)?;
    release(tx, &ended).await?;
    let count = ended.len() as u64;
    payments::schedule_refunds(app, tx, ended).await?;
    Ok(count)
}

/// Deletes the reservations of locked orders and frees their places.
async fn release(tx: &mut Tx, orders: &[Id]) -> Result<()> {
    if orders.is_empty() {
        return Ok(());
    }
    store::lock_reserved_sections(tx, orders.iter().copied()).await?;
    let reservations = store::delete_reservations(tx, orders.iter().copied()).await?;
    sections::adjust_counts(tx.writes(), &freed(&reservations)).execute().await
}

/// Returns the changes of the counts of sections whose reservations were deleted.
fn freed(reservations: &[ReservationRow]) -> BTreeMap<Id, (i64, i64)> {
    let mut changes: BTreeMap<Id, (i64, i64)> = BTreeMap::new();
    for reservation in reservations {
        let (reserved, _) = changes.entry(reservation.section_id).or_default();
        *reserved -= reservation.quantity;
    }
    changes
}

/// Issues the tickets of order items, whose places already count as sold, and adds them to the popularity of their events.
pub fn issue_tickets<'a>(app: &App, writes: Writes<'a>, items: &[(&OrderRow, &ItemRow)]) -> Writes<'a> {
    let mut sold: BTreeMap<Id, i64> = BTreeMap::new();
    for (_, item) in items {
        *sold.entry(item.event_id).or_default() += item.quantity;
    }
    let writes = store::raise_popularity(writes, &sold);
    let tickets = items.iter().map(|(order, item)| NewTickets {
        order: item.order_id,
        owner: order.account_id,
        event: item.event_id,
        section: item.section_id,
        quantity: item.quantity,
    });
    tickets::issue(app, writes, tickets)
}

/// A refund that was made.
#[derive(Debug)]
pub struct OrderRefund {
    /// The order.
    pub order: Id,
    /// The amount.
    pub amount: Money,
    /// True if its payment had paid for tickets of the order.
    pub is_of_tickets: bool,
}

/// Mails refunds of locked orders to their customers, one mail for each order. A return of tickets has its own mail, which names the
/// amount. So there is none for the refund of tickets of an order that was fulfilled, even if the gateway makes it later.
pub async fn mail_refunds(app: &App, tx: &mut Tx, refunds: &[OrderRefund]) -> Result<()> {
    if refunds.is_empty() {
        return Ok(());
    }
    let customers = store::customers(tx, refunds.iter().map(|refund| refund.order).collect::<BTreeSet<Id>>()).await?;
    let mails = customers.into_iter().filter_map(|(order, account, status)| {
        let was_fulfilled = [OrderStatus::Fulfilled, OrderStatus::Returned, OrderStatus::Voided].contains(&status);
        let mailed = refunds.iter().filter(|refund| refund.order == order && !(refund.is_of_tickets && was_fulfilled));
        let amount: Money = mailed.map(|refund| refund.amount).sum();
        (amount > Money::ZERO).then(|| SalesMail::Refund { order, amount }.to(account))
    });
    outbox::push(app, tx, mails.collect::<Vec<_>>()).await
}
