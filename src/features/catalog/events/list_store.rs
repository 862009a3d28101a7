//! SQL of lists of events.

use boxoffice_http::error::Result;

use super::model::{EventRow, EventStatus};
use super::requests::{EventFilter, EventFinder, EventSort};
use super::search::Search;
use super::store::{bytes_sql, columns};
use crate::features::catalog::categories;
use crate::features::catalog::sections::{self, SectionUri};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Statement, list_count_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

/// Set of events that a list may include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventVisibility {
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

impl EventVisibility {
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
pub struct EventListFilter<'a> {
    pub visibility: EventVisibility,
    pub host: Option<Id>,
    pub status: Option<EventStatus>,
    pub public: Option<bool>,
    /// Region whose events come first, unless the filter has a sort key.
    pub preferred_region: Option<Id>,
    pub finder: Option<&'a EventFinder>,
    /// The words of the finder's search.
    pub search: Option<Search>,
}

impl EventListFilter<'_> {
    /// Returns the filter of all events that a list may include.
    pub fn of(visibility: EventVisibility) -> Self {
        Self { visibility, host: None, status: None, public: None, preferred_region: None, finder: None, search: None }
    }
}

/// Title for filters and sorting. A server of an earlier version doesn't write the column, so it may be null.
const FOLDED_TITLE: &str = "coalesce(e.folded_title, lower(e.title))";

/// Returns a page of events, the oldest first, or sorted by the filter's sort key. Without a sort key, those in the preferred
/// region precede the others, and those found by a search are sorted by the field with its words, then by their start. Events
/// without a value of the sort key come last, and ties are the oldest first.
pub async fn list(
    reader: &mut Reader,
    filter: &EventFilter,
    list_filter: &EventListFilter<'_>,
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
    let is_postgres = reader.is_postgres();
    let finder = list_filter.finder;
    let category = finder.and_then(|finder| finder.category.as_ref()).map(|category| category.id);
    let subcategories = match finder.and_then(|finder| finder.subcategory.as_deref()) {
        Some(name) => Some(categories::find_subcategories(reader, category, name).await?),
        None => None,
    };
    let active = finder.map_or(filter.active, |finder| finder.active(filter));
    let select = from_found_events(reader, list_filter.search.as_ref()).and_where("e.host_id = ?", list_filter.host);
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
        .and_where("e.category_id = ?", category)
        .and_where("e.venue_id = ?", finder.and_then(|finder| finder.venue.as_ref()).map(|venue| venue.id))
        .and_where(
            "e.id in (select t.event_id from event_tags t where t.tag = ?)",
            finder.and_then(|finder| finder.tag.as_deref()).map(fold),
        )
        .and_where("e.starts >= ?", finder.and_then(|finder| finder.period.start()))
        .and_where("e.starts < ?", finder.and_then(|finder| finder.period.end()));
    let select = match subcategories {
        Some(names) => select.and_in("e.subcategory", names),
        None => select,
    };
    let select = filter_by_section(select, filter.section.as_deref());
    // A search would be executed twice.
    let is_sorted_at_once = order == "e.id" || list_filter.search.is_some();
    let select = if is_sorted_at_once { select } else { select.sort_by_id("e.id") };
    select.sized_page(&order, &bytes_sql(), filter.paging).await
}

/// Begins the list of events: all of them, or those that a search finds. `found.field_rank` is 0 for an event whose title has all
/// words, 1 if title and tags have them, and 2 otherwise.
fn from_found_events<'a>(reader: &'a mut Reader, search: Option<&Search>) -> Statement<'a> {
    // The joins are cross joins so that SQLite begins with the full-text index, of which it has no statistics.
    const FOUND_BY_SQLITE: &str = " from event_search w where w.event_search match 'words : (' || ? || ')') found";
    const FOUND_BY_POSTGRES: &str =
        " from event_words w where array_to_tsvector(string_to_array(w.words, ' ')) @@ ?::tsquery) found";

    let Some(search) = search else { return reader.list(columns!(), "from events e where true") };
    let (event_id, position, found, words) = if reader.is_postgres() {
        ("w.event_id", "strpos", FOUND_BY_POSTGRES, search.to_tsquery())
    } else {
        ("w.rowid", "instr", FOUND_BY_SQLITE, search.to_fts5())
    };
    let mut select = reader.list(columns!(), &format!("from (select {event_id} as event_id, case"));
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
pub async fn next_end(reader: &mut Reader, now: Timestamp) -> Result<Option<Timestamp>> {
    reader.query("select min(ends) from events where status = 'Listed' and ends > $1").bind(now).scalar().await
}

/// Adds the condition for `visibility`.
fn visibility_clause(select: Statement<'_>, visibility: EventVisibility, is_postgres: bool) -> Statement<'_> {
    const OPEN: &str = "e.status in ('Listed', 'Cancelled')";
    match visibility {
        EventVisibility::Published => select.push(" and e.status = 'Listed' and e.public = true"),
        EventVisibility::Open => select.push(&format!(" and {OPEN}")),
        EventVisibility::OpenOrAdministered(account) => select.and_where(
            &format!("({OPEN} or e.host_id in (select m.host_id from host_administrators m where m.account_id = ?))"),
            Some(account),
        ),
        EventVisibility::All => select,
        EventVisibility::HeldBy(account) => select.and_where(&held_sql(is_postgres), Some(account)),
    }
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
fn push_total<'a>(
    select: Statement<'a>,
    EventListFilter { visibility, host, search, .. }: &EventListFilter<'_>,
) -> Statement<'a> {
    if search.is_some() || matches!(visibility, EventVisibility::Published | EventVisibility::HeldBy(_)) {
        return select;
    }
    let select = match host {
        Some(host) => select.push_list_count("open events of host", *host),
        None => select.push_list_count("open events", Id(0)),
    };
    match (visibility, host) {
        (EventVisibility::All, Some(host)) => select.push_list_count("closed events of host", *host),
        (EventVisibility::All, None) => select.push_list_count("closed events", Id(0)),
        (EventVisibility::OpenOrAdministered(account), host) => {
            let of_host = list_count_sql("closed events of host", "m.host_id");
            let administered =
                format!(" + coalesce((select cast(sum({of_host}) as bigint) from host_administrators m where m.account_id = ?");
            match host {
                Some(host) => select.push_total(&administered, *account).push_total(" and m.host_id = ?), 0)", *host),
                None => select.push_total(&format!("{administered}), 0)"), *account),
            }
        }
        (EventVisibility::Open | EventVisibility::Published | EventVisibility::HeldBy(_), _) => select,
    }
}

/// Adds a filter by section: its identifier, either of its URIs, or its name. The identifier can be part of the SQL text, because it
/// is a number.
fn filter_by_section<'a>(select: Statement<'a>, section: Option<&str>) -> Statement<'a> {
    let Some(text) = section else { return select };
    let uri = SectionUri::parse(text);
    let id = uri.map(|uri| uri.section).or_else(|| Id::parse(text)).unwrap_or(Id::NONE);
    let name = sections::FOLDED_NAME;
    let condition = format!("exists (select 1 from sections s where s.event_id = e.id and (s.id = {} or {name} = ?))", id.0);
    select.and_where(&condition, Some(fold(text))).and_where("e.id = ?", uri.and_then(|uri| uri.event))
}
