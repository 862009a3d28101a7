//! HTTP endpoints of regions.

use boxoffice_http::error::Result;

use super::model::{Region, RegionCreate, RegionFilter, RegionPath, RegionUpdate};
use super::service;
use crate::features::codes;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post, put};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Regions",
        [
            get("region_list", "/regions", region_list),
            post("region_create", "/regions", region_create).errors(&[codes::REGION_TAKEN]),
            get("region_get", "/regions/{region}", region_get),
            put("region_update", "/regions/{region}", region_update).errors(&[codes::REGION_TAKEN]),
            delete("region_delete", "/regions/{region}", region_delete).errors(&[codes::REGION_IN_USE]),
        ],
    );
}

async fn region_list(ctx: Ctx, query: Query<RegionFilter>) -> Result<Page<Region>> {
    service::list(&ctx, &query).await
}

async fn region_create(ctx: Ctx, body: Json<RegionCreate>) -> Result<Created<Region>> {
    Ok(Created(service::create(&ctx, body.0).await?))
}

async fn region_get(ctx: Ctx, path: Path<RegionPath>) -> Result<Region> {
    service::get(&ctx, path.region).await
}

async fn region_update(ctx: Ctx, path: Path<RegionPath>, body: Json<RegionUpdate>) -> Result<Region> {
    service::update(&ctx, path.region, body.0).await
}

async fn region_delete(ctx: Ctx, path: Path<RegionPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, path.region).await.map(|()| HttpResponseDeleted())
}
