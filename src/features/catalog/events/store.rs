//! SQL of events.

use boxoffice_http::error::Result;

use super::model::{EventRow, EventStatus};
use super::requests::{EventFilter, EventFinder, EventSort};
use super::search::Search;
use super::search_index;
use crate::features::catalog::sections::{self, SectionUri};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Query, Statement, Tx, list_count_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

/// The columns of [`EventRow`].
macro_rules! columns {
    () => {
        "id, host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts, ends, \
         admission_from, disclaimer, tags, banner_id, thumbnail_id, published, revised, popularity"
    };
}

/// Set of events that a list may include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// Listed events that are open to the public, for every caller.
    Published,
    /// Listed and cancelled events, which every caller may see.
    Open,
    /// The same, and all events of the hosts that this account administers.
    OpenOrAdministered(Id),
    /// All events, for platform administrators, and in a list of a host's events for its administrators.
    All,
    /// Events for which this account has tickets that are not void, whatever their status.
    HeldBy(Id),
}

impl Visibility {
    /// Returns the events that a caller may see.
    pub fn to(caller: &Caller) -> Self {
        match caller.account {
            _ if caller.is_administrator() => Self::All,
            Some(account) => Self::OpenOrAdministered(account),
            None => Self::Open,
        }
    }
}

/// Filters of a list in addition to [`EventFilter`].
#[derive(Debug)]
pub struct ListFilter<'a> {
    pub visibility: Visibility,
    pub host: Option<Id>,
    pub status: Option<EventStatus>,
    pub public: Option<bool>,
    /// Region whose events come first, unless the filter has a sort key.
    pub preferred_region: Option<Id>,
    pub finder: Option<&'a EventFinder>,
    /// The words of the finder's search.
    pub search: Option<Search>,
}

impl ListFilter<'_> {
    /// Returns the filter of all events that a list may include.
    pub fn of(visibility: Visibility) -> Self {
        Self { visibility, host: None, status: None, public: None, preferred_region: None, finder: None, search: None }
    }
}

/// Title for filters and sorting. A server of an earlier version doesn't write the column, so it may be null.
const FOLDED_TITLE: &str = "coalesce(e.folded_title, lower(e.title))";

/// Returns a page of events, the oldest first, or sorted by the filter's sort key. Without a sort key, those in the preferred
/// region precede the others, and those found by a search are sorted by the field with its words, then by their start. Events
/// without a value of the sort key come last, and ties are the oldest first.
pub async fn list(
    tx: &mut Tx,
    filter: &EventFilter,
    list_filter: &ListFilter<'_>,
    now: Timestamp,
) -> Result<PagedRows<EventRow>> {
    let direction = filter.order.sql();
    let order = match filter.sort {
        None => {
            // The identifier can be part of the SQL text, because it is a number.
            let by_region = |Id(region)| format!("e.venue_id not in (select v.id from venues v where v.region_id = {region}), ");
            let by_rank = if list_filter.search.is_some() { "found.field_rank, e.starts, " } else { "" };
            format!("{}{by_rank}e.id", list_filter.preferred_region.map(by_region).unwrap_or_default())
        }
        Some(EventSort::Alphabetical) => format!("{FOLDED_TITLE}{direction}, e.id"),
        Some(EventSort::Published) => format!("e.published is null, e.published{direction}, e.id"),
        Some(EventSort::Popularity) => format!("e.popularity{direction}, e.id"),
        Some(EventSort::Start) => format!("e.starts{direction}, e.id"),
    };
    let is_postgres = tx.is_postgres();
    let finder = list_filter.finder;
    let active = finder.map_or(filter.active, |finder| finder.active(filter));
    let select = from_found_events(tx, list_filter.search.as_ref()).and_where("e.host_id = ?", list_filter.host);
    let select = push_total(visibility_clause(select, list_filter.visibility, is_postgres), list_filter)
        .and_where(
            "e.venue_id in (select v.id from venues v where v.region_id = ?)",
            filter.region.as_ref().map(|region| region.id),
        )
        .and_contains(FOLDED_TITLE, filter.title.as_deref())
        .and_where("e.status = ?", list_filter.status)
        .and_where("e.ends > ?", (active == Some(true)).then_some(now))
        .and_where("e.ends <= ?", (active == Some(false)).then_some(now))
        .and_where("e.public = ?", list_filter.public)
        .and_where("e.category_id = ?", finder.and_then(|finder| finder.category.as_ref()).map(|category| category.id))
        .and_where("e.subcategory = ?", finder.and_then(|finder| finder.subcategory.clone()))
        .and_where("e.venue_id = ?", finder.and_then(|finder| finder.venue.as_ref()).map(|venue| venue.id))
        .and_where(
            "e.id in (select t.event_id from event_tags t where t.tag = ?)",
            finder.and_then(|finder| finder.tag.as_deref()).map(fold),
        )
        .and_where("e.starts >= ?", finder.and_then(|finder| finder.period.start()))
        .and_where("e.starts < ?", finder.and_then(|finder| finder.period.end()));
    let select = filter_by_section(select, filter.section.as_deref());
    // A search would be executed twice.
    let is_sorted_at_once = order == "e.id" || list_filter.search.is_some();
    let select = if is_sorted_at_once { select } else { select.sort_by_id("e.id") };
    select.sized_page(&order, &bytes_sql(), filter.paging).await
}

