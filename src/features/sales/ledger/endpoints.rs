//! The ledger's operations of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Transaction, TransactionFilter, TransactionPath};
use super::service;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use crate::features::catalog::hosts::HostPath;
use crate::kernel::http::{ApiError, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(transaction_list, &[]);
    api.add(transaction_get, &[]);
    api.add(host_transaction_list, &[]);
}

#[endpoint { method = GET, path = "/transactions", tags = ["Transactions"] }]
async fn transaction_list(rq: Rq, query: Query<TransactionFilter>) -> Result<HttpResponseOk<Page<Transaction>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &query.0).await?))
}

#[endpoint { method = GET, path = "/transactions/{transaction}", tags = ["Transactions"] }]
async fn transaction_get(rq: Rq, path: Path<TransactionPath>) -> Result<HttpResponseOk<Transaction>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), path.0.transaction).await?))
}

#[endpoint { method = GET, path = "/hosts/{host}/transactions", tags = ["Transactions"] }]
async fn host_transaction_list(
    rq: Rq,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<TransactionFilter>,
) -> Result<HttpResponseOk<Page<Transaction>>, ApiError> {
    Ok(HttpResponseOk(service::list_of_host(rq.context(), &caller, path.0.host, &query.0).await?))
}
