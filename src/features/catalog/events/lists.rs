//! Lists of events in any status. Concurrent requests for the same page share its statements and its serialization.

use std::sync::Arc;

use boxoffice_http::error::Result;
use boxoffice_http::traces::Span;

use super::list_store::{EventListFilter, EventVisibility};
use super::model::{Event, EventStatus};
use super::requests::{EventFilter, EventFinder, EventQuery, HostEventQuery};
use super::search::Search;
use super::service;
use crate::features::catalog::hosts;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Batcher, read_from_standby};
use crate::kernel::http::SerializedJson;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::kernel::unit_of_work::UnitOfWork;
use crate::state::{App, Ctx};

/// Maximum number of requests in a batch.
const MAX_BATCH: usize = 100;

/// Batches of reads of lists of events.
pub struct EventLists(Arc<Batcher<ListKey, Span, SerializedJson<Page<Event>>>>);

/// The list and the page that all requests of a batch have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ListKey {
    visibility: EventVisibility,
    host: Option<Id>,
    status: Option<EventStatus>,
    public: Option<bool>,
    filter: EventFilter,
    finder: Option<EventFinder>,
}

impl Default for EventLists {
    fn default() -> Self {
        Self(Batcher::of(MAX_BATCH))
    }
}

/// Returns a page of the events that the caller may see.
pub async fn list(ctx: &Ctx, caller: &Caller, query: EventQuery) -> Result<SerializedJson<Page<Event>>> {
    let EventQuery { filter, finder, host, status, public } = query;
    // A search with an error must not share a batch with others.
    let search = finder.check()?;
    let (visibility, host) = (EventVisibility::to(caller), host.map(|host| host.id));
    submit(ctx, ListKey { visibility, host, status, public, filter, finder: Some(finder) }, search).await
}

/// Returns a page of the events of a host that the caller may see.
pub async fn list_of_host(ctx: &Ctx, caller: &Caller, host: Id, query: HostEventQuery) -> Result<SerializedJson<Page<Event>>> {
    let is_manager = read_from_standby!(ctx.unit, |reader| hosts::is_managed_by(reader, caller, host).await)?;
    let HostEventQuery { filter, status, public } = query;
    let visibility = if is_manager { EventVisibility::All } else { EventVisibility::Open };
    submit(ctx, ListKey { visibility, host: Some(host), status, public, filter, finder: None }, None).await
}

async fn submit(ctx: &Ctx, key: ListKey, search: Option<Search>) -> Result<SerializedJson<Page<Event>>> {
    let app = Arc::clone(&ctx.app);
    let read = move |key, spans| read_batch(Arc::clone(&app), key, search.clone(), spans);
    ctx.app.event_lists.0.submit_shared(key, ctx.unit.span().clone(), read).await
}

/// Reads a page once for all requests of a batch.
async fn read_batch(
    app: Arc<App>,
    key: ListKey,
    search: Option<Search>,
    spans: Vec<Span>,
) -> Result<SerializedJson<Page<Event>>> {
    let ListKey { visibility, host, status, public, filter, finder } = key;
    let list_filter =
        EventListFilter { host, status, public, finder: finder.as_ref(), search, ..EventListFilter::of(visibility) };
    let unit = UnitOfWork::read_only(app.db.clone(), Span::of_batch("list events", &spans));
    let page = read_from_standby!(unit, |reader| service::page(&app, reader, &filter, &list_filter).await)?;
    SerializedJson::new(&page)
}
