//! The host operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Host, HostAdministratorCreate, HostAdministratorDelete, HostAdministratorFilter};
use super::model::{HostCreate, HostFilter, HostPath, HostUpdate};
use super::service;
use crate::features::identity::accounts::{Account, AccountPath};
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::{Page, PageRequest};
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(host_list, &[]);
    api.add(host_create, &[Code::HostTaken]);
    api.add_resource(host_get, &[], |by, path: HostPath| async move { service::get(&by.app, path.host).await });
    api.add(host_update, &[Code::HostTaken]);
    api.add(account_host_list, &[]);
    api.add(host_delete, &[]);
    api.add_resource(host_administrator_list, &[], |by, path: HostPath| async move {
        service::list_administrators(&by.app, &by.caller, path.host, PageRequest::default()).await
    });
    api.add(host_administrator_create, &[Code::AdministratorTaken]);
    api.add(host_administrator_delete, &[Code::AdministratorLast]);
}

#[endpoint { method = GET, path = "/hosts", tags = ["Hosts"] }]
async fn host_list(rq: Rq, query: Query<HostFilter>) -> Result<HttpResponseOk<Page<Host>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &query.0).await?))
}

#[endpoint { method = POST, path = "/hosts", tags = ["Hosts"] }]
async fn host_create(rq: Rq, caller: Caller, body: Json<HostCreate>) -> Result<Created<Host>, ApiError> {
    Ok(Created(service::create(rq.context(), &caller, &body.0).await?))
}

#[endpoint { method = GET, path = "/hosts/{host}", tags = ["Hosts"] }]
async fn host_get(rq: Rq, path: Path<HostPath>) -> Result<HttpResponseOk<Host>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), path.0.host).await?))
}

#[endpoint { method = PUT, path = "/hosts/{host}", tags = ["Hosts"] }]
async fn host_update(
    rq: Rq,
    caller: Caller,
    path: Path<HostPath>,
    body: Json<HostUpdate>,
) -> Result<HttpResponseOk<Host>, ApiError> {
    let host = path.0.host;
    Ok(HttpResponseOk(service::update(rq.context(), &caller, host, &body.0).await?))
}

#[endpoint { method = GET, path = "/accounts/{number}/hosts", tags = ["Hosts"] }]
async fn account_host_list(
    rq: Rq,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<PageRequest>,
) -> Result<HttpResponseOk<Page<Host>>, ApiError> {
    Ok(HttpResponseOk(service::list_of_account(rq.context(), &caller, path.0.number, query.0).await?))
}

#[endpoint { method = DELETE, path = "/hosts/{host}", tags = ["Hosts"] }]
async fn host_delete(rq: Rq, caller: Caller, path: Path<HostPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), &caller, path.0.host).await?;
    Ok(HttpResponseDeleted())
}

#[endpoint { method = GET, path = "/hosts/{host}/administrators", tags = ["Hosts"] }]
async fn host_administrator_list(
    rq: Rq,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<HostAdministratorFilter>,
) -> Result<HttpResponseOk<Page<Account>>, ApiError> {
    let host = path.0.host;
    Ok(HttpResponseOk(service::list_administrators(rq.context(), &caller, host, query.0.paging).await?))
}

#[endpoint { method = POST, path = "/hosts/{host}/administrators", tags = ["Hosts"] }]
async fn host_administrator_create(
    rq: Rq,
    caller: Caller,
    path: Path<HostPath>,
    body: Json<HostAdministratorCreate>,
) -> Result<Created<Account>, ApiError> {
    let host = path.0.host;
    Ok(Created(service::add_administrator(rq.context(), &caller, host, &body.0.account).await?))
}

#[endpoint { method = DELETE, path = "/hosts/{host}/administrators", tags = ["Hosts"] }]
async fn host_administrator_delete(
    rq: Rq,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<HostAdministratorDelete>,
) -> Result<HttpResponseDeleted, ApiError> {
    let host = path.0.host;
    service::remove_administrator(rq.context(), &caller, host, &query.0.account).await?;
    Ok(HttpResponseDeleted())
}
