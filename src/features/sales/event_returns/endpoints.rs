//! HTTP endpoints of returns of events.

use boxoffice_http::error::Result;

use super::model::{EventReturn, EventReturnCreate, EventReturnPath};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, Json, Path, Query, Routes, get, post};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Orders",
        [
            get("event_return_list", "/events/{event}/returns", event_return_list),
            post("event_return_create", "/events/{event}/returns", event_return_create)
                .errors(&[codes::EVENT_NOT_CANCELLED, codes::EVENT_RETURNING]),
            get("event_return_get", "/events/{event}/returns/{entry}", event_return_get),
        ],
    );
}

async fn event_return_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    paging: Query<PageRequest>,
) -> Result<Page<EventReturn>> {
    service::list(&ctx, &caller, path.event, paging.0).await
}

async fn event_return_create(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    body: Json<EventReturnCreate>,
) -> Result<Created<EventReturn>> {
    Ok(Created(service::create(&ctx, &caller, path.event, body.0).await?))
}

async fn event_return_get(ctx: Ctx, caller: Caller, path: Path<EventReturnPath>) -> Result<EventReturn> {
    service::get(&ctx, &caller, path.event, path.entry).await
}
