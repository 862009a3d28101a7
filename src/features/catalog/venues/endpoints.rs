//! The venue operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Venue, VenueCreate, VenueFilter, VenuePath, VenueUpdate};
use super::service;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(venue_list, &[]);
    api.add(venue_create, &[Code::VenueTaken]);
    api.add_resource(venue_get, &[], |by, path: VenuePath| async move { service::get(&by.app, &by.caller, path.venue).await });
    api.add(venue_update, &[Code::VenueTaken]);
    api.add(venue_delete, &[Code::VenueInUse]);
}

#[endpoint { method = GET, path = "/venues", tags = ["Venues"] }]
async fn venue_list(rq: Rq, query: Query<VenueFilter>) -> Result<HttpResponseOk<Page<Venue>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &query.0).await?))
}

#[endpoint { method = POST, path = "/venues", tags = ["Venues"] }]
async fn venue_create(rq: Rq, caller: Caller, body: Json<VenueCreate>) -> Result<Created<Venue>, ApiError> {
    Ok(Created(service::create(rq.context(), &caller, &body.0).await?))
}

#[endpoint { method = GET, path = "/venues/{venue}", tags = ["Venues"] }]
async fn venue_get(rq: Rq, caller: Caller, path: Path<VenuePath>) -> Result<HttpResponseOk<Venue>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, path.0.venue).await?))
}

#[endpoint { method = PUT, path = "/venues/{venue}", tags = ["Venues"] }]
async fn venue_update(rq: Rq, path: Path<VenuePath>, body: Json<VenueUpdate>) -> Result<HttpResponseOk<Venue>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), path.0.venue, &body.0).await?))
}

#[endpoint { method = DELETE, path = "/venues/{venue}", tags = ["Venues"] }]
async fn venue_delete(rq: Rq, path: Path<VenuePath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), path.0.venue).await?;
    Ok(HttpResponseDeleted())
}
