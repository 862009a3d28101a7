//! The removal of accounts in the contract.

use dropshot::{HttpResponseDeleted, endpoint};

use super::service;
use crate::accounts::AccountPath;
use crate::auth::Caller;
use crate::error::Code;
use crate::http::{Api, Failure, Path, Rq};

/// Adds this operation to the server.
pub fn register(api: &mut Api) {
    api.add(account_delete, &[Code::AccountHasTickets, Code::AccountLastAdministrator]);
}

#[endpoint { method = DELETE, path = "/accounts/{number}", tags = ["Accounts"] }]
async fn account_delete(rq: Rq, caller: Caller, path: Path<AccountPath>) -> Result<HttpResponseDeleted, Failure> {
    service::delete(rq.context(), &caller, &path.0.number).await?;
    Ok(HttpResponseDeleted())
}
