//! HTTP endpoints of admissions.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseCreated, HttpResponseOk, endpoint};

use super::model::{Admission, AdmissionCreate, AdmissionFilter, AdmissionPath};
use super::{redeem, service};
use crate::features::catalog::events::EventPath;
use crate::kernel::http::{ApiResult, Json, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Registers the admission endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(event_admission_list, &[]);
    routes.add(event_admission_create, &[Code::AdmissionNone]);
    routes.add(event_admission_get, &[]);
}

#[endpoint { method = GET, path = "/events/{event}/admissions", tags = ["Admissions"] }]
async fn event_admission_list(
    _: Rq,
    request: ApiRequest<(Path<EventPath>, Query<AdmissionFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Admission>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list(&ctx, &caller, path.event, &query).await?))
        })
        .await
}

/// Returns an array and no `Location`, because a request may create several admissions.
#[endpoint { method = POST, path = "/events/{event}/admissions", tags = ["Admissions"] }]
async fn event_admission_create(
    _: Rq,
    request: ApiRequest<(Path<EventPath>, Json<AdmissionCreate>)>,
) -> ApiResult<HttpResponseCreated<Vec<Admission>>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseCreated(redeem::admit(&ctx, caller, path.event, body).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/events/{event}/admissions/{admission}", tags = ["Admissions"] }]
async fn event_admission_get(_: Rq, request: ApiRequest<Path<AdmissionPath>>) -> ApiResult<HttpResponseOk<Admission>> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            let AdmissionPath { event, admission } = path;
            Ok(HttpResponseOk(service::get(&ctx, &caller, event, admission).await?))
        })
        .await
}
