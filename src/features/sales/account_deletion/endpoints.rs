//! HTTP endpoint of account deletion.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, endpoint};

use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::http::{ApiResult, Path, Routes};
use crate::state::{ApiRequest, App, Rq};

/// Registers the endpoint.
pub fn register(routes: &mut Routes<App>) {
    routes.add(account_delete, &[Code::AccountHasTickets, Code::AccountLastAdministrator]);
}

#[endpoint { method = DELETE, path = "/accounts/{number}", tags = ["Accounts"] }]
async fn account_delete(_: Rq, request: ApiRequest<Path<AccountPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            service::delete(&ctx, &caller, &path.number).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}
