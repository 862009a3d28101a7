//! HTTP endpoints of hosts.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Host, HostAdministratorCreate, HostAdministratorDelete, HostAdministratorFilter};
use super::model::{HostCreate, HostFilter, HostPath, HostUpdate};
use super::service;
use crate::features::identity::accounts::{Account, AccountPath};
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(host_list, &[]);
    routes.add(host_create, &[Code::HostTaken, Code::HostTooMany]);
    routes.add_resource(host_get, &[], |by, path: HostPath| async move { service::get(&by.ctx, path.host).await });
    routes.add(host_update, &[Code::HostTaken]);
    routes.add(account_host_list, &[]);
    routes.add(host_delete, &[]);
    routes.add_resource(host_administrator_list, &[], |by, path: HostPath| async move {
        service::list_administrators(&by.ctx, &by.caller, path.host, PageRequest::default()).await
    });
    routes.add(host_administrator_create, &[Code::AdministratorTaken]);
    routes.add(host_administrator_delete, &[Code::AdministratorLast]);
}

#[endpoint { method = GET, path = "/hosts", tags = ["Hosts"] }]
async fn host_list(_: Rq, request: ApiRequest<Query<HostFilter>>) -> ApiResult<HttpResponseOk<Page<Host>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &query).await?)) }).await
}

#[endpoint { method = POST, path = "/hosts", tags = ["Hosts"] }]
async fn host_create(_: Rq, request: ApiRequest<Json<HostCreate>>) -> ApiResult<Created<Host>> {
    request.respond(|ctx, caller, Json(body)| async move { Ok(Created(service::create(&ctx, &caller, &body).await?)) }).await
}

#[endpoint { method = GET, path = "/hosts/{host}", tags = ["Hosts"] }]
async fn host_get(_: Rq, request: ApiRequest<Path<HostPath>>) -> ApiResult<HttpResponseOk<Host>> {
    request.respond(|ctx, _, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, path.host).await?)) }).await
}

#[endpoint { method = PUT, path = "/hosts/{host}", tags = ["Hosts"] }]
async fn host_update(_: Rq, request: ApiRequest<(Path<HostPath>, Json<HostUpdate>)>) -> ApiResult<HttpResponseOk<Host>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            let host = path.host;
            Ok(HttpResponseOk(service::update(&ctx, &caller, host, &body).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/accounts/{number}/hosts", tags = ["Hosts"] }]
async fn account_host_list(
    _: Rq,
    request: ApiRequest<(Path<AccountPath>, Query<PageRequest>)>,
) -> ApiResult<HttpResponseOk<Page<Host>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_of_account(&ctx, &caller, path.number, query).await?))
        })
        .await
}

#[endpoint { method = DELETE, path = "/hosts/{host}", tags = ["Hosts"] }]
async fn host_delete(_: Rq, request: ApiRequest<Path<HostPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            service::delete(&ctx, &caller, path.host).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}

#[endpoint { method = GET, path = "/hosts/{host}/administrators", tags = ["Hosts"] }]
async fn host_administrator_list(
    _: Rq,
    request: ApiRequest<(Path<HostPath>, Query<HostAdministratorFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Account>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            let host = path.host;
            Ok(HttpResponseOk(service::list_administrators(&ctx, &caller, host, query.paging).await?))
        })
        .await
}

#[endpoint { method = POST, path = "/hosts/{host}/administrators", tags = ["Hosts"] }]
async fn host_administrator_create(
    _: Rq,
    request: ApiRequest<(Path<HostPath>, Json<HostAdministratorCreate>)>,
) -> ApiResult<Created<Account>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            let host = path.host;
            Ok(Created(service::add_administrator(&ctx, &caller, host, &body.account).await?))
        })
        .await
}

#[endpoint { method = DELETE, path = "/hosts/{host}/administrators", tags = ["Hosts"] }]
async fn host_administrator_delete(
    _: Rq,
    request: ApiRequest<(Path<HostPath>, Query<HostAdministratorDelete>)>,
) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            let host = path.host;
            service::remove_administrator(&ctx, &caller, host, &query.account).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}
