//! The removal of accounts in the contract.

use dropshot::{HttpResponseDeleted, endpoint};

use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Path, Routes, Rq};

/// Adds this operation to the server.
pub fn register(api: &mut Routes) {
    api.add(account_delete, &[Code::AccountHasTickets, Code::AccountLastAdministrator]);
}

#[endpoint { method = DELETE, path = "/accounts/{number}", tags = ["Accounts"] }]
async fn account_delete(rq: Rq, caller: Caller, path: Path<AccountPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), &caller, &path.0.number).await?;
    Ok(HttpResponseDeleted())
}
