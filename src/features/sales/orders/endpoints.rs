//! The order operations of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{AccountOrderFilter, Order, OrderCreate, OrderFilter, OrderPath, OrderReturnCreate, OrderVoidCreate};
use super::{placement, return_order, service};
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// What can stand against an order.
const NOT_SOLD: [Code; 7] = [
    Code::SectionSoldOut,
    Code::SectionInactive,
    Code::SectionNotOnSale,
    Code::EventNotListed,
    Code::EventOver,
    Code::HostRemoved,
    Code::OrderTooMany,
];

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(order_list, &[]);
    api.add(order_create, &NOT_SOLD);
    api.add(order_get, &[]);
    api.add(order_cancellation_create, &[Code::OrderNotOpen]);
    api.add(order_return_create, &[Code::OrderNotFulfilled, Code::TicketNotIssued]);
    api.add(order_void_create, &[Code::OrderNotFulfilled]);
    api.add(account_order_list, &[]);
}

#[endpoint { method = GET, path = "/orders", tags = ["Orders"] }]
async fn order_list(rq: Rq, caller: Caller, query: Query<OrderFilter>) -> Result<HttpResponseOk<Page<Order>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &caller, &query.0).await?))
}

#[endpoint { method = POST, path = "/orders", tags = ["Orders"] }]
async fn order_create(rq: Rq, caller: Caller, body: Json<OrderCreate>) -> Result<Created<Order>, ApiError> {
    Ok(Created(placement::place(rq.context(), caller, body.0).await?))
}

#[endpoint { method = GET, path = "/orders/{order}", tags = ["Orders"] }]
async fn order_get(rq: Rq, caller: Caller, path: Path<OrderPath>) -> Result<HttpResponseOk<Order>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, path.0.order.id()).await?))
}

#[endpoint { method = POST, path = "/orders/{order}/cancellations", tags = ["Orders"] }]
async fn order_cancellation_create(rq: Rq, caller: Caller, path: Path<OrderPath>) -> Result<HttpResponseOk<Order>, ApiError> {
    Ok(HttpResponseOk(service::cancel(rq.context(), &caller, path.0.order.id()).await?))
}

#[endpoint { method = POST, path = "/orders/{order}/returns", tags = ["Orders"] }]
async fn order_return_create(
    rq: Rq,
    caller: Caller,
    path: Path<OrderPath>,
    body: Json<OrderReturnCreate>,
) -> Result<HttpResponseOk<Order>, ApiError> {
    Ok(HttpResponseOk(return_order::return_tickets(rq.context(), &caller, path.0.order.id(), &body.0).await?))
}

#[endpoint { method = POST, path = "/orders/{order}/voids", tags = ["Orders"] }]
async fn order_void_create(
    rq: Rq,
    caller: Caller,
    path: Path<OrderPath>,
    body: Json<OrderVoidCreate>,
) -> Result<HttpResponseOk<Order>, ApiError> {
    Ok(HttpResponseOk(return_order::void(rq.context(), &caller, path.0.order.id(), &body.0).await?))
}

#[endpoint { method = GET, path = "/accounts/{number}/orders", tags = ["Orders"] }]
async fn account_order_list(
    rq: Rq,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<AccountOrderFilter>,
) -> Result<HttpResponseOk<Page<Order>>, ApiError> {
    Ok(HttpResponseOk(service::list_of_account(rq.context(), &caller, &path.0.number, &query.0).await?))
}
