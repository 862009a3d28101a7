//! The region operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Region, RegionCreate, RegionFilter, RegionPath, RegionUpdate};
use super::service;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(region_list, &[]);
    api.add(region_create, &[Code::RegionTaken]);
    api.add_resource(region_get, &[], |by, path: RegionPath| async move { service::get(&by.app, path.region).await });
    api.add(region_update, &[Code::RegionTaken]);
    api.add(region_delete, &[Code::RegionInUse]);
}

#[endpoint { method = GET, path = "/regions", tags = ["Regions"] }]
async fn region_list(rq: Rq, query: Query<RegionFilter>) -> Result<HttpResponseOk<Page<Region>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &query.0).await?))
}

#[endpoint { method = POST, path = "/regions", tags = ["Regions"] }]
async fn region_create(rq: Rq, body: Json<RegionCreate>) -> Result<Created<Region>, ApiError> {
    Ok(Created(service::create(rq.context(), body.0).await?))
}

#[endpoint { method = GET, path = "/regions/{region}", tags = ["Regions"] }]
async fn region_get(rq: Rq, path: Path<RegionPath>) -> Result<HttpResponseOk<Region>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), path.0.region).await?))
}

#[endpoint { method = PUT, path = "/regions/{region}", tags = ["Regions"] }]
async fn region_update(rq: Rq, path: Path<RegionPath>, body: Json<RegionUpdate>) -> Result<HttpResponseOk<Region>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), path.0.region, body.0).await?))
}

#[endpoint { method = DELETE, path = "/regions/{region}", tags = ["Regions"] }]
async fn region_delete(rq: Rq, path: Path<RegionPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), path.0.region).await?;
    Ok(HttpResponseDeleted())
}
