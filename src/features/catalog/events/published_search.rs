//! Searches and lists of published events, with all of them and their words in memory.
//!
//! The index in memory is that of one value of the `event_changes` counter. The events that it finds are read together with the
//! counter, so nothing out of date is returned, whichever server made a change. After a change the index reads the events that have
//! changed since. The first search after the start of the server waits until all of them are read. With too many events, the database
//! answers instead.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use parking_lot::RwLock;

use super::cache::{self, SizedEvents};
use super::model::Event;
use super::requests::{EventSort, PublishedEventQuery};
use super::search::Search;
use super::word_index::{FoundEvents, Selection, WordIndex};
use super::{cache_store, view};
use crate::kernel::db::{Batcher, permit_page, read_from_standby};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PAGE_BYTES, Page, PageRequest};
use crate::kernel::unit_of_work::UnitOfWork;
use crate::state::App;

/// Number of changed events that the index reads at a time.
const UPDATE_BATCH: usize = 500;
/// Maximum number of times that a search does so. An index within its capacity needs fewer.
const MAX_UPDATES: usize = 5000;
/// Maximum number of requests that share an update.
const MAX_UPDATE_REQUESTS: usize = 1000;
/// Maximum number of events that searches read together.
const MAX_EVENTS: usize = 1000;
/// Maximum size of these events in bytes.
const MAX_BYTES: i64 = 4 * PAGE_BYTES;

/// The events that a search has found, and its span.
type FoundRead = (Vec<Id>, Span);

/// The index in memory, and the batches of concurrent searches.
pub struct PublishedSearch {
    index: RwLock<WordIndex>,
    updates: Arc<Batcher<(), Span, ()>>,
    reads: Arc<Batcher<(), FoundRead, Arc<Option<SizedEvents>>>>,
}

impl Default for PublishedSearch {
    fn default() -> Self {
        Self {
            index: RwLock::default(),
            updates: Batcher::of(MAX_UPDATE_REQUESTS),
            reads: Batcher::with_max_weight(MAX_EVENTS, |(events, _): &FoundRead| events.len()),
        }
    }
}

/// The first page of a search or a list.
pub struct FirstPage {
    pub found: FoundEvents,
    /// The size of its events in bytes.
    pub bytes: i64,
    pub page: Page<Event>,
}

/// Returns the first page of a [plain](PublishedEventQuery::is_plain) query. Returns `None` if the database must answer: large pages, with
/// more events than the index has capacity, while events are changed all the time, and lists until the index is complete.
pub async fn first_page(
    app: &Arc<App>,
    span: &Span,
    query: &PublishedEventQuery,
    search: Option<&Search>,
) -> Result<Option<FirstPage>> {
    let (now, paging) = (app.clock.now(), query.filter.paging);
    let by_start = (query.filter.sort == Some(EventSort::Start)).then_some(query.filter.order);
    let selection = Selection { search, active: query.finder.active(&query.filter), by_start };
    let find = || app.event_cache.search.index.read().find(&selection, now, paging.limit() as usize);
    if search.is_none() && app.event_cache.search.index.read().is_incomplete() {
        // Reading all events takes long if there are many, and the database can answer meanwhile. Another request repeats what fails.
        let (app, span) = (Arc::clone(app), span.clone());
        drop(tokio::spawn(async move { complete_index(&app, &span).await }));
        return Ok(None);
    }
    if app.event_cache.version().is_some_and(|version| app.event_cache.search.index.read().is_of_other_version(version)) {
        update_index(app, span).await?;
    }
    // A request that finds outdated events is repeated once, so that it ends while events are changed all the time.
    for _ in 0..2 {
        complete_index(app, span).await?;
        let Some(found) = find() else { break };
        let events = read_events(app, span, found.first.clone()).await?;
        if let Some(events) = events.as_ref().as_ref().filter(|events| events.changes == found.changes) {
            return page(app, paging, found, events, now);
        }
        update_index(app, span).await?;
    }
    Ok(None)
}

/// Adds all further changes to the index.
async fn complete_index(app: &Arc<App>, span: &Span) -> Result<()> {
    for _ in 0..MAX_UPDATES {
        if !app.event_cache.search.index.read().is_incomplete() {
            break;
        }
        update_index(app, span).await?;
    }
    Ok(())
}

/// Returns the page of these events; `None` if it is cut by its size, or its events were not loaded because many large ones were.
fn page(app: &App, paging: PageRequest, found: FoundEvents, events: &SizedEvents, now: Timestamp) -> Result<Option<FirstPage>> {
    let found_events = found.first.iter().map(|id| events.events.get(id));
    let Some(found_events) = found_events.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let bytes = found_events.iter().map(|found| found.bytes).sum();
    if bytes > PAGE_BYTES {
        return Ok(None);
    }
    let _permit = permit_page(bytes)?;
    let entries = found_events.into_iter().map(|found| view::view(app, found.event.clone(), now));
    let page = paging.page(found.total as i64, entries.collect::<Result<_>>()?);
    Ok(Some(FirstPage { found, bytes, page }))
}

/// Returns the current state of these events. Concurrent searches share one read. Returns `None` if they have just changed.
async fn read_events(app: &Arc<App>, span: &Span, events: Vec<Id>) -> Result<Arc<Option<SizedEvents>>> {
    let for_batch = Arc::clone(app);
    let read = move |(), reads: Vec<FoundRead>| {
        let app = Arc::clone(&for_batch);
        async move {
            let (events, spans) = reads.into_iter().unzip::<Vec<Id>, Span, Vec<_>, Vec<_>>();
            let distinct: Vec<Id> = events.iter().flatten().copied().collect::<BTreeSet<Id>>().into_iter().collect();
            let unit = UnitOfWork::read_only(app.db.clone(), Span::of_batch("read found events", &spans));
            let now = app.clock.now();
            read_from_standby!(unit, |reader| cache::load_sized(&app, reader, &distinct, now, MAX_BYTES).await).map(Arc::new)
        }
    };
    app.event_cache.search.reads.submit_shared((), (events, span.clone()), read).await
}

/// Adds further changes to the index. Concurrent searches share one update, which begins after all of them.
async fn update_index(app: &Arc<App>, span: &Span) -> Result<()> {
    let for_batch = Arc::clone(app);
    let update = move |(), spans: Vec<Span>| {
        let app = Arc::clone(&for_batch);
        async move {
            let search = &app.event_cache.search;
            let cursor = search.index.read().cursor();
            if let Some(cursor) = cursor {
                let unit = UnitOfWork::read_only(app.db.clone(), Span::of_batch("update the index of words", &spans));
                let changes =
                    read_from_standby!(unit, |reader| cache_store::published_changes(reader, &cursor, UPDATE_BATCH as i64)
                        .await)?;
                let is_last = changes.len() < UPDATE_BATCH;
                if changes.is_empty() {
                    return Err(Error::Internal(anyhow!("the table event_changes has no row")));
                }
                search.index.write().update(changes, is_last);
            }
            Ok(())
        }
    };
    app.event_cache.search.updates.submit_shared((), span.clone(), update).await
}
