//! Giving money back: what was taken for an order that has ended unpaid, and charges of which nobody knows what came.
//!
//! What is owed is written down in the transaction that ends the order, and the gateway is asked afterwards, until it does it.

use futures::future::join_all;
use slog::warn;
use tokio::time::timeout;

use super::gateway::{PATIENCE, Refund};
use super::model::PaymentRow;
use super::store;
use crate::app::App;
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::db::transaction;
use crate::error::Result;

/// How long a payment may be pending, in microseconds: well over what its request waits for the gateway.
const PENDING: i64 = 120_000_000;

/// Asks the gateway for whatever it still has to give back of one order. What it fails to do is left to [`settle_due`].
///
/// # Errors
/// When the database fails.
pub async fn give_back(app: &App, order: Id) -> Result<()> {
    settle(app, Some(order)).await
}

/// The step of a job: abandons payments whose request must have ended long ago, and asks the gateway for whatever it has to
/// undo or to give back.
///
/// # Errors
/// When the database fails.
pub async fn settle_due(app: &App) -> Result<()> {
    let before = Timestamp(app.clock.now().0 - PENDING);
    transaction!(app.db, |tx| store::abandon_pending(tx, before).await)?;
    settle(app, None).await
}

/// Goes through what is unsettled, a few at a time. A few of which none could be settled are the last: the gateway is down.
async fn settle(app: &App, order: Option<Id>) -> Result<()> {
    let mut after = Id::NONE;
    loop {
        let payments = store::unsettled(&mut app.db.read().await?, order, after).await?;
        let Some(last) = payments.last() else { return Ok(()) };
        after = last.id;
        let settled = join_all(payments.iter().map(|payment| ask(app, payment))).await;
        for (payment, _) in payments.iter().zip(&settled).filter(|(_, settled)| **settled) {
            transaction!(app.db, |tx| store::settle(tx, payment.id).await)?;
        }
        if !settled.contains(&true) {
            return Ok(());
        }
    }
}

/// Asks the gateway to give a payment back, and tells whether it has.
async fn ask(app: &App, payment: &PaymentRow) -> bool {
    let reference = Some(payment.reference.clone()).filter(|reference| !reference.is_empty());
    let refund = Refund { payment: payment.id, amount: payment.amount, reference };
    let answer = timeout(PATIENCE, app.gateway.refund(&refund)).await;
    let answer = answer.unwrap_or_else(|_| Err(anyhow::anyhow!("the gateway has not answered in time")));
    if let Err(error) = &answer {
        warn!(app.log, "a payment could not be given back yet"; "payment" => %payment.id, "cause" => format!("{error:#}"));
    }
    answer.is_ok()
}
