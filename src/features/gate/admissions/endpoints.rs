//! HTTP endpoints of admissions.

use boxoffice_http::error::Result;
use dropshot::{HttpResponseCreated, HttpResponseDeleted};
use serde_json::json;

use super::model::{
    Admission, AdmissionConflict, AdmissionCreate, AdmissionFilter, AdmissionPath, ConflictFilter, OfflineScanCreate,
    OfflineScanResult, Scan,
};
use super::{conflicts, offline_scans, redeem, service, undo};
use crate::features::catalog::events::EventPath;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Json, Path, Query, Routes, delete, get, post};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Admissions",
        [
            get("event_admission_list", "/events/{event}/admissions", event_admission_list),
            post("event_admission_create", "/events/{event}/admissions", event_admission_create).errors(&[codes::ADMISSION_NONE]),
            post("event_scan_create", "/events/{event}/scans", event_scan_create).errors(&[codes::ADMISSION_NONE]),
            get("event_admission_get", "/events/{event}/admissions/{admission}", event_admission_get),
            delete("event_admission_delete", "/events/{event}/admissions/{admission}", event_admission_delete).errors(&[
                codes::ADMISSION_TOO_LATE,
                codes::ADMISSION_ORDER_VOIDED,
                codes::ADMISSION_CONFLICT,
            ]),
            post("event_offline_scan_create", "/events/{event}/offline-scans", event_offline_scan_create).check_access(
                |ctx, caller, path: EventPath| async move { offline_scans::check_access(&ctx, &caller, path.event).await },
            ),
            get("event_admission_conflict_list", "/events/{event}/admission-conflicts", event_admission_conflict_list),
        ],
    );
    let refused = json!({ "type": "array", "nullable": true, "items": { "$ref": "#/components/schemas/RefusedTicket" } });
    routes.set_error_property(redeem::REFUSED, refused);
}

async fn event_admission_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    query: Query<AdmissionFilter>,
) -> Result<Page<Admission>> {
    service::list(&ctx, &caller, path.event, &query).await
}

/// Returns an array and no `Location`, because a request may create several admissions.
async fn event_admission_create(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    body: Json<AdmissionCreate>,
) -> Result<HttpResponseCreated<Vec<Admission>>> {
    Ok(HttpResponseCreated(redeem::admit(&ctx, caller, path.event, body.0).await?))
}

async fn event_scan_create(ctx: Ctx, caller: Caller, path: Path<EventPath>, body: Json<AdmissionCreate>) -> Result<Scan> {
    redeem::scan(&ctx, caller, path.event, body.0).await
}

async fn event_admission_get(ctx: Ctx, caller: Caller, path: Path<AdmissionPath>) -> Result<Admission> {
    let AdmissionPath { event, admission } = path.0;
    service::get(&ctx, &caller, event, admission).await
}

async fn event_admission_delete(ctx: Ctx, caller: Caller, path: Path<AdmissionPath>) -> Result<HttpResponseDeleted> {
    let AdmissionPath { event, admission } = path.0;
    undo::undo(&ctx, &caller, event, admission).await.map(|()| HttpResponseDeleted())
}

async fn event_offline_scan_create(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    body: Json<OfflineScanCreate>,
) -> Result<OfflineScanResult> {
    offline_scans::upload(&ctx, &caller, path.event, &body).await
}

async fn event_admission_conflict_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    query: Query<ConflictFilter>,
) -> Result<Page<AdmissionConflict>> {
    conflicts::list(&ctx, &caller, path.event, &query).await
}
