//! Refunds of orders that ended unpaid and of returned tickets, and cancellations of charges with an unknown result.
//!
//! A refund is inserted as owed in the transaction that causes it. The order is locked meanwhile, so that the refunds of a
//! payment never exceed it. After the commit the gateway is called until it has made the refund; then the refund is done and
//! recorded in the ledger. Payments made outside the platform are also refunded outside of it, so their refunds are done at
//! once.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use boxoffice_http::error::{Error, Result, one_line};
use futures::future::join_all;
use slog::warn;
use tokio::time::timeout;

use super::gateway::{CancelCharge, GATEWAY_TIMEOUT, Refund};
use super::model::{OpenRefundRow, PaymentMethod, RefundRow, RefundShareRow, RefundableRow};
use super::{refund_store, store};
use crate::features::sales::ledger::{self, Allocation, AllocationLine, HostShare, NewLedgerEntry};
use crate::features::sales::orders::{self, OrderRefund};
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::state::{App, Ctx};

/// Age at which a pending payment is abandoned. It is much longer than [`GATEWAY_TIMEOUT`].
const PENDING_TIMEOUT: Duration = Duration::from_secs(2 * 60);
/// Timeout of the gateway in a request, after which the job makes the refund. Requests that wait for a slow gateway keep others from being
/// executed.
const TIMEOUT_IN_REQUEST: Duration = Duration::from_secs(5);

