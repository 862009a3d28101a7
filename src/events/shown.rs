//! What many ask for at the same time, above all while tickets go on sale: it is read and written down once for all of them, and
//! of what only hosts and staff change nothing is read again until they have.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;

use super::model::{Event, EventRow};
use super::requests::{EventSort, PublishedEventQuery};
use super::store::{CountRow, Narrowing};
use super::view::{self, FullEvent};
use super::{service, store};
use crate::app::App;
use crate::auth::Caller;
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::base::paging::Page;
use crate::db::{Batches, Remembered, Snapshot, Tx};
use crate::error::{Error, Result};
use crate::http::Written;
use crate::sections::{self, SectionRow};

/// Those who are told of events or of a list at a time, at the most.
const BATCH: usize = 100;
/// How much is remembered at the most, in bytes: for how events are counted, and for how they are shown.
const REMEMBERED: usize = 16 << 20;

/// An event, and what is answered to whoever may see it.
struct Shown {
    row: EventRow,
    written: Written<Event>,
    /// When it is shown like this, unless it is changed.
    lasts: Range<Timestamp>,
}

/// The events and lists that are being read, and what is known of those that were.
pub struct OnShow {
    events: Arc<Batches<(), Id, Option<Arc<Shown>>>>,
    published: Arc<Batches<PublishedEventQuery, (), Written<Page<Event>>>>,
    known: Mutex<Known>,
    latest: Mutex<Latest>,
}

/// Events as they were shown to callers whose keys were looked up in one snapshot of the database. Nothing has been changed when the
/// next caller's is the same, so that nothing needs to be asked for. While tickets are sold it hardly ever is. What is learned may be
/// newer than the snapshot, but then no later caller has that one.
type Latest = Remembered<Arc<Snapshot>, HashMap<Id, Arc<Shown>>>;

/// Events, and pages of those published, as they are for as long as the database has counted so many changes by hosts and staff. It
/// is asked for that count, and for all that buyers change, before any of them is shown: so nothing is that is out of date,
/// whichever server has changed it.
type Known = Remembered<i64, Counted>;

#[derive(Default)]
struct Counted {
    events: HashMap<Id, FullEvent>,
    pages: HashMap<PublishedEventQuery, Arc<Listing>>,
}

/// A page of the published events.
struct Listing {
    changes: i64,
    total: i64,
    events: Vec<Id>,
}

impl Default for OnShow {
    fn default() -> Self {
        Self {
            events: Batches::of(BATCH),
            published: Batches::of(BATCH),
            known: Mutex::new(Remembered::of(REMEMBERED)),
            latest: Mutex::new(Remembered::of(REMEMBERED)),
        }
    }
}

impl OnShow {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    /// The event that is counted here; `None` where it isn't known, or has other sections by now.
    fn event(&self, id: Id, counts: &[CountRow]) -> Option<FullEvent> {
        let mut event = self.events.get(&id)?.clone();
        event.count(counts).then_some(event)
    }
}

impl Shown {
    /// About how much memory it takes, in bytes.
    fn weight(&self) -> usize {
        size_of_val(self) + texts(&self.row) + self.written.size()
    }
}

/// How long the longest texts of an event are, in bytes: all else is small.
fn texts(row: &EventRow) -> usize {
    row.description.len() + row.disclaimer.len()
}

