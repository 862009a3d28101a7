//! Beginning and confirming payments.
//!
//! A payment by card has two steps: before and after the gateway is called. The steps of payments that are ready at the same time are
//! executed in one batch, because most of them are for the same event. A batch loads its data once, decides on the payments in the
//! order of their arrival, and writes all of them at once.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use boxoffice_http::error::{Error, FieldError, Result, ensure_no_field_errors, reject_if};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::model::{PaymentCreate, PaymentRow, RefundableRow, StoredPaymentStatus};
use super::{refunds, store};
use crate::features::catalog::events::EventStatus;
use crate::features::codes;
use crate::features::sales::ledger::{self, Allocation, AllocationLine, NewLedgerEntry, TicketCosts};
use crate::features::sales::orders::{self, EventItemRow, OrderRow};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::api_types::non_blank;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::unit_of_work::BatchOperation;
use crate::state::{App, Ctx};

/// Largest number of confirmed and pending payments of an order. The last of them pays the whole outstanding amount.
const MAX_PAYMENTS: usize = 50;

/// A request for a new payment.
pub struct PaymentRequest {
    caller: Caller,
    order: Id,
    new: PaymentCreate,
}

/// A step of a payment by card.
pub enum PaymentStep {
    /// Before the gateway is called.
    Begin(PaymentRequest),
    /// After the gateway has charged the payment.
    Confirm(PaymentRow),
}

/// A payment after a step.
pub struct PaymentResult {
    payment: PaymentRow,
    /// The reason why a charged payment is refunded.
    refund_reason: Option<Error>,
}

/// The data that decides about payments. It is locked: no other transaction changes it before this one ends.
struct OrderBalances {
    orders: HashMap<Id, OrderRow>,
    /// The items of all orders.
    items: Vec<EventItemRow>,
    /// The payments of each order.
    totals: HashMap<Id, PaymentTotals>,
}

/// The confirmed and pending payments of an order.
#[derive(Clone, Copy, Default)]
struct PaymentTotals {
    /// The confirmed amount, minus refunds that were made or scheduled.
    paid: Money,
    /// The pending amount.
    pending: Money,
    /// The number of payments.
    count: usize,
}

/// Inserts a payment by card as pending, so that its amount counts before the gateway is called. It is committed on return.
///
/// # Errors
/// Returns an error if the payment is not allowed, or the database fails.
pub async fn begin(ctx: &Ctx, caller: Caller, order: Id, new: PaymentCreate) -> Result<PaymentRow> {
    let PaymentResult { payment, .. } =
        ctx.app.payment_commits.submit(ctx, PaymentStep::Begin(PaymentRequest { caller, order, new })).await?;
    abandon_after_failure(ctx, &payment);
    ctx.unit.commit_now().await?;
    Ok(payment)
}

/// Abandons a payment if its result can't be recorded, as in a failover of the database, so that the customer can pay again at
/// once. Otherwise the payment would count as pending until the job abandons it.
fn abandon_after_failure(ctx: &Ctx, payment: &PaymentRow) {
    let (app, payment) = (Arc::clone(&ctx.app), payment.clone());
    ctx.unit.after_failure(move || {
        let (ctx, payment) = (Ctx::immediate(Arc::clone(&app)), payment.clone());
        async move {
            transaction!(ctx.unit, |tx| store::end_pending(tx, [&payment], StoredPaymentStatus::Abandoned).await)?;
            refunds::process_refunds(&ctx, payment.order_id).await;
            Ok(())
        }
        .boxed()
    });
}

/// Confirms a payment that the gateway has charged. If its order is no longer open or one of its events is cancelled, it
/// schedules a refund instead and returns the reason as `Ok(Some(error))`.
pub async fn confirm(ctx: &Ctx, payment: PaymentRow) -> Result<Option<Error>> {
    Ok(ctx.app.payment_commits.submit(ctx, PaymentStep::Confirm(payment)).await?.refund_reason)
}

