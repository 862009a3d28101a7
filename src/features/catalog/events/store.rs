//! SQL of events.

use super::model::{EventRow, EventStatus};
use super::requests::{EventFilter, EventSort};
use crate::kernel::auth::Caller;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;
use crate::kernel::db::{Statement, Tx};
use boxoffice_http::error::Result;
use crate::features::catalog::sections::{self, SectionUri};

/// Which events a list may show.
#[derive(Debug)]
pub enum Visibility<'a> {
    /// Those Listed and open to the public, to everyone.
    Published,
    /// What this caller may see.
    To(&'a Caller),
    /// Those that this account has tickets for, which are not void.
    HeldBy(Id),
}

/// What is asked of a list, beside what all lists of events are asked.
#[derive(Debug)]
pub struct ListFilter<'a> {
    pub shown: Visibility<'a>,
    pub host: Option<Id>,
    pub status: Option<EventStatus>,
    pub public: Option<bool>,
}

/// Events in the order of making, unless a sort is asked for; then those without its value come last, and ties in the order
/// of making.
pub async fn list(tx: &mut Tx, filter: &EventFilter, narrowing: ListFilter<'_>, now: Timestamp) -> Result<PagedRows<EventRow>> {
    let direction = filter.order.sql();
    let order = match filter.sort {
        None => "e.id".to_owned(),
        Some(EventSort::Alphabetical) => format!("lower(e.title){direction}, e.id"),
        Some(EventSort::Published) => format!("e.published is null, e.published{direction}, e.id"),
        Some(EventSort::Popularity) => format!("e.popularity{direction}, e.id"),
        Some(EventSort::Start) => format!("e.starts{direction}, e.id"),
    };
    let select = visibility_clause(tx.list("e.*", "from events e where true"), &narrowing.shown)
        .and_where(
            "e.venue_id in (select v.id from venues v where v.region_id = ?)",
            filter.region.as_ref().map(|region| region.id),
        )
        .and_where("e.host_id = ?", narrowing.host)
        .and_contains("e.title", filter.title.as_deref())
        .and_where("e.status = ?", narrowing.status)
        .and_where("e.ends > ?", (filter.active == Some(true)).then_some(now))
        .and_where("e.ends <= ?", (filter.active == Some(false)).then_some(now))
        .and_where("e.public = ?", narrowing.public);
    with_section(select, filter.section.as_deref()).page(&order, filter.paging).await
}

/// Listed and Cancelled events are for anyone, all others for their host's administrators and the platform's staff. Whoever holds
/// a ticket has its event listed with it all the same.
fn visibility_clause<'a>(select: Statement<'a>, shown: &Visibility<'_>) -> Statement<'a> {
    const OPEN: &str = "e.status in ('Listed', 'Cancelled')";
    const HELD: &str = "e.id in (select t.event_id from tickets t where t.owner_id = ? and t.status <> 'Void')";
    match shown {
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

/// A section is named by its identifier, either of its URIs or its exact name. An identifier can be part of the text:
/// it is a number.
fn with_section<'a>(select: Statement<'a>, section: Option<&str>) -> Statement<'a> {
    let Some(text) = section else { return select };
    let uri = SectionUri::parse(text);
    let id = uri.map(|uri| uri.section).or_else(|| Id::parse(text)).unwrap_or(Id::NONE);
    let named = format!("exists (select 1 from sections s where s.event_id = e.id and (s.id = {} or s.name = ?))", id.0);
    select.and_where(&named, Some(text.to_owned())).and_where("e.id = ?", uri.and_then(|uri| uri.event))
}

/// An event, where there is one.
///
/// # Errors
/// When the database fails.
pub async fn find(tx: &mut Tx, id: Id) -> Result<Option<EventRow>> {
    tx.query("select * from events where id = $1").bind(id).optional().await
}

/// These events.
///
/// # Errors
/// When the database fails.
pub async fn of_ids(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<Vec<EventRow>> {
    tx.select("* from events where true").and_in("id", ids).all().await
}

/// What buyers change of an event and one of its sections.
#[derive(sqlx::FromRow)]
pub struct SectionCounts {
    /// How often hosts and staff have changed what events show.
    pub changes: i64,
    pub event_id: Id,
    pub popularity: i64,
    /// `None` in the one row of an event without sections.
    pub section_id: Option<Id>,
    pub sold: Option<i64>,
    pub reserved: Option<i64>,
}

/// What buyers change of these events, those of an event together, and the oldest of its sections first. One statement: nothing
/// else has changed what these events show since the number of changes was another one.
pub async fn section_counts(tx: &mut Tx, ids: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<Vec<SectionCounts>> {
    tx.select("(select count from event_changes) as changes, e.id as event_id, e.popularity, s.id as section_id, s.sold, ")
        .push_bind(sections::store::RESERVED, now)
        .push(" from events e left join sections s on s.event_id = e.id where true")
        .and_in("e.id", ids)
        .push(" order by e.id, s.id")
        .all()
        .await
}

/// How often hosts and staff have changed what events show.
pub async fn change_counter(tx: &mut Tx) -> Result<i64> {
    tx.query("select count from event_changes").scalar().await
}

/// The event as it is after everyone else's changes, which then wait until this transaction ends.
///
/// # Errors
/// When the database fails.
pub async fn lock(tx: &mut Tx, id: Id) -> Result<Option<EventRow>> {
    tx.query("update events set title = title where id = $1 returning *").bind(id).optional().await
}

/// Whether another event has this title.
pub async fn is_title_taken(tx: &mut Tx, row: &EventRow) -> Result<bool> {
    let other = "select exists (select 1 from events where title = $1 and id <> $2)";
    tx.query(other).bind(row.title.clone()).bind(row.id).scalar().await
}

pub async fn insert(tx: &mut Tx, row: &EventRow) -> Result<()> {
    tx.query(
        "insert into events (id, host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts,
         ends, disclaimer, tags, banner_id, thumbnail_id, published, popularity)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, null, 0)",
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
    .execute()
    .await?;
    Ok(())
}

/// Writes what a host may change.
pub async fn update(tx: &mut Tx, row: &EventRow) -> Result<()> {
    tx.query(
        "update events set title = $2, description = $3, type = $4, public = $5, category_id = $6, subcategory = $7,
         venue_id = $8, starts = $9, ends = $10, disclaimer = $11, tags = $12, banner_id = $13, thumbnail_id = $14 where id = $1",
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
    .execute()
    .await?;
    Ok(())
}

/// Takes the event one step on, unless it has left the step before; tells whether it did. `published` is only ever set.
pub async fn transition(tx: &mut Tx, id: Id, from: EventStatus, to: EventStatus, published: Option<Timestamp>) -> Result<bool> {
    let update = "update events set status = $3, published = coalesce($4, published) where id = $1 and status = $2";
    Ok(tx.query(update).bind(id).bind(from).bind(to).bind(published).execute().await? == 1)
}

/// Deletes the reservations of places in this event that are over; its sections need no count of them any more.
pub async fn delete_expired_reservations(tx: &mut Tx, id: Id, now: Timestamp) -> Result<()> {
    let delete = "delete from reservations where expires <= $2 and section_id in (select id from sections where event_id = $1)";
    tx.query(delete).bind(id).bind(now).execute().await?;
    Ok(())
}

/// Removes the event, with its sections and admission tokens. Tickets and reservations stand against it.
pub async fn delete(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from events where id = $1").bind(id).execute().await?;
    Ok(())
}
