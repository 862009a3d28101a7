//! Cache of events and of pages of published events, for the load when tickets go on sale.
//!
//! Concurrent requests for the same event or page share one read and one serialization. Data that only hosts and platform
//! administrators change is read again only after they have changed it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use futures::FutureExt;
use parking_lot::Mutex;

use super::cache_store::{self, SectionCounts};
use super::list_store::{self, ListFilter, Visibility};
use super::model::{Event, EventRow};
use super::published_search::{self, FirstPage, PublishedSearch};
use super::requests::{EventSort, PublishedEventQuery};
use super::search::Search;
use super::view::{self, EventWithRelations, Relations};
use super::{service, store};
use crate::features::catalog::sections::{self, SectionRow};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Batcher, DbVersion, Reader, UnitOfWork, VersionedCache, permit_page, read_from_standby};
use crate::kernel::http::SerializedJson;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PagedRows};
use crate::state::{App, Ctx};

/// Maximum number of events in a batch. An event with its sections may have 2 MiB.
const MAX_EVENTS: usize = 16;
/// Maximum number of requests for a page in a batch.
const MAX_BATCH: usize = 100;
/// Capacity of each of the two caches in bytes.
const CACHE_CAPACITY: usize = 16 << 20;

/// An event and its serialized representation.
struct CachedEvent {
    row: EventRow,
    serialized: SerializedJson<Event>,
    /// Period in which the representation is up to date, unless the event is changed.
    validity: Range<Timestamp>,
}

/// The identifier of an event that a request reads, and the request's span.
type EventRead = (Id, Span);

/// Batches of concurrent reads of events and lists, and two levels of cached results.
pub struct EventCache {
    events: Arc<Batcher<(), EventRead, Option<Arc<CachedEvent>>>>,
    published: Arc<Batcher<PublishedListKey, Span, SerializedJson<Page<Event>>>>,
    /// Searches of published events.
    pub search: PublishedSearch,
    versions: Mutex<VersionCache>,
    serialized: Mutex<SerializedCache>,
}

/// First-level cache: serialized events, for the version of the database that was read during authentication. If the next
/// caller's key was looked up in the same version, nothing was committed in between, and the event is returned without a query.
/// While tickets are sold, this is rare. An event may be newer than its version, but then no later caller has the same version.
type SerializedCache = VersionedCache<Arc<DbVersion>, HashMap<Id, Arc<CachedEvent>>>;

/// Second-level cache: events and pages of published events, valid for one value of the `event_changes` counter of changes by
/// hosts and platform administrators. Each read loads that counter, and everything that buyers change, before it uses the cache.
/// So nothing out of date is returned, whichever server made a change.
type VersionCache = VersionedCache<i64, VersionedEvents>;

#[derive(Default)]
struct VersionedEvents {
    events: HashMap<Id, EventWithRelations>,
    /// Events that were read once. They are cached when they are read again: most of the events that searches find are not.
    read_once: HashSet<Id>,
    /// Sizes of cached events in a page, in bytes, if searches have found them.
    sizes: HashMap<Id, i64>,
    relations: Relations,
    pages: HashMap<PublishedListKey, Arc<CachedPage>>,
}

/// The arguments of a list of published events. Callers with the same arguments and preferred region share one list.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PublishedListKey {
    query: PublishedEventQuery,
    /// Region whose events come first.
    preferred_region: Option<Id>,
}

/// A page of the published events.
struct CachedPage {
    changes: i64,
    /// Period in which time does not change it.
    validity: Range<Timestamp>,
    total: i64,
    /// Its size in bytes.
    bytes: i64,
    events: Vec<Id>,
}

impl Default for EventCache {
    fn default() -> Self {
        Self {
            events: Batcher::of(MAX_EVENTS),
            published: Batcher::of(MAX_BATCH),
            search: PublishedSearch::default(),
            versions: Mutex::new(VersionedCache::with_capacity(CACHE_CAPACITY)),
            serialized: Mutex::new(VersionedCache::with_capacity(CACHE_CAPACITY)),
        }
    }
}

impl EventCache {
    /// Returns the last value of the `event_changes` counter that was read.
    pub fn version(&self) -> Option<i64> {
        self.versions.lock().version().copied()
    }

    /// Returns those of the events that are cached with their sizes, and the value of the `event_changes` counter for which they are.
    fn sized_events(&self, ids: &[Id]) -> (Option<i64>, HashMap<Id, SizedEvent>) {
        let mut version_cache = self.versions.lock();
        let version = version_cache.version().copied();
        let VersionedEvents { events, sizes, .. } = version_cache.entries();
        let sized = |id: &Id| Some((*id, SizedEvent { event: events.get(id)?.clone(), bytes: *sizes.get(id)? }));
        (version, ids.iter().filter_map(sized).collect())
    }
}