/// Records a payment that was made outside the platform.
///
/// # Errors
/// Returns an error if the payment is not allowed, or the database fails.
pub async fn record(app: &App, tx: &mut Tx, caller: &Caller, order: Id, new: &PaymentCreate) -> Result<PaymentRow> {
    let now = app.clock.now();
    let mut balances = OrderBalances::lock(tx, [order]).await?;
    let order = balances.authorized_order(caller, order)?;
    reject_if(!caller.is_administrator(), Error::FORBIDDEN)?;
    let reference = non_blank(new.reference.as_deref()).ok_or_else(|| FieldError::missing("reference"));
    let payment = balances.payment(app, order, new, reference, now)?;
    store::insert(tx, [&payment], StoredPaymentStatus::Confirmed).await?;
    let unfulfilled = record_and_fulfill(app, tx, &mut balances, &[&payment], now).await?;
    if unfulfilled.is_empty() { Ok(payment) } else { Err(order_not_open()) }
}

impl BatchOperation<App> for PaymentStep {
    type Output = PaymentResult;

    fn execute<'a>(app: &'a App, tx: &'a mut Tx, batch: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<Result<PaymentResult>>>> {
        execute_all(app, tx, batch).boxed()
    }
}

impl PaymentStep {
    fn order(&self) -> Id {
        match self {
            Self::Begin(request) => request.order,
            Self::Confirm(payment) => payment.order_id,
        }
    }

    /// Returns a new payment, or the charged one.
    fn payment(&self, app: &App, balances: &mut OrderBalances, now: Timestamp) -> Result<PaymentRow> {
        match self {
            Self::Begin(request) => balances.begin(app, request, now),
            Self::Confirm(payment) => Ok(payment.clone()),
        }
    }
}

async fn execute_all(app: &App, tx: &mut Tx, steps: &[&PaymentStep]) -> Result<Vec<Result<PaymentResult>>> {
    let now = app.clock.now();
    let mut balances = OrderBalances::lock(tx, steps.iter().map(|step| step.order())).await?;
    // Before charged payments are confirmed, because these count as pending in the balances.
    let payments: Vec<Result<PaymentRow>> = steps.iter().map(|step| step.payment(app, &mut balances, now)).collect();
    let begun = steps.iter().zip(&payments).filter(|(step, _)| matches!(step, PaymentStep::Begin(_)));
    store::insert(tx, begun.filter_map(|(_, payment)| payment.as_ref().ok()), StoredPaymentStatus::Pending).await?;
    let charged = steps.iter().filter_map(|step| match step {
        PaymentStep::Begin(_) => None,
        PaymentStep::Confirm(payment) => Some(payment),
    });
    let mut refund_reasons = confirm_all(app, tx, &mut balances, &charged.collect::<Vec<_>>(), now).await?;
    let mut result = |payment: PaymentRow| PaymentResult { refund_reason: refund_reasons.remove(&payment.id), payment };
    Ok(payments.into_iter().map(|payment| payment.map(&mut result)).collect())
}

/// Confirms payments that the gateway has charged. Returns the reasons why some of them are refunded instead.
async fn confirm_all(
    app: &App,
    tx: &mut Tx,
    balances: &mut OrderBalances,
    payments: &[&PaymentRow],
    now: Timestamp,
) -> Result<HashMap<Id, Error>> {
    if payments.is_empty() {
        return Ok(HashMap::new());
    }
    let mut errors: HashMap<Id, Error> =
        payments.iter().filter_map(|payment| Some((payment.id, balances.confirm_error(payment.order_id, now)?))).collect();
    let payable: Vec<&PaymentRow> = payments.iter().copied().filter(|payment| !errors.contains_key(&payment.id)).collect();
    let confirmed: HashSet<Id> = store::end_pending(tx, payable, StoredPaymentStatus::Confirmed).await?.into_iter().collect();
    // The other payments are refunded: their orders have ended, or a job has abandoned the payments in the meantime.
    let (confirmed, to_refund): (Vec<&PaymentRow>, Vec<&PaymentRow>) =
        payments.iter().partition(|payment| confirmed.contains(&payment.id));
    let unfulfilled = record_and_fulfill(app, tx, balances, &confirmed, now).await?;
    schedule_refund(app, tx, &to_refund).await?;
    let refunded = unfulfilled.into_iter().chain(to_refund.iter().map(|payment| payment.id));
    refunded.for_each(|payment| _ = errors.entry(payment).or_insert_with(order_closed));
    Ok(errors)
}

