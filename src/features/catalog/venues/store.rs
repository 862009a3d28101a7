//! SQL of venues.

use boxoffice_http::error::Result;

use super::model::{VenueChangeRow, VenueCreate, VenueFilter, VenueRow, VenueUpdate};
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

// The columns of `VenueRow`.
define_sql!(columns, "id, name, region_id, address, longitude, latitude, approved, creator_id");

/// Returns a page of approved venues, the oldest first.
pub async fn list(reader: &mut Reader, filter: &VenueFilter) -> Result<PagedRows<VenueRow>> {
    reader
        .list(columns!(), "from venues v where v.approved")
        .and_where("v.region_id = ?", filter.region.as_ref().map(|region| region.id))
        .and_contains("coalesce(v.folded_name, lower(v.name))", filter.name.as_deref())
        .page("v.id", filter.paging)
        .await
}

pub async fn find_all(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<Vec<VenueRow>> {
    reader.select(concat!(columns!(), " from venues where true")).and_in("id", ids).all().await
}

pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<VenueRow>> {
    reader.query(concat!("select ", columns!(), " from venues where id = $1")).bind(id).optional().await
}

/// Returns a venue, which can't be removed before the transaction ends.
pub async fn find_and_lock_shared(tx: &mut Tx, id: Id) -> Result<Option<VenueRow>> {
    let find = tx.select(concat!(columns!(), " from venues where true"));
    find.and_where("id = ?", Some(id)).for_key_share().optional().await
}

/// Locks a venue until the transaction ends. Returns whether it exists.
pub async fn lock(tx: &mut Tx, id: Id) -> Result<bool> {
    tx.select("id from venues where true").and_where("id = ?", Some(id)).for_update().exists().await
}

pub async fn insert(tx: &mut Tx, id: Id, new: &VenueCreate, approved: bool, creator: Option<Id>) -> Result<VenueRow> {
    tx.query(concat!(
        "insert into venues (",
        columns!(),
        ", folded_name) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning ",
        columns!()
    ))
    .bind(id)
    .bind(new.name.clone())
    .bind(new.region.id)
    .bind(new.address.clone())
    .bind(new.longitude)
    .bind(new.latitude)
    .bind(approved)
    .bind(creator)
    .bind(fold(&new.name))
    .one()
    .await
}

/// Approves a venue, so that every caller may use it.
pub async fn approve(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("update venues set approved = true where id = $1").bind(id).execute().await
}

/// Locks and returns a venue. No other transaction changes it before this one ends.
pub async fn find_and_lock(tx: &mut Tx, id: Id) -> Result<Option<VenueRow>> {
    let find = tx.select(concat!(columns!(), " from venues where true"));
    find.and_where("id = ?", Some(id)).for_update().optional().await
}

/// Returns whether an event at a venue is public, or this account administers its host. Only looks at the latest 1,000 events.
pub async fn has_event_for(reader: &mut Reader, id: Id, account: Option<Id>) -> Result<bool> {
    reader
        .query(
            "select exists (
             select 1 from (select host_id, status from events where venue_id = $1 order by id desc limit 1000) e
             where e.status in ('Listed', 'Cancelled')
                 or exists (select 1 from host_administrators m where m.host_id = e.host_id and m.account_id = $2))",
        )
        .bind(id)
        .bind(account)
        .scalar()
        .await
}

/// Updates the fields present in `change` and leaves the others unchanged.
pub async fn update(tx: &mut Tx, id: Id, change: &VenueUpdate, now: Timestamp) -> Result<Option<VenueRow>> {
    tx.query(concat!(
        "update venues set name = coalesce($2, name), region_id = coalesce($3, region_id), address = coalesce($4, address),
         longitude = coalesce($5, longitude), latitude = coalesce($6, latitude),
         folded_name = case when name = coalesce($2, name) then folded_name else $7 end, revised = $8 where id = $1
         returning ",
        columns!()
    ))
    .bind(id)
    .bind(change.name.clone())
    .bind(change.region.as_ref().map(|region| region.id))
    .bind(change.address.clone())
    .bind(change.longitude)
    .bind(change.latitude)
    .bind(change.name.as_deref().map(fold))
    .bind(now)
    .optional()
    .await
}

/// Returns the time of the last change of a venue.
pub async fn revised(reader: &mut Reader, id: Id) -> Result<Option<Timestamp>> {
    Ok(reader.query("select revised from venues where id = $1").bind(id).optional_scalar::<Option<Timestamp>>().await?.flatten())
}

/// Locks the change of a venue, if there is one. Call it before the venue is locked (see the lock order in CONTRIBUTING.md).
pub async fn lock_change(tx: &mut Tx, venue: Id) -> Result<()> {
    let change = tx.select("venue_id from venue_changes where true").and_where("venue_id = ?", Some(venue));
    change.push_lock(" for update").lock().await
}

/// Stores the name and the address that a locked venue had, for the notices of its events. If the notices of an earlier change have not
/// been stored yet, the holders of tickets know what was true before that one.
pub async fn insert_change(tx: &mut Tx, before: &VenueRow) -> Result<()> {
    tx.query(
        "insert into venue_changes (venue_id, name, address, last_event_id) values ($1, $2, $3, 0)
         on conflict (venue_id) do update set last_event_id = 0,
             name = case when venue_changes.last_event_id = 0 then venue_changes.name else excluded.name end,
             address = case when venue_changes.last_event_id = 0 then venue_changes.address else excluded.address end",
    )
    .bind(before.id)
    .bind(before.name.clone())
    .bind(before.address.clone())
    .execute()
    .await
}

/// Returns whether there is a change of a venue. A cheap check, because usually there is none.
pub async fn has_changes(reader: &mut Reader) -> Result<bool> {
    reader.query("select exists (select 1 from venue_changes)").scalar().await
}

/// Locks and returns a change of a venue that no other server works on.
pub async fn claim_change(tx: &mut Tx) -> Result<Option<VenueChangeRow>> {
    let changes = tx.select("venue_id, name, address, last_event_id from venue_changes order by venue_id limit 1");
    changes.push_lock(" for update skip locked").optional().await
}

/// Records that the events up to this one have their notice.
pub async fn advance_change(tx: &mut Tx, venue: Id, last_event: Id) -> Result<()> {
    let update = "update venue_changes set last_event_id = $2 where venue_id = $1";
    tx.query(update).bind(venue).bind(last_event).execute().await
}

/// Removes a change of which all events have their notice.
pub async fn remove_change(tx: &mut Tx, venue: Id) -> Result<()> {
    tx.query("delete from venue_changes where venue_id = $1").bind(venue).execute().await
}

/// Records that an event was staged at a venue.
pub async fn set_staged(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("update venues set staged = true where id = $1 and staged = false").bind(id).execute().await
}

/// Deletes a venue, unless an event was staged there. Returns whether it was deleted.
pub async fn delete(tx: &mut Tx, id: Id) -> Result<bool> {
    Ok(tx.query("delete from venues where id = $1 and staged = false").bind(id).rows_affected().await? == 1)
}
