//! HTTP endpoints of the ledger.

use boxoffice_http::error::Result;

use super::model::{Transaction, TransactionFilter, TransactionPath};
use super::service;
use crate::features::catalog::hosts::HostPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Path, Query, Routes, get};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Transactions",
        [
            get("transaction_list", "/transactions", transaction_list),
            get("transaction_get", "/transactions/{transaction}", transaction_get),
            get("host_transaction_list", "/hosts/{host}/transactions", host_transaction_list),
        ],
    );
}

async fn transaction_list(ctx: Ctx, query: Query<TransactionFilter>) -> Result<Page<Transaction>> {
    service::list(&ctx, &query).await
}

async fn transaction_get(ctx: Ctx, path: Path<TransactionPath>) -> Result<Transaction> {
    service::get(&ctx, path.transaction).await
}

async fn host_transaction_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<TransactionFilter>,
) -> Result<Page<Transaction>> {
    service::list_of_host(&ctx, &caller, path.host, &query).await
}