/// Records confirmed payments in the ledger, one after the other, and fulfills the orders whose totals are reached.
///
/// Returns the last payments of the orders that could not be fulfilled because their places were gone. All payments of these
/// orders are refunded.
async fn record_and_fulfill(
    app: &App,
    tx: &mut Tx,
    balances: &mut OrderBalances,
    confirmed: &[&PaymentRow],
    now: Timestamp,
) -> Result<Vec<Id>> {
    let (mut entries, mut last) = (Vec::with_capacity(confirmed.len()), BTreeMap::new());
    for payment in confirmed {
        let order = balances.order(payment.order_id)?;
        let total = order.total();
        let line = balances.line(payment.order_id);
        let paid = &mut balances.totals.entry(payment.order_id).or_default().paid;
        entries.push(ledger_entry(payment, line.slice(*paid, payment.amount)));
        *paid += payment.amount;
        if *paid >= total {
            last.insert(payment.order_id, payment.id);
        }
    }
    if !last.is_empty() {
        // Before the first write, with which triggers lock other rows.
        orders::lock_reserved_sections(tx, last.keys().copied()).await?;
    }
    ledger::record(app, tx, entries).await?;
    let complete_orders: Vec<&OrderRow> = last.keys().filter_map(|order| balances.orders.get(order)).collect();
    let unfulfilled = orders::fulfill(app, tx, &complete_orders, &balances.items, now).await?;
    Ok(unfulfilled.iter().filter_map(|order| last.remove(order)).collect())
}

/// Records payments that pay for no order in the ledger, and schedules refunds of their full amounts.
async fn schedule_refund(app: &App, tx: &mut Tx, to_refund: &[&PaymentRow]) -> Result<()> {
    store::upsert(tx, to_refund, StoredPaymentStatus::Confirmed).await?;
    let entries = to_refund.iter().map(|payment| ledger_entry(payment, Allocation::unallocated(payment.amount)));
    ledger::record(app, tx, entries.collect()).await?;
    let whole = |payment: &&PaymentRow| {
        let refundable =
            RefundableRow { id: payment.id, order_id: payment.order_id, method: payment.method, amount: payment.amount };
        (refundable, Allocation::unallocated(payment.amount))
    };
    refunds::insert(app, tx, to_refund.iter().map(whole).collect()).await
}

fn ledger_entry(payment: &PaymentRow, part: Allocation) -> NewLedgerEntry {
    NewLedgerEntry { payment: payment.id, order: payment.order_id, refund: None, part }
}

