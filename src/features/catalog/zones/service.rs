//! Operations on zones. Permissions are checked by the contract's scopes (`x-scopes`).

use std::collections::HashMap;

use boxoffice_http::error::{Error, Result};

use super::model::{Zone, ZoneCreate, ZoneRow, ZoneUpdate};
use super::store;
use crate::features::codes;
use crate::kernel::db::{Reader, Tx, ViolationExt, transaction};
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::Ctx;

/// Returns the zones with these identifiers.
pub async fn views(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, Zone>> {
    let rows = store::find_all(reader, ids).await?;
    Ok(rows.into_iter().map(|row| (row.id, view(row))).collect())
}

/// Returns the zones with these identifiers. They can be neither removed nor resized before the transaction ends.
pub async fn lock_shared(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, Zone>> {
    let rows = store::find_and_lock_shared(tx, ids).await?;
    Ok(rows.into_iter().map(|row| (row.id, view(row))).collect())
}

/// Returns whether the zone exists.
pub async fn exists(reader: &mut Reader, id: Id) -> Result<bool> {
    Ok(store::find(reader, id).await?.is_some())
}

pub async fn list(ctx: &Ctx, paging: PageRequest) -> Result<Page<Zone>> {
    Ok(store::list(&mut ctx.unit.read().await?, paging).await?.map(view))
}

pub async fn create(ctx: &Ctx, new: ZoneCreate) -> Result<Zone> {
    let mut row = ZoneRow {
        id: Id::NONE,
        name: new.name,
        description: new.description.unwrap_or_default(),
        width: new.width,
        height: new.height,
    };
    transaction!(ctx.unit, |tx| {
        row.id = ctx.app.clock.next_id();
        store::insert(tx, &row).await
    })?;
    Ok(view(row))
}

pub async fn get(ctx: &Ctx, id: Id) -> Result<Zone> {
    let row = store::find(&mut ctx.unit.read().await?, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok(view(row))
}

pub async fn update(ctx: &Ctx, id: Id, change: &ZoneUpdate) -> Result<Zone> {
    let row = transaction!(ctx.unit, |tx| {
        store::update(tx, id, change).await.on_foreign_key(dimensions_in_use())?;
        store::find(tx, id).await
    })?;
    Ok(view(row.ok_or(Error::NOT_FOUND)?))
}

/// Returns the error for new dimensions of a zone with bookings: their artwork would no longer fit.
fn dimensions_in_use() -> Error {
    codes::ZONE_IN_USE.with_message("Advertisements whose artwork would not fit are assigned to this zone.")
}

pub async fn delete(ctx: &Ctx, id: Id) -> Result<()> {
    let deleted = transaction!(ctx.unit, |tx| store::delete(tx, id).await).on_foreign_key(codes::ZONE_IN_USE)?;
    if deleted { Ok(()) } else { Err(Error::NOT_FOUND) }
}

fn view(row: ZoneRow) -> Zone {
    Zone {
        uri: Uri(format!("/zones/{}", row.id)),
        number: row.id.to_string(),
        name: row.name,
        description: row.description,
        width: row.width,
        height: row.height,
        advertisements: Uri(format!("/zones/{}/advertisements", row.id)),
    }
}
