//! HTTP endpoints of integrations.

use boxoffice_http::error::Result;

use super::model::{Integration, IntegrationCreate, IntegrationPath, IntegrationWithKey};
use super::service;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Integrations",
        [
            get("integration_list", "/integrations", integration_list),
            post("integration_create", "/integrations", integration_create),
            get("integration_get", "/integrations/{integration}", integration_get),
            delete("integration_delete", "/integrations/{integration}", integration_delete),
        ],
    );
}

async fn integration_list(ctx: Ctx, query: Query<PageRequest>) -> Result<Page<Integration>> {
    service::list(&ctx, query.0).await
}

async fn integration_create(ctx: Ctx, caller: Caller, body: Json<IntegrationCreate>) -> Result<Created<IntegrationWithKey>> {
    Ok(Created(service::create(&ctx, &caller, body.0).await?))
}

async fn integration_get(ctx: Ctx, path: Path<IntegrationPath>) -> Result<Integration> {
    service::get(&ctx, path.integration).await
}

async fn integration_delete(ctx: Ctx, path: Path<IntegrationPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, path.integration).await.map(|()| HttpResponseDeleted())
}
