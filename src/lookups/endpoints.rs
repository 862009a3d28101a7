//! The lookup operation of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Lookup, LookupCreate};
use super::service;
use crate::http::{Api, Failure, Json, Rq};

/// Adds this operation to the server.
pub fn register(api: &mut Api) {
    api.add(lookup_create, &[]);
}

#[endpoint { method = POST, path = "/lookups", tags = ["Accounts"] }]
async fn lookup_create(rq: Rq, body: Json<LookupCreate>) -> Result<HttpResponseOk<Lookup>, Failure> {
    Ok(HttpResponseOk(service::look_up(rq.context(), body.0).await?))
}
