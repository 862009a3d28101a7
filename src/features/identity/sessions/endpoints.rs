//! HTTP endpoints of sessions.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};
use http::HeaderMap;
use serde::de::IgnoredAny;

use super::model::{AccountSession, Session, SessionCreate, SessionPath};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes, api_key, client_address};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(session_create, &[Code::AccountUnknown, Code::SessionWrongPassword, Code::AccountDeactivated]);
    routes.add_resource(session_active_get, &[Code::ResourceNotFound], |by, _: IgnoredAny| async move {
        service::active(&by.ctx, &by.caller, key_of(&by.headers)).await
    });
    routes.add(session_active_delete, &[Code::ResourceNotFound]);
    routes.add(account_session_list, &[]);
    routes.add_resource(account_session_get, &[], |by, path: SessionPath| async move {
        service::get(&by.ctx, &by.caller, &path).await
    });
    routes.add(account_session_delete, &[Code::SessionEnded]);
}

#[endpoint { method = POST, path = "/sessions", tags = ["Sessions"] }]
async fn session_create(rq: Rq, request: ApiRequest<Json<SessionCreate>>) -> ApiResult<Created<Session>> {
    let address = client_address(&rq);
    request.respond(|ctx, _, Json(body)| async move { Ok(Created(service::open(&ctx, address, body).await?)) }).await
}

#[endpoint { method = GET, path = "/sessions/active", tags = ["Sessions"] }]
async fn session_active_get(rq: Rq, request: ApiRequest<()>) -> ApiResult<HttpResponseOk<Session>> {
    let key = key_of(rq.request.headers());
    request.respond(|ctx, caller, ()| async move { Ok(HttpResponseOk(service::active(&ctx, &caller, key).await?)) }).await
}

#[endpoint { method = DELETE, path = "/sessions/active", tags = ["Sessions"] }]
async fn session_active_delete(_: Rq, request: ApiRequest<()>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, ()| async move {
            service::end(&ctx, &caller).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}

#[endpoint { method = GET, path = "/accounts/{number}/sessions", tags = ["Sessions"] }]
async fn account_session_list(
    _: Rq,
    request: ApiRequest<(Path<AccountPath>, Query<PageRequest>)>,
) -> ApiResult<HttpResponseOk<Page<AccountSession>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list(&ctx, &caller, &path.number, query).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/accounts/{number}/sessions/{session}", tags = ["Sessions"] }]
async fn account_session_get(_: Rq, request: ApiRequest<Path<SessionPath>>) -> ApiResult<HttpResponseOk<AccountSession>> {
    request.respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, &path).await?)) }).await
}

#[endpoint { method = DELETE, path = "/accounts/{number}/sessions/{session}", tags = ["Sessions"] }]
async fn account_session_delete(_: Rq, request: ApiRequest<Path<SessionPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            service::revoke_one(&ctx, &caller, &path).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}

/// Returns the key that the client sent. The database stores only its hash, so the key in the response must come from the
/// request.
fn key_of(headers: &HeaderMap) -> String {
    api_key(headers).unwrap_or_default().to_owned()
}
