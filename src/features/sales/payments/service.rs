//! What the payment operations mean.

use std::sync::Arc;

use futures::FutureExt;
use slog::warn;
use tokio::time::timeout;

use super::gateway::{Charge, GATEWAY_TIMEOUT, Outcome};
use super::model::{Payment, PaymentCreate, PaymentMethod, PaymentRow, PaymentStatus, PaymentViewRow};
use super::{processing, refunds, store};
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::db::{self, transaction};
use boxoffice_http::error::{Code, Error, Result};
use crate::features::sales::orders;

pub async fn list(app: &App, caller: &Caller, order: Id, paging: PageRequest) -> Result<Page<Payment>> {
    let mut tx = app.db.read().await?;
    orders::find_authorized(&mut tx, caller, order).await?;
    let found = store::list(&mut tx, order, paging).await?;
    Ok(paging.page(found.total, found.rows.into_iter().map(PaymentViewRow::view).collect()))
}

pub async fn get(app: &App, caller: &Caller, order: Id, payment: Id) -> Result<Payment> {
    let mut tx = app.db.read().await?;
    orders::find_authorized(&mut tx, caller, order).await?;
    Ok(store::find(&mut tx, order, payment).await?.ok_or(Error::NOT_FOUND)?.view())
}

pub async fn create(app: &Arc<App>, caller: Caller, order: Id, new: PaymentCreate) -> Result<Payment> {
    let payment = match new.method {
        PaymentMethod::External => transaction!(app.db, |tx| processing::record(app, tx, &caller, order, &new).await)?,
        PaymentMethod::Card => {
            let token = new.token.clone().unwrap_or_default();
            let payment = processing::authorize(app, caller, order, new).await?;
            charge(app, payment, token).await?
        }
    };
    Ok(PaymentViewRow { payment, shown: PaymentStatus::Confirmed }.view())
}

/// Asks the gateway for a pending payment, and writes down what it says. No transaction is open meanwhile.
async fn charge(app: &Arc<App>, mut payment: PaymentRow, token: String) -> Result<PaymentRow> {
    let currency = app.settings.currency.clone();
    let charge = Charge { payment: payment.id, order: payment.order_id, amount: payment.amount, currency, token };
    let answer = timeout(GATEWAY_TIMEOUT, app.gateway.charge(&charge)).await;
    match answer.unwrap_or_else(|_| Err(anyhow::anyhow!("the gateway has not answered in time"))) {
        Ok(Outcome::Approved { reference }) => {
            payment.reference = reference;
            let Some(refusal) = processing::capture(app, payment.clone()).await? else { return Ok(payment) };
            db::after_commit(app, move |app| refunds::process_refunds(app, payment.order_id).boxed()).await;
            Err(refusal)
        }
        Ok(Outcome::Declined) => {
            transaction!(app.db, |tx| store::end_pending(tx, [&payment], "Declined").await)?;
            Err(Code::PaymentDeclined.into())
        }
        Err(error) => {
            warn!(app.log, "the gateway failed"; "payment" => %payment.id, "cause" => format!("{error:#}"));
            transaction!(app.db, |tx| store::end_pending(tx, [&payment], "Abandoned").await)?;
            db::after_commit(app, move |app| refunds::process_refunds(app, payment.order_id).boxed()).await;
            Err(Code::PaymentGateway.into())
        }
    }
}
