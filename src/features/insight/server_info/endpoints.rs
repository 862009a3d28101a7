//! HTTP endpoints of countries, server time and settings.

use boxoffice_http::error::Result;
use dropshot::HttpResponseOk;

use super::model::{Countries, Defaults, ServerTime};
use super::service;
use crate::kernel::http::{Routes, get};
use crate::state::{App, Ctx};

/// Registers the endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Defaults",
        [
            get("country_list", "/countries", country_list),
            get("time_get", "/time", time_get),
            get("defaults_get", "/defaults", defaults_get),
        ],
    );
}

async fn country_list(_: Ctx) -> Result<HttpResponseOk<Countries>> {
    Ok(HttpResponseOk(service::countries()))
}

async fn time_get(ctx: Ctx) -> Result<HttpResponseOk<ServerTime>> {
    Ok(HttpResponseOk(service::time(&ctx.app)))
}

async fn defaults_get(ctx: Ctx) -> Result<HttpResponseOk<Defaults>> {
    Ok(HttpResponseOk(service::defaults(&ctx.app)))
}
