//! SQL of zones.

use boxoffice_http::error::Result;

use super::model::{ZoneRow, ZoneUpdate};
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `ZoneRow`.
define_sql!(columns, "id, name, description, width, height");

/// Returns a page of zones, the oldest first.
pub async fn list(reader: &mut Reader, paging: PageRequest) -> Result<PagedRows<ZoneRow>> {
    reader.list(columns!(), "from zones").sized_page("id", "(400 + octet_length(name) + octet_length(description))", paging).await
}

/// Returns these zones, which can be neither removed nor resized before the transaction ends.
pub async fn find_and_lock_shared(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<Vec<ZoneRow>> {
    tx.select(concat!(columns!(), " from zones where true")).and_in("id", ids).for_key_share().all().await
}

pub async fn find_all(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<Vec<ZoneRow>> {
    reader.select(concat!(columns!(), " from zones where true")).and_in("id", ids).all().await
}

pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<ZoneRow>> {
    reader.query(concat!("select ", columns!(), " from zones where id = $1")).bind(id).optional().await
}

pub async fn insert(tx: &mut Tx, row: &ZoneRow) -> Result<()> {
    tx.query(concat!("insert into zones (", columns!(), ") values ($1, $2, $3, $4, $5)"))
        .bind(row.id)
        .bind(row.name.clone())
        .bind(row.description.clone())
        .bind(row.width)
        .bind(row.height)
        .execute()
        .await
}

/// Updates the fields present in `change` and leaves the others unchanged. There is no `returning` clause: SQLite checks the
/// foreign key at the statement's end, which is not reached when only the first row is fetched.
pub async fn update(tx: &mut Tx, id: Id, change: &ZoneUpdate) -> Result<()> {
    tx.query(
        "update zones set name = coalesce($2, name), width = coalesce($3, width), height = coalesce($4, height),
         description = coalesce($5, description) where id = $1",
    )
    .bind(id)
    .bind(change.name.clone())
    .bind(change.width)
    .bind(change.height)
    .bind(change.description.clone())
    .execute()
    .await
}

pub async fn delete(tx: &mut Tx, id: Id) -> Result<bool> {
    Ok(tx.query("delete from zones where id = $1").bind(id).rows_affected().await? == 1)
}
