//! The operations of the contract that tell what the platform is set to.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Countries, Defaults, ServerTime};
use super::service;
use crate::kernel::http::{ApiError, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(country_list, &[]);
    api.add(time_get, &[]);
    api.add(defaults_get, &[]);
}

#[endpoint { method = GET, path = "/countries", tags = ["Defaults"] }]
async fn country_list(_rq: Rq) -> Result<HttpResponseOk<Countries>, ApiError> {
    Ok(HttpResponseOk(service::countries()))
}

#[endpoint { method = GET, path = "/time", tags = ["Defaults"] }]
async fn time_get(rq: Rq) -> Result<HttpResponseOk<ServerTime>, ApiError> {
    Ok(HttpResponseOk(service::time(rq.context())))
}

#[endpoint { method = GET, path = "/defaults", tags = ["Defaults"] }]
async fn defaults_get(rq: Rq) -> Result<HttpResponseOk<Defaults>, ApiError> {
    Ok(HttpResponseOk(service::defaults(rq.context())))
}
