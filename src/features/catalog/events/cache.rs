//! What many ask for at the same time, above all while tickets go on sale: it is read and written down once for all of them, and
//! of what only hosts and staff change nothing is read again until they have.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;

use super::model::{Event, EventRow};
use super::requests::{EventSort, PublishedEventQuery};
use super::store::{ListFilter, SectionCounts};
use super::view::{self, EventWithRelations};
use super::{service, store};
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::kernel::db::{Batcher, DbVersion, Tx, VersionedCache};
use boxoffice_http::error::{Error, Result};
use crate::kernel::http::SerializedJson;
use crate::features::catalog::sections::{self, SectionRow};

/// Those who are told of events or of a list at a time, at the most.
const BATCH: usize = 100;
/// How much is remembered at the most, in bytes: for how events are counted, and for how they are shown.
const REMEMBERED: usize = 16 << 20;

/// An event, and what is answered to whoever may see it.
struct CachedEvent {
    row: EventRow,
    written: SerializedJson<Event>,
    /// When it is shown like this, unless it is changed.
    validity: Range<Timestamp>,
}

/// The events and lists that are being read, and what is known of those that were.
pub struct EventCache {
    events: Arc<Batcher<(), Id, Option<Arc<CachedEvent>>>>,
    published: Arc<Batcher<PublishedEventQuery, (), SerializedJson<Page<Event>>>>,
    known: Mutex<VersionCache>,
    latest: Mutex<SnapshotCache>,
}

/// Events as they were shown to callers whose keys were looked up in one snapshot of the database. Nothing has been changed when the
/// next caller's is the same, so that nothing needs to be asked for. While tickets are sold it hardly ever is. What is learned may be
/// newer than the snapshot, but then no later caller has that one.
type SnapshotCache = VersionedCache<Arc<DbVersion>, HashMap<Id, Arc<CachedEvent>>>;

/// Events, and pages of those published, as they are for as long as the database has counted so many changes by hosts and staff. It
/// is asked for that count, and for all that buyers change, before any of them is shown: so nothing is that is out of date,
/// whichever server has changed it.
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
    /// The event that is counted here; `None` where it isn't known, or has other sections by now.
    fn event(&self, id: Id, counts: &[SectionCounts]) -> Option<EventWithRelations> {
        let mut event = self.events.get(&id)?.clone();
        event.apply_counts(counts).then_some(event)
    }
}

impl CachedEvent {
    /// About how much memory it takes, in bytes.
    fn weight(&self) -> usize {
        size_of_val(self) + text_size(&self.row) + self.written.size()
    }
}

/// How long the longest texts of an event are, in bytes: all else is small.
fn text_size(row: &EventRow) -> usize {
    row.description.len() + row.disclaimer.len()
}

impl EventWithRelations {
    /// Takes what buyers have changed from its counts; tells whether these are of the sections that it has.
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

    /// Until when it is shown as it is now, unless it is changed. A reservation ends by itself, and when is not known here.
    fn valid_until(&self, now: Timestamp) -> Timestamp {
        let until = |section: &SectionRow| if section.reserved == 0 { sections::next_price_change(section, now) } else { now };
        self.sections.iter().map(until).min().unwrap_or(Timestamp::NEVER)
    }

    /// About how much memory it takes, in bytes.
    fn weight(&self) -> usize {
        let sections = self.sections.iter().map(|section| size_of_val(section) + section.description.len());
        size_of_val(self) + text_size(&self.row) + sections.sum::<usize>()
    }
}

/// An event, for who may see it.
pub async fn get(app: &Arc<App>, caller: &Caller, id: Id) -> Result<SerializedJson<Event>> {
    let latest = app.event_cache.latest().get_mut(&caller.snapshot).get(&id).cloned();
    let now = app.clock.now();
    let shown = match latest.filter(|shown| shown.validity.contains(&now)) {
        Some(shown) => shown,
        None => {
            let reading = Arc::clone(app);
            let shown = app.event_cache.events.submit((), id, move |(), ids| read_events(Arc::clone(&reading), ids)).await?;
            let shown = shown.ok_or(Error::NOT_FOUND)?;
            app.event_cache.latest().reserve(&caller.snapshot, shown.weight()).insert(id, Arc::clone(&shown));
            shown
        }
    };
    if !service::is_public_for(caller, &shown.row) {
        // Boxed, as all that few requests come to.
        async { service::require_visible(&mut app.db.read().await?, caller, &shown.row).await }.boxed().await?;
    }
    Ok(shown.written.clone())
}

/// The published events, which are the same for everyone.
pub async fn list_published(app: &Arc<App>, query: PublishedEventQuery) -> Result<SerializedJson<Page<Event>>> {
    let reading = Arc::clone(app);
    let list = move |query, waiting: Vec<()>| {
        let app = Arc::clone(&reading);
        async move {
            let page = SerializedJson::new(&read_page(&app, query).await?)?;
            Ok(vec![page; waiting.len()])
        }
    };
    app.event_cache.published.submit(query, (), list).await
}

/// These events as they are shown, in this order.
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

/// Whether hosts and staff alone change what is listed: neither time nor sales do, nor what isn't counted, a new section.
fn is_cacheable(query: &PublishedEventQuery) -> bool {
    let filter = &query.filter;
    filter.active.is_none() && filter.section.is_none() && filter.sort != Some(EventSort::Popularity)
}

/// Events that were asked for, as they are now.
struct Loaded {
    /// How many changes had been counted; `None` where none of them was found.
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
