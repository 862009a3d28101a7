//! HTTP endpoints of sections, at their long and their short URIs.

use boxoffice_http::error::{Code, Result};

use super::model::{Section, SectionCreate, SectionPath, SectionShorthandPath, SectionUpdate, SectionUri};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Routes, delete, get, post, put};
use crate::state::{App, Ctx};

const CREATING: &[Code] = &[codes::SECTION_TAKEN, codes::SECTION_TOO_MANY, codes::HOST_REMOVED, codes::EVENT_CANCELLED];
const CHANGING: &[Code] = &[codes::SECTION_TAKEN, codes::SECTION_CAPACITY, codes::EVENT_CANCELLED];
const REMOVING: &[Code] = &[codes::SECTION_IN_USE];

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Sections",
        [
            post("section_create", "/events/{event}/sections", section_create).errors(CREATING),
            get("section_get", "/events/{event}/sections/{section}", section_get),
            put("section_update", "/events/{event}/sections/{section}", section_update).errors(CHANGING),
            delete("section_delete", "/events/{event}/sections/{section}", section_delete).errors(REMOVING),
            get("section_shorthand_get", "/sections/{section}", section_shorthand_get),
            put("section_shorthand_update", "/sections/{section}", section_shorthand_update).errors(CHANGING),
            delete("section_shorthand_delete", "/sections/{section}", section_shorthand_delete).errors(REMOVING),
        ],
    );
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

async fn section_create(ctx: Ctx, caller: Caller, path: Path<EventPath>, body: Json<SectionCreate>) -> Result<Created<Section>> {
    Ok(Created(service::create(&ctx, &caller, path.event, &body).await?))
}

async fn section_get(ctx: Ctx, caller: Caller, path: Path<SectionPath>) -> Result<Section> {
    service::get(&ctx, &caller, path.0.into()).await
}

async fn section_update(ctx: Ctx, caller: Caller, path: Path<SectionPath>, body: Json<SectionUpdate>) -> Result<Section> {
    service::update(&ctx, &caller, path.0.into(), &body).await
}

async fn section_delete(ctx: Ctx, caller: Caller, path: Path<SectionPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, &caller, path.0.into()).await.map(|()| HttpResponseDeleted())
}

async fn section_shorthand_get(ctx: Ctx, caller: Caller, path: Path<SectionShorthandPath>) -> Result<Section> {
    service::get(&ctx, &caller, path.0.into()).await
}

async fn section_shorthand_update(
    ctx: Ctx,
    caller: Caller,
    path: Path<SectionShorthandPath>,
    body: Json<SectionUpdate>,
) -> Result<Section> {
    service::update(&ctx, &caller, path.0.into(), &body).await
}

async fn section_shorthand_delete(ctx: Ctx, caller: Caller, path: Path<SectionShorthandPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, &caller, path.0.into()).await.map(|()| HttpResponseDeleted())
}
