//! The verification and reset operations of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{
    CodePurpose, Reset, ResetCreate, ResetPath, ResetUpdate, Verification, VerificationCreate, VerificationPath,
    VerificationUpdate,
};
use super::service;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(verification_create, &[Code::AccountUnknown]);
    api.add(verification_get, &[]);
    api.add(verification_update, &[Code::VerificationClosed]);
    api.add(reset_create, &[Code::AccountUnknown]);
    api.add(reset_get, &[]);
    api.add(reset_update, &[Code::ResetClosed]);
}

#[endpoint { method = POST, path = "/verifications", tags = ["Accounts"] }]
async fn verification_create(rq: Rq, body: Json<VerificationCreate>) -> Result<Created<Verification>, ApiError> {
    Ok(Created(service::request(rq.context(), CodePurpose::Verification, &body.0.email).await?.into()))
}

#[endpoint { method = GET, path = "/verifications/{verification}", tags = ["Accounts"] }]
async fn verification_get(rq: Rq, path: Path<VerificationPath>) -> Result<HttpResponseOk<Verification>, ApiError> {
    let code = service::get(rq.context(), CodePurpose::Verification, path.0.verification).await?;
    Ok(HttpResponseOk(code.into()))
}

#[endpoint { method = PATCH, path = "/verifications/{verification}", tags = ["Accounts"] }]
async fn verification_update(
    rq: Rq,
    path: Path<VerificationPath>,
    body: Json<VerificationUpdate>,
) -> Result<HttpResponseOk<Verification>, ApiError> {
    let identifier = path.0.verification;
    let code = service::redeem(rq.context(), CodePurpose::Verification, identifier, body.0.code, None).await?;
    Ok(HttpResponseOk(code.into()))
}

#[endpoint { method = POST, path = "/resets", tags = ["Accounts"] }]
async fn reset_create(rq: Rq, body: Json<ResetCreate>) -> Result<Created<Reset>, ApiError> {
    Ok(Created(service::request(rq.context(), CodePurpose::Reset, &body.0.email).await?.into()))
}

#[endpoint { method = GET, path = "/resets/{reset}", tags = ["Accounts"] }]
async fn reset_get(rq: Rq, path: Path<ResetPath>) -> Result<HttpResponseOk<Reset>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), CodePurpose::Reset, path.0.reset).await?.into()))
}

#[endpoint { method = PATCH, path = "/resets/{reset}", tags = ["Accounts"] }]
async fn reset_update(rq: Rq, path: Path<ResetPath>, body: Json<ResetUpdate>) -> Result<HttpResponseOk<Reset>, ApiError> {
    let ResetUpdate { code, password } = body.0;
    let code = service::redeem(rq.context(), CodePurpose::Reset, path.0.reset, code, Some(password.0)).await?;
    Ok(HttpResponseOk(code.into()))
}
