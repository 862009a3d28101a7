//! HTTP endpoints of venues.

use boxoffice_http::error::Result;

use super::model::{Venue, VenueCreate, VenueFilter, VenuePath, VenueUpdate};
use super::service;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post, put};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Venues",
        [
            get("venue_list", "/venues", venue_list),
            post("venue_create", "/venues", venue_create).errors(&[codes::VENUE_TAKEN]),
            get("venue_get", "/venues/{venue}", venue_get),
            put("venue_update", "/venues/{venue}", venue_update).errors(&[codes::VENUE_TAKEN]),
            delete("venue_delete", "/venues/{venue}", venue_delete).errors(&[codes::VENUE_IN_USE]),
        ],
    );
}

async fn venue_list(ctx: Ctx, query: Query<VenueFilter>) -> Result<Page<Venue>> {
    service::list(&ctx, &query).await
}

async fn venue_create(ctx: Ctx, caller: Caller, body: Json<VenueCreate>) -> Result<Created<Venue>> {
    Ok(Created(service::create(&ctx, &caller, &body).await?))
}

async fn venue_get(ctx: Ctx, caller: Caller, path: Path<VenuePath>) -> Result<Venue> {
    service::get(&ctx, &caller, path.venue).await
}

async fn venue_update(ctx: Ctx, path: Path<VenuePath>, body: Json<VenueUpdate>) -> Result<Venue> {
    service::update(&ctx, path.venue, &body).await
}

async fn venue_delete(ctx: Ctx, path: Path<VenuePath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, path.venue).await.map(|()| HttpResponseDeleted())
}
