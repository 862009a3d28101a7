//! HTTP endpoint of the export.

use boxoffice_http::error::Result;

use super::model::{AccountExport, ExportQuery};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Path, Query, Routes, get};
use crate::state::{App, Ctx};

/// Adds the endpoint to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add("Accounts", [get("account_export_get", "/accounts/{number}/export", account_export_get)]);
}

async fn account_export_get(
    ctx: Ctx,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<ExportQuery>,
) -> Result<AccountExport> {
    service::page(&ctx, &caller, &path.number, query.after.as_ref()).await
}
