//! SQL of the event cache and of the index of words: the counts that buyers change, and the counter and the list of other changes.

use boxoffice_http::error::Result;

use super::model::EventRow;
use super::store::{bytes_sql, columns};
use crate::features::catalog::sections;
use crate::kernel::db::Reader;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

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
pub async fn section_counts(
    reader: &mut Reader,
    ids: impl IntoIterator<Item = Id>,
    now: Timestamp,
) -> Result<Vec<SectionCounts>> {
    reader.select(
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
pub async fn change_counter(reader: &mut Reader) -> Result<i64> {
    reader.query("select count from event_changes").scalar().await
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
pub async fn find_all_sized(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<Vec<SizedEventRow>> {
    let size = format!("(select count from event_changes) as changes, cast({} as bigint) as bytes, ", bytes_sql());
    reader.select(&size).push(concat!(columns!(), " from events e where true")).and_in("id", ids).all().await
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
pub async fn published_changes(reader: &mut Reader, after: &ChangeCursor, limit: i64) -> Result<Vec<PublishedChange>> {
    // Several standbys may share the address of one, so their starts don't count.
    const SERVER: &str = "case when pg_is_in_recovery() \
        then (select cast(greatest(c.timeline_id, r.min_recovery_end_timeline) as text) \
        from pg_control_checkpoint() c, pg_control_recovery() r) else cast(pg_postmaster_start_time() as text) end";
    let server = if reader.is_postgres() { SERVER } else { "''" };
    reader.select(&format!("c.count as changes, c.position as last_position, {server} as server, p.position, p.event_id, e.starts, e.ends, "))
        .push("w.title_words, w.keywords, w.words from event_changes c left join (select position, event_id from published_event_changes")
        .push_bind(" where (position, event_id) > (?, ", after.position)
        .push_bind("?) order by position, event_id", after.event)
        .push(&format!(" limit {limit}) p on true"))
        .push(" left join events e on e.id = p.event_id and e.status = 'Listed' and e.public = true")
        .push(" left join event_words w on w.event_id = e.id where true order by p.position, p.event_id")
        .all()
        .await
}
