//! HTTP endpoints of exports.

use boxoffice_http::error::Result;

use super::model::LedgerFilter;
use super::service;
use crate::features::catalog::events::EventPath;
use crate::features::catalog::hosts::HostPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Path, Query, Routes, StreamedFile, get};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Reports",
        [
            get("event_order_export_get", "/events/{event}/exports/orders", event_order_export_get).untagged(),
            get("event_ticket_export_get", "/events/{event}/exports/tickets", event_ticket_export_get).untagged(),
            get("host_transaction_export_get", "/hosts/{host}/exports/transactions", host_transaction_export_get).untagged(),
        ],
    );
}

async fn event_order_export_get(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<StreamedFile> {
    service::orders(&ctx, &caller, path.event).await
}

async fn event_ticket_export_get(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<StreamedFile> {
    service::tickets(&ctx, &caller, path.event).await
}

async fn host_transaction_export_get(
    ctx: Ctx,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<LedgerFilter>,
) -> Result<StreamedFile> {
    service::ledger(&ctx, &caller, path.host, &query).await
}
