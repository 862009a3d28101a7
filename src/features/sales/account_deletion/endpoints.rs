//! HTTP endpoint of account deletion.

use boxoffice_http::error::{Code, Result};

use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{HttpResponseDeleted, Path, Routes, delete};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Accounts",
        [delete("account_delete", "/accounts/{number}", account_delete)
            .errors(&[Code::AccountHasTickets, Code::AccountLastAdministrator])],
    );
}

async fn account_delete(ctx: Ctx, caller: Caller, Path(path): Path<AccountPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, &caller, &path.number).await.map(|()| HttpResponseDeleted())
}
