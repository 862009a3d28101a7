//! HTTP endpoints of reports.

use boxoffice_http::error::Result;

use super::model::{EventSales, EventStatistics, HostStatistics, SalesDay, SalesDayFilter, SalesFilter};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::features::catalog::hosts::HostPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Path, Query, Routes, get};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Reports",
        [
            get("host_statistics_get", "/hosts/{host}/statistics", host_statistics_get),
            get("event_statistics_get", "/events/{event}/statistics", event_statistics_get),
            get("event_sales_get", "/events/{event}/sales", event_sales_get),
            get("event_sales_day_list", "/events/{event}/sales/days", event_sales_day_list),
        ],
    );
}

async fn host_statistics_get(ctx: Ctx, caller: Caller, path: Path<HostPath>) -> Result<HostStatistics> {
    service::host_statistics(&ctx, &caller, path.host).await
}

async fn event_statistics_get(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<EventStatistics> {
    service::event_statistics(&ctx, &caller, path.event).await
}

async fn event_sales_get(ctx: Ctx, caller: Caller, path: Path<EventPath>, query: Query<SalesFilter>) -> Result<EventSales> {
    service::event_sales(&ctx, &caller, path.event, &query).await
}

async fn event_sales_day_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    query: Query<SalesDayFilter>,
) -> Result<Page<SalesDay>> {
    service::event_sales_by_day(&ctx, &caller, path.event, &query).await
}