impl VersionedEvents {
    /// Returns the cached event with these counts; `None` if it isn't cached, or has other sections by now.
    fn event(&self, id: Id, counts: &[SectionCounts]) -> Option<EventWithRelations> {
        let mut event = self.events.get(&id)?.clone();
        event.apply_counts(counts).then_some(event)
    }
}

impl PublishedListKey {
    /// Returns the approximate memory use in bytes.
    fn weight(&self) -> usize {
        size_of_val(self) + self.query.filter.text_size() + self.query.finder.text_size()
    }
}

impl CachedEvent {
    /// Returns the approximate memory use in bytes.
    fn weight(&self) -> usize {
        size_of_val(self) + text_size(&self.row) + self.serialized.size()
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
        let section_counts =
            counts.iter().filter_map(|count| Some((count.section_id?, count.sold?, count.reserved?, count.waiting?)));
        let mut section_counts = section_counts.peekable();
        for section in sections {
            match section_counts.next_if(|(id, ..)| *id == section.id) {
                Some((_, sold, reserved, waiting)) => {
                    (section.sold, section.reserved, section.waiting) = (sold, reserved, waiting);
                }
                None => return false,
            }
        }
        self.row.popularity = counts.first().map_or(self.row.popularity, |count| count.popularity);
        section_counts.peek().is_none()
    }

