//! HTTP endpoints of sections, at their long and their short URIs.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Section, SectionCreate, SectionPath, SectionShorthandPath, SectionUpdate, SectionUri};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::kernel::http::{ApiResult, Created, Json, Path, Routes};
use crate::state::{ApiRequest, App, Rq};

const CREATING: &[Code] = &[Code::SectionTaken, Code::SectionTooMany, Code::HostRemoved, Code::EventCancelled];
const CHANGING: &[Code] = &[Code::SectionTaken, Code::SectionCapacity, Code::EventCancelled];
const REMOVING: &[Code] = &[Code::SectionInUse];

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(section_create, CREATING);
    routes.add_resource(
        section_get,
        &[],
        |by, path: SectionPath| async move { service::get(&by.ctx, &by.caller, path.into()).await },
    );
    routes.add(section_update, CHANGING);
    routes.add(section_delete, REMOVING);
    routes.add_resource(section_shorthand_get, &[], |by, path: SectionShorthandPath| async move {
        service::get(&by.ctx, &by.caller, path.into()).await
    });
    routes.add(section_shorthand_update, CHANGING);
    routes.add(section_shorthand_delete, REMOVING);
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
async fn section_create(_: Rq, request: ApiRequest<(Path<EventPath>, Json<SectionCreate>)>) -> ApiResult<Created<Section>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(Created(service::create(&ctx, &caller, path.event, &body).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/events/{event}/sections/{section}", tags = ["Sections"] }]
async fn section_get(_: Rq, request: ApiRequest<Path<SectionPath>>) -> ApiResult<HttpResponseOk<Section>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, path.into()).await?)) })
        .await
}

#[endpoint { method = PUT, path = "/events/{event}/sections/{section}", tags = ["Sections"] }]
async fn section_update(
    _: Rq,
    request: ApiRequest<(Path<SectionPath>, Json<SectionUpdate>)>,
) -> ApiResult<HttpResponseOk<Section>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(service::update(&ctx, &caller, path.into(), &body).await?))
        })
        .await
}

#[endpoint { method = DELETE, path = "/events/{event}/sections/{section}", tags = ["Sections"] }]
async fn section_delete(_: Rq, request: ApiRequest<Path<SectionPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            service::delete(&ctx, &caller, path.into()).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}

#[endpoint { method = GET, path = "/sections/{section}", tags = ["Sections"] }]
async fn section_shorthand_get(_: Rq, request: ApiRequest<Path<SectionShorthandPath>>) -> ApiResult<HttpResponseOk<Section>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, path.into()).await?)) })
        .await
}

#[endpoint { method = PUT, path = "/sections/{section}", tags = ["Sections"] }]
async fn section_shorthand_update(
    _: Rq,
    request: ApiRequest<(Path<SectionShorthandPath>, Json<SectionUpdate>)>,
) -> ApiResult<HttpResponseOk<Section>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(service::update(&ctx, &caller, path.into(), &body).await?))
        })
        .await
}

#[endpoint { method = DELETE, path = "/sections/{section}", tags = ["Sections"] }]
async fn section_shorthand_delete(_: Rq, request: ApiRequest<Path<SectionShorthandPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            service::delete(&ctx, &caller, path.into()).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}
