//! The admission operations of the contract.

use dropshot::{HttpResponseCreated, HttpResponseOk, endpoint};

use super::model::{Admission, AdmissionCreate, AdmissionFilter, AdmissionPath};
use super::{redeem, service};
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::features::catalog::events::EventPath;
use crate::kernel::http::{ApiError, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(event_admission_list, &[]);
    api.add(event_admission_create, &[Code::AdmissionNone]);
    api.add(event_admission_get, &[]);
}

#[endpoint { method = GET, path = "/events/{event}/admissions", tags = ["Admissions"] }]
async fn event_admission_list(
    rq: Rq,
    caller: Caller,
    path: Path<EventPath>,
    query: Query<AdmissionFilter>,
) -> Result<HttpResponseOk<Page<Admission>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &caller, path.0.event, &query.0).await?))
}

/// Answers a plain array and no `Location`, as there may be several.
#[endpoint { method = POST, path = "/events/{event}/admissions", tags = ["Admissions"] }]
async fn event_admission_create(
    rq: Rq,
    caller: Caller,
    path: Path<EventPath>,
    body: Json<AdmissionCreate>,
) -> Result<HttpResponseCreated<Vec<Admission>>, ApiError> {
    Ok(HttpResponseCreated(redeem::admit(rq.context(), caller, path.0.event, body.0).await?))
}

#[endpoint { method = GET, path = "/events/{event}/admissions/{admission}", tags = ["Admissions"] }]
async fn event_admission_get(rq: Rq, caller: Caller, path: Path<AdmissionPath>) -> Result<HttpResponseOk<Admission>, ApiError> {
    let AdmissionPath { event, admission } = path.0;
    Ok(HttpResponseOk(service::get(rq.context(), &caller, event, admission).await?))
}