    /// Returns the time until which its representation is up to date, unless it is changed. If a section has reservations, this
    /// is `now`: they expire by themselves, at times that are not loaded here.
    fn valid_until(&self, now: Timestamp) -> Timestamp {
        let until = |section: &SectionRow| if section.reserved == 0 { sections::next_change(section, now) } else { now };
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
    let cached = ctx.app.event_cache.serialized.lock().get_mut(&caller.db_version).get(&id).cloned();
    let now = ctx.app.clock.now();
    let cached = cached.filter(|event| event.validity.contains(&now));
    ctx.app.metrics.record_event_read(cached.is_some());
    let event = match cached {
        Some(event) => event,
        None => {
            let app = Arc::clone(&ctx.app);
            let event = ctx
                .app
                .event_cache
                .events
                .submit((), (id, ctx.unit.span().clone()), move |(), ids| read_events(Arc::clone(&app), ids))
                .await?;
            let event = event.ok_or(Error::NOT_FOUND)?;
            ctx.app.event_cache.serialized.lock().reserve(&caller.db_version, event.weight()).insert(id, Arc::clone(&event));
            event
        }
    };
    if !service::is_public_for(caller, &event.row) {
        // Boxed to keep this future small, because few requests take this path.
        async { service::require_visible(&mut ctx.unit.read().await?, caller, &event.row).await }.boxed().await?;
    }
    Ok(event.serialized.clone())
}

/// Returns a page of published events. Without a sort key and a region, those in the region that the caller's account prefers come
/// first.
pub async fn list_published(ctx: &Ctx, caller: &Caller, query: PublishedEventQuery) -> Result<SerializedJson<Page<Event>>> {
    // A search with an error must not share a batch with others.
    let search = query.finder.check()?.map(Arc::new);
    let has_order = query.filter.sort.is_some() || query.filter.region.is_some();
    let key = PublishedListKey { preferred_region: caller.preferred_region.filter(|_| !has_order), query };
    let app = Arc::clone(&ctx.app);
    let list = move |key: PublishedListKey, spans: Vec<Span>| {
        let (app, search) = (Arc::clone(&app), search.clone());
        async move {
            let span = Span::of_batch("list published events", &spans);
            SerializedJson::new(&read_page(&app, span, &key, search.as_deref()).await?)
        }
    };
    ctx.app.event_cache.published.submit_shared(key, ctx.unit.span().clone(), list).await
}

/// Returns the serialized events with these identifiers, in this order.
async fn read_events(app: Arc<App>, requests: Vec<EventRead>) -> Result<Vec<Option<Arc<CachedEvent>>>> {
    let (now, (ids, spans)) = (app.clock.now(), requests.into_iter().unzip::<Id, Span, Vec<Id>, Vec<Span>>());
    let span = Span::of_batch("read events", &spans);
    let events = load(&app, &mut app.db.read().await?.traced(&span), &ids, now).await?.events;
    let cached = events.into_iter().map(|(id, event)| {
        let (row, validity) = (event.row.clone(), now..event.valid_until(now));
        Ok((id, Arc::new(CachedEvent { row, serialized: SerializedJson::new(&view::view(&app, event, now)?)?, validity })))
    });
    let cached: HashMap<Id, Arc<CachedEvent>> = cached.collect::<Result<_>>()?;
    Ok(ids.iter().map(|id| cached.get(id).cloned()).collect())
}

/// Returns a page from the cache, from the events in memory, or from the database.
async fn read_page(app: &Arc<App>, span: Span, key: &PublishedListKey, search: Option<&Search>) -> Result<Page<Event>> {
    let cached = app.event_cache.versions.lock().entries().pages.get(key).cloned();
    if let Some(cached) = cached.filter(|page| page.validity.contains(&app.clock.now())) {
        let unit = UnitOfWork::read_only(app.db.clone(), span.clone());
        if let Some(page) = read_from_standby!(unit, |reader| cached_page(app, reader, key, &cached).await)? {
            return Ok(page);
        }
    }
    if key.query.is_plain() && key.preferred_region.is_none() {
        let now = app.clock.now();
        if let Some(FirstPage { found, bytes, page }) = published_search::first_page(app, &span, &key.query, search).await? {
            // There are too many different searches to cache them.
            if search.is_none() {
                let (changes, total, validity) = (found.changes, found.total as i64, now..found.valid_until);
                cache_page(app, key, CachedPage { changes, validity, total, bytes, events: found.first });
            }
            return Ok(page);
        }
    }
    let unit = UnitOfWork::read_only(app.db.clone(), span);
    read_from_standby!(unit, |reader| list_page(app, reader, key, search).await)
}

/// Returns the events of a cached page as they are now; `None` if it is out of date.
async fn cached_page(app: &App, reader: &mut Reader, key: &PublishedListKey, page: &CachedPage) -> Result<Option<Page<Event>>> {
    let now = app.clock.now();
    let _permit = permit_page(page.bytes)?;
    let mut loaded = load(app, reader, &page.events, now).await?;
    if loaded.changes != Some(page.changes) {
        return Ok(None);
    }
    let events = page.events.iter().filter_map(|id| loaded.events.remove(id));
    let events = events.map(|event| view::view(app, event, now)).collect::<Result<_>>()?;
    Ok(Some(key.query.filter.paging.page(page.total, events)))
}

fn cache_page(app: &App, key: &PublishedListKey, page: CachedPage) {
    // An empty page has no event with which the counter is read.
    if !page.events.is_empty() {
        let weight = key.weight() + size_of_val(&page) + size_of_val(page.events.as_slice());
        app.event_cache.versions.lock().reserve(&page.changes, weight).pages.insert(key.clone(), Arc::new(page));
    }
}

/// Reads a page from the database.
async fn list_page(app: &App, reader: &mut Reader, key: &PublishedListKey, search: Option<&Search>) -> Result<Page<Event>> {
    let (now, query) = (app.clock.now(), &key.query);
    let changes = cache_store::change_counter(reader).await?;
    let list_filter = ListFilter {
        host: query.host.as_ref().map(|host| host.id),
        preferred_region: key.preferred_region,
        finder: Some(&query.finder),
        search: search.cloned(),
        ..ListFilter::of(Visibility::Published)
    };
    let PagedRows { rows, total, bytes, permit: _permit, .. } =
        list_store::list(reader, &query.filter, &list_filter, now).await?;
    // Sales change a list by popularity.
    if query.filter.sort != Some(EventSort::Popularity) {
        let depends_on_time = query.finder.active(&query.filter).is_some();
        let end = if depends_on_time { list_store::next_end(reader, now).await? } else { None };
        let events = rows.iter().map(|row| row.id).collect();
        cache_page(app, key, CachedPage { changes, validity: now..end.unwrap_or(Timestamp::NEVER), total, bytes, events });
    }
    Ok(query.filter.paging.page(total, view::views(app, reader, rows).await?))
}

/// Current state of the requested events.
struct Loaded {
    /// Value of the `event_changes` counter; `None` if none of the events was found.
    changes: Option<i64>,
    events: HashMap<Id, EventWithRelations>,
}

/// Returns these events with their related data, in their order. An event that was removed since its row was read is left out.
pub async fn with_relations(
    app: &App,
    reader: &mut Reader,
    rows: Vec<EventRow>,
    now: Timestamp,
) -> Result<Vec<EventWithRelations>> {
    let ids: Vec<Id> = rows.iter().map(|row| row.id).collect();
    let mut events = load(app, reader, &ids, now).await?.events;
    let with_row = |row: EventRow| {
        let mut event = events.remove(&row.id)?;
        // The caller may see this row, but perhaps not a newer one.
        event.row = row;
        Some(event)
    };
    Ok(rows.into_iter().filter_map(with_row).collect())
}

async fn load(app: &App, reader: &mut Reader, ids: &[Id], now: Timestamp) -> Result<Loaded> {
    let counts = cache_store::section_counts(reader, ids.iter().copied(), now).await?;
    let Some(changes) = counts.first().map(|count| count.changes) else {
        return Ok(Loaded { changes: None, events: HashMap::new() });
    };
    let (mut events, mut missing) = (HashMap::new(), Vec::new());
    {
        let mut version_cache = app.event_cache.versions.lock();
        let version_cache = version_cache.get_mut(&changes);
        for counts in counts.chunk_by(|one, other| one.event_id == other.event_id) {
            let Some(id) = counts.first().map(|count| count.event_id) else { continue };
            match version_cache.event(id, counts) {
                Some(event) => _ = events.insert(id, event),
                None => missing.push(id),
            }
        }
    }
    if !missing.is_empty() {
        let rows = store::find_all(reader, missing).await?;
        events.extend(complete(app, reader, changes, rows, now).await?.into_iter().map(|event| (event.row.id, event)));
    }
    Ok(Loaded { changes: Some(changes), events })
}

/// Adds the related data to rows that were read at this value of the `event_changes` counter. Caches the events that were read before.
async fn complete(
    app: &App,
    reader: &mut Reader,
    changes: i64,
    rows: Vec<EventRow>,
    now: Timestamp,
) -> Result<Vec<EventWithRelations>> {
    let mut relations = app.event_cache.versions.lock().get_mut(&changes).relations.of(&rows);
    let missing = relations.load_missing(app, reader, &rows).await?;
    relations.merge(missing.clone());
    let events = view::complete(reader, rows, &relations, now).await?;
    let mut version_cache = app.event_cache.versions.lock();
    version_cache.reserve(&changes, missing.weight()).relations.merge(missing);
    for event in &events {
        if version_cache.get_mut(&changes).read_once.contains(&event.row.id) {
            version_cache.reserve(&changes, event.weight()).events.insert(event.row.id, event.clone());
        } else {
            version_cache.reserve(&changes, size_of::<Id>()).read_once.insert(event.row.id);
        }
    }
    Ok(events)
}

/// Events with their sizes, at one value of the `event_changes` counter.
pub struct SizedEvents {
    /// The value of the counter.
    pub changes: i64,
    pub events: HashMap<Id, SizedEvent>,
}

/// An event with its size in a page, in bytes.
pub struct SizedEvent {
    pub event: EventWithRelations,
    pub bytes: i64,
}

/// Returns the current state of these distinct events, as many as have at most `max_bytes` together. Returns `None` if the
/// `event_changes` counter has changed since the events were cached, or meanwhile.
pub async fn load_sized(
    app: &App,
    reader: &mut Reader,
    ids: &[Id],
    now: Timestamp,
    max_bytes: i64,
) -> Result<Option<SizedEvents>> {
    let (cached_version, mut cached) = app.event_cache.sized_events(ids);
    let missing: Vec<Id> = ids.iter().copied().filter(|id| !cached.contains_key(id)).collect();
    let counts =
        if cached.is_empty() { Vec::new() } else { cache_store::section_counts(reader, cached.keys().copied(), now).await? };
    let mut rows = if missing.is_empty() { Vec::new() } else { cache_store::find_all_sized(reader, missing).await? };
    let versions = [counts.first().map(|count| count.changes), rows.first().map(|row| row.changes)];
    let changes = match versions.into_iter().flatten().next_back() {
        Some(changes) => changes,
        None => cache_store::change_counter(reader).await?,
    };
    let is_outdated = !cached.is_empty() && cached_version != Some(changes);
    if is_outdated || versions.into_iter().flatten().any(|version| version != changes) {
        app.event_cache.versions.lock().get_mut(&changes);
        return Ok(None);
    }
    let mut bytes: i64 = cached.values().map(|cached| cached.bytes).sum();
    rows.retain(|row| {
        bytes += row.bytes;
        bytes <= max_bytes
    });
    let sizes: HashMap<Id, i64> = rows.iter().map(|row| (row.event.id, row.bytes)).collect();
    let loaded = complete(app, reader, changes, rows.into_iter().map(|row| row.event).collect(), now).await?;
    {
        let mut version_cache = app.event_cache.versions.lock();
        for (id, bytes) in &sizes {
            if version_cache.get_mut(&changes).events.contains_key(id) {
                version_cache.reserve(&changes, size_of::<(Id, i64)>()).sizes.insert(*id, *bytes);
            }
        }
    }
    let sized = |event: EventWithRelations| (event.row.id, SizedEvent { bytes: sizes[&event.row.id], event });
    let mut events: HashMap<Id, SizedEvent> = loaded.into_iter().map(sized).collect();
    for counts in counts.chunk_by(|one, other| one.event_id == other.event_id) {
        let cached = counts.first().and_then(|count| cached.remove_entry(&count.event_id));
        if let Some((id, mut cached)) = cached
            && cached.event.apply_counts(counts)
        {
            events.insert(id, cached);
        }
    }
    Ok(Some(SizedEvents { changes, events }))
}
