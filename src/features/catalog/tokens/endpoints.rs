//! The token operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{CodePath, Token, TokenAuthentication, TokenCreate, TokenFilter, TokenPath, TokenUpdate};
use super::service;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::features::catalog::events::EventPath;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(event_token_list, &[]);
    api.add(event_token_create, &[]);
    api.add_resource(event_token_get, &[], |by, path: TokenPath| async move {
        service::get(&by.app, &by.caller, path.event, path.token).await
    });
    api.add(event_token_update, &[Code::TokenGlobal]);
    api.add(event_token_delete, &[Code::TokenGlobal]);
    // It makes a key.
    api.add_changing(token_authentication_get, &[Code::CodeUnknown]);
}

#[endpoint { method = GET, path = "/events/{event}/tokens", tags = ["Tokens"] }]
async fn event_token_list(
    rq: Rq,
    caller: Caller,
    path: Path<EventPath>,
    query: Query<TokenFilter>,
) -> Result<HttpResponseOk<Page<Token>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &caller, path.0.event, &query.0).await?))
}

#[endpoint { method = POST, path = "/events/{event}/tokens", tags = ["Tokens"] }]
async fn event_token_create(
    rq: Rq,
    caller: Caller,
    path: Path<EventPath>,
    body: Json<TokenCreate>,
) -> Result<Created<Token>, ApiError> {
    Ok(Created(service::create(rq.context(), &caller, path.0.event, &body.0).await?))
}

#[endpoint { method = GET, path = "/events/{event}/tokens/{token}", tags = ["Tokens"] }]
async fn event_token_get(rq: Rq, caller: Caller, path: Path<TokenPath>) -> Result<HttpResponseOk<Token>, ApiError> {
    let TokenPath { event, token } = path.0;
    Ok(HttpResponseOk(service::get(rq.context(), &caller, event, token).await?))
}

#[endpoint { method = PUT, path = "/events/{event}/tokens/{token}", tags = ["Tokens"] }]
async fn event_token_update(
    rq: Rq,
    caller: Caller,
    path: Path<TokenPath>,
    body: Json<TokenUpdate>,
) -> Result<HttpResponseOk<Token>, ApiError> {
    let TokenPath { event, token } = path.0;
    Ok(HttpResponseOk(service::update(rq.context(), &caller, event, token, &body.0).await?))
}

#[endpoint { method = DELETE, path = "/events/{event}/tokens/{token}", tags = ["Tokens"] }]
async fn event_token_delete(rq: Rq, caller: Caller, path: Path<TokenPath>) -> Result<HttpResponseDeleted, ApiError> {
    let TokenPath { event, token } = path.0;
    service::delete(rq.context(), &caller, event, token).await?;
    Ok(HttpResponseDeleted())
}

#[endpoint { method = GET, path = "/tokens/{code}", tags = ["Tokens"] }]
async fn token_authentication_get(rq: Rq, path: Path<CodePath>) -> Result<HttpResponseOk<TokenAuthentication>, ApiError> {
    Ok(HttpResponseOk(service::authenticate(rq.context(), &path.0.code).await?))
}