/// Begins the list of events: all of them, or those that a search finds. `found.field_rank` is 0 for an event whose title has all
/// words, 1 if title and tags have them, and 2 otherwise.
fn from_found_events<'a>(tx: &'a mut Tx, search: Option<&Search>) -> Statement<'a> {
    // The joins are cross joins so that SQLite begins with the full-text index, of which it has no statistics.
    const FOUND_BY_SQLITE: &str = " from event_search w where w.event_search match 'words : (' || ? || ')') found";
    const FOUND_BY_POSTGRES: &str =
        " from event_words w where array_to_tsvector(string_to_array(w.words, ' ')) @@ ?::tsquery) found";

    let Some(search) = search else { return tx.list(columns!(), "from events e where true") };
    let (event_id, position, found, words) = if tx.is_postgres() {
        ("w.event_id", "strpos", FOUND_BY_POSTGRES, search.to_tsquery())
    } else {
        ("w.rowid", "instr", FOUND_BY_SQLITE, search.to_fts5())
    };
    let mut select = tx.list(columns!(), &format!("from (select {event_id} as event_id, case"));
    for (rank, column) in [(0, "title_words"), (1, "keywords")] {
        select = select.push(" when true");
        for substring in search.to_substrings() {
            select = select.push_bind(&format!(" and {position}(' ' || w.{column} || ' ', ?) > 0"), substring);
        }
        select = select.push(&format!(" then {rank}"));
    }
    select.push(" else 2 end as field_rank").push_bind(found, words).push(" cross join events e where e.id = found.event_id")
}

/// Returns the next end of a listed event, which changes the lists by whether events have ended.
pub async fn next_end(tx: &mut Tx, now: Timestamp) -> Result<Option<Timestamp>> {
    tx.query("select min(ends) from events where status = 'Listed' and ends > $1").bind(now).scalar().await
}

/// Returns the SQL expression for the size of an event `e` in a page, in bytes: with its sections, and its category's
/// subcategories.
pub fn bytes_sql() -> String {
    format!(
        "(4000 + octet_length(e.title) + octet_length(e.description) + octet_length(e.disclaimer) + octet_length(e.tags)
          + coalesce((select sum({}) from sections s where s.event_id = e.id), 0)
          + coalesce((select sum(4 + octet_length(c.name)) from subcategories c where c.category_id = e.category_id), 0))",
        sections::store::BYTES
    )
}

