//! Cache of events and of pages of published events, for the load when tickets go on sale. Data that only hosts and platform
//! administrators change is read again only after they have changed it. `cached_reads` has the reads of requests.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use boxoffice_http::error::Result;
use boxoffice_http::traces::Span;
use parking_lot::Mutex;

use super::cache_store::{self, SectionCounts};
use super::model::{Event, EventRow};
use super::published_search::PublishedSearch;
use super::requests::PublishedEventQuery;
use super::store;
use super::view::{self, EventRelations, EventWithRelations};
use crate::features::catalog::sections::{self, SectionRow};
use crate::kernel::db::{Batcher, DbVersion, Reader, VersionedCache};
use crate::kernel::http::SerializedJson;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::App;

/// Maximum number of events in a batch. An event with its sections may have 2 MiB.
const MAX_EVENTS: usize = 16;
/// Maximum number of requests for a page in a batch.
const MAX_BATCH: usize = 100;
/// Capacity of each of the two caches in bytes.
const CACHE_CAPACITY: usize = 16 << 20;

/// An event and its serialized representation.
pub struct CachedEvent {
    pub row: EventRow,
    pub serialized: SerializedJson<Event>,
    /// Period in which the representation is up to date, unless the event is changed.
    pub validity: Range<Timestamp>,
}

/// The identifier of an event that a request reads, and the request's span.
pub type EventRead = (Id, Span);

/// Batches of concurrent reads of events and lists, and two levels of cached results.
pub struct EventCache {
    pub(super) events: Arc<Batcher<(), EventRead, Option<Arc<CachedEvent>>>>,
    pub(super) published: Arc<Batcher<PublishedListKey, Span, SerializedJson<Page<Event>>>>,
    /// Searches of published events.
    pub search: PublishedSearch,
    versions: Mutex<VersionCache>,
    pub(super) serialized: Mutex<SerializedCache>,
}

/// First-level cache: serialized events, for the version of the database that was read during authentication. If the next
/// caller's key was looked up in the same version, nothing was committed in between, and the event is returned without a query.
/// While tickets are sold, this is rare. An event may be newer than its version, but then no later caller has the same version.
type SerializedCache = VersionedCache<Arc<DbVersion>, HashMap<Id, Arc<CachedEvent>>>;

/// Second-level cache: events and pages of published events, valid for one value of the `event_changes` counter, which each change by a
/// host or a platform administrator changes, on PostgreSQL to a random value. Each read loads the counter, and everything that buyers
/// change, before it uses the cache. So nothing out of date is returned, whichever server made a change.
type VersionCache = VersionedCache<i64, VersionedEvents>;

#[derive(Default)]
struct VersionedEvents {
    events: HashMap<Id, EventWithRelations>,
    /// Events that were read once. They are cached when they are read again: most of the events that searches find are not.
    read_once: HashSet<Id>,
    /// Sizes of cached events in a page, in bytes, if searches have found them.
    sizes: HashMap<Id, i64>,
    relations: EventRelations,
    pages: HashMap<PublishedListKey, Arc<CachedPage>>,
}

/// The arguments of a list of published events. Callers with the same arguments and preferred region share one list.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublishedListKey {
    pub query: PublishedEventQuery,
    /// Region whose events come first.
    pub preferred_region: Option<Id>,
}

/// A page of the published events.
pub struct CachedPage {
    pub changes: i64,
    /// Period in which time does not change it.
    pub validity: Range<Timestamp>,
    pub total: i64,
    /// Its size in bytes.
    pub bytes: i64,
    pub events: Vec<Id>,
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

    /// Returns a cached page.
    pub fn page(&self, key: &PublishedListKey) -> Option<Arc<CachedPage>> {
        self.versions.lock().entries().pages.get(key).cloned()
    }

    /// Caches a page.
    pub fn insert_page(&self, key: &PublishedListKey, page: CachedPage) {
        // An empty page has no event with which the counter is read.
        if !page.events.is_empty() {
            let weight = key.weight() + size_of_val(&page) + size_of_val(page.events.as_slice());
            self.versions.lock().reserve(&page.changes, weight).pages.insert(key.clone(), Arc::new(page));
        }
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
    pub fn weight(&self) -> usize {
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
    pub fn valid_until(&self, now: Timestamp) -> Timestamp {
        let until = |section: &SectionRow| if section.reserved == 0 { sections::next_change(section, now) } else { now };
        self.sections.iter().map(until).min().unwrap_or(Timestamp::NEVER)
    }

    /// Returns the approximate memory use in bytes.
    fn weight(&self) -> usize {
        let sections = self.sections.iter().map(|section| size_of_val(section) + section.description.len());
        size_of_val(self) + text_size(&self.row) + sections.sum::<usize>()
    }
}

/// Current state of the requested events.
pub struct Loaded {
    /// Value of the `event_changes` counter; `None` if none of the events was found.
    pub changes: Option<i64>,
    pub events: HashMap<Id, EventWithRelations>,
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

/// Returns the current state of these events. Those that don't exist are left out.
pub async fn load(app: &App, reader: &mut Reader, ids: &[Id], now: Timestamp) -> Result<Loaded> {
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
