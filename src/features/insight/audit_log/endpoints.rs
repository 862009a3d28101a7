//! The audit trail's operation of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{AuditEntry, AuditFilter};
use super::service;
use crate::kernel::types::paging::Page;
use crate::kernel::http::{ApiError, Query, Routes, Rq};

/// Adds this operation to the server.
pub fn register(api: &mut Routes) {
    api.add(audit_list, &[]);
}

#[endpoint { method = GET, path = "/audit", tags = ["Audit"] }]
async fn audit_list(rq: Rq, query: Query<AuditFilter>) -> Result<HttpResponseOk<Page<AuditEntry>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &query.0).await?))
}