/// Adds the condition for `visibility`.
fn visibility_clause(select: Statement<'_>, visibility: Visibility, is_postgres: bool) -> Statement<'_> {
    const OPEN: &str = "e.status in ('Listed', 'Cancelled')";
    match visibility {
        Visibility::Published => select.push(" and e.status = 'Listed' and e.public = true"),
        Visibility::Open => select.push(&format!(" and {OPEN}")),
        Visibility::OpenOrAdministered(account) => select.and_where(
            &format!("({OPEN} or e.host_id in (select m.host_id from host_administrators m where m.account_id = ?))"),
            Some(account),
        ),
        Visibility::All => select,
        Visibility::HeldBy(account) => select.and_where(&held_sql(is_postgres), Some(account)),
    }
}

/// Returns whether an account has tickets for an event that are not void.
pub async fn is_holder(tx: &mut Tx, account: Id, event: Id) -> Result<bool> {
    let held = "select exists (select 1 from tickets where owner_id = $1 and event_id = $2 and status <> 'Void')";
    tx.query(held).bind(account).bind(event).scalar().await
}

/// Returns the SQL condition that an account has tickets for the event `e` that are not void, with `?` for the account.
///
/// Each step finds the next event in the index, whatever number of tickets the account has for the event before. By its statistics,
/// SQLite could read all tickets instead if most of them belong to few accounts.
fn held_sql(is_postgres: bool) -> String {
    let tickets = if is_postgres { "tickets t" } else { "tickets t indexed by tickets_owner_event" };
    format!(
        "e.id in (
         with recursive held (event_id) as (
             select min(t.event_id) from {tickets} where t.owner_id = ?
             union all select (select min(t.event_id) from {tickets} where t.owner_id = ? and t.event_id > held.event_id)
             from held where held.event_id is not null
         )
         select held.event_id from held where exists (select 1 from {tickets}
             where t.owner_id = ? and t.event_id = held.event_id and t.status <> 'Void'))"
    )
}

/// Adds the number of events that are visible to a caller. Found events, and those of other lists, are counted.
fn push_total<'a>(select: Statement<'a>, ListFilter { visibility, host, search, .. }: &ListFilter<'_>) -> Statement<'a> {
    if search.is_some() || matches!(visibility, Visibility::Published | Visibility::HeldBy(_)) {
        return select;
    }
    let select = match host {
        Some(host) => select.push_list_count("open events of host", *host),
        None => select.push_list_count("open events", Id(0)),
    };
    match (visibility, host) {
        (Visibility::All, Some(host)) => select.push_list_count("closed events of host", *host),
        (Visibility::All, None) => select.push_list_count("closed events", Id(0)),
        (Visibility::OpenOrAdministered(account), host) => {
            let of_host = list_count_sql("closed events of host", "m.host_id");
            let administered =
                format!(" + coalesce((select cast(sum({of_host}) as bigint) from host_administrators m where m.account_id = ?");
            match host {
                Some(host) => select.push_total(&administered, *account).push_total(" and m.host_id = ?), 0)", *host),
                None => select.push_total(&format!("{administered}), 0)"), *account),
            }
        }
        (Visibility::Open | Visibility::Published | Visibility::HeldBy(_), _) => select,
    }
}

/// Adds a filter by section: its identifier, either of its URIs, or its exact name. The identifier can be part of the SQL text,
/// because it is a number.
fn filter_by_section<'a>(select: Statement<'a>, section: Option<&str>) -> Statement<'a> {
    let Some(text) = section else { return select };
    let uri = SectionUri::parse(text);
    let id = uri.map(|uri| uri.section).or_else(|| Id::parse(text)).unwrap_or(Id::NONE);
    let condition = format!("exists (select 1 from sections s where s.event_id = e.id and (s.id = {} or s.name = ?))", id.0);
    select.and_where(&condition, Some(text.to_owned())).and_where("e.id = ?", uri.and_then(|uri| uri.event))
}

/// Returns an event, if it exists.
pub async fn find(tx: &mut Tx, id: Id) -> Result<Option<EventRow>> {
    tx.query(concat!("select ", columns!(), " from events where id = $1")).bind(id).optional().await
}

