//! The ticket operations of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{EventTicketFilter, Ticket, TicketPath};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::features::catalog::events::EventPath;
use crate::kernel::http::{ApiError, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(event_ticket_list, &[]);
    api.add(account_ticket_list, &[]);
    api.add(ticket_get, &[]);
}

#[endpoint { method = GET, path = "/events/{event}/tickets", tags = ["Tickets"] }]
async fn event_ticket_list(
    rq: Rq,
    caller: Caller,
    path: Path<EventPath>,
    query: Query<EventTicketFilter>,
) -> Result<HttpResponseOk<Page<Ticket>>, ApiError> {
    Ok(HttpResponseOk(service::list_of_event(rq.context(), &caller, path.0.event, &query.0).await?))
}

#[endpoint { method = GET, path = "/accounts/{number}/tickets", tags = ["Tickets"] }]
async fn account_ticket_list(
    rq: Rq,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<PageRequest>,
) -> Result<HttpResponseOk<Page<Ticket>>, ApiError> {
    Ok(HttpResponseOk(service::list_of_account(rq.context(), &caller, &path.0.number, query.0).await?))
}

#[endpoint { method = GET, path = "/tickets/{ticket}", tags = ["Tickets"] }]
async fn ticket_get(rq: Rq, caller: Caller, path: Path<TicketPath>) -> Result<HttpResponseOk<Ticket>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, path.0.ticket).await?))
}
