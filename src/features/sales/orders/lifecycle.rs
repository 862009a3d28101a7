//! How orders end: fulfilled, cancelled or timed out.
//!
//! Whoever sells holds the events before the sections, each in ascending order, so that an event is not withdrawn or cancelled
//! while its tickets are issued. Whoever changes the counts of several sections goes through them in ascending order, and in each
//! deletes reservations before it changes the count. So transactions that meet wait for one another, and never in a circle.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::model::{ItemRow, OrderRow, OrderStatus, ReservationRow};
use super::store;
use crate::state::App;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::db::{Tx, transaction};
use boxoffice_http::error::Result;
use crate::features::catalog::events::EventStatus;
use crate::features::sales::tickets::{self, NewTickets};
use crate::features::sales::payments;
use crate::features::catalog::sections;

/// Which of these orders, which are locked, can no longer be paid, because an event of theirs is cancelled. No event of the others
/// will be before this transaction ends.
///
/// # Errors
/// When the database fails.
pub async fn cancelled(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<HashSet<Id>> {
    let events = store::events(tx, orders).await?;
    let statuses = store::lock_events(tx, events.iter().map(|(_, event)| *event).collect::<BTreeSet<Id>>()).await?;
    let cancelled = statuses.into_iter().filter(|(_, status)| *status == EventStatus::Cancelled);
    let cancelled: HashSet<Id> = cancelled.map(|(event, _)| event).collect();
    Ok(events.into_iter().filter(|(_, event)| cancelled.contains(event)).map(|(order, _)| order).collect())
}

/// Fulfils open orders that are locked and paid: their places are sold, and their tickets issued. Gives those that could not be,
/// and are timed out instead: another server, whose clock was ahead, had already given their places away.
///
/// # Errors
/// When the database fails.
pub async fn fulfill(app: &App, tx: &mut Tx, orders: &[&OrderRow], now: Timestamp) -> Result<HashSet<Id>> {
    if orders.is_empty() {
        return Ok(HashSet::new());
    }
    let items = store::items(tx, orders.iter().map(|order| order.id)).await?;
    let held = store::delete_reservations(tx, orders.iter().map(|order| order.id)).await?;
    let held_by = |order: Id| held.iter().filter(|places| places.order_id == order).count();
    let (fulfilled, lost): (Vec<&OrderRow>, Vec<&OrderRow>) =
        orders.iter().partition(|order| held_by(order.id) == items_of(&items, order.id).count());
    let lost: HashSet<Id> = lost.into_iter().map(|order| order.id).collect();
    let (freed, bought): (Vec<ReservationRow>, Vec<ReservationRow>) =
        held.into_iter().partition(|places| lost.contains(&places.order_id));
    release_seats(tx, freed).await?;
    for order in &lost {
        close(app, tx, *order, OrderStatus::TimedOut).await?;
    }
    let mut sold: BTreeMap<Id, (i64, i64)> = BTreeMap::new();
    for places in bought {
        let (reserved, sold) = sold.entry(places.section_id).or_default();
        *reserved -= places.quantity;
        *sold += places.quantity;
    }
    store::lock_sections(tx, sold.keys().copied()).await?;
    store::adjust_counts(tx, &sold).await?;
    store::set_fulfilled(tx, fulfilled.iter().map(|order| order.id), now).await?;
    let items = fulfilled.iter().flat_map(|order| items_of(&items, order.id).map(|item| (*order, item)));
    issue_tickets(app, tx, &items.collect::<Vec<_>>()).await?;
    Ok(lost)
}

fn items_of(items: &[ItemRow], order: Id) -> impl Iterator<Item = &ItemRow> {
    items.iter().filter(move |item| item.order_id == order)
}

/// Ends an open order that is locked: its places are free again, and what was paid for it is owed back.
pub async fn close(app: &App, tx: &mut Tx, order: Id, status: OrderStatus) -> Result<()> {
    let held = store::delete_reservations(tx, [order]).await?;
    release_seats(tx, held).await?;
    store::set_ended(tx, order, status).await?;
    payments::schedule_refunds(app, tx, [order]).await
}

/// Cancels every open order of an account that is locked, so that none is placed meanwhile, and gives them: what was paid for
/// them is owed back, and the gateway still to be asked for it.
///
/// # Errors
/// When the database fails.
pub async fn cancel_all(app: &App, tx: &mut Tx, account: Id) -> Result<Vec<Id>> {
    let orders = store::cancel_open(tx, account, app.clock.now()).await?;
    let held = store::delete_reservations(tx, orders.clone()).await?;
    release_seats(tx, held).await?;
    payments::schedule_refunds(app, tx, orders.clone()).await?;
    Ok(orders)
}

/// The step of a job: times out a few open orders whose reservations are over, and has the gateway asked for whatever is to be
/// given back. Tells how many orders there were; to be called until there are none.
///
/// # Errors
/// When the database fails.
pub async fn expire_due(app: &App) -> Result<u64> {
    let now = app.clock.now();
    let ended = transaction!(app.db, |tx| time_out(app, tx, now).await)?;
    payments::process_due(app).await?;
    Ok(ended)
}

async fn time_out(app: &App, tx: &mut Tx, now: Timestamp) -> Result<u64> {
    let ended = store::expire_due(tx, now).await?;
    for section in store::reserved_sections(tx, ended.clone()).await? {
        sections::release_expired(tx, [section], now).await?;
    }
    let count = ended.len() as u64;
    payments::schedule_refunds(app, tx, ended).await?;
    Ok(count)
}

async fn release_seats(tx: &mut Tx, held: Vec<ReservationRow>) -> Result<()> {
    for places in held {
        sections::release_seats(tx, places.section_id, places.quantity).await?;
    }
    Ok(())
}

/// Issues the tickets of items of orders, whose places are sold, and counts them for their events.
pub async fn issue_tickets(app: &App, tx: &mut Tx, items: &[(&OrderRow, &ItemRow)]) -> Result<()> {
    let mut sold: BTreeMap<Id, i64> = BTreeMap::new();
    for (_, item) in items {
        *sold.entry(item.event_id).or_default() += item.quantity;
    }
    for (event, quantity) in sold {
        store::raise_popularity(tx, event, quantity).await?;
    }
    let tickets = items.iter().map(|(order, item)| NewTickets {
        order: item.order_id,
        owner: order.account_id,
        event: item.event_id,
        section: item.section_id,
        quantity: item.quantity,
    });
    tickets::issue(app, tx, tickets).await
}
