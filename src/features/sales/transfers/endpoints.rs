//! The transfer operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Transfer, TransferCreate, TransferFilter, TransferPath};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(transfer_create, &[Code::TicketNotIssued]);
    api.add_resource(transfer_get, &[], |by, path: TransferPath| async move {
        service::get(&by.app, &by.caller, path.transfer).await
    });
    api.add(transfer_delete, &[Code::TransferNotOpen]);
    api.add(transfer_claim_create, &[Code::TransferNotOpen]);
    api.add(transfer_rejection_create, &[Code::TransferNotOpen]);
    api.add(account_transfer_list, &[]);
}

#[endpoint { method = POST, path = "/transfers", tags = ["Transfers"] }]
async fn transfer_create(rq: Rq, caller: Caller, body: Json<TransferCreate>) -> Result<Created<Transfer>, ApiError> {
    Ok(Created(service::create(rq.context(), &caller, &body.0).await?))
}

#[endpoint { method = GET, path = "/transfers/{transfer}", tags = ["Transfers"] }]
async fn transfer_get(rq: Rq, caller: Caller, path: Path<TransferPath>) -> Result<HttpResponseOk<Transfer>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, path.0.transfer).await?))
}

#[endpoint { method = DELETE, path = "/transfers/{transfer}", tags = ["Transfers"] }]
async fn transfer_delete(rq: Rq, caller: Caller, path: Path<TransferPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::cancel(rq.context(), &caller, path.0.transfer).await?;
    Ok(HttpResponseDeleted())
}

#[endpoint { method = POST, path = "/transfers/{transfer}/claims", tags = ["Transfers"] }]
async fn transfer_claim_create(rq: Rq, caller: Caller, path: Path<TransferPath>) -> Result<HttpResponseOk<Transfer>, ApiError> {
    Ok(HttpResponseOk(service::claim(rq.context(), &caller, path.0.transfer).await?))
}

#[endpoint { method = POST, path = "/transfers/{transfer}/rejections", tags = ["Transfers"] }]
async fn transfer_rejection_create(
    rq: Rq,
    caller: Caller,
    path: Path<TransferPath>,
) -> Result<HttpResponseOk<Transfer>, ApiError> {
    Ok(HttpResponseOk(service::reject(rq.context(), &caller, path.0.transfer).await?))
}

#[endpoint { method = GET, path = "/accounts/{number}/transfers", tags = ["Transfers"] }]
async fn account_transfer_list(
    rq: Rq,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<TransferFilter>,
) -> Result<HttpResponseOk<Page<Transfer>>, ApiError> {
    Ok(HttpResponseOk(service::list_of_account(rq.context(), &caller, &path.0.number, &query.0).await?))
}
