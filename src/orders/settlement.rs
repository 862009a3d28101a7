//! How orders end: fulfilled, cancelled or timed out.
//!
//! Whoever sells holds the events before the sections, each in ascending order, so that an event is not withdrawn or cancelled
//! while its tickets are issued. Whoever changes the counts of several sections goes through them in ascending order, and in each
//! deletes reservations before it changes the count. So transactions that meet wait for one another, and never in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{ItemRow, OrderRow, OrderStatus, Places};
use super::store;
use crate::app::App;
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::db::{Tx, transaction};
use crate::error::Result;
use crate::events::EventStatus;
use crate::tickets::{self, NewTickets};
use crate::{payments, sections};

/// Whether an order can still be paid as far as its events go: none of them is cancelled, nor will be before this transaction ends.
///
/// # Errors
/// When the database fails.
pub async fn takes_place(tx: &mut Tx, order: Id) -> Result<bool> {
    let events = store::events(tx, order).await?;
    Ok(!hold_events(tx, events.into_iter().collect()).await?.contains(&EventStatus::Cancelled))
}

/// Where these events stand until this transaction ends.
pub async fn hold_events(tx: &mut Tx, events: BTreeSet<Id>) -> Result<Vec<EventStatus>> {
    let mut statuses = Vec::new();
    for event in events {
        statuses.extend(store::hold_event(tx, event).await?);
    }
    Ok(statuses)
}

/// Fulfils an open order that is locked and paid: its places are sold, and its tickets issued.
///
/// False, with the order timed out, when another server, whose clock was ahead, had already given its places away.
///
/// # Errors
/// When the database fails.
pub async fn fulfil(app: &App, tx: &mut Tx, order: &OrderRow, now: Timestamp) -> Result<bool> {
    let items = store::items(tx, [order.id]).await?;
    let held = store::delete_reservations(tx, [order.id]).await?;
    if held.len() < items.len() {
        free(tx, held).await?;
        end(app, tx, order.id, OrderStatus::TimedOut).await?;
        return Ok(false);
    }
    for places in held {
        store::sell_reserved(tx, places).await?;
    }
    store::set_fulfilled(tx, order.id, now).await?;
    let sold: Vec<_> = items.iter().map(|item| (order, item)).collect();
    deliver(app, tx, &sold).await?;
    Ok(true)
}

/// Ends an open order that is locked: its places are free again, and what was paid for it is owed back.
pub async fn end(app: &App, tx: &mut Tx, order: Id, status: OrderStatus) -> Result<()> {
    let held = store::delete_reservations(tx, [order]).await?;
    free(tx, held).await?;
    store::set_ended(tx, order, status).await?;
    payments::owe(app, tx, [order]).await
}

/// Cancels every open order of an account that is locked, so that none is placed meanwhile, and gives them: what was paid for
/// them is owed back, and the gateway still to be asked for it.
///
/// # Errors
/// When the database fails.
pub async fn cancel_all(app: &App, tx: &mut Tx, account: Id) -> Result<Vec<Id>> {
    let orders = store::cancel_open(tx, account, app.clock.now()).await?;
    let held = store::delete_reservations(tx, orders.clone()).await?;
    free(tx, held).await?;
    payments::owe(app, tx, orders.clone()).await?;
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
    payments::settle_due(app).await?;
    Ok(ended)
}

async fn time_out(app: &App, tx: &mut Tx, now: Timestamp) -> Result<u64> {
    let ended = store::time_out_due(tx, now).await?;
    for section in store::reserved_sections(tx, ended.clone()).await? {
        sections::release_expired(tx, [section], now).await?;
    }
    let count = ended.len() as u64;
    payments::owe(app, tx, ended).await?;
    Ok(count)
}

async fn free(tx: &mut Tx, held: Vec<Places>) -> Result<()> {
    for places in held {
        sections::free(tx, places.section_id, places.quantity).await?;
    }
    Ok(())
}

/// Issues the tickets of items of orders, whose places are sold, and counts them for their events.
pub async fn deliver(app: &App, tx: &mut Tx, items: &[(&OrderRow, &ItemRow)]) -> Result<()> {
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
