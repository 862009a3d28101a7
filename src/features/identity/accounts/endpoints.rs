//! The account operations of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Account, AccountCreate, AccountFilter, AccountPath, AccountUpdate};
use super::{lifecycle, service};
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(account_list, &[]);
    api.add(account_create, &[Code::ResourceNotYours, Code::AccountTaken]);
    api.add_resource(
        account_get,
        &[],
        |by, path: AccountPath| async move { service::get(&by.app, &by.caller, &path.number).await },
    );
    api.add(account_update, &[Code::AccountTaken]);
    api.add(account_toggle_create, &[Code::AccountLastAdministrator]);
    api.add(account_deletion_create, &[Code::AccountInactive, Code::AccountLastAdministrator]);
}

#[endpoint { method = GET, path = "/accounts", tags = ["Accounts"] }]
async fn account_list(rq: Rq, query: Query<AccountFilter>) -> Result<HttpResponseOk<Page<Account>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &query.0).await?))
}

#[endpoint { method = POST, path = "/accounts", tags = ["Accounts"] }]
async fn account_create(rq: Rq, caller: Caller, body: Json<AccountCreate>) -> Result<Created<Account>, ApiError> {
    Ok(Created(service::sign_up(rq.context(), &caller, body.0).await?))
}

#[endpoint { method = GET, path = "/accounts/{number}", tags = ["Accounts"] }]
async fn account_get(rq: Rq, caller: Caller, path: Path<AccountPath>) -> Result<HttpResponseOk<Account>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, &path.0.number).await?))
}

#[endpoint { method = PUT, path = "/accounts/{number}", tags = ["Accounts"] }]
async fn account_update(
    rq: Rq,
    caller: Caller,
    path: Path<AccountPath>,
    body: Json<AccountUpdate>,
) -> Result<HttpResponseOk<Account>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), &caller, &path.0.number, body.0).await?))
}

#[endpoint { method = POST, path = "/accounts/{number}/toggles", tags = ["Accounts"] }]
async fn account_toggle_create(rq: Rq, path: Path<AccountPath>) -> Result<HttpResponseOk<Account>, ApiError> {
    Ok(HttpResponseOk(activation::toggle(rq.context(), &path.0.number).await?))
}

#[endpoint { method = POST, path = "/accounts/{number}/deletions", tags = ["Accounts"] }]
async fn account_deletion_create(rq: Rq, caller: Caller, path: Path<AccountPath>) -> Result<HttpResponseOk<Account>, ApiError> {
    Ok(HttpResponseOk(activation::request_deletion(rq.context(), &caller, &path.0.number).await?))
}
