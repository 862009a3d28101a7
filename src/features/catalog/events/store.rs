//! SQL queries for events.

use boxoffice_http::error::Result;

use super::model::{EventRow, EventStatus};
use super::requests::{EventFilter, EventSort};
use crate::features::catalog::sections::{self, SectionUri};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Statement, Tx};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

/// The columns of [`EventRow`]. A macro, because statements are literals.
macro_rules! columns {
    () => {
        "id, host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts, ends, \
         disclaimer, tags, banner_id, thumbnail_id, published, popularity"
    };
}

/// Set of events that a list may include.
#[derive(Debug)]
pub enum Visibility<'a> {
    /// Listed events that are open to the public, for every caller.
    Published,
    /// Events that this caller may see.
    To(&'a Caller),
    /// Events for which this account has tickets that are not void.
    HeldBy(Id),
}

/// Filters of a list in addition to [`EventFilter`].
#[derive(Debug)]
pub struct ListFilter<'a> {
    pub visibility: Visibility<'a>,
    pub host: Option<Id>,
    pub status: Option<EventStatus>,
    pub public: Option<bool>,
    /// Region whose events come first, unless the filter has a sort key.
    pub preferred_region: Option<Id>,
}

/// Title for searches and sorting. A server of an earlier version doesn't write the column, so it may be null.
const FOLDED_TITLE: &str = "coalesce(e.folded_title, lower(e.title))";

/// Returns a page of events, the oldest first, or sorted by the filter's sort key. Without a sort key, those in the preferred
/// region precede the others. Events without a value of the sort key come last, and ties are the oldest first.
pub async fn list(tx: &mut Tx, filter: &EventFilter, list_filter: ListFilter<'_>, now: Timestamp) -> Result<PagedRows<EventRow>> {
    let direction = filter.order.sql();
    let order = match filter.sort {
        // The identifier can be part of the SQL text, because it is a number.
        None => match list_filter.preferred_region {
            Some(Id(region)) => format!("e.venue_id not in (select v.id from venues v where v.region_id = {region}), e.id"),
            None => "e.id".to_owned(),
        },
        Some(EventSort::Alphabetical) => format!("{FOLDED_TITLE}{direction}, e.id"),
        Some(EventSort::Published) => format!("e.published is null, e.published{direction}, e.id"),
        Some(EventSort::Popularity) => format!("e.popularity{direction}, e.id"),
        Some(EventSort::Start) => format!("e.starts{direction}, e.id"),
    };
    let select = visibility_clause(tx.list(columns!(), "from events e where true"), &list_filter.visibility)
        .and_where(
            "e.venue_id in (select v.id from venues v where v.region_id = ?)",
            filter.region.as_ref().map(|region| region.id),
        )
        .and_where("e.host_id = ?", list_filter.host)
        .and_contains(FOLDED_TITLE, filter.title.as_deref())
        .and_where("e.status = ?", list_filter.status)
        .and_where("e.ends > ?", (filter.active == Some(true)).then_some(now))
        .and_where("e.ends <= ?", (filter.active == Some(false)).then_some(now))
        .and_where("e.public = ?", list_filter.public);
    filter_by_section(select, filter.section.as_deref()).sized_page(&order, &bytes_sql(), filter.paging).await
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

/// Adds the condition for `shown`. Listed and cancelled events are visible to every caller, all others to their host's
/// administrators and to platform administrators. A list of the events for which an account has tickets includes them whatever
/// their status.
fn visibility_clause<'a>(select: Statement<'a>, visibility: &Visibility<'_>) -> Statement<'a> {
    const OPEN: &str = "e.status in ('Listed', 'Cancelled')";
    const HELD: &str = "e.id in (select t.event_id from tickets t where t.owner_id = ? and t.status <> 'Void')";
    match visibility {
        Visibility::Published => select.push(" and e.status = 'Listed' and e.public = true"),
        Visibility::HeldBy(account) => select.and_where(HELD, Some(*account)),
        Visibility::To(caller) if caller.is_administrator() => select,
        Visibility::To(Caller { account: None, .. }) => select.push(&format!(" and {OPEN}")),
        Visibility::To(Caller { account, .. }) => select.and_where(
            &format!("({OPEN} or e.host_id in (select m.host_id from host_administrators m where m.account_id = ?))"),
            *account,
        ),
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
#[derive(sqlx::FromRow)]
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

/// Locks and returns the event. The row includes all earlier changes; later changes by other transactions wait until this one
/// ends.
pub async fn lock(tx: &mut Tx, id: Id) -> Result<Option<EventRow>> {
    tx.query(concat!("update events set title = title where id = $1 returning ", columns!())).bind(id).optional().await
}

/// Locks these events by ascending identifier until the transaction ends.
pub async fn lock_all(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<()> {
    let _locked: Vec<(Id,)> = tx.select("id from events where true").and_in("id", ids).for_update().all().await?;
    Ok(())
}

/// Returns whether another event has this title.
pub async fn is_title_taken(tx: &mut Tx, row: &EventRow) -> Result<bool> {
    let other = "select exists (select 1 from events where folded_title = $1 and id <> $2)";
    tx.query(other).bind(fold(&row.title)).bind(row.id).scalar().await
}

pub async fn insert(tx: &mut Tx, row: &EventRow) -> Result<()> {
    tx.query(
        "insert into events (id, host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts,
         ends, disclaimer, tags, banner_id, thumbnail_id, published, popularity, folded_title)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, null, 0, $17)",
    )
    .bind(row.id)
    .bind(row.host_id)
    .bind(row.title.clone())
    .bind(row.description.clone())
    .bind(row.status)
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
    .execute()
    .await?;
    Ok(())
}

/// Writes the columns that a host may change.
pub async fn update(tx: &mut Tx, row: &EventRow) -> Result<()> {
    tx.query(
        "update events set title = $2, description = $3, type = $4, public = $5, category_id = $6, subcategory = $7,
         venue_id = $8, starts = $9, ends = $10, disclaimer = $11, tags = $12, banner_id = $13, thumbnail_id = $14,
         folded_title = case when title = $2 then folded_title else $15 end where id = $1",
    )
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
    .execute()
    .await?;
    Ok(())
}

/// Changes the status from `from` to `to`. Returns false, and changes nothing, if the status isn't `from`. `published` is only
/// ever set, never cleared.
pub async fn transition(tx: &mut Tx, id: Id, from: EventStatus, to: EventStatus, published: Option<Timestamp>) -> Result<bool> {
    let update = "update events set status = $3, published = coalesce($4, published) where id = $1 and status = $2";
    Ok(tx.query(update).bind(id).bind(from).bind(to).bind(published).execute().await? == 1)
}

/// Deletes the expired reservations of places in this event, whose sections are locked. Their counts stay, because the sections
/// are about to be deleted.
pub async fn delete_expired_reservations(tx: &mut Tx, id: Id, now: Timestamp) -> Result<()> {
    let delete = "delete from reservations where expires <= $2 and section_id in (select id from sections where event_id = $1)";
    tx.query(delete).bind(id).bind(now).execute().await?;
    Ok(())
}

/// Deletes the event with its sections and admission tokens. Foreign keys reject this while there are tickets or reservations.
pub async fn delete(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from events where id = $1").bind(id).execute().await?;
    Ok(())
}
