//! HTTP endpoints of hosts.

use boxoffice_http::error::Result;

use super::model::{Host, HostAdministratorCreate, HostAdministratorDelete};
use super::model::{HostCreate, HostFilter, HostPath, HostUpdate};
use super::service;
use crate::features::codes;
use crate::features::identity::accounts::{Account, AccountPath};
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post, put};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Hosts",
        [
            get("host_list", "/hosts", host_list),
            post("host_create", "/hosts", host_create).errors(&[codes::HOST_TAKEN, codes::HOST_TOO_MANY]),
            get("host_get", "/hosts/{host}", host_get),
            put("host_update", "/hosts/{host}", host_update).errors(&[codes::HOST_TAKEN]),
            get("account_host_list", "/accounts/{number}/hosts", account_host_list),
            delete("host_delete", "/hosts/{host}", host_delete),
            get("host_administrator_list", "/hosts/{host}/administrators", host_administrator_list),
            post("host_administrator_create", "/hosts/{host}/administrators", host_administrator_create)
                .errors(&[codes::ADMINISTRATOR_TAKEN]),
            delete("host_administrator_delete", "/hosts/{host}/administrators", host_administrator_delete)
                .errors(&[codes::ADMINISTRATOR_LAST]),
        ],
    );
}

async fn host_list(ctx: Ctx, query: Query<HostFilter>) -> Result<Page<Host>> {
    service::list(&ctx, &query).await
}

async fn host_create(ctx: Ctx, caller: Caller, body: Json<HostCreate>) -> Result<Created<Host>> {
    Ok(Created(service::create(&ctx, &caller, &body).await?))
}

async fn host_get(ctx: Ctx, path: Path<HostPath>) -> Result<Host> {
    service::get(&ctx, path.host).await
}

async fn host_update(ctx: Ctx, caller: Caller, path: Path<HostPath>, body: Json<HostUpdate>) -> Result<Host> {
    service::update(&ctx, &caller, path.host, &body).await
}

async fn account_host_list(ctx: Ctx, caller: Caller, path: Path<AccountPath>, query: Query<PageRequest>) -> Result<Page<Host>> {
    service::list_of_account(&ctx, &caller, path.0.number, query.0).await
}

async fn host_delete(ctx: Ctx, caller: Caller, path: Path<HostPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, &caller, path.host).await.map(|()| HttpResponseDeleted())
}

async fn host_administrator_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<HostPath>,
    paging: Query<PageRequest>,
) -> Result<Page<Account>> {
    service::list_administrators(&ctx, &caller, path.host, paging.0).await
}

async fn host_administrator_create(
    ctx: Ctx,
    caller: Caller,
    path: Path<HostPath>,
    body: Json<HostAdministratorCreate>,
) -> Result<Created<Account>> {
    Ok(Created(service::add_administrator(&ctx, &caller, path.host, &body.account).await?))
}

async fn host_administrator_delete(
    ctx: Ctx,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<HostAdministratorDelete>,
) -> Result<HttpResponseDeleted> {
    service::remove_administrator(&ctx, &caller, path.host, &query.account).await.map(|()| HttpResponseDeleted())
}
