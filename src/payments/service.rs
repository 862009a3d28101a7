//! What the payment operations mean.

use futures::FutureExt;
use slog::warn;
use tokio::time::timeout;

use super::gateway::{Charge, Outcome, PATIENCE};
use super::model::{LeftRow, Payment, PaymentCreate, PaymentMethod, PaymentRow, PaymentStatus, ShownRow};
use super::{refunds, store};
use crate::app::App;
use crate::auth::Caller;
use crate::base::id::Id;
use crate::base::money::Money;
use crate::base::paging::{Page, Paging};
use crate::db::{self, Tx, transaction};
use crate::error::{Code, Error, Problem, Result};
use crate::ledger::{self, Entry, Line, Part};
use crate::orders::{self, OrderRow};

pub async fn list(app: &App, caller: &Caller, order: Id, paging: Paging) -> Result<Page<Payment>> {
    let mut tx = app.db.read().await?;
    orders::find_own(&mut tx, caller, order).await?;
    let found = store::list(&mut tx, order, paging).await?;
    Ok(paging.page(found.total, found.rows.into_iter().map(ShownRow::view).collect()))
}

pub async fn get(app: &App, caller: &Caller, order: Id, payment: Id) -> Result<Payment> {
    let mut tx = app.db.read().await?;
    orders::find_own(&mut tx, caller, order).await?;
    Ok(store::find(&mut tx, order, payment).await?.ok_or(Error::NOT_FOUND)?.view())
}

pub async fn create(app: &App, caller: &Caller, order: Id, new: PaymentCreate) -> Result<Payment> {
    let payment = match new.method {
        PaymentMethod::External => transaction!(app.db, |tx| record(app, tx, caller, order, &new).await)?,
        PaymentMethod::Card => {
            let payment = transaction!(app.db, |tx| begin(app, tx, caller, order, &new).await)?;
            db::settle().await?;
            charge(app, payment, new.token.unwrap_or_default()).await?
        }
    };
    Ok(ShownRow { payment, shown: PaymentStatus::Confirmed }.view())
}

/// Records what was paid outside the platform.
async fn record(app: &App, tx: &mut Tx, caller: &Caller, order: Id, new: &PaymentCreate) -> Result<PaymentRow> {
    let order = orders::lock_own(tx, caller, order).await?;
    if !caller.is_administrator() {
        return Err(Error::NOT_YOURS);
    }
    let reference = given(new.reference.as_deref()).ok_or_else(|| Error::Invalid(vec![Problem::missing("reference")]))?;
    let payment = payment(app, tx, &order, new, reference).await?;
    let taken = taken(tx, order.id).await?;
    store::insert(tx, &payment, "Confirmed").await?;
    if settle(app, tx, &order, taken, &payment).await? { Ok(payment) } else { Err(not_open()) }
}

/// Keeps a payment as pending, so that what it takes counts before the gateway is asked.
async fn begin(app: &App, tx: &mut Tx, caller: &Caller, order: Id, new: &PaymentCreate) -> Result<PaymentRow> {
    let order = orders::lock_own(tx, caller, order).await?;
    let token = given(new.token.as_deref()).ok_or_else(|| Error::Invalid(vec![Problem::missing("token")]))?;
    if !app.gateway.accepts(token) {
        return Err(Error::invalid("token", "is none of the gateway's"));
    }
    let payment = payment(app, tx, &order, new, "").await?;
    store::insert(tx, &payment, "Pending").await?;
    Ok(payment)
}

/// A new payment for an order that is locked, of what it asks for or else of all that is outstanding.
async fn payment(app: &App, tx: &mut Tx, order: &OrderRow, new: &PaymentCreate, reference: &str) -> Result<PaymentRow> {
    let now = app.clock.now();
    if !order.is_open(now) {
        return Err(not_open());
    }
    if !orders::takes_place(tx, order.id).await? {
        return Err(Code::EventCancelled.because("An event in this order is cancelled, so it can't be paid."));
    }
    let outstanding = order.total() - taken(tx, order.id).await? - store::pending(tx, order.id).await?;
    if outstanding <= Money::ZERO {
        return Err(Code::OrderNotOpen.because("All of this order is being paid just now."));
    }
    let amount = new.amount.map_or(outstanding, |amount| amount.0.0);
    if amount > outstanding {
        let (whole, cents) = (outstanding.0 / 100, outstanding.0 % 100);
        return Err(Error::invalid("amount", format!("must be at most {whole}.{cents:02}, which is outstanding")));
    }
    Ok(PaymentRow {
        id: app.clock.next_id(),
        order_id: order.id,
        method: new.method,
        amount,
        reference: reference.to_owned(),
        placed: now,
    })
}

