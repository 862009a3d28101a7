//! HTTP endpoints of accounts.

use boxoffice_http::error::Result;

use super::model::{Account, AccountCreate, AccountFilter, AccountPath, AccountUpdate};
use super::{lifecycle, service};
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::http::{AcceptedLanguage, ClientAddress, Created, Json, Path, Query, Routes, get, post, put};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Accounts",
        [
            get("account_list", "/accounts", account_list),
            post("account_create", "/accounts", account_create).errors(&[codes::ACCOUNT_TAKEN]),
            get("account_get", "/accounts/{number}", account_get),
            put("account_update", "/accounts/{number}", account_update).errors(&[codes::ACCOUNT_TAKEN]),
            post("account_toggle_create", "/accounts/{number}/toggles", account_toggle_create)
                .errors(&[codes::ACCOUNT_LAST_ADMINISTRATOR]),
            post("account_deletion_create", "/accounts/{number}/deletions", account_deletion_create)
                .errors(&[codes::ACCOUNT_INACTIVE, codes::ACCOUNT_LAST_ADMINISTRATOR]),
        ],
    );
}

async fn account_list(ctx: Ctx, query: Query<AccountFilter>) -> Result<Page<Account>> {
    service::list(&ctx, &query).await
}

async fn account_create(
    ctx: Ctx,
    caller: Caller,
    address: ClientAddress,
    language: AcceptedLanguage,
    body: Json<AccountCreate>,
) -> Result<Created<Account>> {
    Ok(Created(service::sign_up(&ctx, &caller, address.0, language.0, body.0).await?))
}

async fn account_get(ctx: Ctx, caller: Caller, path: Path<AccountPath>) -> Result<Account> {
    service::get(&ctx, &caller, &path.number).await
}

async fn account_update(
    ctx: Ctx,
    caller: Caller,
    address: ClientAddress,
    path: Path<AccountPath>,
    body: Json<AccountUpdate>,
) -> Result<Account> {
    service::update(&ctx, &caller, address.0, &path.number, body.0).await
}

async fn account_toggle_create(ctx: Ctx, caller: Caller, path: Path<AccountPath>) -> Result<Account> {
    lifecycle::toggle(&ctx, &caller, &path.number).await
}

async fn account_deletion_create(ctx: Ctx, caller: Caller, path: Path<AccountPath>) -> Result<Account> {
    lifecycle::request_deletion(&ctx, &caller, &path.number).await
}
