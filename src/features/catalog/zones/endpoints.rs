//! The zone operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Zone, ZoneCreate, ZonePath, ZoneQuery, ZoneUpdate};
use super::service;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(zone_list, &[]);
    api.add(zone_create, &[]);
    api.add_resource(zone_get, &[], |by, path: ZonePath| async move { service::get(&by.app, path.zone).await });
    api.add(zone_update, &[Code::ZoneInUse]);
    api.add(zone_delete, &[Code::ZoneInUse]);
}

#[endpoint { method = GET, path = "/zones", tags = ["Zones"] }]
async fn zone_list(rq: Rq, query: Query<ZoneQuery>) -> Result<HttpResponseOk<Page<Zone>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), query.0.paging).await?))
}

#[endpoint { method = POST, path = "/zones", tags = ["Zones"] }]
async fn zone_create(rq: Rq, body: Json<ZoneCreate>) -> Result<Created<Zone>, ApiError> {
    Ok(Created(service::create(rq.context(), body.0).await?))
}

#[endpoint { method = GET, path = "/zones/{zone}", tags = ["Zones"] }]
async fn zone_get(rq: Rq, path: Path<ZonePath>) -> Result<HttpResponseOk<Zone>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), path.0.zone).await?))
}

#[endpoint { method = PUT, path = "/zones/{zone}", tags = ["Zones"] }]
async fn zone_update(rq: Rq, path: Path<ZonePath>, body: Json<ZoneUpdate>) -> Result<HttpResponseOk<Zone>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), path.0.zone, &body.0).await?))
}

#[endpoint { method = DELETE, path = "/zones/{zone}", tags = ["Zones"] }]
async fn zone_delete(rq: Rq, path: Path<ZonePath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), path.0.zone).await?;
    Ok(HttpResponseDeleted())
}
