//! HTTP endpoints of transfers.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Transfer, TransferCreate, TransferFilter, TransferPath};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Registers the transfer endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(transfer_create, &[Code::TicketNotIssued]);
    routes.add_resource(transfer_get, &[], |by, path: TransferPath| async move {
        service::get(&by.ctx, &by.caller, path.transfer).await
    });
    routes.add(transfer_delete, &[Code::TransferNotOpen]);
    routes.add(transfer_claim_create, &[Code::TransferNotOpen]);
    routes.add(transfer_rejection_create, &[Code::TransferNotOpen]);
    routes.add(account_transfer_list, &[]);
}

#[endpoint { method = POST, path = "/transfers", tags = ["Transfers"] }]
async fn transfer_create(_: Rq, request: ApiRequest<Json<TransferCreate>>) -> ApiResult<Created<Transfer>> {
    request.respond(|ctx, caller, Json(body)| async move { Ok(Created(service::create(&ctx, &caller, &body).await?)) }).await
}

#[endpoint { method = GET, path = "/transfers/{transfer}", tags = ["Transfers"] }]
async fn transfer_get(_: Rq, request: ApiRequest<Path<TransferPath>>) -> ApiResult<HttpResponseOk<Transfer>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, path.transfer).await?)) })
        .await
}

#[endpoint { method = DELETE, path = "/transfers/{transfer}", tags = ["Transfers"] }]
async fn transfer_delete(_: Rq, request: ApiRequest<Path<TransferPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            service::cancel(&ctx, &caller, path.transfer).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}

#[endpoint { method = POST, path = "/transfers/{transfer}/claims", tags = ["Transfers"] }]
async fn transfer_claim_create(_: Rq, request: ApiRequest<Path<TransferPath>>) -> ApiResult<HttpResponseOk<Transfer>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::claim(&ctx, &caller, path.transfer).await?)) })
        .await
}

#[endpoint { method = POST, path = "/transfers/{transfer}/rejections", tags = ["Transfers"] }]
async fn transfer_rejection_create(_: Rq, request: ApiRequest<Path<TransferPath>>) -> ApiResult<HttpResponseOk<Transfer>> {
    request
        .respond(
            |ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::reject(&ctx, &caller, path.transfer).await?)) },
        )
        .await
}

#[endpoint { method = GET, path = "/accounts/{number}/transfers", tags = ["Transfers"] }]
async fn account_transfer_list(
    _: Rq,
    request: ApiRequest<(Path<AccountPath>, Query<TransferFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Transfer>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_of_account(&ctx, &caller, &path.number, &query).await?))
        })
        .await
}