/// Returns the events with these identifiers.
pub async fn of_ids(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<Vec<EventRow>> {
    tx.select(concat!(columns!(), " from events where true")).and_in("id", ids).all().await
}

/// Counts of an event and one of its sections, which buyers change.
#[derive(sqlx_macros::FromRow)]
pub struct SectionCounts {
    /// Value of the `event_changes` counter: changes of events' representation by hosts and platform administrators.
    pub changes: i64,
    pub event_id: Id,
    pub popularity: i64,
    /// `None` in the only row of an event without sections.
    pub section_id: Option<Id>,
    pub sold: Option<i64>,
    pub waiting: Option<i64>,
    pub reserved: Option<i64>,
}

/// Returns the counts of these events, sorted by event, and the oldest section first. One statement reads the counts together
/// with the `event_changes` counter: nothing else in these events' representation has changed since the counter had another
/// value.
pub async fn section_counts(tx: &mut Tx, ids: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<Vec<SectionCounts>> {
    tx.select(
        "(select count from event_changes) as changes, e.id as event_id, e.popularity, s.id as section_id, s.sold, s.waiting, ",
    )
    .push_bind(sections::store::RESERVED, now)
    .push(" from events e left join sections s on s.event_id = e.id where true")
    .and_in("e.id", ids)
    .push(" order by e.id, s.id")
    .all()
    .await
}

/// Returns the `event_changes` counter: changes of events' representation by hosts and platform administrators.
pub async fn change_counter(tx: &mut Tx) -> Result<i64> {
    tx.query("select count from event_changes").scalar().await
}

/// An event with its size.
#[derive(sqlx_macros::FromRow)]
pub struct SizedEventRow {
    /// Value of the `event_changes` counter.
    pub changes: i64,
    /// The size of the event in a page.
    pub bytes: i64,
    #[sqlx(flatten)]
    pub event: EventRow,
}

/// Returns the events with these identifiers, with their sizes. One statement reads them together with the `event_changes` counter.
pub async fn sized_of_ids(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<Vec<SizedEventRow>> {
    let size = format!("(select count from event_changes) as changes, cast({} as bigint) as bytes, ", bytes_sql());
    tx.select(&size).push(concat!(columns!(), " from events e where true")).and_in("id", ids).all().await
}

/// Position in the changes of published events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCursor {
    /// The start of the server of PostgreSQL, or the timeline of a standby, which differ after a failover. It is empty for SQLite, and
    /// `None` before the first read.
    pub server: Option<String>,
    /// Position of the last change that was read.
    pub position: i64,
    /// Event with the last change that was read; several may have its position.
    pub event: Id,
}

impl Default for ChangeCursor {
    fn default() -> Self {
        Self { server: None, position: -1, event: Id::NONE }
    }
}

/// A changed event with its words, as it is now.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct PublishedChange {
    /// Value of the `event_changes` counter.
    pub changes: i64,
    /// Position of the last change of anything.
    pub last_position: i64,
    /// The server, as in [`ChangeCursor`].
    pub server: Option<String>,
    /// Position of the change; `None` if there is no change.
    pub position: Option<i64>,
    /// The changed event.
    pub event_id: Option<Id>,
    /// The start of the event; `None`, like all that follows, if it isn't published, or no words were written yet.
    pub starts: Option<Timestamp>,
    /// The end of the event.
    pub ends: Option<Timestamp>,
    /// The words of the title.
    pub title_words: Option<String>,
    /// The words of title and tags.
    pub keywords: Option<String>,
    /// The words of title, tags and description.
    pub words: Option<String>,
}

/// Returns the changes of published events after a position, at most `limit`. If there are none, returns a single row without one. One
/// statement reads them together with the `event_changes` counter: if there are fewer than `limit`, the events are those of its value.
pub async fn published_changes(tx: &mut Tx, after: &ChangeCursor, limit: i64) -> Result<Vec<PublishedChange>> {
    // Several standbys may share the address of one, so their starts don't count.
    const SERVER: &str = "case when pg_is_in_recovery() \
        then (select cast(greatest(c.timeline_id, r.min_recovery_end_timeline) as text) \
        from pg_control_checkpoint() c, pg_control_recovery() r) else cast(pg_postmaster_start_time() as text) end";
    let server = if tx.is_postgres() { SERVER } else { "''" };
    tx.select(&format!("c.count as changes, c.position as last_position, {server} as server, p.position, p.event_id, e.starts, e.ends, "))
        .push("w.title_words, w.keywords, w.words from event_changes c left join (select position, event_id from published_event_changes")
        .push_bind(" where (position, event_id) > (?, ", after.position)
        .push_bind("?) order by position, event_id", after.event)
        .push(&format!(" limit {limit}) p on true"))
        .push(" left join events e on e.id = p.event_id and e.status = 'Listed' and e.public = true")
        .push(" left join event_words w on w.event_id = e.id where true order by p.position, p.event_id")
        .all()
        .await
}

/// Locks and returns the event. The row includes all earlier changes; later changes by other transactions wait until this one
/// ends.
pub async fn lock(tx: &mut Tx, id: Id) -> Result<Option<EventRow>> {
    let event = tx.select(concat!(columns!(), " from events where true")).and_where("id = ?", Some(id));
    event.for_update().optional().await
}

/// Locks these events by ascending identifier until the transaction ends.
pub async fn lock_all(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<()> {
    tx.select("id from events where true").and_in("id", ids).for_update().lock().await
}

/// Returns whether another event has this title.
pub async fn is_title_taken(tx: &mut Tx, row: &EventRow) -> Result<bool> {
    let other = "select exists (select 1 from events where folded_title = $1 and id <> $2)";
    tx.query(other).bind(fold(&row.title)).bind(row.id).scalar().await
}

/// Inserts the event, and adds it to the search.
pub async fn insert(tx: &mut Tx, row: &EventRow) -> Result<()> {
    let insert = tx.query(
        "insert into events (id, title, description, type, public, category_id, subcategory, venue_id, starts, ends, disclaimer,
         tags, banner_id, thumbnail_id, folded_title, admission_from, host_id, status, published, popularity)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, null, 0)",
    );
    bind_properties(insert, row).bind(row.host_id).bind(row.status).execute().await?;
    search_index::write(tx, std::slice::from_ref(row)).await
}

