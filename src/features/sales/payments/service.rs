//! Operations on payments.

use boxoffice_http::error::{Error, Result, one_line};
use boxoffice_http::rate_limit::CountedUse;
use slog::warn;
use tokio::time::timeout;

use super::gateway::{Charge, ChargeResult, GATEWAY_TIMEOUT};
use super::model::{Payment, PaymentCreate, PaymentMethod, PaymentRow, PaymentStatus, PaymentViewRow, StoredPaymentStatus};
use super::{processing, refunds, store};
use crate::features::codes;
use crate::features::sales::orders;
use crate::kernel::auth::Caller;
use crate::kernel::db::transaction;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::Ctx;

pub async fn list(ctx: &Ctx, caller: &Caller, order: Id, paging: PageRequest) -> Result<Page<Payment>> {
    let mut reader = ctx.unit.read().await?;
    orders::load_for_payments(&mut reader, caller, order).await?;
    Ok(store::list(&mut reader, order, paging).await?.map(PaymentViewRow::view))
}

pub async fn get(ctx: &Ctx, caller: &Caller, order: Id, payment: Id) -> Result<Payment> {
    let mut reader = ctx.unit.read().await?;
    orders::load_for_payments(&mut reader, caller, order).await?;
    Ok(store::find(&mut reader, order, payment).await?.ok_or(Error::NOT_FOUND)?.view())
}

pub async fn create(ctx: &Ctx, caller: Caller, order: Id, new: PaymentCreate) -> Result<Payment> {
    let payment = match new.method {
        PaymentMethod::External => transaction!(ctx.unit, |tx| processing::record(&ctx.app, tx, &caller, order, &new).await)?,
        PaymentMethod::Card => {
            // Without a limit, one could find out which of many stolen cards are valid. Integrations pay with the cards of many customers.
            let account = caller.account.filter(|_| caller.is_session);
            let counted = account.map(|account| ctx.app.limits.payments.count(account)).transpose()?;
            let payment = pay_by_card(ctx, caller, order, new).await;
            if !matches!(payment, Err(Error::Rejected(codes::PAYMENT_DECLINED, _))) {
                counted.into_iter().for_each(CountedUse::release);
            }
            payment?
        }
    };
    Ok(PaymentViewRow { payment, status: PaymentStatus::Confirmed, refunded: Money::ZERO }.view())
}

async fn pay_by_card(ctx: &Ctx, caller: Caller, order: Id, new: PaymentCreate) -> Result<PaymentRow> {
    let token = new.token.clone().unwrap_or_default();
    let payment = processing::begin(ctx, caller, order, new).await?;
    charge(ctx, payment, token).await
}

/// Has the gateway charge a pending payment, and records the result. No transaction is open during the call.
async fn charge(ctx: &Ctx, mut payment: PaymentRow, token: String) -> Result<PaymentRow> {
    let currency = ctx.app.settings.currency.code.to_owned();
    let charge = Charge { payment: payment.id, order: payment.order_id, amount: payment.amount, currency, token };
    let result = timeout(GATEWAY_TIMEOUT, ctx.app.gateway.charge(&charge)).await;
    match result.unwrap_or_else(|_| Err(anyhow::anyhow!("the gateway has not answered in time"))) {
        Ok(ChargeResult::Approved { reference }) => {
            payment.reference = reference;
            let Some(error) = processing::confirm(ctx, payment.clone()).await? else { return Ok(payment) };
            refunds::process_after_commit(ctx, payment.order_id).await;
            Err(error)
        }
        Ok(ChargeResult::Declined) => {
            transaction!(ctx.unit, |tx| store::end_pending(tx, [&payment], StoredPaymentStatus::Declined).await)?;
            Err(codes::PAYMENT_DECLINED.into())
        }
        Err(error) => {
            warn!(ctx.app.log, "the payment gateway failed"; "payment" => %payment.id, "cause" => one_line(&error));
            transaction!(ctx.unit, |tx| store::end_pending(tx, [&payment], StoredPaymentStatus::Abandoned).await)?;
            refunds::process_after_commit(ctx, payment.order_id).await;
            Err(codes::PAYMENT_GATEWAY.into())
        }
    }
}