/// Asks the gateway for a pending payment, and writes down what it says. No transaction is open meanwhile.
async fn charge(app: &App, mut payment: PaymentRow, token: String) -> Result<PaymentRow> {
    let currency = app.settings.currency.clone();
    let charge = Charge { payment: payment.id, order: payment.order_id, amount: payment.amount, currency, token };
    let answer = timeout(PATIENCE, app.gateway.charge(&charge)).await;
    match answer.unwrap_or_else(|_| Err(anyhow::anyhow!("the gateway has not answered in time"))) {
        Ok(Outcome::Approved { reference }) => {
            payment.reference = reference;
            let Some(refusal) = transaction!(app.db, |tx| confirm(app, tx, &payment).await)? else { return Ok(payment) };
            db::afterwards(app, move |app| refunds::give_back(app, payment.order_id).boxed()).await;
            Err(refusal)
        }
        Ok(Outcome::Declined) => {
            transaction!(app.db, |tx| store::end_pending(tx, &payment, "Declined").await)?;
            Err(Code::PaymentDeclined.into())
        }
        Err(error) => {
            warn!(app.log, "the gateway failed"; "payment" => %payment.id, "cause" => format!("{error:#}"));
            transaction!(app.db, |tx| store::end_pending(tx, &payment, "Abandoned").await)?;
            db::afterwards(app, move |app| refunds::give_back(app, payment.order_id).boxed()).await;
            Err(Code::PaymentGateway.into())
        }
    }
}

/// Confirms a payment whose money was taken, if its order is open still and its events take place; otherwise it is owed back, and
/// this tells why.
async fn confirm(app: &App, tx: &mut Tx, payment: &PaymentRow) -> Result<Option<Error>> {
    let order = orders::lock(tx, payment.order_id).await?.ok_or(Error::NOT_FOUND)?;
    let taken = taken(tx, order.id).await?;
    let refusal = if !order.is_open(app.clock.now()) {
        closed()
    } else if !orders::takes_place(tx, order.id).await? {
        Code::EventCancelled.because("An event was cancelled before the payment was made, so the payment is given back.")
    } else if store::end_pending(tx, payment, "Confirmed").await? {
        let settled = settle(app, tx, &order, taken, payment).await?;
        return Ok((!settled).then(closed));
    } else {
        closed()
    };
    // The order has no use for it, whether it has ended or somebody else has given this payment up meanwhile.
    store::put(tx, payment, "Confirmed").await?;
    let part = Part::of_nobody(payment.amount);
    enter(app, tx, payment, part.clone()).await?;
    let whole = LeftRow { id: payment.id, order_id: order.id, method: payment.method, amount: payment.amount };
    refunds::put(app, tx, vec![(whole, part)]).await?;
    Ok(Some(refusal))
}

/// Enters a confirmed payment, before which `taken` was taken for its order, into the ledger, and fulfils the order, which is
/// locked, once its total is reached. False when it could not be, because its places were gone; then all is owed back.
async fn settle(app: &App, tx: &mut Tx, order: &OrderRow, taken: Money, payment: &PaymentRow) -> Result<bool> {
    let line = Line::of(&store::tickets(tx, order.id).await?);
    enter(app, tx, payment, line.cut(taken, payment.amount)).await?;
    if taken + payment.amount < order.total() {
        return Ok(true);
    }
    orders::fulfil(app, tx, order, app.clock.now()).await
}

/// Enters what a payment took into the ledger.
async fn enter(app: &App, tx: &mut Tx, payment: &PaymentRow, part: Part) -> Result<()> {
    ledger::record(app, tx, vec![Entry { payment: payment.id, order: payment.order_id, refund: None, part }]).await
}

/// What has been taken for an order that is locked, without what was given back or is to be.
async fn taken(tx: &mut Tx, order: Id) -> Result<Money> {
    Ok(store::left(tx, [order]).await?.into_iter().map(|payment| payment.amount).sum())
}

/// What is there and not blank.
fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

fn not_open() -> Error {
    Code::OrderNotOpen.because("This order is no longer open, so it can't be paid.")
}

fn closed() -> Error {
    Code::OrderNotOpen.because("This order was closed before the payment was made, so the payment is given back.")
}
