//! What the region operations mean. Who may call them, the contract's scopes say.

use super::model::{Region, RegionCreate, RegionFilter, RegionRow, RegionUpdate};
use super::store;
use crate::state::App;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::kernel::types::api_types::{AbsoluteUri, Uri};
use crate::kernel::db::{ViolationExt, transaction};
use boxoffice_http::error::{Code, Error, Result};
use crate::kernel::media;

pub async fn list(app: &App, filter: &RegionFilter) -> Result<Page<Region>> {
    let found = store::list(&mut app.db.read().await?, filter, app.clock.now()).await?;
    let entries = found.rows.into_iter().map(|row| view(app, row)).collect();
    Ok(filter.paging.page(found.total, entries))
}

pub async fn create(app: &App, new: RegionCreate) -> Result<Region> {
    let mut row = RegionRow {
        id: Id::NONE,
        name: new.name,
        country: new.country,
        district: new.district.unwrap_or_default(),
        city: new.city.unwrap_or_default(),
    };
    let inserted = transaction!(app.db, |tx| {
        row.id = app.clock.next_id();
        store::insert(tx, &row).await
    });
    inserted.on_unique("regions_name_key", Code::RegionTaken)?;
    Ok(view(app, row))
}

pub async fn get(app: &App, id: Id) -> Result<Region> {
    let row = store::find(&mut app.db.read().await?, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok(view(app, row))
}

pub async fn update(app: &App, id: Id, change: RegionUpdate) -> Result<Region> {
    let row = transaction!(app.db, |tx| store::update(tx, id, &change).await).on_unique("regions_name_key", Code::RegionTaken)?;
    Ok(view(app, row.ok_or(Error::NOT_FOUND)?))
}

pub async fn delete(app: &App, id: Id) -> Result<()> {
    let deleted = transaction!(app.db, |tx| store::delete(tx, id).await).on_foreign_key(Code::RegionInUse)?;
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