/// Schedules refunds of all payments of these orders. The orders must be locked and have ended unpaid.
pub async fn schedule_refunds(app: &App, tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<()> {
    let payments = store::refundable(tx, orders).await?;
    let ids: Vec<Id> = payments.iter().map(|payment| payment.id).collect();
    let mut sales = ledger::sales(tx, ids).await?;
    let whole =
        |payment: RefundableRow| (payment, sales.remove(&payment.id).unwrap_or_else(|| Allocation::unallocated(payment.amount)));
    insert(app, tx, payments.into_iter().map(whole).collect()).await
}

/// Schedules refunds of the price and fee of returned tickets, of which `returned` has the number by section. The order must be
/// fulfilled and locked. The newest payments are refunded first. Returns the sum of the refunds.
pub async fn schedule_ticket_refunds(app: &App, tx: &mut Tx, order: Id, returned: &BTreeMap<Id, i64>) -> Result<Money> {
    let mut tickets = store::ticket_costs(tx, order).await?;
    for item in &mut tickets {
        item.quantity = returned.get(&item.section_id).copied().unwrap_or(0);
    }
    let line = AllocationLine::of(&tickets).reversed();
    let mut offset = Money::ZERO;
    let mut allocations = Vec::new();
    for payment in store::refundable(tx, [order]).await? {
        let part = line.slice(offset, payment.amount.min(line.total() - offset));
        offset += part.amount;
        if part.amount > Money::ZERO {
            allocations.push((payment, part));
        }
    }
    insert(app, tx, allocations).await?;
    Ok(offset)
}

/// Inserts refunds of payments. Their orders must be locked.
pub(super) async fn insert(app: &App, tx: &mut Tx, allocations: Vec<(RefundableRow, Allocation)>) -> Result<()> {
    if allocations.is_empty() {
        return Ok(());
    }
    let (mut refunds, mut shares, mut external) = (Vec::new(), Vec::new(), Vec::new());
    for (payment, part) in allocations {
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

/// Marks refunds as done and records them in the ledger. Their orders must be locked. Skips refunds that are done already.
async fn complete(app: &App, tx: &mut Tx, refunds: Vec<Id>) -> Result<()> {
    if refunds.is_empty() {
        return Ok(());
    }
    let done = refund_store::set_done(tx, refunds, app.clock.now()).await?;
    let shares = refund_store::shares(tx, done.iter().map(|refund| refund.id)).await?;
    let entry = |refund: &RefundRow| {
        let shares = shares.iter().filter(|share| share.refund_id == refund.id);
        let shares = shares.map(|share| HostShare { host: share.host_id, amount: share.amount, fees: share.fees }).collect();
        let part = Allocation { amount: refund.amount, fees: refund.fees, shares };
        NewLedgerEntry { payment: refund.payment_id, order: refund.order_id, refund: Some(refund.id), part }
    };
    ledger::record(app, tx, done.iter().map(entry).collect()).await?;
    store::mark_refunded(tx, done.iter().map(|refund| refund.payment_id)).await?;
    // No host bears the refund of a payment that has paid for no ticket.
    let is_of_tickets = |refund: &RefundRow| shares.iter().any(|share| share.refund_id == refund.id);
    let refunds: Vec<OrderRefund> = done
        .iter()
        .map(|refund| OrderRefund { order: refund.order_id, amount: refund.amount, is_of_tickets: is_of_tickets(refund) })
        .collect();
    orders::mail_refunds(app, tx, &refunds).await
}

/// Has the gateway make a few refunds of one order, if it answers soon. Logs errors and returns none, because the change of the order is
/// already committed. The job [`process_due`] retries failed and remaining refunds.
pub async fn process_refunds(ctx: &Ctx, order: Id) {
    if let Err(error) = process_batch(ctx, Some(order), Id::NONE, TIMEOUT_IN_REQUEST).await {
        warn!(ctx.app.log, "the refunds of an order could not be processed"; "order" => %order, "cause" => error.into_log_text());
    }
}

/// Registers [`process_refunds`] to run after the commit.
pub async fn process_after_commit(ctx: &Ctx, order: Id) {
    let background = ctx.background();
    ctx.unit.after_commit(async move { process_refunds(&background, order).await }).await;
}

/// Job step: abandons payments that have been pending for too long, and has the gateway make all owed refunds and cancellations.
/// Returns the number of those that it has made. Those that the gateway rejects are logged, and the metrics and
/// `admin refunds list` show them: they don't fail the job, because one that can never be made would hide other failures.
pub async fn process_due(ctx: &Ctx) -> Result<u64> {
    let now = ctx.app.clock.now();
    transaction!(ctx.unit, |tx| abandon_pending(&ctx.app, tx, now).await)?;
    // Continue after the last one of the previous step, so that a few permanent failures don't block all others.
    let mut after = Id(ctx.app.refund_cursor.load(Ordering::Relaxed));
    let mut wrapped = after == Id::NONE;
    let mut made = 0;
    loop {
        let batch = process_batch(ctx, None, after, GATEWAY_TIMEOUT).await?;
        after = batch.last.unwrap_or(Id::NONE);
        ctx.app.refund_cursor.store(after.0, Ordering::Relaxed);
        made += batch.made;
        // Stop after a batch without a success, because the gateway may be down.
        match batch {
            Batch { last: None, .. } if wrapped => return Ok(made),
            Batch { last: None, .. } => wrapped = true,
            Batch { made: 0, .. } => return Ok(made),
            Batch { .. } => {}
        }
    }
}

async fn abandon_pending(app: &App, tx: &mut Tx, now: Timestamp) -> Result<()> {
    store::abandon_pending(tx, now.minus(PENDING_TIMEOUT)).await?;
    app.clock.require_not_set_back(now)
}

/// The result of one batch of refunds and cancellations.
struct Batch {
    /// The last one; `None` for an empty batch.
    last: Option<Id>,
    /// The number of those that the gateway has made.
    made: u64,
}

/// Has the gateway process the next few refunds and cancellations after `after`. Each call may take as long as `limit`.
async fn process_batch(ctx: &Ctx, order: Option<Id>, after: Id, limit: Duration) -> Result<Batch> {
    let rows = refund_store::next_open_refunds(&mut ctx.unit.read().await?, order, after).await?;
    let results = join_all(rows.iter().map(|row| call_gateway(ctx, row, limit))).await;
    for (row, _) in rows.iter().zip(&results).filter(|(_, succeeded)| **succeeded) {
        transaction!(ctx.unit, |tx| record_result(&ctx.app, tx, row).await)?;
    }
    let made = results.iter().filter(|succeeded| **succeeded).count() as u64;
    Ok(Batch { last: rows.last().map(|row| row.id), made })
}

/// Calls the gateway for a refund or a cancellation. Returns whether it succeeded.
async fn call_gateway(ctx: &Ctx, row: &OpenRefundRow, limit: Duration) -> bool {
    let (payment, amount) = (row.payment_id, row.amount);
    let result = if row.is_refund {
        let refund = Refund { refund: row.id, payment, amount, reference: row.reference.clone() };
        timeout(limit, ctx.app.gateway.refund(&refund)).await
    } else {
        timeout(limit, ctx.app.gateway.cancel_charge(&CancelCharge { payment, amount })).await
    };
    let result = result.unwrap_or_else(|_| Err(anyhow::anyhow!("the gateway has not answered in time")));
    if let Err(error) = &result {
        warn!(ctx.app.log, "a refund or cancellation failed and will be retried"; "order" => %row.order_id,
            "payment" => %payment, "cause" => one_line(error));
    }
    result.is_ok()
}

/// Records a refund or a cancellation that was made by other means, because the gateway can't make it. The gateway is not asked again.
///
/// # Errors
/// [`Error::NOT_FOUND`] if no refund or cancellation with this identifier waits for the gateway.
pub async fn settle(ctx: &Ctx, id: Id) -> Result<()> {
    transaction!(ctx.unit, |tx| {
        let row = refund_store::find_open_refund(tx, id).await?.ok_or(Error::NOT_FOUND)?;
        record_result(&ctx.app, tx, &row).await
    })
}

/// Records a refund or a cancellation that was made.
async fn record_result(app: &App, tx: &mut Tx, row: &OpenRefundRow) -> Result<()> {
    if !row.is_refund {
        return store::delete_abandoned(tx, row.id).await;
    }
    orders::lock(tx, row.order_id).await?;
    complete(app, tx, vec![row.id]).await
}
