//! SQL queries for venues.

use boxoffice_http::error::Result;

use super::model::{VenueCreate, VenueFilter, VenueRow, VenueUpdate};
use crate::kernel::db::Tx;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

/// The columns of [`VenueRow`]. A macro, because statements are literals.
macro_rules! columns {
    () => {
        "id, name, region_id, address, longitude, latitude, approved, creator_id"
    };
}

/// Returns a page of approved venues, the oldest first.
pub async fn list(tx: &mut Tx, filter: &VenueFilter) -> Result<PagedRows<VenueRow>> {
    tx.list(columns!(), "from venues v where v.approved")
        .and_where("v.region_id = ?", filter.region.as_ref().map(|region| region.id))
        .and_contains("coalesce(v.folded_name, lower(v.name))", filter.name.as_deref())
        .page("v.id", filter.paging)
        .await
}

pub async fn of_ids(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<Vec<VenueRow>> {
    tx.select(concat!(columns!(), " from venues where true")).and_in("id", ids).all().await
}

pub async fn find(tx: &mut Tx, id: Id) -> Result<Option<VenueRow>> {
    tx.query(concat!("select ", columns!(), " from venues where id = $1")).bind(id).optional().await
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

/// Updates the fields present in `change` and leaves the others unchanged.
pub async fn update(tx: &mut Tx, id: Id, change: &VenueUpdate) -> Result<Option<VenueRow>> {
    tx.query(concat!(
        "update venues set name = coalesce($2, name), region_id = coalesce($3, region_id), address = coalesce($4, address),
         longitude = coalesce($5, longitude), latitude = coalesce($6, latitude),
         folded_name = case when name = coalesce($2, name) then folded_name else $7 end where id = $1
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
    .optional()
    .await
}

/// Records that an event was staged at a venue.
pub async fn set_staged(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("update venues set staged = true where id = $1 and staged = false").bind(id).execute().await
}

/// Deletes a venue, unless an event was staged there. Returns whether it was deleted.
pub async fn delete(tx: &mut Tx, id: Id) -> Result<bool> {
    Ok(tx.query("delete from venues where id = $1 and staged = false").bind(id).rows_affected().await? == 1)
}
