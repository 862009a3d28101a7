//! HTTP endpoints of tickets.

use boxoffice_http::error::Result;

use super::code::TicketCode;
use super::keys::TicketKeySet;
use super::model::{EventTicketFilter, Ticket, TicketCodeImagePath, TicketCodeImageQuery, TicketPath};
use super::{code, event_lists, keys, service};
use crate::features::catalog::events::EventPath;
use crate::features::catalog::media::ImageResponse;
use crate::features::codes;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Path, Query, Routes, SerializedJson, get};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// `Cache-Control` of a ticket's QR code. Only the owner's browser may store it, and not for long, because the ticket may change
/// hands.
const CODE_CACHE_CONTROL: &str = "private, max-age=300";

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Tickets",
        [
            get("event_ticket_list", "/events/{event}/tickets", event_ticket_list),
            get("account_ticket_list", "/accounts/{number}/tickets", account_ticket_list),
            get("ticket_get", "/tickets/{ticket}", ticket_get),
            get("ticket_code_get", "/tickets/{ticket}/code", ticket_code_get).errors(&[codes::TICKET_NOT_ISSUED]),
            get("ticket_code_image_get", "/tickets/{ticket}/code/{format}", ticket_code_image_get)
                .errors(&[codes::TICKET_NOT_ISSUED]),
            get("ticket_key_list", "/ticket-keys", ticket_key_list).without_key(),
        ],
    );
}

async fn event_ticket_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<EventPath>,
    query: Query<EventTicketFilter>,
) -> Result<SerializedJson<Page<Ticket>>> {
    event_lists::list(&ctx, caller, path.event, query.0).await
}

async fn account_ticket_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<PageRequest>,
) -> Result<Page<Ticket>> {
    service::list_of_account(&ctx, &caller, &path.number, query.0).await
}

async fn ticket_get(ctx: Ctx, caller: Caller, path: Path<TicketPath>) -> Result<Ticket> {
    service::get(&ctx, &caller, path.ticket).await
}

async fn ticket_code_get(ctx: Ctx, caller: Caller, path: Path<TicketPath>) -> Result<TicketCode> {
    code::get(&ctx, &caller, path.ticket).await
}

async fn ticket_code_image_get(
    ctx: Ctx,
    caller: Caller,
    path: Path<TicketCodeImagePath>,
    query: Query<TicketCodeImageQuery>,
) -> Result<ImageResponse> {
    let TicketCodeImagePath { ticket, format } = path.0;
    let image = code::get_image(&ctx, &caller, ticket, format, query.size.0).await?;
    Ok(ImageResponse { image, cache_control: CODE_CACHE_CONTROL })
}

async fn ticket_key_list(ctx: Ctx) -> Result<TicketKeySet> {
    keys::list(&ctx).await
}
