//! HTTP endpoints of admission tokens.

use boxoffice_http::error::Result;

use super::model::{CodePath, Token, TokenAuthentication, TokenCreate, TokenFilter, TokenPath, TokenUpdate};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::http::{ClientAddress, Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post, put};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Tokens",
        [
            get("event_token_list", "/events/{event}/tokens", event_token_list),
            post("event_token_create", "/events/{event}/tokens", event_token_create).errors(&[codes::TOKEN_TOO_MANY]),
            get("event_token_get", "/events/{event}/tokens/{token}", event_token_get),
            put("event_token_update", "/events/{event}/tokens/{token}", event_token_update).errors(&[codes::TOKEN_GLOBAL]),
            delete("event_token_delete", "/events/{event}/tokens/{token}", event_token_delete).errors(&[codes::TOKEN_GLOBAL]),
            post("event_token_code_create", "/events/{event}/tokens/{token}/codes", event_token_code_create),
            // Mutating although it is a GET, because it issues a key.
            get("token_authentication_get", "/tokens/{code}", token_authentication_get).mutating(),
        ],
    );
}

async fn event_token_list(ctx: Ctx, caller: Caller, path: Path<EventPath>, query: Query<TokenFilter>) -> Result<Page<Token>> {
    service::list(&ctx, &caller, path.event, &query).await
}

async fn event_token_create(ctx: Ctx, caller: Caller, path: Path<EventPath>, body: Json<TokenCreate>) -> Result<Created<Token>> {
    Ok(Created(service::create(&ctx, &caller, path.event, &body).await?))
}

async fn event_token_get(ctx: Ctx, caller: Caller, path: Path<TokenPath>) -> Result<Token> {
    let TokenPath { event, token } = path.0;
    service::get(&ctx, &caller, event, token).await
}

async fn event_token_update(ctx: Ctx, caller: Caller, path: Path<TokenPath>, body: Json<TokenUpdate>) -> Result<Token> {
    let TokenPath { event, token } = path.0;
    service::update(&ctx, &caller, event, token, &body).await
}

async fn event_token_delete(ctx: Ctx, caller: Caller, path: Path<TokenPath>) -> Result<HttpResponseDeleted> {
    let TokenPath { event, token } = path.0;
    service::delete(&ctx, &caller, event, token).await.map(|()| HttpResponseDeleted())
}

async fn event_token_code_create(ctx: Ctx, caller: Caller, path: Path<TokenPath>) -> Result<Token> {
    let TokenPath { event, token } = path.0;
    service::replace_code(&ctx, &caller, event, token).await
}

async fn token_authentication_get(ctx: Ctx, address: ClientAddress, path: Path<CodePath>) -> Result<TokenAuthentication> {
    service::authenticate(&ctx, address.0, &path.code).await
}
