//! HTTP endpoint of the audit log.

use boxoffice_http::error::Result;

use super::model::{AuditEntry, AuditFilter};
use super::service;
use crate::kernel::http::{Query, Routes, get};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add("Audit", [get("audit_list", "/audit", audit_list)]);
}

async fn audit_list(ctx: Ctx, query: Query<AuditFilter>) -> Result<Page<AuditEntry>> {
    service::list(&ctx, &query).await
}
