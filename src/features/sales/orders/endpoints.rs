//! HTTP endpoints of orders.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseOk, endpoint};

use super::model::{AccountOrderFilter, Order, OrderCreate, OrderFilter, OrderPath, OrderReturnCreate, OrderVoidCreate};
use super::{placement, return_order, service};
use crate::features::identity::accounts::AccountPath;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Error codes with which the rules of sale reject a new order.
const NOT_SOLD: [Code; 8] = [
    Code::SectionSoldOut,
    Code::SectionAccountMaximum,
    Code::SectionInactive,
    Code::SectionNotOnSale,
    Code::EventNotListed,
    Code::EventOver,
    Code::HostRemoved,
    Code::OrderTooMany,
];

/// Registers the order endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(order_list, &[]);
    routes.add(order_create, &NOT_SOLD);
    routes.add(order_get, &[]);
    routes.add(order_cancellation_create, &[Code::OrderNotOpen]);
    routes.add(order_return_create, &[Code::OrderNotFulfilled, Code::TicketNotIssued]);
    routes.add(order_void_create, &[Code::OrderNotFulfilled]);
    routes.add(account_order_list, &[]);
}

#[endpoint { method = GET, path = "/orders", tags = ["Orders"] }]
async fn order_list(_: Rq, request: ApiRequest<Query<OrderFilter>>) -> ApiResult<HttpResponseOk<Page<Order>>> {
    request
        .respond(|ctx, caller, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &caller, &query).await?)) })
        .await
}

#[endpoint { method = POST, path = "/orders", tags = ["Orders"] }]
async fn order_create(_: Rq, request: ApiRequest<Json<OrderCreate>>) -> ApiResult<Created<Order>> {
    request.respond(|ctx, caller, Json(body)| async move { Ok(Created(placement::place(&ctx, caller, body).await?)) }).await
}

#[endpoint { method = GET, path = "/orders/{order}", tags = ["Orders"] }]
async fn order_get(_: Rq, request: ApiRequest<Path<OrderPath>>) -> ApiResult<HttpResponseOk<Order>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, path.order.id()).await?)) })
        .await
}

#[endpoint { method = POST, path = "/orders/{order}/cancellations", tags = ["Orders"] }]
async fn order_cancellation_create(_: Rq, request: ApiRequest<Path<OrderPath>>) -> ApiResult<HttpResponseOk<Order>> {
    request
        .respond(
            |ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::cancel(&ctx, &caller, path.order.id()).await?)) },
        )
        .await
}

#[endpoint { method = POST, path = "/orders/{order}/returns", tags = ["Orders"] }]
async fn order_return_create(
    _: Rq,
    request: ApiRequest<(Path<OrderPath>, Json<OrderReturnCreate>)>,
) -> ApiResult<HttpResponseOk<Order>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(return_order::return_tickets(&ctx, &caller, path.order.id(), &body).await?))
        })
        .await
}

#[endpoint { method = POST, path = "/orders/{order}/voids", tags = ["Orders"] }]
async fn order_void_create(
    _: Rq,
    request: ApiRequest<(Path<OrderPath>, Json<OrderVoidCreate>)>,
) -> ApiResult<HttpResponseOk<Order>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(return_order::void(&ctx, &caller, path.order.id(), &body).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/accounts/{number}/orders", tags = ["Orders"] }]
async fn account_order_list(
    _: Rq,
    request: ApiRequest<(Path<AccountPath>, Query<AccountOrderFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Order>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_of_account(&ctx, &caller, &path.number, &query).await?))
        })
        .await
}
