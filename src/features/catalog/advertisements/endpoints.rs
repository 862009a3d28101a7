//! The advertisement operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Advertisement, AdvertisementPath};
use super::requests::{
    AdvertisementCreate, AdvertisementFilter, AdvertisementQuery, AdvertisementUpdate, ZoneAdvertisementQuery,
};
use super::service;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::features::catalog::hosts::HostPath;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};
use crate::features::catalog::review::Submission;
use crate::features::catalog::zones::ZonePath;

const BOOKING: &[Code] = &[Code::AdvertisementTaken, Code::HostRemoved, Code::EventCancelled, Code::EventOver];
const CHANGING: &[Code] =
    &[Code::AdvertisementTaken, Code::AdvertisementCancelled, Code::HostRemoved, Code::EventCancelled, Code::EventOver];

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(zone_advertisement_list, &[]);
    api.add(host_advertisement_list, &[]);
    api.add(advertisement_list, &[]);
    api.add(advertisement_create, BOOKING);
    api.add_resource(advertisement_get, &[], |by, path: AdvertisementPath| async move {
        service::get(&by.app, &by.caller, path.id()).await
    });
    api.add(advertisement_update, CHANGING);
    api.add(advertisement_delete, &[]);
    api.add(advertisement_submission_create, &[Code::AdvertisementNotDraft, Code::HostRemoved]);
    api.add(advertisement_cancellation_create, &[Code::AdvertisementNotListed]);
}

#[endpoint { method = GET, path = "/zones/{zone}/advertisements", tags = ["Advertisements"] }]
async fn zone_advertisement_list(
    rq: Rq,
    path: Path<ZonePath>,
    query: Query<ZoneAdvertisementQuery>,
) -> Result<HttpResponseOk<Page<Advertisement>>, ApiError> {
    Ok(HttpResponseOk(service::list_running(rq.context(), path.0.zone, query.0.paging).await?))
}

#[endpoint { method = GET, path = "/hosts/{host}/advertisements", tags = ["Advertisements"] }]
async fn host_advertisement_list(
    rq: Rq,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<AdvertisementFilter>,
) -> Result<HttpResponseOk<Page<Advertisement>>, ApiError> {
    Ok(HttpResponseOk(service::list_of_host(rq.context(), &caller, path.0.host, &query.0).await?))
}

#[endpoint { method = GET, path = "/advertisements", tags = ["Advertisements"] }]
async fn advertisement_list(
    rq: Rq,
    caller: Caller,
    query: Query<AdvertisementQuery>,
) -> Result<HttpResponseOk<Page<Advertisement>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &caller, &query.0).await?))
}

#[endpoint { method = POST, path = "/advertisements", tags = ["Advertisements"] }]
async fn advertisement_create(
    rq: Rq,
    caller: Caller,
    body: Json<AdvertisementCreate>,
) -> Result<Created<Advertisement>, ApiError> {
    Ok(Created(service::create(rq.context(), &caller, body.0).await?))
}

#[endpoint { method = GET, path = "/advertisements/{advertisement}", tags = ["Advertisements"] }]
async fn advertisement_get(
    rq: Rq,
    caller: Caller,
    path: Path<AdvertisementPath>,
) -> Result<HttpResponseOk<Advertisement>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, path.0.id()).await?))
}

#[endpoint { method = PUT, path = "/advertisements/{advertisement}", tags = ["Advertisements"] }]
async fn advertisement_update(
    rq: Rq,
    caller: Caller,
    path: Path<AdvertisementPath>,
    body: Json<AdvertisementUpdate>,
) -> Result<HttpResponseOk<Advertisement>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), &caller, path.0.id(), body.0).await?))
}

#[endpoint { method = DELETE, path = "/advertisements/{advertisement}", tags = ["Advertisements"] }]
async fn advertisement_delete(rq: Rq, caller: Caller, path: Path<AdvertisementPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), &caller, path.0.id()).await?;
    Ok(HttpResponseDeleted())
}

#[endpoint { method = POST, path = "/advertisements/{advertisement}/submissions", tags = ["Advertisements"] }]
async fn advertisement_submission_create(
    rq: Rq,
    caller: Caller,
    path: Path<AdvertisementPath>,
) -> Result<Created<Submission>, ApiError> {
    Ok(Created(service::submit(rq.context(), &caller, path.0.id()).await?))
}

#[endpoint { method = POST, path = "/advertisements/{advertisement}/cancellations", tags = ["Advertisements"] }]
async fn advertisement_cancellation_create(
    rq: Rq,
    caller: Caller,
    path: Path<AdvertisementPath>,
) -> Result<HttpResponseOk<Advertisement>, ApiError> {
    Ok(HttpResponseOk(service::cancel(rq.context(), &caller, path.0.id()).await?))
}
