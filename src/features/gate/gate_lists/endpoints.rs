//! HTTP endpoint of gate lists.

use boxoffice_http::error::Result;

use super::model::{GateList, GateListQuery};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Path, Query, Routes, get};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add("Admissions", [get("event_gate_list_get", "/events/{event}/gate-list", event_gate_list_get)]);
}

async fn event_gate_list_get(ctx: Ctx, caller: Caller, path: Path<EventPath>, query: Query<GateListQuery>) -> Result<GateList> {
    service::get(&ctx, &caller, path.event, &query).await
}
