//! HTTP endpoints of admission tokens.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{CodePath, Token, TokenAuthentication, TokenCreate, TokenFilter, TokenPath, TokenUpdate};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(event_token_list, &[]);
    routes.add(event_token_create, &[Code::TokenTooMany]);
    routes.add_resource(event_token_get, &[], |by, path: TokenPath| async move {
        service::get(&by.ctx, &by.caller, path.event, path.token).await
    });
    routes.add(event_token_update, &[Code::TokenGlobal]);
    routes.add(event_token_delete, &[Code::TokenGlobal]);
    // Mutating although it is a GET, because it issues a key.
    routes.add_mutating(token_authentication_get, &[]);
}

#[endpoint { method = GET, path = "/events/{event}/tokens", tags = ["Tokens"] }]
async fn event_token_list(
    _: Rq,
    request: ApiRequest<(Path<EventPath>, Query<TokenFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Token>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list(&ctx, &caller, path.event, &query).await?))
        })
        .await
}

#[endpoint { method = POST, path = "/events/{event}/tokens", tags = ["Tokens"] }]
async fn event_token_create(_: Rq, request: ApiRequest<(Path<EventPath>, Json<TokenCreate>)>) -> ApiResult<Created<Token>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(Created(service::create(&ctx, &caller, path.event, &body).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/events/{event}/tokens/{token}", tags = ["Tokens"] }]
async fn event_token_get(_: Rq, request: ApiRequest<Path<TokenPath>>) -> ApiResult<HttpResponseOk<Token>> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            let TokenPath { event, token } = path;
            Ok(HttpResponseOk(service::get(&ctx, &caller, event, token).await?))
        })
        .await
}

#[endpoint { method = PUT, path = "/events/{event}/tokens/{token}", tags = ["Tokens"] }]
async fn event_token_update(
    _: Rq,
    request: ApiRequest<(Path<TokenPath>, Json<TokenUpdate>)>,
) -> ApiResult<HttpResponseOk<Token>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            let TokenPath { event, token } = path;
            Ok(HttpResponseOk(service::update(&ctx, &caller, event, token, &body).await?))
        })
        .await
}

#[endpoint { method = DELETE, path = "/events/{event}/tokens/{token}", tags = ["Tokens"] }]
async fn event_token_delete(_: Rq, request: ApiRequest<Path<TokenPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            let TokenPath { event, token } = path;
            service::delete(&ctx, &caller, event, token).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}

#[endpoint { method = GET, path = "/tokens/{code}", tags = ["Tokens"] }]
async fn token_authentication_get(_: Rq, request: ApiRequest<Path<CodePath>>) -> ApiResult<HttpResponseOk<TokenAuthentication>> {
    request.respond(|ctx, _, Path(path)| async move { Ok(HttpResponseOk(service::authenticate(&ctx, &path.code).await?)) }).await
}
