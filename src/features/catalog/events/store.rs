//! SQL of events.

use boxoffice_http::error::Result;

use super::model::{EventRow, EventStatus};
use super::search_index;
use crate::features::catalog::sections;
use crate::kernel::db::{Reader, SqlQuery, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;

// The columns of `EventRow`.
define_sql!(
    columns,
    "id, host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts, ends, \
     admission_from, disclaimer, tags, banner_id, thumbnail_id, published, revised, popularity"
);
pub(super) use columns;

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

/// Returns an event, if it exists.
pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<EventRow>> {
    reader.query(concat!("select ", columns!(), " from events where id = $1")).bind(id).optional().await
}

/// Returns the events with these identifiers.
pub async fn find_all(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<Vec<EventRow>> {
    reader.select(concat!(columns!(), " from events where true")).and_in("id", ids).all().await
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
pub async fn is_title_taken(reader: &mut Reader, row: &EventRow) -> Result<bool> {
    let other = "select exists (select 1 from events where folded_title = $1 and id <> $2)";
    reader.query(other).bind(fold(&row.title)).bind(row.id).scalar().await
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
fn bind_properties<'a>(statement: SqlQuery<'a>, row: &EventRow) -> SqlQuery<'a> {
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

/// Sets the time of the cancellations that were made while the clock was ahead, at a time after `latest`, to `now`. Returns their number.
/// No later scan is then from before the cancellation.
pub async fn correct_future(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    let cancelled = tx.select("id from events where status = 'Cancelled'").and_where("revised > ?", Some(latest));
    let cancelled: Vec<Id> = cancelled.for_update().scalars().await?;
    if cancelled.is_empty() {
        return Ok(0);
    }
    tx.update("events set ").push_bind("revised = ?", now).push(" where true").and_in("id", cancelled).rows_affected().await
}

/// Returns whether an account has tickets for an event that are not void.
pub async fn is_holder(reader: &mut Reader, account: Id, event: Id) -> Result<bool> {
    let held = "select exists (select 1 from tickets where owner_id = $1 and event_id = $2 and status <> 'Void')";
    reader.query(held).bind(account).bind(event).scalar().await
}

/// Returns whether an event has tickets, including void ones.
pub async fn has_tickets(reader: &mut Reader, id: Id) -> Result<bool> {
    reader.select("id from tickets where true").and_where("event_id = ?", Some(id)).push(" limit 1").exists().await
}

/// Returns whether a ticket was admitted to an event.
pub async fn has_admissions(reader: &mut Reader, id: Id) -> Result<bool> {
    reader.select("id from admissions where true").and_where("event_id = ?", Some(id)).push(" limit 1").exists().await
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
