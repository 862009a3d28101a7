//! HTTP endpoints of the ledger.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Transaction, TransactionFilter, TransactionPath};
use super::service;
use crate::features::catalog::hosts::HostPath;
use crate::kernel::http::{ApiResult, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Registers the ledger endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(transaction_list, &[]);
    routes.add(transaction_get, &[]);
    routes.add(host_transaction_list, &[]);
}

#[endpoint { method = GET, path = "/transactions", tags = ["Transactions"] }]
async fn transaction_list(_: Rq, request: ApiRequest<Query<TransactionFilter>>) -> ApiResult<HttpResponseOk<Page<Transaction>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &query).await?)) }).await
}

#[endpoint { method = GET, path = "/transactions/{transaction}", tags = ["Transactions"] }]
async fn transaction_get(_: Rq, request: ApiRequest<Path<TransactionPath>>) -> ApiResult<HttpResponseOk<Transaction>> {
    request.respond(|ctx, _, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, path.transaction).await?)) }).await
}

#[endpoint { method = GET, path = "/hosts/{host}/transactions", tags = ["Transactions"] }]
async fn host_transaction_list(
    _: Rq,
    request: ApiRequest<(Path<HostPath>, Query<TransactionFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Transaction>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_of_host(&ctx, &caller, path.host, &query).await?))
        })
        .await
}
