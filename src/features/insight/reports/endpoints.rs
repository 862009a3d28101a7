//! HTTP endpoints of reports.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{EventSales, EventStatistics, HostStatistics, SalesFilter};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::features::catalog::hosts::HostPath;
use crate::kernel::http::{ApiResult, Path, Query, Routes};
use crate::state::{ApiRequest, App, Rq};

/// Registers the report endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(host_statistics_get, &[]);
    routes.add(event_statistics_get, &[]);
    routes.add(event_sales_get, &[]);
}

#[endpoint { method = GET, path = "/hosts/{host}/statistics", tags = ["Reports"] }]
async fn host_statistics_get(_: Rq, request: ApiRequest<Path<HostPath>>) -> ApiResult<HttpResponseOk<HostStatistics>> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            Ok(HttpResponseOk(service::host_statistics(&ctx, &caller, path.host).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/events/{event}/statistics", tags = ["Reports"] }]
async fn event_statistics_get(_: Rq, request: ApiRequest<Path<EventPath>>) -> ApiResult<HttpResponseOk<EventStatistics>> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            Ok(HttpResponseOk(service::event_statistics(&ctx, &caller, path.event).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/events/{event}/sales", tags = ["Reports"] }]
async fn event_sales_get(
    _: Rq,
    request: ApiRequest<(Path<EventPath>, Query<SalesFilter>)>,
) -> ApiResult<HttpResponseOk<EventSales>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::event_sales(&ctx, &caller, path.event, &query).await?))
        })
        .await
}
