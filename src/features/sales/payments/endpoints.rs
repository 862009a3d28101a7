//! The payment operations of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Payment, PaymentCreate, PaymentFilter, PaymentPath, PaymentsPath};
use super::service;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(order_payment_list, &[]);
    let refusals = &[Code::OrderNotOpen, Code::EventCancelled, Code::PaymentDeclined, Code::PaymentGateway];
    api.add(order_payment_create, refusals);
    api.add(order_payment_get, &[]);
}

#[endpoint { method = GET, path = "/orders/{order}/payments", tags = ["Payments"] }]
async fn order_payment_list(
    rq: Rq,
    caller: Caller,
    path: Path<PaymentsPath>,
    query: Query<PaymentFilter>,
) -> Result<HttpResponseOk<Page<Payment>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &caller, path.0.order.id(), query.0.paging).await?))
}

#[endpoint { method = POST, path = "/orders/{order}/payments", tags = ["Payments"] }]
async fn order_payment_create(
    rq: Rq,
    caller: Caller,
    path: Path<PaymentsPath>,
    body: Json<PaymentCreate>,
) -> Result<Created<Payment>, ApiError> {
    Ok(Created(service::create(rq.context(), caller, path.0.order.id(), body.0).await?))
}

#[endpoint { method = GET, path = "/orders/{order}/payments/{payment}", tags = ["Payments"] }]
async fn order_payment_get(rq: Rq, caller: Caller, path: Path<PaymentPath>) -> Result<HttpResponseOk<Payment>, ApiError> {
    let path = path.0;
    Ok(HttpResponseOk(service::get(rq.context(), &caller, path.order.id(), path.payment).await?))
}
