//! HTTP endpoint of account lookups.

use boxoffice_http::error::Result;

use super::model::{Lookup, LookupCreate};
use super::service;
use crate::kernel::http::{Json, Routes, post};
use crate::state::{App, Ctx};

/// Adds the endpoint to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add("Accounts", [post("lookup_create", "/lookups", lookup_create)]);
}

async fn lookup_create(ctx: Ctx, body: Json<LookupCreate>) -> Result<Lookup> {
    service::look_up(&ctx, body.0).await
}
