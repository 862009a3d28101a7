//! SQL of regions.

use boxoffice_http::error::Result;

use super::model::{RegionFilter, RegionRow, RegionUpdate};
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

// The columns of `RegionRow`.
define_sql!(columns, "id, name, country, district, city");

/// Returns a page of regions, the oldest first. A region is active if a listed event that is not over takes place in it.
pub async fn list(reader: &mut Reader, filter: &RegionFilter, now: Timestamp) -> Result<PagedRows<RegionRow>> {
    const ACTIVE: &str = "exists (select 1 from events e join venues v on v.id = e.venue_id
        where v.region_id = r.id and e.status = 'Listed' and e.ends > ?)";
    let active = (filter.active == Some(true)).then_some(now);
    let inactive = (filter.active == Some(false)).then_some(now);
    reader
        .list(columns!(), "from regions r where true")
        .and_where(ACTIVE, active)
        .and_where(&format!("not {ACTIVE}"), inactive)
        .page("r.id", filter.paging)
        .await
}

pub async fn find_all(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<Vec<RegionRow>> {
    reader.select(concat!(columns!(), " from regions where true")).and_in("id", ids).all().await
}

pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<RegionRow>> {
    reader.query(concat!("select ", columns!(), " from regions where id = $1")).bind(id).optional().await
}

/// Returns whether the region exists. It can't be removed before the transaction ends.
pub async fn lock_shared(tx: &mut Tx, id: Id) -> Result<bool> {
    tx.select("id from regions where true").and_where("id = ?", Some(id)).for_key_share().exists().await
}

pub async fn insert(tx: &mut Tx, row: &RegionRow) -> Result<()> {
    tx.query("insert into regions (id, name, country, district, city, folded_name) values ($1, $2, $3, $4, $5, $6)")
        .bind(row.id)
        .bind(row.name.clone())
        .bind(row.country.clone())
        .bind(row.district.clone())
        .bind(row.city.clone())
        .bind(fold(&row.name))
        .execute()
        .await
}

/// Updates the fields present in `change` and leaves the others unchanged.
pub async fn update(tx: &mut Tx, id: Id, change: &RegionUpdate) -> Result<Option<RegionRow>> {
    tx.query(concat!(
        "update regions set name = coalesce($2, name), country = coalesce($3, country),
         district = coalesce($4, district), city = coalesce($5, city),
         folded_name = case when name = coalesce($2, name) then folded_name else $6 end where id = $1
         returning ",
        columns!()
    ))
    .bind(id)
    .bind(change.name.clone())
    .bind(change.country.clone())
    .bind(change.district.clone())
    .bind(change.city.clone())
    .bind(change.name.as_deref().map(fold))
    .optional()
    .await
}

pub async fn delete(tx: &mut Tx, id: Id) -> Result<bool> {
    Ok(tx.query("delete from regions where id = $1").bind(id).rows_affected().await? == 1)
}
