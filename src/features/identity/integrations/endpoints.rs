//! The integration operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Integration, IntegrationCreate, IntegrationPath, IntegrationWithKey};
use super::service;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(integration_list, &[]);
    api.add(integration_create, &[]);
    api.add_resource(
        integration_get,
        &[],
        |by, path: IntegrationPath| async move { service::get(&by.app, path.integration).await },
    );
    api.add(integration_delete, &[]);
}

#[endpoint { method = GET, path = "/integrations", tags = ["Integrations"] }]
async fn integration_list(rq: Rq, query: Query<PageRequest>) -> Result<HttpResponseOk<Page<Integration>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), query.0).await?))
}

#[endpoint { method = POST, path = "/integrations", tags = ["Integrations"] }]
async fn integration_create(
    rq: Rq,
    caller: Caller,
    body: Json<IntegrationCreate>,
) -> Result<Created<IntegrationWithKey>, ApiError> {
    Ok(Created(service::create(rq.context(), &caller, body.0).await?))
}

#[endpoint { method = GET, path = "/integrations/{integration}", tags = ["Integrations"] }]
async fn integration_get(rq: Rq, path: Path<IntegrationPath>) -> Result<HttpResponseOk<Integration>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), path.0.integration).await?))
}

#[endpoint { method = DELETE, path = "/integrations/{integration}", tags = ["Integrations"] }]
async fn integration_delete(rq: Rq, path: Path<IntegrationPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), path.0.integration).await?;
    Ok(HttpResponseDeleted())
}
