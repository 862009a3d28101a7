//! Lists of an event's tickets, for callers that may admit to the event.
//!
//! When a gate opens, many devices load the same pages, and then the changes since different times. Concurrent requests by the same
//! account or admission token share the statements that don't depend on the page, and requests for the same page its statement and
//! its serialization.

use std::collections::HashMap;
use std::sync::Arc;

use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use boxoffice_openapi::Scope;

use super::model::{EventTicketFilter, Ticket, TicketRow};
use super::{service, store};
use crate::features::catalog::{events, tokens};
use crate::kernel::auth::{AdmissionClaims, Caller};
use crate::kernel::db::Batcher;
use crate::kernel::http::SerializedJson;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PagedRows};
use crate::kernel::unit_of_work::UnitOfWork;
use crate::state::{App, Ctx};

/// Maximum number of requests in a batch. Each may read another page of 100 tickets.
const MAX_BATCH: usize = 32;

/// Batches of reads of lists of the tickets of events.
pub struct EventTicketLists(Arc<Batcher<TicketBatchKey, TicketListRequest, Result<TicketList>>>);

/// A page of tickets in a response.
type TicketList = SerializedJson<Page<Ticket>>;

/// The properties that all requests of a batch have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct TicketBatchKey {
    event: Id,
    /// Everything of the caller that decides about the content.
    caller: (Scope, Option<Id>, Option<AdmissionClaims>),
    /// A search, which may take long, so that no other list waits for it.
    search: Option<EventTicketFilter>,
}

struct TicketListRequest {
    caller: Caller,
    filter: EventTicketFilter,
    span: Span,
}

impl Default for EventTicketLists {
    fn default() -> Self {
        Self(Batcher::of(MAX_BATCH))
    }
}

/// Returns a page of the tickets of an event to which the caller may admit.
pub async fn list(ctx: &Ctx, caller: Caller, event: Id, filter: EventTicketFilter) -> Result<TicketList> {
    let is_search = filter.holder.is_some() || filter.search.is_some();
    let key = TicketBatchKey {
        event,
        caller: (caller.scope, caller.account, caller.admission_claims),
        search: is_search.then(|| filter.clone()),
    };
    let app = Arc::clone(&ctx.app);
    let read = move |key: TicketBatchKey, requests| read_batch(Arc::clone(&app), key.event, requests);
    ctx.app.event_tickets.0.submit(key, TicketListRequest { caller, filter, span: ctx.unit.span().clone() }, read).await?
}

/// Reads each page once. Returns the page of each request, or the error that it has by itself: there is no such page.
async fn read_batch(app: Arc<App>, event: Id, requests: Vec<TicketListRequest>) -> Result<Vec<Result<TicketList>>> {
    let Some(TicketListRequest { caller, .. }) = requests.first() else { return Ok(Vec::new()) };
    let span = Span::of_batch("list tickets of an event", requests.iter().map(|request| &request.span));
    let mut reader = UnitOfWork::read_only(app.db.clone(), span).read().await?;
    let event = events::load(&mut reader, event).await?;
    let scope = tokens::authorize(&mut reader, caller, &event).await?;
    let now = app.clock.now();
    let mut pages: HashMap<&EventTicketFilter, Result<PagedRows<TicketRow>>> = HashMap::new();
    for TicketListRequest { filter, .. } in &requests {
        if !pages.contains_key(filter) {
            let page = store::list_of_event(&mut reader, event.id, scope, filter, now).await;
            pages.insert(filter, Error::split_rejection(page)?);
        }
    }
    scope.require_token(&mut reader).await?;
    let rows = pages.values().flatten().flat_map(|page| &page.rows);
    let (sections, owners) = service::find_embedded(&mut reader, caller, rows, now).await?;
    let mut responses = HashMap::new();
    for (filter, page) in pages {
        let response = page.and_then(|page| {
            let tickets = page.rows.into_iter().map(|row| service::view(row, &sections, &owners)).collect::<Result<_>>()?;
            SerializedJson::new(&filter.paging.page(page.total, tickets))
        });
        responses.insert(filter, response);
    }
    let response =
        |request: &TicketListRequest| Some(responses.get(&request.filter)?.as_ref().cloned().map_err(Error::clone_lossy));
    Ok(requests.iter().filter_map(response).collect())
}
