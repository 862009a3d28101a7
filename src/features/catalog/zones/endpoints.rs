//! HTTP endpoints of zones.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Zone, ZoneCreate, ZonePath, ZoneQuery, ZoneUpdate};
use super::service;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(zone_list, &[]);
    routes.add(zone_create, &[]);
    routes.add_resource(zone_get, &[], |by, path: ZonePath| async move { service::get(&by.ctx, path.zone).await });
    routes.add(zone_update, &[Code::ZoneInUse]);
    routes.add(zone_delete, &[Code::ZoneInUse]);
}

#[endpoint { method = GET, path = "/zones", tags = ["Zones"] }]
async fn zone_list(_: Rq, request: ApiRequest<Query<ZoneQuery>>) -> ApiResult<HttpResponseOk<Page<Zone>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, query.paging).await?)) }).await
}

#[endpoint { method = POST, path = "/zones", tags = ["Zones"] }]
async fn zone_create(_: Rq, request: ApiRequest<Json<ZoneCreate>>) -> ApiResult<Created<Zone>> {
    request.respond(|ctx, _, Json(body)| async move { Ok(Created(service::create(&ctx, body).await?)) }).await
}

#[endpoint { method = GET, path = "/zones/{zone}", tags = ["Zones"] }]
async fn zone_get(_: Rq, request: ApiRequest<Path<ZonePath>>) -> ApiResult<HttpResponseOk<Zone>> {
    request.respond(|ctx, _, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, path.zone).await?)) }).await
}

#[endpoint { method = PUT, path = "/zones/{zone}", tags = ["Zones"] }]
async fn zone_update(_: Rq, request: ApiRequest<(Path<ZonePath>, Json<ZoneUpdate>)>) -> ApiResult<HttpResponseOk<Zone>> {
    request
        .respond(
            |ctx, _, (Path(path), Json(body))| async move { Ok(HttpResponseOk(service::update(&ctx, path.zone, &body).await?)) },
        )
        .await
}

#[endpoint { method = DELETE, path = "/zones/{zone}", tags = ["Zones"] }]
async fn zone_delete(_: Rq, request: ApiRequest<Path<ZonePath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, _, Path(path)| async move {
            service::delete(&ctx, path.zone).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}
