//! Cache of events and of pages of published events, for the load when tickets go on sale.
//!
//! Concurrent requests for the same event or page share one read and one serialization. Data that only hosts and platform
//! administrators change is read again only after they have changed it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use boxoffice_http::error::{Error, Result};
use futures::FutureExt;

use super::model::{Event, EventRow};
use super::requests::{EventSort, PublishedEventQuery};
use super::store::{ListFilter, SectionCounts};
use super::view::{self, EventWithRelations};
use super::{service, store};
use crate::features::catalog::sections::{self, SectionRow};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Batcher, DbVersion, Tx, VersionedCache};
use crate::kernel::http::SerializedJson;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Maximum number of requests in a batch.
const BATCH: usize = 100;
/// Capacity of each of the two caches in bytes.
const REMEMBERED: usize = 16 << 20;

/// An event and its serialized representation.
struct CachedEvent {
    row: EventRow,
    written: SerializedJson<Event>,
    /// Period in which the representation is up to date, unless the event is changed.
    validity: Range<Timestamp>,
}

/// Batches of concurrent reads of events and lists, and two levels of cached results.
pub struct EventCache {
    events: Arc<Batcher<(), Id, Option<Arc<CachedEvent>>>>,
    published: Arc<Batcher<PublishedEventQuery, (), SerializedJson<Page<Event>>>>,
    known: Mutex<VersionCache>,
    latest: Mutex<SnapshotCache>,
}

/// First-level cache: serialized events, for the database snapshot that was read during authentication. If the next caller's key
/// was looked up in the same snapshot, nothing was committed in between, and the event is returned without a query. While tickets
/// are sold, this is rare. An event may be newer than its snapshot, but then no later caller has the same snapshot.
type SnapshotCache = VersionedCache<Arc<DbVersion>, HashMap<Id, Arc<CachedEvent>>>;

/// Second-level cache: events and pages of published events, valid for one value of the `event_changes` counter of changes by
/// hosts and platform administrators. Each read loads that counter, and everything that buyers change, before it uses the cache.
/// So nothing out of date is returned, whichever server made a change.
type VersionCache = VersionedCache<i64, VersionedEvents>;

#[derive(Default)]
struct VersionedEvents {
    events: HashMap<Id, EventWithRelations>,
    pages: HashMap<PublishedEventQuery, Arc<CachedPage>>,
}

/// A page of the published events.
struct CachedPage {
    changes: i64,
    total: i64,
    events: Vec<Id>,
}

impl Default for EventCache {
    fn default() -> Self {
        Self {
            events: Batcher::of(BATCH),
            published: Batcher::of(BATCH),
            known: Mutex::new(VersionedCache::with_capacity(REMEMBERED)),
            latest: Mutex::new(VersionedCache::with_capacity(REMEMBERED)),
        }
    }
}

impl EventCache {
    fn known(&self) -> MutexGuard<'_, VersionCache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn latest(&self) -> MutexGuard<'_, SnapshotCache> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VersionedEvents {
    /// Returns the cached event with these counts; `None` if it isn't cached, or has other sections by now.
    fn event(&self, id: Id, counts: &[SectionCounts]) -> Option<EventWithRelations> {
        let mut event = self.events.get(&id)?.clone();
        event.apply_counts(counts).then_some(event)
    }
}

impl CachedEvent {
    /// Returns the approximate memory use in bytes.
    fn weight(&self) -> usize {
        size_of_val(self) + text_size(&self.row) + self.written.size()
    }
}

/// Returns the length of an event's longest texts in bytes. Its other fields are small.
fn text_size(row: &EventRow) -> usize {
    row.description.len() + row.disclaimer.len()
}

impl EventWithRelations {
    /// Updates the fields that buyers change. Returns whether the counts are of exactly this event's sections.
    fn apply_counts(&mut self, counts: &[SectionCounts]) -> bool {
        let sections = self.sections.iter_mut();
        let counted = counts.iter().filter_map(|count| Some((count.section_id?, count.sold?, count.reserved?)));
        let mut counted = counted.peekable();
        for section in sections {
            match counted.next_if(|(id, ..)| *id == section.id) {
                Some((_, sold, reserved)) => (section.sold, section.reserved) = (sold, reserved),
                None => return false,
            }
        }
        self.row.popularity = counts.first().map_or(self.row.popularity, |count| count.popularity);
        counted.peek().is_none()
    }

    /// Returns the time until which its representation is up to date, unless it is changed. If a section has reservations, this
    /// is `now`: they expire by themselves, at times that are not loaded here.
    fn valid_until(&self, now: Timestamp) -> Timestamp {
        let until = |section: &SectionRow| if section.reserved == 0 { sections::next_price_change(section, now) } else { now };
        self.sections.iter().map(until).min().unwrap_or(Timestamp::NEVER)
    }

