//! HTTP endpoints of integrations.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Integration, IntegrationCreate, IntegrationPath, IntegrationWithKey};
use super::service;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(integration_list, &[]);
    routes.add(integration_create, &[]);
    routes.add_resource(integration_get, &[], |by, path: IntegrationPath| async move {
        service::get(&by.ctx, path.integration).await
    });
    routes.add(integration_delete, &[]);
}

#[endpoint { method = GET, path = "/integrations", tags = ["Integrations"] }]
async fn integration_list(_: Rq, request: ApiRequest<Query<PageRequest>>) -> ApiResult<HttpResponseOk<Page<Integration>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, query).await?)) }).await
}

#[endpoint { method = POST, path = "/integrations", tags = ["Integrations"] }]
async fn integration_create(_: Rq, request: ApiRequest<Json<IntegrationCreate>>) -> ApiResult<Created<IntegrationWithKey>> {
    request.respond(|ctx, caller, Json(body)| async move { Ok(Created(service::create(&ctx, &caller, body).await?)) }).await
}

#[endpoint { method = GET, path = "/integrations/{integration}", tags = ["Integrations"] }]
async fn integration_get(_: Rq, request: ApiRequest<Path<IntegrationPath>>) -> ApiResult<HttpResponseOk<Integration>> {
    request.respond(|ctx, _, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, path.integration).await?)) }).await
}

#[endpoint { method = DELETE, path = "/integrations/{integration}", tags = ["Integrations"] }]
async fn integration_delete(_: Rq, request: ApiRequest<Path<IntegrationPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, _, Path(path)| async move {
            service::delete(&ctx, path.integration).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}