/// Writes the columns that a host may change, and what the search finds the event by.
pub async fn update(tx: &mut Tx, row: &EventRow) -> Result<()> {
    let update = tx.query(
        "update events set title = $2, description = $3, type = $4, public = $5, category_id = $6, subcategory = $7,
         venue_id = $8, starts = $9, ends = $10, disclaimer = $11, tags = $12, banner_id = $13, thumbnail_id = $14,
         folded_title = case when title = $2 then folded_title else $15 end, admission_from = $16, revised = $17 where id = $1",
    );
    bind_properties(update, row).bind(row.revised).execute().await?;
    search_index::write(tx, std::slice::from_ref(row)).await
}

/// Binds the identifier and the columns that a host may change, which are `$1` to `$16` in both statements.
fn bind_properties<'a>(statement: Query<'a>, row: &EventRow) -> Query<'a> {
    statement
        .bind(row.id)
        .bind(row.title.clone())
        .bind(row.description.clone())
        .bind(row.kind.clone())
        .bind(row.public)
        .bind(row.category_id)
        .bind(row.subcategory.clone())
        .bind(row.venue_id)
        .bind(row.starts)
        .bind(row.ends)
        .bind(row.disclaimer.clone())
        .bind(row.tags.clone())
        .bind(row.banner_id)
        .bind(row.thumbnail_id)
        .bind(fold(&row.title))
        .bind(row.admission_from)
}

/// Changes the status from `from` to `to`. Returns false, and changes nothing, if the status isn't `from`. A listed event is
/// published now.
pub async fn transition(tx: &mut Tx, id: Id, from: EventStatus, to: EventStatus, now: Timestamp) -> Result<bool> {
    let update = "update events set status = $3, published = coalesce($4, published), revised = $5 where id = $1 and status = $2";
    let published = (to == EventStatus::Listed).then_some(now);
    Ok(tx.query(update).bind(id).bind(from).bind(to).bind(published).bind(now).rows_affected().await? == 1)
}

/// Returns whether an event has tickets, including void ones.
pub async fn has_tickets(tx: &mut Tx, id: Id) -> Result<bool> {
    tx.select("id from tickets where true").and_where("event_id = ?", Some(id)).push(" limit 1").exists().await
}

/// Returns whether somebody was admitted to an event.
pub async fn has_admissions(tx: &mut Tx, id: Id) -> Result<bool> {
    tx.select("id from admissions where true").and_where("event_id = ?", Some(id)).push(" limit 1").exists().await
}

/// Deletes the expired reservations of places in this event, whose sections are locked. Their counts stay, because the sections
/// are about to be deleted.
pub async fn delete_expired_reservations(tx: &mut Tx, id: Id, now: Timestamp) -> Result<()> {
    let delete = "delete from reservations where expires <= $2 and section_id in (select id from sections where event_id = $1)";
    tx.query(delete).bind(id).bind(now).execute().await
}

/// Deletes the event with its sections and admission tokens. Foreign keys reject this while there are tickets or reservations.
pub async fn delete(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from events where id = $1").bind(id).execute().await
}
