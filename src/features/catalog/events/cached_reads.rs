//! Reads of an event and of pages of published events. Concurrent requests for the same one share a read and a serialization.

use std::collections::HashMap;
use std::sync::Arc;

use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use futures::FutureExt;

use super::cache::{self, CachedEvent, CachedPage, EventRead, PublishedListKey};
use super::list_store::{self, EventListFilter, EventVisibility};
use super::model::Event;
use super::published_search::{self, FirstPage};
use super::requests::{EventSort, PublishedEventQuery};
use super::search::Search;
use super::{cache_store, permissions, view};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, permit_page, read_from_standby};
use crate::kernel::http::SerializedJson;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PagedRows};
use crate::kernel::unit_of_work::UnitOfWork;
use crate::state::{App, Ctx};

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
    if !permissions::is_public_for(caller, &event.row) {
        // Boxed to keep this future small, because few requests take this path.
        async { permissions::require_visible(&mut ctx.unit.read().await?, caller, &event.row).await }.boxed().await?;
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
    let events = cache::load(&app, &mut app.db.read().await?.traced(&span), &ids, now).await?.events;
    let cached = events.into_iter().map(|(id, event)| {
        let (row, validity) = (event.row.clone(), now..event.valid_until(now));
        Ok((id, Arc::new(CachedEvent { row, serialized: SerializedJson::new(&view::view(&app, event, now)?)?, validity })))
    });
    let cached: HashMap<Id, Arc<CachedEvent>> = cached.collect::<Result<_>>()?;
    Ok(ids.iter().map(|id| cached.get(id).cloned()).collect())
}

/// Returns a page from the cache, from the events in memory, or from the database.
async fn read_page(app: &Arc<App>, span: Span, key: &PublishedListKey, search: Option<&Search>) -> Result<Page<Event>> {
    let cached = app.event_cache.page(key);
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
                app.event_cache.insert_page(key, CachedPage { changes, validity, total, bytes, events: found.first });
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
    let mut loaded = cache::load(app, reader, &page.events, now).await?;
    if loaded.changes != Some(page.changes) {
        return Ok(None);
    }
    let events = page.events.iter().filter_map(|id| loaded.events.remove(id));
    let events = events.map(|event| view::view(app, event, now)).collect::<Result<_>>()?;
    Ok(Some(key.query.filter.paging.page(page.total, events)))
}

/// Reads a page from the database.
async fn list_page(app: &App, reader: &mut Reader, key: &PublishedListKey, search: Option<&Search>) -> Result<Page<Event>> {
    let (now, query) = (app.clock.now(), &key.query);
    let changes = cache_store::change_counter(reader).await?;
    let list_filter = EventListFilter {
        host: query.host.as_ref().map(|host| host.id),
        preferred_region: key.preferred_region,
        finder: Some(&query.finder),
        search: search.cloned(),
        ..EventListFilter::of(EventVisibility::Published)
    };
    let PagedRows { rows, total, bytes, permit: _permit, .. } =
        list_store::list(reader, &query.filter, &list_filter, now).await?;
    // Sales change a list by popularity.
    if query.filter.sort != Some(EventSort::Popularity) {
        let depends_on_time = query.finder.active(&query.filter).is_some();
        let end = if depends_on_time { list_store::next_end(reader, now).await? } else { None };
        let events = rows.iter().map(|row| row.id).collect();
        app.event_cache
            .insert_page(key, CachedPage { changes, validity: now..end.unwrap_or(Timestamp::NEVER), total, bytes, events });
    }
    Ok(query.filter.paging.page(total, view::views(app, reader, rows).await?))
}
