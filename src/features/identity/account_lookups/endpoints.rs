//! HTTP endpoint of account lookups.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Lookup, LookupCreate};
use super::service;
use crate::kernel::http::{ApiResult, Json, Routes};
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoint to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(lookup_create, &[]);
}

#[endpoint { method = POST, path = "/lookups", tags = ["Accounts"] }]
async fn lookup_create(_: Rq, request: ApiRequest<Json<LookupCreate>>) -> ApiResult<HttpResponseOk<Lookup>> {
    request.respond(|ctx, _, Json(body)| async move { Ok(HttpResponseOk(service::look_up(&ctx, body).await?)) }).await
}
