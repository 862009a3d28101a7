//! HTTP endpoints of price modifiers.

use boxoffice_http::error::Result;

use super::model::{Modifier, ModifierCreate, ModifierPath, ModifierUpdate};
use super::service;
use crate::features::catalog::sections::SectionPath;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post, put};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Modifiers",
        [
            get("section_modifier_list", "/events/{event}/sections/{section}/modifiers", section_modifier_list),
            post("section_modifier_create", "/events/{event}/sections/{section}/modifiers", section_modifier_create).errors(&[
                codes::MODIFIER_TAKEN,
                codes::MODIFIER_TOO_MANY,
                codes::HOST_REMOVED,
                codes::EVENT_CANCELLED,
            ]),
            get("section_modifier_get", "/events/{event}/sections/{section}/modifiers/{modifier}", section_modifier_get),
            put("section_modifier_update", "/events/{event}/sections/{section}/modifiers/{modifier}", section_modifier_update)
                .errors(&[codes::MODIFIER_TAKEN, codes::EVENT_CANCELLED]),
            delete("section_modifier_delete", "/events/{event}/sections/{section}/modifiers/{modifier}", section_modifier_delete),
        ],
    );
}

async fn section_modifier_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<SectionPath>,
    paging: Query<PageRequest>,
) -> Result<Page<Modifier>> {
    service::list(&ctx, &caller, &path, paging.0).await
}

async fn section_modifier_create(
    ctx: Ctx,
    caller: Caller,
    path: Path<SectionPath>,
    body: Json<ModifierCreate>,
) -> Result<Created<Modifier>> {
    Ok(Created(service::create(&ctx, &caller, &path, &body).await?))
}

async fn section_modifier_get(ctx: Ctx, caller: Caller, path: Path<ModifierPath>) -> Result<Modifier> {
    service::get(&ctx, &caller, path.0).await
}

async fn section_modifier_update(
    ctx: Ctx,
    caller: Caller,
    path: Path<ModifierPath>,
    body: Json<ModifierUpdate>,
) -> Result<Modifier> {
    service::update(&ctx, &caller, path.0, &body).await
}

async fn section_modifier_delete(ctx: Ctx, caller: Caller, path: Path<ModifierPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, &caller, path.0).await.map(|()| HttpResponseDeleted())
}
