//! Giving money back: of orders that have ended unpaid, of tickets that were returned, and charges of which nobody knows what
//! came.
//!
//! What is owed is written down in the transaction that makes it so, as refunds, which hold the order locked so that a payment's
//! refunds never exceed it. The gateway is asked afterwards, until it does it; a refund is done, and in the ledger, once it has.
//! What was paid outside the platform is given back outside it too, so that its refunds are done at once.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::join_all;
use slog::warn;
use tokio::time::timeout;

use super::gateway::{CancelCharge, GATEWAY_TIMEOUT, Refund};
use super::model::{PaymentMethod, PendingRefundRow, RefundRow, RefundShareRow, RefundableRow};
use super::{refund_store, store};
use crate::state::App;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::db::{Tx, transaction};
use boxoffice_http::error::Result;
use crate::kernel::http::ApiError;
use crate::features::sales::ledger::{self, Allocation, AllocationLine, Entry, HostShare, TicketCosts};
use crate::features::sales::orders;

/// How long a payment may be pending: well over what its request waits for the gateway.
const PENDING: Duration = Duration::from_secs(2 * 60);

/// Owes back whatever was taken for these orders, which are locked and have ended unpaid.
///
/// # Errors
/// When the database fails.
pub async fn schedule_refunds(app: &App, tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<()> {
    let payments = store::left(tx, orders).await?;
    let ids: Vec<Id> = payments.iter().map(|payment| payment.id).collect();
    let mut sales = ledger::sales(tx, ids).await?;
    let whole =
        |payment: RefundableRow| (payment, sales.remove(&payment.id).unwrap_or_else(|| Allocation::unallocated(payment.amount)));
    insert(app, tx, payments.into_iter().map(whole).collect()).await
}

/// Owes back what these numbers of tickets, by section, have cost in a fulfilled order that is locked: prices and fees.
/// The newest payments are given back first.
///
/// # Errors
/// When the database fails.
pub async fn schedule_ticket_refunds(app: &App, tx: &mut Tx, order: Id, returned: &BTreeMap<Id, i64>) -> Result<()> {
    let mut tickets: Vec<TicketCosts> = store::tickets(tx, [order]).await?.into_iter().map(|row| row.tickets).collect();
    for item in &mut tickets {
        item.quantity = returned.get(&item.section_id).copied().unwrap_or(0);
    }
    let line = AllocationLine::of(&tickets).reversed();
    let mut reached = Money::ZERO;
    let mut owed = Vec::new();
    for payment in store::left(tx, [order]).await? {
        let part = line.slice(reached, payment.amount.min(line.total() - reached));
        reached = reached + part.amount;
        if part.amount > Money::ZERO {
            owed.push((payment, part));
        }
    }
    insert(app, tx, owed).await
}

/// Writes down what is owed back of payments, whose order is locked.
pub(super) async fn insert(app: &App, tx: &mut Tx, owed: Vec<(RefundableRow, Allocation)>) -> Result<()> {
    let (mut refunds, mut shares, mut external) = (Vec::new(), Vec::new(), Vec::new());
    for (payment, part) in owed {
        let id = app.clock.next_id();
        let (order_id, payment_id) = (payment.order_id, payment.id);
        refunds.push(RefundRow { id, order_id, payment_id, amount: part.amount, fees: part.fees });
        let share =
            |share: HostShare| RefundShareRow { refund_id: id, host_id: share.host, amount: share.amount, fees: share.fees };
        shares.extend(part.shares.into_iter().map(share));
        external.extend((payment.method == PaymentMethod::External).then_some(id));
    }
    refund_store::insert(tx, &refunds, app.clock.now()).await?;
    refund_store::insert_shares(tx, &shares).await?;
    complete(app, tx, external).await
}

/// Writes down that the money of these refunds, whose orders are locked, has been given back. Those of which it was known
/// already are left alone.
async fn complete(app: &App, tx: &mut Tx, refunds: Vec<Id>) -> Result<()> {
    let done = refund_store::set_done(tx, refunds, app.clock.now()).await?;
    let shares = refund_store::shares(tx, done.iter().map(|refund| refund.id)).await?;
    let entry = |refund: &RefundRow| {
        let shares = shares.iter().filter(|share| share.refund_id == refund.id);
        let shares = shares.map(|share| HostShare { host: share.host_id, amount: share.amount, fees: share.fees }).collect();
        let part = Allocation { amount: refund.amount, fees: refund.fees, shares };
        Entry { payment: refund.payment_id, order: refund.order_id, refund: Some(refund.id), part }
    };
    ledger::record(app, tx, done.iter().map(entry).collect()).await?;
    store::close_refunded(tx, done.iter().map(|refund| refund.payment_id)).await
}

/// Asks the gateway for a few of those that it still has to give back of one order. What is left, and what fails, is for
/// [`settle_due`]: the order has changed already, so nothing of this may refuse its change.
pub async fn process_refunds(app: &App, order: Id) {
    if let Err(error) = process_batch(app, Some(order), Id::NONE).await {
        let failure = ApiError::from(error);
        warn!(app.log, "what is owed back could not be looked up"; "order" => %order,
            "cause" => failure.cause().map(|cause| format!("{cause:#}")));
    }
}

/// The step of a job: abandons payments whose request must have ended long ago, and asks the gateway for whatever it has to
/// undo or to give back.
///
/// # Errors
/// When the database fails.
pub async fn process_due(app: &App) -> Result<()> {
    let before = app.clock.now().minus(PENDING);
    transaction!(app.db, |tx| store::abandon_pending(tx, before).await)?;
    // From where the last step stopped: a few that the gateway will never give back must not stand before all others.
    let mut after = Id(app.refund_cursor.load(Ordering::Relaxed));
    let mut wrapped = after == Id::NONE;
    loop {
        let batch = process_batch(app, None, after).await?;
        after = batch.last.unwrap_or(Id::NONE);
        app.refund_cursor.store(after.0, Ordering::Relaxed);
        // A few of which none could be settled are the last for now: the gateway may be down.
        match batch {
            Batch { last: None, .. } if wrapped => return Ok(()),
            Batch { last: None, .. } => wrapped = true,
            Batch { settled: false, .. } => return Ok(()),
            Batch { .. } => {}
        }
    }
}

/// What became of the next few that were unsettled.
struct Batch {
    /// The last of them; `None` where there were none.
    last: Option<Id>,
    /// Whether any could be settled.
    settled: bool,
}

/// Has the gateway settle the next few after `after`.
async fn process_batch(app: &App, order: Option<Id>, after: Id) -> Result<Batch> {
    let unsettled = refund_store::unsettled(&mut app.db.read().await?, order, after).await?;
    let settled = join_all(unsettled.iter().map(|what| call_gateway(app, what))).await;
    for (what, _) in unsettled.iter().zip(&settled).filter(|(_, settled)| **settled) {
        transaction!(app.db, |tx| record_result(app, tx, what).await)?;
    }
    Ok(Batch { last: unsettled.last().map(|what| what.id), settled: settled.contains(&true) })
}

/// Asks the gateway to undo a charge or to give money back, and tells whether it has.
async fn call_gateway(app: &App, what: &PendingRefundRow) -> bool {
    let (payment, amount) = (what.payment_id, what.amount);
    let answer = if what.is_refund {
        let refund = Refund { refund: what.id, payment, amount, reference: what.reference.clone() };
        timeout(GATEWAY_TIMEOUT, app.gateway.refund(&refund)).await
    } else {
        timeout(GATEWAY_TIMEOUT, app.gateway.undo(&CancelCharge { payment, amount })).await
    };
    let answer = answer.unwrap_or_else(|_| Err(anyhow::anyhow!("the gateway has not answered in time")));
    if let Err(error) = &answer {
        warn!(app.log, "a payment could not be given back yet"; "payment" => %payment, "cause" => format!("{error:#}"));
    }
    answer.is_ok()
}

/// Writes down what the gateway has done.
async fn record_result(app: &App, tx: &mut Tx, what: &PendingRefundRow) -> Result<()> {
    if !what.is_refund {
        return store::forget_abandoned(tx, what.id).await;
    }
    orders::lock(tx, what.order_id).await?;
    complete(app, tx, vec![what.id]).await
}