impl OrderBalances {
    /// Locks these orders, then their events. Every transaction keeps to this lock order.
    async fn lock(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<Self> {
        let orders = orders::lock_all(tx, orders.into_iter().collect::<BTreeSet<Id>>()).await?;
        let orders: HashMap<Id, OrderRow> = orders.into_iter().map(|order| (order.id, order)).collect();
        let items = orders::lock_events_of(tx, orders.keys().copied()).await?;
        let mut totals = HashMap::new();
        for payment in store::counting_payments(tx, orders.keys().copied()).await? {
            let totals: &mut PaymentTotals = totals.entry(payment.order_id).or_default();
            let sum = if payment.pending { &mut totals.pending } else { &mut totals.paid };
            *sum += payment.amount;
            totals.count += 1;
        }
        Ok(Self { orders, items, totals })
    }

    fn order(&self, id: Id) -> Result<&OrderRow> {
        self.orders.get(&id).ok_or(Error::NOT_FOUND)
    }

    fn items_of(&self, order: Id) -> impl Iterator<Item = &EventItemRow> {
        self.items.iter().filter(move |row| row.item.order_id == order)
    }

    /// Returns whether an event of an order is cancelled, so that the order can't be paid.
    fn has_cancelled_event(&self, order: Id) -> bool {
        self.items_of(order).any(|row| row.event_status == Some(EventStatus::Cancelled))
    }

    /// Returns whether an order can be paid. If one of its events was deleted, the order has ended for the server that deleted it.
    fn is_open(&self, order: &OrderRow, now: Timestamp) -> bool {
        order.is_open(now) && self.items_of(order.id).all(|row| row.event_status.is_some())
    }

    /// Returns the line of amounts that the payments of an order fill.
    fn line(&self, order: Id) -> AllocationLine {
        AllocationLine::of(&self.items_of(order).filter_map(EventItemRow::costs).collect::<Vec<TicketCosts>>())
    }

    /// Returns an order to its customer or a platform administrator.
    fn authorized_order(&self, caller: &Caller, id: Id) -> Result<&OrderRow> {
        let order = self.order(id)?;
        caller.require_account(order.account_id)?;
        Ok(order)
    }

    /// Returns a new payment by card, and adds it to the pending amount of its order.
    fn begin(&mut self, app: &App, request: &PaymentRequest, now: Timestamp) -> Result<PaymentRow> {
        let order = self.authorized_order(&request.caller, request.order)?;
        let token = match non_blank(request.new.token.as_deref()) {
            None => Err(FieldError::missing("token")),
            Some(token) if app.gateway.accepts(token) => Ok(""),
            Some(_) => Err(FieldError::invalid("token", "is none of the gateway's")),
        };
        let payment = self.payment(app, order, &request.new, token, now)?;
        let totals = self.totals.entry(payment.order_id).or_default();
        totals.pending += payment.amount;
        totals.count += 1;
        Ok(payment)
    }

    /// Returns a new payment for an order: of the requested amount, or else of the whole outstanding amount. `reference` is the
    /// payment's reference, or the problem of the argument that is missing or invalid.
    fn payment(
        &self,
        app: &App,
        order: &OrderRow,
        new: &PaymentCreate,
        reference: Result<&str, FieldError>,
        now: Timestamp,
    ) -> Result<PaymentRow> {
        let PaymentTotals { paid, pending, count } = self.totals.get(&order.id).copied().unwrap_or_default();
        let outstanding = order.total() - (paid + pending);
        let amount = new.amount.map_or(outstanding, |amount| amount.0.0);
        let shown = app.settings.currency.format(outstanding);
        let is_payable = self.is_open(order, now) && outstanding > Money::ZERO;
        let problem = match amount.cmp(&outstanding) {
            Ordering::Greater => Some(format!("must be at most {shown}, which is outstanding")),
            Ordering::Less if count + 1 >= MAX_PAYMENTS => {
                Some(format!("must be {shown}, which is outstanding: an order has at most {MAX_PAYMENTS} payments"))
            }
            _ => None,
        };
        let problem = problem.filter(|_| is_payable).map(|problem| FieldError::invalid("amount", problem));
        let reference = match reference {
            Ok(reference) => reference,
            Err(invalid) => return Err(Error::Invalid(problem.into_iter().chain([invalid]).collect())),
        };
        // First, because the job that cancels the orders of a cancelled event must not change the error.
        if self.has_cancelled_event(order.id) {
            return Err(codes::EVENT_CANCELLED.with_message("An event in this order is cancelled, so it can't be paid."));
        }
        if !self.is_open(order, now) {
            return Err(order_not_open());
        }
        if outstanding <= Money::ZERO {
            return Err(codes::ORDER_NOT_OPEN.with_message("All of this order is being paid just now."));
        }
        ensure_no_field_errors(problem.into_iter().collect())?;
        Ok(PaymentRow {
            id: app.clock.next_id(),
            order_id: order.id,
            method: new.method,
            amount,
            reference: reference.to_owned(),
            placed: now,
        })
    }

    /// Returns the reason why an order can't be paid although the gateway has charged the payment.
    fn confirm_error(&self, order: Id, now: Timestamp) -> Option<Error> {
        if self.has_cancelled_event(order) {
            let text = "An event was cancelled before the payment was made, so the payment is given back.";
            return Some(codes::EVENT_CANCELLED.with_message(text));
        }
        (!self.orders.get(&order).is_some_and(|order| self.is_open(order, now))).then(order_closed)
    }
}

fn order_not_open() -> Error {
    codes::ORDER_NOT_OPEN.with_message("This order is no longer open, so it can't be paid.")
}

fn order_closed() -> Error {
    codes::ORDER_NOT_OPEN.with_message("This order was closed before the payment was made, so the payment is given back.")
}
