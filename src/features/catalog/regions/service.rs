//! Operations on regions. Permissions are checked by the contract's scopes (`x-scopes`).

use std::collections::HashMap;

use boxoffice_http::error::{Error, Result};

use super::model::{Region, RegionCreate, RegionFilter, RegionRow, RegionUpdate};
use super::store;
use crate::features::catalog::media;
use crate::features::codes;
use crate::kernel::db::{Reader, ViolationExt, transaction};
use crate::kernel::types::api_types::{AbsoluteUri, Uri};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Returns the regions with these identifiers.
pub async fn views(app: &App, reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, Region>> {
    let rows = store::find_all(reader, ids).await?;
    Ok(rows.into_iter().map(|row| (row.id, view(app, row))).collect())
}

pub async fn list(ctx: &Ctx, filter: &RegionFilter) -> Result<Page<Region>> {
    let page = store::list(&mut ctx.unit.read().await?, filter, ctx.app.clock.now()).await?;
    Ok(page.map(|row| view(&ctx.app, row)))
}

pub async fn create(ctx: &Ctx, new: RegionCreate) -> Result<Region> {
    let mut row = RegionRow {
        id: Id::NONE,
        name: new.name,
        country: new.country,
        district: new.district.unwrap_or_default(),
        city: new.city.unwrap_or_default(),
    };
    let inserted = transaction!(ctx.unit, |tx| {
        row.id = ctx.app.clock.next_id();
        store::insert(tx, &row).await
    });
    inserted.on_taken("regions", "name", codes::REGION_TAKEN)?;
    Ok(view(&ctx.app, row))
}

pub async fn get(ctx: &Ctx, id: Id) -> Result<Region> {
    let row = store::find(&mut ctx.unit.read().await?, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok(view(&ctx.app, row))
}

pub async fn update(ctx: &Ctx, id: Id, change: RegionUpdate) -> Result<Region> {
    let row =
        transaction!(ctx.unit, |tx| store::update(tx, id, &change).await).on_taken("regions", "name", codes::REGION_TAKEN)?;
    Ok(view(&ctx.app, row.ok_or(Error::NOT_FOUND)?))
}

pub async fn delete(ctx: &Ctx, id: Id) -> Result<()> {
    let deleted = transaction!(ctx.unit, |tx| store::delete(tx, id).await).on_foreign_key(codes::REGION_IN_USE)?;
    if deleted { Ok(()) } else { Err(Error::NOT_FOUND) }
}

fn view(app: &App, row: RegionRow) -> Region {
    Region {
        uri: Uri(format!("/regions/{}", row.id)),
        icon: AbsoluteUri(format!("{}/media/{}", app.settings.public_url, media::icon_name(&row.country))),
        name: row.name,
        country: row.country,
        district: row.district,
        city: row.city,
    }
}
