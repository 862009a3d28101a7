//! HTTP endpoint of copies of events.

use boxoffice_http::error::Result;

use super::service::{self, EventCopyCreate};
use crate::features::catalog::events::{Event, EventPath};
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, Json, Path, Routes, post};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Events",
        [post("event_copy_create", "/events/{event}/copies", event_copy_create)
            .errors(&[codes::EVENT_TAKEN, codes::HOST_REMOVED])],
    );
}

async fn event_copy_create(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    body: Json<EventCopyCreate>,
) -> Result<Created<Event>> {
    Ok(Created(service::create(&ctx, &caller, path.event, &body).await?))
}
