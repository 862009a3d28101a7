//! The session operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};
use http::HeaderMap;
use serde::de::IgnoredAny;

use super::model::{AccountSession, Session, SessionCreate, SessionPath};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::{Page, PageRequest};
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq, api_key};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(session_create, &[Code::AccountUnknown, Code::SessionWrongPassword, Code::AccountDeactivated]);
    api.add_resource(session_active_get, &[Code::ResourceNotFound], |by, _: IgnoredAny| async move {
        service::active(&by.app, &by.caller, key_of(&by.headers)).await
    });
    api.add(session_active_delete, &[Code::ResourceNotFound]);
    api.add(account_session_list, &[]);
    api.add_resource(
        account_session_get,
        &[],
        |by, path: SessionPath| async move { service::get(&by.app, &by.caller, &path).await },
    );
    api.add(account_session_delete, &[Code::SessionEnded]);
}

#[endpoint { method = POST, path = "/sessions", tags = ["Sessions"] }]
async fn session_create(rq: Rq, body: Json<SessionCreate>) -> Result<Created<Session>, ApiError> {
    Ok(Created(service::open(rq.context(), body.0).await?))
}

#[endpoint { method = GET, path = "/sessions/active", tags = ["Sessions"] }]
async fn session_active_get(rq: Rq, caller: Caller) -> Result<HttpResponseOk<Session>, ApiError> {
    Ok(HttpResponseOk(service::active(rq.context(), &caller, key_of(rq.request.headers())).await?))
}

#[endpoint { method = DELETE, path = "/sessions/active", tags = ["Sessions"] }]
async fn session_active_delete(rq: Rq, caller: Caller) -> Result<HttpResponseDeleted, ApiError> {
    service::end(rq.context(), &caller).await?;
    Ok(HttpResponseDeleted())
}

#[endpoint { method = GET, path = "/accounts/{number}/sessions", tags = ["Sessions"] }]
async fn account_session_list(
    rq: Rq,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<PageRequest>,
) -> Result<HttpResponseOk<Page<AccountSession>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &caller, &path.0.number, query.0).await?))
}

#[endpoint { method = GET, path = "/accounts/{number}/sessions/{session}", tags = ["Sessions"] }]
async fn account_session_get(
    rq: Rq,
    caller: Caller,
    path: Path<SessionPath>,
) -> Result<HttpResponseOk<AccountSession>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, &path.0).await?))
}

#[endpoint { method = DELETE, path = "/accounts/{number}/sessions/{session}", tags = ["Sessions"] }]
async fn account_session_delete(rq: Rq, caller: Caller, path: Path<SessionPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::revoke_one(rq.context(), &caller, &path.0).await?;
    Ok(HttpResponseDeleted())
}

/// The key as it was sent: only its hash is kept, so that nobody but its holder can tell it.
fn key_of(headers: &HeaderMap) -> String {
    api_key(headers).unwrap_or_default().to_owned()
}
