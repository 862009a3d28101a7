//! HTTP endpoints of orders.

use boxoffice_http::error::{Code, Result};

use super::complimentary::ComplimentaryOrderCreate;
use super::hosts_orders::HostOrderFilter;
use super::model::{AccountOrderFilter, Order, OrderCreate, OrderFilter, OrderPath};
use super::quotes::{Quote, QuoteCreate};
use super::returns::{OrderReturn, OrderReturnCreate, OrderReturnPath};
use super::voids::{OrderVoid, OrderVoidCreate};
use super::{complimentary, hosts_orders, placement, quotes, returns, revocation, service, voids};
use crate::features::catalog::events::EventPath;
use crate::features::catalog::hosts::HostPath;
use crate::features::codes;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, Json, Path, Query, Routes, get, post};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Error codes with which the rules of sale reject a new order.
const NOT_SOLD: [Code; 8] = [
    codes::SECTION_SOLD_OUT,
    codes::SECTION_ACCOUNT_MAXIMUM,
    codes::SECTION_INACTIVE,
    codes::SECTION_NOT_ON_SALE,
    codes::EVENT_NOT_LISTED,
    codes::EVENT_OVER,
    codes::HOST_REMOVED,
    codes::ORDER_TOO_MANY,
];

/// Error codes with which they reject a complimentary order.
const NOT_ISSUED: [Code; 5] =
    [codes::SECTION_SOLD_OUT, codes::SECTION_ACCOUNT_MAXIMUM, codes::EVENT_NOT_LISTED, codes::EVENT_OVER, codes::HOST_REMOVED];

/// Error codes with which they reject a quote.
const NOT_QUOTED: [Code; 6] = [
    codes::SECTION_SOLD_OUT,
    codes::SECTION_INACTIVE,
    codes::SECTION_NOT_ON_SALE,
    codes::EVENT_NOT_LISTED,
    codes::EVENT_OVER,
    codes::HOST_REMOVED,
];

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Orders",
        [
            get("order_list", "/orders", order_list),
            post("order_create", "/orders", order_create).errors(&NOT_SOLD),
            post("quote_create", "/quotes", quote_create).errors(&NOT_QUOTED),
            get("order_get", "/orders/{order}", order_get),
            post("order_cancellation_create", "/orders/{order}/cancellations", order_cancellation_create)
                .errors(&[codes::ORDER_NOT_OPEN]),
            get("order_return_list", "/orders/{order}/returns", order_return_list),
            post("order_return_create", "/orders/{order}/returns", order_return_create)
                .errors(&[codes::ORDER_NOT_FULFILLED, codes::TICKET_NOT_ISSUED]),
            get("order_return_get", "/orders/{order}/returns/{entry}", order_return_get),
            get("order_void_list", "/orders/{order}/voids", order_void_list),
            post("order_void_create", "/orders/{order}/voids", order_void_create).errors(&[codes::ORDER_NOT_FULFILLED]),
            get("account_order_list", "/accounts/{number}/orders", account_order_list),
            get("event_order_list", "/events/{event}/orders", event_order_list),
            post("event_complimentary_order_create", "/events/{event}/complimentary-orders", event_complimentary_order_create)
                .errors(&NOT_ISSUED),
            get("host_order_list", "/hosts/{host}/orders", host_order_list),
        ],
    );
}

async fn order_list(ctx: Ctx, caller: Caller, query: Query<OrderFilter>) -> Result<Page<Order>> {
    service::list(&ctx, &caller, &query).await
}

async fn order_create(ctx: Ctx, caller: Caller, body: Json<OrderCreate>) -> Result<Created<Order>> {
    Ok(Created(placement::place(&ctx, caller, body.0).await?))
}

async fn quote_create(ctx: Ctx, caller: Caller, body: Json<QuoteCreate>) -> Result<Quote> {
    quotes::create(&ctx, &caller, &body).await
}

async fn order_get(ctx: Ctx, caller: Caller, path: Path<OrderPath>) -> Result<Order> {
    service::get(&ctx, &caller, path.order.0).await
}

async fn order_cancellation_create(ctx: Ctx, caller: Caller, path: Path<OrderPath>) -> Result<Order> {
    service::cancel(&ctx, &caller, path.order.0).await
}

async fn order_return_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<OrderPath>,
    paging: Query<PageRequest>,
) -> Result<Page<OrderReturn>> {
    returns::list(&ctx, &caller, path.order.0, paging.0).await
}

async fn order_return_get(ctx: Ctx, caller: Caller, path: Path<OrderReturnPath>) -> Result<OrderReturn> {
    returns::get(&ctx, &caller, path.order.0, path.entry).await
}

async fn order_return_create(ctx: Ctx, caller: Caller, path: Path<OrderPath>, body: Json<OrderReturnCreate>) -> Result<Order> {
    revocation::return_tickets(&ctx, &caller, path.order.0, &body).await
}

async fn order_void_list(ctx: Ctx, caller: Caller, path: Path<OrderPath>, paging: Query<PageRequest>) -> Result<Page<OrderVoid>> {
    voids::list(&ctx, &caller, path.order.0, paging.0).await
}

async fn order_void_create(ctx: Ctx, caller: Caller, path: Path<OrderPath>, body: Json<OrderVoidCreate>) -> Result<Order> {
    revocation::void(&ctx, &caller, path.order.0, &body).await
}

async fn account_order_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<AccountOrderFilter>,
) -> Result<Page<Order>> {
    service::list_of_account(&ctx, &caller, &path.number, &query).await
}

async fn event_order_list(ctx: Ctx, caller: Caller, path: Path<EventPath>, query: Query<HostOrderFilter>) -> Result<Page<Order>> {
    hosts_orders::list_of_event(&ctx, &caller, path.event, &query).await
}

async fn host_order_list(ctx: Ctx, caller: Caller, path: Path<HostPath>, query: Query<HostOrderFilter>) -> Result<Page<Order>> {
    hosts_orders::list_of_host(&ctx, &caller, path.host, &query).await
}

async fn event_complimentary_order_create(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    body: Json<ComplimentaryOrderCreate>,
) -> Result<Created<Order>> {
    Ok(Created(complimentary::create(&ctx, caller, path.event, body.0).await?))
}
