//! HTTP endpoints of e-mail verifications and password resets.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseOk, endpoint};

use super::model::{
    CodePurpose, Reset, ResetCreate, ResetPath, ResetUpdate, Verification, VerificationCreate, VerificationPath,
    VerificationUpdate,
};
use super::service;
use crate::kernel::http::{ApiResult, Created, Json, Path, Routes, client_address};
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(verification_create, &[Code::AccountUnknown]);
    routes.add(verification_get, &[]);
    routes.add(verification_update, &[Code::VerificationClosed]);
    routes.add(reset_create, &[Code::AccountUnknown]);
    routes.add(reset_get, &[]);
    routes.add(reset_update, &[Code::ResetClosed]);
}

#[endpoint { method = POST, path = "/verifications", tags = ["Accounts"] }]
async fn verification_create(_: Rq, request: ApiRequest<Json<VerificationCreate>>) -> ApiResult<Created<Verification>> {
    request
        .respond(|ctx, _, Json(body)| async move {
            Ok(Created(service::request(&ctx, CodePurpose::Verification, &body.email).await?.into()))
        })
        .await
}

#[endpoint { method = GET, path = "/verifications/{verification}", tags = ["Accounts"] }]
async fn verification_get(_: Rq, request: ApiRequest<Path<VerificationPath>>) -> ApiResult<HttpResponseOk<Verification>> {
    request
        .respond(|ctx, _, Path(path)| async move {
            let code = service::get(&ctx, CodePurpose::Verification, path.verification).await?;
            Ok(HttpResponseOk(code.into()))
        })
        .await
}

#[endpoint { method = PATCH, path = "/verifications/{verification}", tags = ["Accounts"] }]
async fn verification_update(
    _: Rq,
    request: ApiRequest<(Path<VerificationPath>, Json<VerificationUpdate>)>,
) -> ApiResult<HttpResponseOk<Verification>> {
    request
        .respond(|ctx, _, (Path(path), Json(body))| async move {
            let identifier = path.verification;
            let code = service::redeem(&ctx, CodePurpose::Verification, identifier, body.code, None).await?;
            Ok(HttpResponseOk(code.into()))
        })
        .await
}

#[endpoint { method = POST, path = "/resets", tags = ["Accounts"] }]
async fn reset_create(_: Rq, request: ApiRequest<Json<ResetCreate>>) -> ApiResult<Created<Reset>> {
    request
        .respond(|ctx, _, Json(body)| async move {
            Ok(Created(service::request(&ctx, CodePurpose::Reset, &body.email).await?.into()))
        })
        .await
}

#[endpoint { method = GET, path = "/resets/{reset}", tags = ["Accounts"] }]
async fn reset_get(_: Rq, request: ApiRequest<Path<ResetPath>>) -> ApiResult<HttpResponseOk<Reset>> {
    request
        .respond(|ctx, _, Path(path)| async move {
            Ok(HttpResponseOk(service::get(&ctx, CodePurpose::Reset, path.reset).await?.into()))
        })
        .await
}

#[endpoint { method = PATCH, path = "/resets/{reset}", tags = ["Accounts"] }]
async fn reset_update(rq: Rq, request: ApiRequest<(Path<ResetPath>, Json<ResetUpdate>)>) -> ApiResult<HttpResponseOk<Reset>> {
    let address = client_address(&rq);
    request
        .respond(|ctx, _, (Path(path), Json(body))| async move {
            let ResetUpdate { code, password } = body;
            let code = service::redeem(&ctx, CodePurpose::Reset, path.reset, code, Some((password.0, address))).await?;
            Ok(HttpResponseOk(code.into()))
        })
        .await
}
