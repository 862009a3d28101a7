//! HTTP endpoints of payments.

use boxoffice_http::error::{Code, Result};

use super::model::{Payment, PaymentCreate, PaymentPath};
use super::service;
use crate::features::codes;
use crate::features::sales::orders::OrderPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, Json, Path, Query, Routes, get, post};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Error codes with which a payment is rejected.
const REJECTIONS: &[Code] = &[codes::ORDER_NOT_OPEN, codes::EVENT_CANCELLED, codes::PAYMENT_DECLINED, codes::PAYMENT_GATEWAY];

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Payments",
        [
            get("order_payment_list", "/orders/{order}/payments", order_payment_list),
            post("order_payment_create", "/orders/{order}/payments", order_payment_create).errors(REJECTIONS),
            get("order_payment_get", "/orders/{order}/payments/{payment}", order_payment_get),
        ],
    );
}

async fn order_payment_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<OrderPath>,
    paging: Query<PageRequest>,
) -> Result<Page<Payment>> {
    service::list(&ctx, &caller, path.order.0, paging.0).await
}

async fn order_payment_create(
    ctx: Ctx,
    caller: Caller,
    path: Path<OrderPath>,
    body: Json<PaymentCreate>,
) -> Result<Created<Payment>> {
    Ok(Created(service::create(&ctx, caller, path.order.0, body.0).await?))
}

async fn order_payment_get(ctx: Ctx, caller: Caller, path: Path<PaymentPath>) -> Result<Payment> {
    service::get(&ctx, &caller, path.order.0, path.payment).await
}
