//! HTTP endpoints of countries, server time and settings.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Countries, Defaults, ServerTime};
use super::service;
use crate::kernel::http::{ApiResult, Routes};
use crate::state::{ApiRequest, App, Rq};

/// Registers the endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(country_list, &[]);
    routes.add(time_get, &[]);
    routes.add(defaults_get, &[]);
}

#[endpoint { method = GET, path = "/countries", tags = ["Defaults"] }]
async fn country_list(_: Rq, request: ApiRequest<()>) -> ApiResult<HttpResponseOk<Countries>> {
    request.respond(|_, _, ()| async move { Ok(HttpResponseOk(service::countries())) }).await
}

#[endpoint { method = GET, path = "/time", tags = ["Defaults"] }]
async fn time_get(_: Rq, request: ApiRequest<()>) -> ApiResult<HttpResponseOk<ServerTime>> {
    request.respond(|ctx, _, ()| async move { Ok(HttpResponseOk(service::time(&ctx.app))) }).await
}

#[endpoint { method = GET, path = "/defaults", tags = ["Defaults"] }]
async fn defaults_get(_: Rq, request: ApiRequest<()>) -> ApiResult<HttpResponseOk<Defaults>> {
    request.respond(|ctx, _, ()| async move { Ok(HttpResponseOk(service::defaults(&ctx.app))) }).await
}
