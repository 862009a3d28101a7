//! HTTP endpoints of transfers.

use boxoffice_http::error::Result;

use super::model::{Transfer, TransferCreate, TransferFilter, TransferPath};
use super::service;
use crate::features::codes;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post};
use crate::kernel::types::paging::{Page, SortOrder};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Transfers",
        [
            post("transfer_create", "/transfers", transfer_create).errors(&[codes::TICKET_NOT_ISSUED]),
            get("transfer_get", "/transfers/{transfer}", transfer_get),
            delete("transfer_delete", "/transfers/{transfer}", transfer_delete).errors(&[codes::TRANSFER_NOT_OPEN]),
            post("transfer_claim_create", "/transfers/{transfer}/claims", transfer_claim_create)
                .errors(&[codes::TRANSFER_NOT_OPEN]),
            post("transfer_rejection_create", "/transfers/{transfer}/rejections", transfer_rejection_create)
                .errors(&[codes::TRANSFER_NOT_OPEN]),
            get("account_transfer_list", "/accounts/{number}/transfers", account_transfer_list),
        ],
    );
}

async fn transfer_create(ctx: Ctx, caller: Caller, body: Json<TransferCreate>) -> Result<Created<Transfer>> {
    Ok(Created(service::create(&ctx, &caller, &body).await?))
}

async fn transfer_get(ctx: Ctx, caller: Caller, path: Path<TransferPath>) -> Result<Transfer> {
    service::get(&ctx, &caller, path.transfer).await
}

async fn transfer_delete(ctx: Ctx, caller: Caller, path: Path<TransferPath>) -> Result<HttpResponseDeleted> {
    service::cancel(&ctx, &caller, path.transfer).await.map(|()| HttpResponseDeleted())
}

async fn transfer_claim_create(ctx: Ctx, caller: Caller, path: Path<TransferPath>) -> Result<Transfer> {
    service::claim(&ctx, &caller, path.transfer).await
}

async fn transfer_rejection_create(ctx: Ctx, caller: Caller, path: Path<TransferPath>) -> Result<Transfer> {
    service::reject(&ctx, &caller, path.transfer).await
}

async fn account_transfer_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<TransferFilter>,
) -> Result<Page<Transfer>> {
    service::list_of_account(&ctx, &caller, &path.number, &query, SortOrder::Asc).await
}
