//! HTTP endpoints of price modifiers.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Modifier, ModifierCreate, ModifierPath, ModifierUpdate};
use super::service;
use crate::features::catalog::sections::SectionPath;
use crate::kernel::http::{ApiResult, Created, Json, Path, Routes};
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(section_modifier_create, &[Code::ModifierTaken, Code::ModifierTooMany, Code::HostRemoved, Code::EventCancelled]);
    routes.add_resource(section_modifier_get, &[], |by, path: ModifierPath| async move {
        service::get(&by.ctx, &by.caller, path).await
    });
    routes.add(section_modifier_update, &[Code::ModifierTaken, Code::EventCancelled]);
    routes.add(section_modifier_delete, &[]);
}

#[endpoint { method = POST, path = "/events/{event}/sections/{section}/modifiers", tags = ["Modifiers"] }]
async fn section_modifier_create(
    _: Rq,
    request: ApiRequest<(Path<SectionPath>, Json<ModifierCreate>)>,
) -> ApiResult<Created<Modifier>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(Created(service::create(&ctx, &caller, &path, &body).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/events/{event}/sections/{section}/modifiers/{modifier}", tags = ["Modifiers"] }]
async fn section_modifier_get(_: Rq, request: ApiRequest<Path<ModifierPath>>) -> ApiResult<HttpResponseOk<Modifier>> {
    request.respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, path).await?)) }).await
}

#[endpoint { method = PUT, path = "/events/{event}/sections/{section}/modifiers/{modifier}", tags = ["Modifiers"] }]
async fn section_modifier_update(
    _: Rq,
    request: ApiRequest<(Path<ModifierPath>, Json<ModifierUpdate>)>,
) -> ApiResult<HttpResponseOk<Modifier>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(service::update(&ctx, &caller, path, &body).await?))
        })
        .await
}

#[endpoint { method = DELETE, path = "/events/{event}/sections/{section}/modifiers/{modifier}", tags = ["Modifiers"] }]
async fn section_modifier_delete(_: Rq, request: ApiRequest<Path<ModifierPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            service::delete(&ctx, &caller, path).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}
