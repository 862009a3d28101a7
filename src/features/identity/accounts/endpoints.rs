//! HTTP endpoints of accounts.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseOk, endpoint};

use super::model::{Account, AccountCreate, AccountFilter, AccountPath, AccountUpdate};
use super::{lifecycle, service};
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes, client_address};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(account_list, &[]);
    routes.add(account_create, &[Code::ResourceNotYours, Code::AccountTaken]);
    routes.add_resource(account_get, &[], |by, path: AccountPath| async move {
        service::get(&by.ctx, &by.caller, &path.number).await
    });
    routes.add(account_update, &[Code::AccountTaken]);
    routes.add(account_toggle_create, &[Code::AccountLastAdministrator]);
    routes.add(account_deletion_create, &[Code::AccountInactive, Code::AccountLastAdministrator]);
}

#[endpoint { method = GET, path = "/accounts", tags = ["Accounts"] }]
async fn account_list(_: Rq, request: ApiRequest<Query<AccountFilter>>) -> ApiResult<HttpResponseOk<Page<Account>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &query).await?)) }).await
}

#[endpoint { method = POST, path = "/accounts", tags = ["Accounts"] }]
async fn account_create(rq: Rq, request: ApiRequest<Json<AccountCreate>>) -> ApiResult<Created<Account>> {
    let address = client_address(&rq);
    request
        .respond(|ctx, caller, Json(body)| async move { Ok(Created(service::sign_up(&ctx, &caller, address, body).await?)) })
        .await
}

#[endpoint { method = GET, path = "/accounts/{number}", tags = ["Accounts"] }]
async fn account_get(_: Rq, request: ApiRequest<Path<AccountPath>>) -> ApiResult<HttpResponseOk<Account>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, &path.number).await?)) })
        .await
}

#[endpoint { method = PUT, path = "/accounts/{number}", tags = ["Accounts"] }]
async fn account_update(
    rq: Rq,
    request: ApiRequest<(Path<AccountPath>, Json<AccountUpdate>)>,
) -> ApiResult<HttpResponseOk<Account>> {
    let address = client_address(&rq);
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(service::update(&ctx, &caller, address, &path.number, body).await?))
        })
        .await
}

#[endpoint { method = POST, path = "/accounts/{number}/toggles", tags = ["Accounts"] }]
async fn account_toggle_create(_: Rq, request: ApiRequest<Path<AccountPath>>) -> ApiResult<HttpResponseOk<Account>> {
    request.respond(|ctx, _, Path(path)| async move { Ok(HttpResponseOk(lifecycle::toggle(&ctx, &path.number).await?)) }).await
}

#[endpoint { method = POST, path = "/accounts/{number}/deletions", tags = ["Accounts"] }]
async fn account_deletion_create(_: Rq, request: ApiRequest<Path<AccountPath>>) -> ApiResult<HttpResponseOk<Account>> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            Ok(HttpResponseOk(lifecycle::request_deletion(&ctx, &caller, &path.number).await?))
        })
        .await
}