impl FullEvent {
    /// Takes what buyers have changed from its counts; tells whether these are of the sections that it has.
    fn count(&mut self, counts: &[CountRow]) -> bool {
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
    fn lasts_until(&self, now: Timestamp) -> Timestamp {
        let until = |section: &SectionRow| if section.reserved == 0 { sections::expiry(section, now) } else { now };
        self.sections.iter().map(until).min().unwrap_or(Timestamp::NEVER)
    }

    /// About how much memory it takes, in bytes.
    fn weight(&self) -> usize {
        let sections = self.sections.iter().map(|section| size_of_val(section) + section.description.len());
        size_of_val(self) + texts(&self.row) + sections.sum::<usize>()
    }
}

/// An event, for who may see it.
pub async fn get(app: &Arc<App>, caller: &Caller, id: Id) -> Result<Written<Event>> {
    let latest = app.on_show.latest().at(&caller.snapshot).get(&id).cloned();
    let now = app.clock.now();
    let shown = match latest.filter(|shown| shown.lasts.contains(&now)) {
        Some(shown) => shown,
        None => {
            let reading = Arc::clone(app);
            let shown = app.on_show.events.join((), id, move |(), ids| read_events(Arc::clone(&reading), ids)).await?;
            let shown = shown.ok_or(Error::NOT_FOUND)?;
            app.on_show.latest().with_room(&caller.snapshot, shown.weight()).insert(id, Arc::clone(&shown));
            shown
        }
    };
    if !service::is_for_all(caller, &shown.row) {
        // Boxed, as all that few requests come to.
        async { service::require_visible(&mut app.db.read().await?, caller, &shown.row).await }.boxed().await?;
    }
    Ok(shown.written.clone())
}

/// The published events, which are the same for everyone.
pub async fn list_published(app: &Arc<App>, query: PublishedEventQuery) -> Result<Written<Page<Event>>> {
    let reading = Arc::clone(app);
    let list = move |query, waiting: Vec<()>| {
        let app = Arc::clone(&reading);
        async move {
            let page = Written::new(&read_page(&app, query).await?)?;
            Ok(vec![page; waiting.len()])
        }
    };
    app.on_show.published.join(query, (), list).await
}

/// These events as they are shown, in this order.
async fn read_events(app: Arc<App>, ids: Vec<Id>) -> Result<Vec<Option<Arc<Shown>>>> {
    let now = app.clock.now();
    let events = load(&app, &mut app.db.read().await?, &ids, now).await?.events;
    let written = events.into_iter().map(|(id, event)| {
        let (row, lasts) = (event.row.clone(), now..event.lasts_until(now));
        Ok((id, Arc::new(Shown { row, written: Written::new(&view::view(&app, event, now)?)?, lasts })))
    });
    let shown: HashMap<Id, Arc<Shown>> = written.collect::<Result<_>>()?;
    Ok(ids.iter().map(|id| shown.get(id).cloned()).collect())
}

async fn read_page(app: &App, query: PublishedEventQuery) -> Result<Page<Event>> {
    let (now, paging) = (app.clock.now(), query.filter.paging);
    let mut tx = app.db.read().await?;
    let known = app.on_show.known().things().pages.get(&query).cloned();
    if let Some(page) = known {
        let mut found = load(app, &mut tx, &page.events, now).await?;
        if found.changes == Some(page.changes) {
            let events = page.events.iter().filter_map(|id| found.events.remove(id));
            return Ok(paging.page(page.total, events.map(|event| view::view(app, event, now)).collect::<Result<_>>()?));
        }
    }
    let changes = store::count_changes(&mut tx).await?;
    let narrowing =
        Narrowing { shown: store::Shown::Published, host: query.host.as_ref().map(|host| host.id), status: None, public: None };
    let found = store::list(&mut tx, &query.filter, narrowing, now).await?;
    if is_lasting(&query) && !found.rows.is_empty() {
        let page = Listing { changes, total: found.total, events: found.rows.iter().map(|row| row.id).collect() };
        let weight = size_of_val(&query) + size_of_val(&page) + size_of_val(page.events.as_slice());
        app.on_show.known().with_room(&changes, weight).pages.insert(query, Arc::new(page));
    }
    Ok(paging.page(found.total, view::views(app, &mut tx, found.rows).await?))
}

/// Whether hosts and staff alone change what is listed: neither time nor sales do, nor what isn't counted, a new section.
fn is_lasting(query: &PublishedEventQuery) -> bool {
    let filter = &query.filter;
    filter.active.is_none() && filter.section.is_none() && filter.sort != Some(EventSort::Popularity)
}

/// Events that were asked for, as they are now.
struct Found {
    /// How many changes had been counted; `None` where none of them was found.
    changes: Option<i64>,
    events: HashMap<Id, FullEvent>,
}

async fn load(app: &App, tx: &mut Tx, ids: &[Id], now: Timestamp) -> Result<Found> {
    let counts = store::counts(tx, ids.iter().copied(), now).await?;
    let Some(changes) = counts.first().map(|count| count.changes) else {
        return Ok(Found { changes: None, events: HashMap::new() });
    };
    let (mut events, mut unknown) = (HashMap::new(), Vec::new());
    {
        let mut known = app.on_show.known();
        let known = known.at(&changes);
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
            let mut known = app.on_show.known();
            for event in &loaded {
                known.with_room(&changes, event.weight()).events.insert(event.row.id, event.clone());
            }
        }
        events.extend(loaded.into_iter().map(|event| (event.row.id, event)));
    }
    Ok(Found { changes: Some(changes), events })
}
