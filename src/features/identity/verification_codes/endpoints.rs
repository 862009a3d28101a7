//! HTTP endpoints of e-mail verifications and password resets.

use boxoffice_http::error::Result;

use super::model::{
    CodePurpose, Reset, ResetCreate, ResetPath, ResetUpdate, Verification, VerificationCreate, VerificationPath,
    VerificationUpdate,
};
use super::service;
use crate::features::codes;
use crate::kernel::http::{ClientAddress, Created, Json, Path, Routes, get, patch, post};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Accounts",
        [
            post("verification_create", "/verifications", verification_create).errors(&[codes::ACCOUNT_UNKNOWN]),
            get("verification_get", "/verifications/{verification}", verification_get),
            patch("verification_update", "/verifications/{verification}", verification_update)
                .errors(&[codes::VERIFICATION_CLOSED]),
            post("reset_create", "/resets", reset_create).errors(&[codes::ACCOUNT_UNKNOWN]),
            get("reset_get", "/resets/{reset}", reset_get),
            patch("reset_update", "/resets/{reset}", reset_update).errors(&[codes::RESET_CLOSED]),
        ],
    );
}

async fn verification_create(ctx: Ctx, address: ClientAddress, body: Json<VerificationCreate>) -> Result<Created<Verification>> {
    Ok(Created(service::request(&ctx, CodePurpose::Verification, address.0, &body.email).await?.into()))
}

async fn verification_get(ctx: Ctx, path: Path<VerificationPath>) -> Result<Verification> {
    let code = service::get(&ctx, CodePurpose::Verification, path.0.verification).await?;
    Ok(code.into())
}

async fn verification_update(ctx: Ctx, path: Path<VerificationPath>, body: Json<VerificationUpdate>) -> Result<Verification> {
    let code = service::redeem(&ctx, CodePurpose::Verification, path.0.verification, body.0.code, None).await?;
    Ok(code.into())
}

async fn reset_create(ctx: Ctx, address: ClientAddress, body: Json<ResetCreate>) -> Result<Created<Reset>> {
    Ok(Created(service::request(&ctx, CodePurpose::Reset, address.0, &body.email).await?.into()))
}

async fn reset_get(ctx: Ctx, path: Path<ResetPath>) -> Result<Reset> {
    Ok(service::get(&ctx, CodePurpose::Reset, path.0.reset).await?.into())
}

async fn reset_update(ctx: Ctx, address: ClientAddress, path: Path<ResetPath>, body: Json<ResetUpdate>) -> Result<Reset> {
    let ResetUpdate { code, password } = body.0;
    let code = service::redeem(&ctx, CodePurpose::Reset, path.0.reset, code, Some((password.0, address.0))).await?;
    Ok(code.into())
}
