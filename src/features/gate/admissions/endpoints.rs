//! HTTP endpoints of admissions.

use boxoffice_http::error::{Code, Result};
use dropshot::{HttpResponseCreated, HttpResponseOk};

use super::model::{Admission, AdmissionCreate, AdmissionFilter, AdmissionPath};
use super::{redeem, service};
use crate::features::catalog::events::EventPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Json, Path, Query, Routes, get, post};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Registers the admission endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Admissions",
        [
            get("event_admission_list", "/events/{event}/admissions", event_admission_list),
            post("event_admission_create", "/events/{event}/admissions", event_admission_create).errors(&[Code::AdmissionNone]),
            get("event_admission_get", "/events/{event}/admissions/{admission}", event_admission_get),
        ],
    );
}

async fn event_admission_list(
    ctx: Ctx,
    caller: Caller,
    Path(path): Path<EventPath>,
    Query(query): Query<AdmissionFilter>,
) -> Result<HttpResponseOk<Page<Admission>>> {
    Ok(HttpResponseOk(service::list(&ctx, &caller, path.event, &query).await?))
}

/// Returns an array and no `Location`, because a request may create several admissions.
async fn event_admission_create(
    ctx: Ctx,
    caller: Caller,
    Path(path): Path<EventPath>,
    Json(body): Json<AdmissionCreate>,
) -> Result<HttpResponseCreated<Vec<Admission>>> {
    Ok(HttpResponseCreated(redeem::admit(&ctx, caller, path.event, body).await?))
}

async fn event_admission_get(ctx: Ctx, caller: Caller, Path(path): Path<AdmissionPath>) -> Result<HttpResponseOk<Admission>> {
    let AdmissionPath { event, admission } = path;
    Ok(HttpResponseOk(service::get(&ctx, &caller, event, admission).await?))
}
