//! HTTP endpoint of the audit log.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{AuditEntry, AuditFilter};
use super::service;
use crate::kernel::http::{ApiResult, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Registers the endpoint.
pub fn register(routes: &mut Routes<App>) {
    routes.add(audit_list, &[]);
}

#[endpoint { method = GET, path = "/audit", tags = ["Audit"] }]
async fn audit_list(_: Rq, request: ApiRequest<Query<AuditFilter>>) -> ApiResult<HttpResponseOk<Page<AuditEntry>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &query).await?)) }).await
}
