//! What the zone operations mean. Who may call them, the contract's scopes say.

use std::collections::HashMap;

use super::model::{Zone, ZoneCreate, ZoneRow, ZoneUpdate};
use super::store;
use crate::state::App;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::types::api_types::Uri;
use crate::kernel::db::{Tx, ViolationExt, transaction};
use boxoffice_http::error::{Code, Error, Result};

/// The zones of these identifiers.
///
/// # Errors
/// When the database fails.
pub async fn views(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, Zone>> {
    let rows = store::of_ids(tx, ids).await?;
    Ok(rows.into_iter().map(|row| (row.id, view(row))).collect())
}

/// Whether there is such a zone.
///
/// # Errors
/// When the database fails.
pub async fn exists(tx: &mut Tx, id: Id) -> Result<bool> {
    Ok(store::find(tx, id).await?.is_some())
}

pub async fn list(app: &App, paging: PageRequest) -> Result<Page<Zone>> {
    let found = store::list(&mut app.db.read().await?, paging).await?;
    Ok(paging.page(found.total, found.rows.into_iter().map(view).collect()))
}

pub async fn create(app: &App, new: ZoneCreate) -> Result<Zone> {
    let mut row = ZoneRow {
        id: Id::NONE,
        name: new.name,
        description: new.description.unwrap_or_default(),
        width: new.width,
        height: new.height,
    };
    transaction!(app.db, |tx| {
        row.id = app.clock.next_id();
        store::insert(tx, &row).await
    })?;
    Ok(view(row))
}

pub async fn get(app: &App, id: Id) -> Result<Zone> {
    let row = store::find(&mut app.db.read().await?, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok(view(row))
}

pub async fn update(app: &App, id: Id, change: &ZoneUpdate) -> Result<Zone> {
    let row = transaction!(app.db, |tx| {
        store::update(tx, id, change).await.on_foreign_key(booked())?;
        store::find(tx, id).await
    })?;
    Ok(view(row.ok_or(Error::NOT_FOUND)?))
}

/// All artwork has its zones' dimensions, so that none fits other ones.
fn booked() -> Error {
    Code::ZoneInUse.with_message("Advertisements whose artwork would not fit are assigned to this zone.")
}

pub async fn delete(app: &App, id: Id) -> Result<()> {
    let deleted = transaction!(app.db, |tx| store::delete(tx, id).await).on_foreign_key(Code::ZoneInUse)?;
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
