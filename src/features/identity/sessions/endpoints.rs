//! HTTP endpoints of sessions.

use boxoffice_http::error::{Code, Result};

use super::model::{AccountSession, Session, SessionCreate, SessionPath};
use super::service;
use crate::features::codes;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{ApiKey, ClientAddress, Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Sessions",
        [
            post("session_create", "/sessions", session_create).errors(&[
                codes::ACCOUNT_UNKNOWN,
                codes::SESSION_WRONG_PASSWORD,
                codes::ACCOUNT_DEACTIVATED,
            ]),
            get("session_active_get", "/sessions/active", session_active_get).errors(&[Code::RESOURCE_NOT_FOUND]),
            delete("session_active_delete", "/sessions/active", session_active_delete).errors(&[Code::RESOURCE_NOT_FOUND]),
            get("account_session_list", "/accounts/{number}/sessions", account_session_list),
            get("account_session_get", "/accounts/{number}/sessions/{session}", account_session_get),
            delete("account_session_delete", "/accounts/{number}/sessions/{session}", account_session_delete)
                .errors(&[codes::SESSION_ENDED]),
        ],
    );
}

async fn session_create(ctx: Ctx, address: ClientAddress, body: Json<SessionCreate>) -> Result<Created<Session>> {
    Ok(Created(service::open(&ctx, address.0, body.0).await?))
}

/// The database stores only the hash of a key, so the key in the response comes from the request.
async fn session_active_get(ctx: Ctx, caller: Caller, key: ApiKey) -> Result<Session> {
    service::active(&ctx, &caller, key.0).await
}

async fn session_active_delete(ctx: Ctx, caller: Caller) -> Result<HttpResponseDeleted> {
    service::end(&ctx, &caller).await.map(|()| HttpResponseDeleted())
}

async fn account_session_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<PageRequest>,
) -> Result<Page<AccountSession>> {
    service::list(&ctx, &caller, &path.number, query.0).await
}

async fn account_session_get(ctx: Ctx, caller: Caller, path: Path<SessionPath>) -> Result<AccountSession> {
    service::get(&ctx, &caller, &path).await
}

async fn account_session_delete(ctx: Ctx, caller: Caller, path: Path<SessionPath>) -> Result<HttpResponseDeleted> {
    service::end_one(&ctx, &caller, &path).await.map(|()| HttpResponseDeleted())
}
