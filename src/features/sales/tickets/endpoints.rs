//! HTTP endpoints of tickets.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{EventTicketFilter, Ticket, TicketPath};
use super::service;
use crate::features::catalog::events::EventPath;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::http::{ApiResult, Path, Query, Routes};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{ApiRequest, App, Rq};

/// Registers the ticket endpoints.
pub fn register(routes: &mut Routes<App>) {
    routes.add(event_ticket_list, &[]);
    routes.add(account_ticket_list, &[]);
    routes.add(ticket_get, &[]);
}

#[endpoint { method = GET, path = "/events/{event}/tickets", tags = ["Tickets"] }]
async fn event_ticket_list(
    _: Rq,
    request: ApiRequest<(Path<EventPath>, Query<EventTicketFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Ticket>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_of_event(&ctx, &caller, path.event, &query).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/accounts/{number}/tickets", tags = ["Tickets"] }]
async fn account_ticket_list(
    _: Rq,
    request: ApiRequest<(Path<AccountPath>, Query<PageRequest>)>,
) -> ApiResult<HttpResponseOk<Page<Ticket>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_of_account(&ctx, &caller, &path.number, query).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/tickets/{ticket}", tags = ["Tickets"] }]
async fn ticket_get(_: Rq, request: ApiRequest<Path<TicketPath>>) -> ApiResult<HttpResponseOk<Ticket>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, path.ticket).await?)) })
        .await
}
