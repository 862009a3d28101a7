//! HTTP endpoints of regions.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Region, RegionCreate, RegionFilter, RegionPath, RegionUpdate};
use super::service;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(region_list, &[]);
    routes.add(region_create, &[Code::RegionTaken]);
    routes.add_resource(region_get, &[], |by, path: RegionPath| async move { service::get(&by.ctx, path.region).await });
    routes.add(region_update, &[Code::RegionTaken]);
    routes.add(region_delete, &[Code::RegionInUse]);
}

#[endpoint { method = GET, path = "/regions", tags = ["Regions"] }]
async fn region_list(_: Rq, request: ApiRequest<Query<RegionFilter>>) -> ApiResult<HttpResponseOk<Page<Region>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &query).await?)) }).await
}

#[endpoint { method = POST, path = "/regions", tags = ["Regions"] }]
async fn region_create(_: Rq, request: ApiRequest<Json<RegionCreate>>) -> ApiResult<Created<Region>> {
    request.respond(|ctx, _, Json(body)| async move { Ok(Created(service::create(&ctx, body).await?)) }).await
}

#[endpoint { method = GET, path = "/regions/{region}", tags = ["Regions"] }]
async fn region_get(_: Rq, request: ApiRequest<Path<RegionPath>>) -> ApiResult<HttpResponseOk<Region>> {
    request.respond(|ctx, _, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, path.region).await?)) }).await
}

#[endpoint { method = PUT, path = "/regions/{region}", tags = ["Regions"] }]
async fn region_update(_: Rq, request: ApiRequest<(Path<RegionPath>, Json<RegionUpdate>)>) -> ApiResult<HttpResponseOk<Region>> {
    request
        .respond(
            |ctx, _, (Path(path), Json(body))| async move { Ok(HttpResponseOk(service::update(&ctx, path.region, body).await?)) },
        )
        .await
}

#[endpoint { method = DELETE, path = "/regions/{region}", tags = ["Regions"] }]
async fn region_delete(_: Rq, request: ApiRequest<Path<RegionPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, _, Path(path)| async move {
            service::delete(&ctx, path.region).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}
