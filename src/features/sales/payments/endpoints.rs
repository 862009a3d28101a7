//! HTTP endpoints of payments.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseOk, endpoint};

use super::model::{Payment, PaymentCreate, PaymentFilter, PaymentPath, PaymentsPath};
use super::service;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Registers the payment endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(order_payment_list, &[]);
    let rejections = &[Code::OrderNotOpen, Code::EventCancelled, Code::PaymentDeclined, Code::PaymentGateway];
    routes.add(order_payment_create, rejections);
    routes.add(order_payment_get, &[]);
}

#[endpoint { method = GET, path = "/orders/{order}/payments", tags = ["Payments"] }]
async fn order_payment_list(
    _: Rq,
    request: ApiRequest<(Path<PaymentsPath>, Query<PaymentFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Payment>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list(&ctx, &caller, path.order.id(), query.paging).await?))
        })
        .await
}

#[endpoint { method = POST, path = "/orders/{order}/payments", tags = ["Payments"] }]
async fn order_payment_create(
    _: Rq,
    request: ApiRequest<(Path<PaymentsPath>, Json<PaymentCreate>)>,
) -> ApiResult<Created<Payment>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(Created(service::create(&ctx, caller, path.order.id(), body).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/orders/{order}/payments/{payment}", tags = ["Payments"] }]
async fn order_payment_get(_: Rq, request: ApiRequest<Path<PaymentPath>>) -> ApiResult<HttpResponseOk<Payment>> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            let path = path;
            Ok(HttpResponseOk(service::get(&ctx, &caller, path.order.id(), path.payment).await?))
        })
        .await
}
