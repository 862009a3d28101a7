//! The report operations of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{EventSales, EventStatistics, HostStatistics, SalesFilter};
use super::service;
use crate::kernel::auth::Caller;
use crate::features::catalog::events::EventPath;
use crate::features::catalog::hosts::HostPath;
use crate::kernel::http::{ApiError, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(host_statistics_get, &[]);
    api.add(event_statistics_get, &[]);
    api.add(event_sales_get, &[]);
}

#[endpoint { method = GET, path = "/hosts/{host}/statistics", tags = ["Reports"] }]
async fn host_statistics_get(rq: Rq, caller: Caller, path: Path<HostPath>) -> Result<HttpResponseOk<HostStatistics>, ApiError> {
    Ok(HttpResponseOk(service::host_statistics(rq.context(), &caller, path.0.host).await?))
}

#[endpoint { method = GET, path = "/events/{event}/statistics", tags = ["Reports"] }]
async fn event_statistics_get(
    rq: Rq,
    caller: Caller,
    path: Path<EventPath>,
) -> Result<HttpResponseOk<EventStatistics>, ApiError> {
    Ok(HttpResponseOk(service::event_statistics(rq.context(), &caller, path.0.event).await?))
}

#[endpoint { method = GET, path = "/events/{event}/sales", tags = ["Reports"] }]
async fn event_sales_get(
    rq: Rq,
    caller: Caller,
    path: Path<EventPath>,
    query: Query<SalesFilter>,
) -> Result<HttpResponseOk<EventSales>, ApiError> {
    Ok(HttpResponseOk(service::event_sales(rq.context(), &caller, path.0.event, &query.0).await?))
}
