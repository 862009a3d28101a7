//! HTTP endpoints of zones.

use boxoffice_http::error::Result;

use super::model::{Zone, ZoneCreate, ZonePath, ZoneUpdate};
use super::service;
use crate::features::codes;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post, put};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Zones",
        [
            get("zone_list", "/zones", zone_list),
            post("zone_create", "/zones", zone_create),
            get("zone_get", "/zones/{zone}", zone_get),
            put("zone_update", "/zones/{zone}", zone_update).errors(&[codes::ZONE_IN_USE]),
            delete("zone_delete", "/zones/{zone}", zone_delete).errors(&[codes::ZONE_IN_USE]),
        ],
    );
}

async fn zone_list(ctx: Ctx, paging: Query<PageRequest>) -> Result<Page<Zone>> {
    service::list(&ctx, paging.0).await
}

async fn zone_create(ctx: Ctx, body: Json<ZoneCreate>) -> Result<Created<Zone>> {
    Ok(Created(service::create(&ctx, body.0).await?))
}

async fn zone_get(ctx: Ctx, path: Path<ZonePath>) -> Result<Zone> {
    service::get(&ctx, path.zone).await
}

async fn zone_update(ctx: Ctx, path: Path<ZonePath>, body: Json<ZoneUpdate>) -> Result<Zone> {
    service::update(&ctx, path.zone, &body).await
}

async fn zone_delete(ctx: Ctx, path: Path<ZonePath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, path.zone).await.map(|()| HttpResponseDeleted())
}
