//! HTTP endpoints of waiting lists.

use boxoffice_http::error::{Code, Result};

use super::model::{WaitingEntry, WaitingEntryCreate, WaitingEntryPath};
use super::service;
use crate::features::catalog::sections::SectionPath;
use crate::features::codes;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Error codes with which the rules reject a new entry.
const REJECTED: [Code; 10] = [
    codes::SECTION_NOT_SOLD_OUT,
    codes::SECTION_ACCOUNT_MAXIMUM,
    codes::SECTION_INACTIVE,
    codes::SECTION_NOT_ON_SALE,
    codes::EVENT_NOT_LISTED,
    codes::EVENT_OVER,
    codes::HOST_REMOVED,
    codes::WAITING_LIST_JOINED,
    codes::WAITING_LIST_TOO_MANY,
    codes::WAITING_LIST_FULL,
];

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Waiting lists",
        [
            get("section_waiting_entry_list", "/events/{event}/sections/{section}/waiting-list", section_waiting_entry_list),
            post("section_waiting_entry_create", "/events/{event}/sections/{section}/waiting-list", section_waiting_entry_create)
                .errors(&REJECTED),
            get(
                "section_waiting_entry_get",
                "/events/{event}/sections/{section}/waiting-list/{entry}",
                section_waiting_entry_get,
            ),
            delete(
                "section_waiting_entry_delete",
                "/events/{event}/sections/{section}/waiting-list/{entry}",
                section_waiting_entry_delete,
            ),
            get("account_waiting_entry_list", "/accounts/{number}/waiting-list", account_waiting_entry_list),
        ],
    );
}

async fn section_waiting_entry_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<SectionPath>,
    paging: Query<PageRequest>,
) -> Result<Page<WaitingEntry>> {
    service::list_of_section(&ctx, &caller, path.0.into(), paging.0).await
}

async fn section_waiting_entry_create(
    ctx: Ctx,
    caller: Caller,
    path: Path<SectionPath>,
    body: Json<WaitingEntryCreate>,
) -> Result<Created<WaitingEntry>> {
    Ok(Created(service::join(&ctx, &caller, path.0.into(), &body).await?))
}

async fn section_waiting_entry_get(ctx: Ctx, caller: Caller, path: Path<WaitingEntryPath>) -> Result<WaitingEntry> {
    service::get(&ctx, &caller, &path).await
}

async fn section_waiting_entry_delete(ctx: Ctx, caller: Caller, path: Path<WaitingEntryPath>) -> Result<HttpResponseDeleted> {
    service::leave(&ctx, &caller, &path).await.map(|()| HttpResponseDeleted())
}

async fn account_waiting_entry_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<AccountPath>,
    paging: Query<PageRequest>,
) -> Result<Page<WaitingEntry>> {
    service::list_of_account(&ctx, &caller, &path.number, paging.0).await
}
