//! The operations of the contract that tell what the platform is set to.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Countries, Defaults, ServerTime};
use super::service;
use crate::http::{Api, Failure, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Api) {
    api.add(country_list, &[]);
    api.add(time_get, &[]);
    api.add(defaults_get, &[]);
}

#[endpoint { method = GET, path = "/countries", tags = ["Defaults"] }]
async fn country_list(_rq: Rq) -> Result<HttpResponseOk<Countries>, Failure> {
    Ok(HttpResponseOk(service::countries()))
}

#[endpoint { method = GET, path = "/time", tags = ["Defaults"] }]
async fn time_get(rq: Rq) -> Result<HttpResponseOk<ServerTime>, Failure> {
    Ok(HttpResponseOk(service::time(rq.context())))
}

#[endpoint { method = GET, path = "/defaults", tags = ["Defaults"] }]
async fn defaults_get(rq: Rq) -> Result<HttpResponseOk<Defaults>, Failure> {
    Ok(HttpResponseOk(service::defaults(rq.context())))
}
