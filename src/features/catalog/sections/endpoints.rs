//! The section operations of the contract, each by the long URI and by the short one.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Section, SectionCreate, SectionPath, SectionShorthandPath, SectionUpdate, SectionUri};
use super::service;
use crate::kernel::auth::Caller;
use boxoffice_http::error::Code;
use crate::features::catalog::events::EventPath;
use crate::kernel::http::{ApiError, Created, Json, Path, Routes, Rq};

const CREATING: &[Code] = &[Code::SectionTaken, Code::SectionTooMany, Code::HostRemoved, Code::EventCancelled];
const CHANGING: &[Code] = &[Code::SectionTaken, Code::SectionCapacity, Code::EventCancelled];
const REMOVING: &[Code] = &[Code::SectionInUse];

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(section_create, CREATING);
    api.add_resource(
        section_get,
        &[],
        |by, path: SectionPath| async move { service::get(&by.app, &by.caller, path.into()).await },
    );
    api.add(section_update, CHANGING);
    api.add(section_delete, REMOVING);
    api.add_resource(section_shorthand_get, &[], |by, path: SectionShorthandPath| async move {
        service::get(&by.app, &by.caller, path.into()).await
    });
    api.add(section_shorthand_update, CHANGING);
    api.add(section_shorthand_delete, REMOVING);
}

impl From<SectionPath> for SectionUri {
    fn from(path: SectionPath) -> Self {
        Self { event: Some(path.event), section: path.section }
    }
}

impl From<SectionShorthandPath> for SectionUri {
    fn from(path: SectionShorthandPath) -> Self {
        Self { event: None, section: path.section }
    }
}

#[endpoint { method = POST, path = "/events/{event}/sections", tags = ["Sections"] }]
async fn section_create(
    rq: Rq,
    caller: Caller,
    path: Path<EventPath>,
    body: Json<SectionCreate>,
) -> Result<Created<Section>, ApiError> {
    Ok(Created(service::create(rq.context(), &caller, path.0.event, &body.0).await?))
}

#[endpoint { method = GET, path = "/events/{event}/sections/{section}", tags = ["Sections"] }]
async fn section_get(rq: Rq, caller: Caller, path: Path<SectionPath>) -> Result<HttpResponseOk<Section>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, path.0.into()).await?))
}

#[endpoint { method = PUT, path = "/events/{event}/sections/{section}", tags = ["Sections"] }]
async fn section_update(
    rq: Rq,
    caller: Caller,
    path: Path<SectionPath>,
    body: Json<SectionUpdate>,
) -> Result<HttpResponseOk<Section>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), &caller, path.0.into(), &body.0).await?))
}

#[endpoint { method = DELETE, path = "/events/{event}/sections/{section}", tags = ["Sections"] }]
async fn section_delete(rq: Rq, caller: Caller, path: Path<SectionPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), &caller, path.0.into()).await?;
    Ok(HttpResponseDeleted())
}

#[endpoint { method = GET, path = "/sections/{section}", tags = ["Sections"] }]
async fn section_shorthand_get(
    rq: Rq,
    caller: Caller,
    path: Path<SectionShorthandPath>,
) -> Result<HttpResponseOk<Section>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, path.0.into()).await?))
}

#[endpoint { method = PUT, path = "/sections/{section}", tags = ["Sections"] }]
async fn section_shorthand_update(
    rq: Rq,
    caller: Caller,
    path: Path<SectionShorthandPath>,
    body: Json<SectionUpdate>,
) -> Result<HttpResponseOk<Section>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), &caller, path.0.into(), &body.0).await?))
}

#[endpoint { method = DELETE, path = "/sections/{section}", tags = ["Sections"] }]
async fn section_shorthand_delete(
    rq: Rq,
    caller: Caller,
    path: Path<SectionShorthandPath>,
) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), &caller, path.0.into()).await?;
    Ok(HttpResponseDeleted())
}
