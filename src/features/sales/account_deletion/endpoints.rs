//! HTTP endpoint of account deletion.

use boxoffice_http::error::Result;

use super::service;
use crate::features::codes;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{HttpResponseDeleted, Path, Routes, delete};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Accounts",
        [delete("account_delete", "/accounts/{number}", account_delete)
            .errors(&[codes::ACCOUNT_HAS_TICKETS, codes::ACCOUNT_LAST_ADMINISTRATOR])],
    );
}

async fn account_delete(ctx: Ctx, caller: Caller, path: Path<AccountPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, &caller, &path.number).await.map(|()| HttpResponseDeleted())
}
