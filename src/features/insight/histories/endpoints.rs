//! HTTP endpoints of histories.

use boxoffice_http::error::Result;

use super::model::{AccountHistory, OrderHistory};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::features::sales::orders::OrderPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Path, Routes, get};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Audit",
        [
            get("order_history_get", "/orders/{order}/history", order_history_get),
            get("account_history_get", "/accounts/{number}/history", account_history_get),
        ],
    );
}

async fn order_history_get(ctx: Ctx, caller: Caller, path: Path<OrderPath>) -> Result<OrderHistory> {
    service::order(&ctx, &caller, path.order.0).await
}

async fn account_history_get(ctx: Ctx, caller: Caller, path: Path<AccountPath>) -> Result<AccountHistory> {
    service::account(&ctx, &caller, &path.number).await
}
