//! Lists of an event's tickets, for callers that may admit to the event. When a gate opens, many devices load the same pages:
//! concurrent requests for the same page by the same account or admission token share its statements and its serialization.

use std::sync::Arc;

use boxoffice_http::error::Result;
use boxoffice_http::traces::Span;
use boxoffice_openapi::Scope;

use super::model::{EventTicketFilter, Ticket};
use super::{service, store};
use crate::features::catalog::{events, tokens};
use crate::kernel::auth::{AdmissionClaims, Caller};
use crate::kernel::db::Batcher;
use crate::kernel::http::SerializedJson;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Maximum number of requests in a batch.
const MAX_BATCH: usize = 100;

/// Batches of reads of lists of the tickets of events.
pub struct EventTicketLists(Arc<Batcher<ListKey, (Caller, Span), SerializedJson<Page<Ticket>>>>);

/// What all requests of a batch have in common: the page, and everything of their callers that decides about its content.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ListKey {
    event: Id,
    filter: EventTicketFilter,
    scope: Scope,
    account: Option<Id>,
    redeemer: Option<AdmissionClaims>,
}

impl Default for EventTicketLists {
    fn default() -> Self {
        Self(Batcher::of(MAX_BATCH))
    }
}

/// Returns a page of the tickets of an event to which the caller may admit.
pub async fn list(ctx: &Ctx, caller: Caller, event: Id, filter: EventTicketFilter) -> Result<SerializedJson<Page<Ticket>>> {
    let key = ListKey { event, filter, scope: caller.scope, account: caller.account, redeemer: caller.redeemer };
    let app = Arc::clone(&ctx.app);
    let read = move |key, requests| read_batch(Arc::clone(&app), key, requests);
    ctx.app.event_tickets.0.submit(key, (caller, ctx.unit.span().clone()), read).await
}

/// Reads a page once for all requests of a batch.
async fn read_batch(app: Arc<App>, key: ListKey, requests: Vec<(Caller, Span)>) -> Result<Vec<SerializedJson<Page<Ticket>>>> {
    let ListKey { event, filter, .. } = key;
    let Some((caller, _)) = requests.first() else { return Ok(Vec::new()) };
    let span = Span::of_batch("list tickets of an event", requests.iter().map(|(_, span)| span));
    let mut tx = app.db.read().await?.traced(&span);
    let event = events::load(&mut tx, event).await?;
    let scope = tokens::authorize(&mut tx, caller, &event).await?;
    let page = store::list_of_event(&mut tx, event.id, scope, &filter).await?;
    let tickets = service::views(&mut tx, caller, page.rows, app.clock.now()).await?;
    Ok(vec![SerializedJson::new(&filter.paging.page(page.total, tickets))?; requests.len()])
}
