//! HTTP endpoints of countries, server time and settings.

use boxoffice_http::error::Result;

use super::model::{Countries, Defaults, ServerTime};
use super::service;
use crate::kernel::http::{Routes, get};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
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

async fn country_list(_: Ctx) -> Result<Countries> {
    Ok(service::countries())
}

async fn time_get(ctx: Ctx) -> Result<ServerTime> {
    Ok(service::time(&ctx.app))
}

async fn defaults_get(ctx: Ctx) -> Result<Defaults> {
    Ok(service::defaults(&ctx.app))
}
