//! The price modifier operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Modifier, ModifierCreate, ModifierPath, ModifierUpdate};
use super::service;
use crate::kernel::auth::Caller;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Routes, Rq};
use crate::features::catalog::sections::SectionPath;

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(section_modifier_create, &[Code::ModifierTaken, Code::ModifierTooMany, Code::HostRemoved, Code::EventCancelled]);
    api.add_resource(
        section_modifier_get,
        &[],
        |by, path: ModifierPath| async move { service::get(&by.app, &by.caller, path).await },
    );
    api.add(section_modifier_update, &[Code::ModifierTaken, Code::EventCancelled]);
    api.add(section_modifier_delete, &[]);
}

#[endpoint { method = POST, path = "/events/{event}/sections/{section}/modifiers", tags = ["Modifiers"] }]
async fn section_modifier_create(
    rq: Rq,
    caller: Caller,
    path: Path<SectionPath>,
    body: Json<ModifierCreate>,
) -> Result<Created<Modifier>, ApiError> {
    Ok(Created(service::create(rq.context(), &caller, &path.0, &body.0).await?))
}

#[endpoint { method = GET, path = "/events/{event}/sections/{section}/modifiers/{modifier}", tags = ["Modifiers"] }]
async fn section_modifier_get(rq: Rq, caller: Caller, path: Path<ModifierPath>) -> Result<HttpResponseOk<Modifier>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, path.0).await?))
}

#[endpoint { method = PUT, path = "/events/{event}/sections/{section}/modifiers/{modifier}", tags = ["Modifiers"] }]
async fn section_modifier_update(
    rq: Rq,
    caller: Caller,
    path: Path<ModifierPath>,
    body: Json<ModifierUpdate>,
) -> Result<HttpResponseOk<Modifier>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), &caller, path.0, &body.0).await?))
}

#[endpoint { method = DELETE, path = "/events/{event}/sections/{section}/modifiers/{modifier}", tags = ["Modifiers"] }]
async fn section_modifier_delete(rq: Rq, caller: Caller, path: Path<ModifierPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), &caller, path.0).await?;
    Ok(HttpResponseDeleted())
}