    /// Returns the approximate memory use in bytes.
    fn weight(&self) -> usize {
        let sections = self.sections.iter().map(|section| size_of_val(section) + section.description.len());
        size_of_val(self) + text_size(&self.row) + sections.sum::<usize>()
    }
}

/// Returns an event, if the caller may see it.
pub async fn get(ctx: &Ctx, caller: &Caller, id: Id) -> Result<SerializedJson<Event>> {
    let latest = ctx.app.event_cache.latest().get_mut(&caller.snapshot).get(&id).cloned();
    let now = ctx.app.clock.now();
    let shown = match latest.filter(|shown| shown.validity.contains(&now)) {
        Some(shown) => shown,
        None => {
            let reading = Arc::clone(&ctx.app);
            let shown = ctx.app.event_cache.events.submit((), id, move |(), ids| read_events(Arc::clone(&reading), ids)).await?;
            let shown = shown.ok_or(Error::NOT_FOUND)?;
            ctx.app.event_cache.latest().reserve(&caller.snapshot, shown.weight()).insert(id, Arc::clone(&shown));
            shown
        }
    };
    if !service::is_public_for(caller, &shown.row) {
        // Boxed to keep this future small, because few requests take this path.
        async { service::require_visible(&mut ctx.unit.read().await?, caller, &shown.row).await }.boxed().await?;
    }
    Ok(shown.written.clone())
}

/// Returns a page of published events. It is the same for every caller.
pub async fn list_published(ctx: &Ctx, query: PublishedEventQuery) -> Result<SerializedJson<Page<Event>>> {
    let reading = Arc::clone(&ctx.app);
    let list = move |query, waiting: Vec<()>| {
        let app = Arc::clone(&reading);
        async move {
            let page = SerializedJson::new(&read_page(&app, query).await?)?;
            Ok(vec![page; waiting.len()])
        }
    };
    ctx.app.event_cache.published.submit(query, (), list).await
}

/// Returns the serialized events with these identifiers, in this order.
async fn read_events(app: Arc<App>, ids: Vec<Id>) -> Result<Vec<Option<Arc<CachedEvent>>>> {
    let now = app.clock.now();
    let events = load(&app, &mut app.db.read().await?, &ids, now).await?.events;
    let written = events.into_iter().map(|(id, event)| {
        let (row, lasts) = (event.row.clone(), now..event.valid_until(now));
        Ok((id, Arc::new(CachedEvent { row, written: SerializedJson::new(&view::view(&app, event, now)?)?, validity: lasts })))
    });
    let shown: HashMap<Id, Arc<CachedEvent>> = written.collect::<Result<_>>()?;
    Ok(ids.iter().map(|id| shown.get(id).cloned()).collect())
}

async fn read_page(app: &App, query: PublishedEventQuery) -> Result<Page<Event>> {
    let (now, paging) = (app.clock.now(), query.filter.paging);
    let mut tx = app.db.read().await?;
    let known = app.event_cache.known().entries().pages.get(&query).cloned();
    if let Some(page) = known {
        let mut found = load(app, &mut tx, &page.events, now).await?;
        if found.changes == Some(page.changes) {
            let events = page.events.iter().filter_map(|id| found.events.remove(id));
            return Ok(paging.page(page.total, events.map(|event| view::view(app, event, now)).collect::<Result<_>>()?));
        }
    }
    let changes = store::change_counter(&mut tx).await?;
    let narrowing = ListFilter {
        shown: store::Visibility::Published,
        host: query.host.as_ref().map(|host| host.id),
        status: None,
        public: None,
    };
    let found = store::list(&mut tx, &query.filter, narrowing, now).await?;
    if is_cacheable(&query) && !found.rows.is_empty() {
        let page = CachedPage { changes, total: found.total, events: found.rows.iter().map(|row| row.id).collect() };
        let weight = size_of_val(&query) + size_of_val(&page) + size_of_val(page.events.as_slice());
        app.event_cache.known().reserve(&changes, weight).pages.insert(query, Arc::new(page));
    }
    Ok(paging.page(found.total, view::views(app, &mut tx, found.rows).await?))
}

/// Returns whether only hosts and platform administrators change the list. Time changes a list of active events, sales change a
/// list by popularity, and a new section, which the counter doesn't count, changes a list by section.
fn is_cacheable(query: &PublishedEventQuery) -> bool {
    let filter = &query.filter;
    filter.active.is_none() && filter.section.is_none() && filter.sort != Some(EventSort::Popularity)
}

/// Current state of the requested events.
struct Loaded {
    /// Value of the `event_changes` counter; `None` if none of the events was found.
    changes: Option<i64>,
    events: HashMap<Id, EventWithRelations>,
}

async fn load(app: &App, tx: &mut Tx, ids: &[Id], now: Timestamp) -> Result<Loaded> {
    let counts = store::section_counts(tx, ids.iter().copied(), now).await?;
    let Some(changes) = counts.first().map(|count| count.changes) else {
        return Ok(Loaded { changes: None, events: HashMap::new() });
    };
    let (mut events, mut unknown) = (HashMap::new(), Vec::new());
    {
        let mut known = app.event_cache.known();
        let known = known.get_mut(&changes);
        for counts in counts.chunk_by(|one, other| one.event_id == other.event_id) {
            let Some(id) = counts.first().map(|count| count.event_id) else { continue };
            match known.event(id, counts) {
                Some(event) => _ = events.insert(id, event),
                None => unknown.push(id),
            }
        }
    }
    if !unknown.is_empty() {
        let rows = store::of_ids(tx, unknown).await?;
        let loaded = view::load(tx, rows, now).await?;
        {
            let mut known = app.event_cache.known();
            for event in &loaded {
                known.reserve(&changes, event.weight()).events.insert(event.row.id, event.clone());
            }
        }
        events.extend(loaded.into_iter().map(|event| (event.row.id, event)));
    }
    Ok(Loaded { changes: Some(changes), events })
}
