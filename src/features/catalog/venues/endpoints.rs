//! HTTP endpoints of venues.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Venue, VenueCreate, VenueFilter, VenuePath, VenueUpdate};
use super::service;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(venue_list, &[]);
    routes.add(venue_create, &[Code::VenueTaken]);
    routes.add_resource(venue_get, &[], |by, path: VenuePath| async move { service::get(&by.ctx, &by.caller, path.venue).await });
    routes.add(venue_update, &[Code::VenueTaken]);
    routes.add(venue_delete, &[Code::VenueInUse]);
}

#[endpoint { method = GET, path = "/venues", tags = ["Venues"] }]
async fn venue_list(_: Rq, request: ApiRequest<Query<VenueFilter>>) -> ApiResult<HttpResponseOk<Page<Venue>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &query).await?)) }).await
}

#[endpoint { method = POST, path = "/venues", tags = ["Venues"] }]
async fn venue_create(_: Rq, request: ApiRequest<Json<VenueCreate>>) -> ApiResult<Created<Venue>> {
    request.respond(|ctx, caller, Json(body)| async move { Ok(Created(service::create(&ctx, &caller, &body).await?)) }).await
}

#[endpoint { method = GET, path = "/venues/{venue}", tags = ["Venues"] }]
async fn venue_get(_: Rq, request: ApiRequest<Path<VenuePath>>) -> ApiResult<HttpResponseOk<Venue>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, path.venue).await?)) })
        .await
}

#[endpoint { method = PUT, path = "/venues/{venue}", tags = ["Venues"] }]
async fn venue_update(_: Rq, request: ApiRequest<(Path<VenuePath>, Json<VenueUpdate>)>) -> ApiResult<HttpResponseOk<Venue>> {
    request
        .respond(
            |ctx, _, (Path(path), Json(body))| async move { Ok(HttpResponseOk(service::update(&ctx, path.venue, &body).await?)) },
        )
        .await
}

#[endpoint { method = DELETE, path = "/venues/{venue}", tags = ["Venues"] }]
async fn venue_delete(_: Rq, request: ApiRequest<Path<VenuePath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, _, Path(path)| async move {
            service::delete(&ctx, path.venue).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}
