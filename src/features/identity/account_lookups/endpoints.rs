//! The lookup operation of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Lookup, LookupCreate};
use super::service;
use crate::kernel::http::{ApiError, Json, Routes, Rq};

/// Adds this operation to the server.
pub fn register(api: &mut Routes) {
    api.add(lookup_create, &[]);
}

#[endpoint { method = POST, path = "/lookups", tags = ["Accounts"] }]
async fn lookup_create(rq: Rq, body: Json<LookupCreate>) -> Result<HttpResponseOk<Lookup>, ApiError> {
    Ok(HttpResponseOk(service::look_up(rq.context(), body.0).await?))
}
