//! HTTP endpoints of tickets.

use boxoffice_http::error::Result;
use dropshot::HttpResponseOk;

use super::model::{EventTicketFilter, Ticket, TicketPath};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Path, Query, Routes, get};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Registers the ticket endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Tickets",
        [
            get("event_ticket_list", "/events/{event}/tickets", event_ticket_list),
            get("account_ticket_list", "/accounts/{number}/tickets", account_ticket_list),
            get("ticket_get", "/tickets/{ticket}", ticket_get),
        ],
    );
}

async fn event_ticket_list(
    ctx: Ctx,
    caller: Caller,
    Path(path): Path<EventPath>,
    Query(query): Query<EventTicketFilter>,
) -> Result<HttpResponseOk<Page<Ticket>>> {
    Ok(HttpResponseOk(service::list_of_event(&ctx, &caller, path.event, &query).await?))
}

async fn account_ticket_list(
    ctx: Ctx,
    caller: Caller,
    Path(path): Path<AccountPath>,
    Query(query): Query<PageRequest>,
) -> Result<HttpResponseOk<Page<Ticket>>> {
    Ok(HttpResponseOk(service::list_of_account(&ctx, &caller, &path.number, query).await?))
}

async fn ticket_get(ctx: Ctx, caller: Caller, Path(path): Path<TicketPath>) -> Result<HttpResponseOk<Ticket>> {
    Ok(HttpResponseOk(service::get(&ctx, &caller, path.ticket).await?))
}
