//! Operations on venues.

use std::collections::HashMap;

use anyhow::Context;
use boxoffice_http::error::{Error, Result, reject_if};

use super::model::{EventVenue, Venue, VenueCreate, VenueFilter, VenueRow, VenueUpdate};
use super::store;
use crate::features::catalog::regions;
use crate::features::catalog::review::{self, SubmissionType};
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx, ViolationExt, transaction};
use crate::kernel::types::api_types::{AbsoluteUri, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Returns the venues with these identifiers and their regions, without a permission check: an event includes its venue even
/// before the venue is approved.
pub async fn event_venues(app: &App, reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, EventVenue>> {
    let rows = store::find_all(reader, ids).await?;
    let regions = regions::views(app, reader, rows.iter().map(|row| row.region_id)).await?;
    let venue = |row: VenueRow| {
        let (id, region) = (row.id, regions.get(&row.region_id).cloned().context("a foreign key holds a venue's region")?);
        let Venue { uri, name, longitude, latitude, address, map, .. } = view(row);
        Ok((id, EventVenue { uri, name, region, longitude, latitude, address, map }))
    };
    rows.into_iter().map(venue).collect()
}

/// Returns whether the caller may hold an event at this venue: it exists, and is approved or was created by the caller. Platform
/// administrators may use any venue. The venue can't be removed before the transaction ends.
pub async fn lock_usable(tx: &mut Tx, caller: &Caller, id: Id) -> Result<bool> {
    Ok(store::find_and_lock_shared(tx, id).await?.is_some_and(|row| row.is_for(caller)))
}

pub async fn list(ctx: &Ctx, filter: &VenueFilter) -> Result<Page<Venue>> {
    Ok(store::list(&mut ctx.unit.read().await?, filter).await?.map(view))
}

pub async fn create(ctx: &Ctx, caller: &Caller, new: &VenueCreate) -> Result<Venue> {
    if !caller.is_administrator() && caller.account.is_none() {
        // The key acts for no account that could submit the venue for review.
        return Err(Error::FORBIDDEN);
    }
    transaction!(ctx.unit, |tx| create_in_tx(&ctx.app, tx, caller, new).await)
}

async fn create_in_tx(app: &App, tx: &mut Tx, caller: &Caller, new: &VenueCreate) -> Result<Venue> {
    require_region(tx, Some(new.region.id)).await?;
    let approved = caller.is_administrator();
    let inserted = store::insert(tx, app.clock.next_id(), new, approved, caller.account).await;
    let row = inserted.on_taken("venues", "name", codes::VENUE_TAKEN)?;
    if !approved {
        review::submit(app, tx, SubmissionType::Venue, row.id, caller.account).await?;
    }
    Ok(view(row))
}

pub async fn get(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Venue> {
    let mut reader = ctx.unit.read().await?;
    let row = store::find(&mut reader, id).await?.ok_or(Error::NOT_FOUND)?;
    // Events show their venues.
    if row.is_for(caller) || store::has_event_for(&mut reader, id, caller.account).await? {
        Ok(view(row))
    } else {
        Err(Error::FORBIDDEN)
    }
}

pub async fn update(ctx: &Ctx, id: Id, change: &VenueUpdate) -> Result<Venue> {
    transaction!(ctx.unit, |tx| update_in_tx(tx, id, change, ctx.app.clock.now()).await).map(view)
}

async fn update_in_tx(tx: &mut Tx, id: Id, change: &VenueUpdate, now: Timestamp) -> Result<VenueRow> {
    store::lock_change(tx, id).await?;
    let before = store::find_and_lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    require_region(tx, change.region.as_ref().map(|region| region.id)).await?;
    let after =
        store::update(tx, id, change, now).await.on_taken("venues", "name", codes::VENUE_TAKEN)?.ok_or(Error::NOT_FOUND)?;
    if (&before.name, &before.address) != (&after.name, &after.address) {
        store::insert_change(tx, &before).await?;
    }
    Ok(after)
}

/// Removes a venue with its submissions, whose identifiers are derived from its URI.
pub async fn delete(ctx: &Ctx, id: Id) -> Result<()> {
    let deleted = transaction!(ctx.unit, |tx| {
        store::lock_change(tx, id).await?;
        let deleted = store::delete(tx, id).await.on_foreign_key(codes::VENUE_IN_USE)?;
        reject_if(!deleted && store::find(tx, id).await?.is_some(), codes::VENUE_IN_USE)?;
        review::delete_of_content(tx, SubmissionType::Venue, [id]).await?;
        Ok::<_, Error>(deleted)
    })?;
    if deleted { Ok(()) } else { Err(Error::NOT_FOUND) }
}

/// Requires a region that exists, if there is one to check. It can't be removed before the transaction ends. An unknown region is
/// reported before a taken name, whichever of the two constraints a database checks first.
async fn require_region(tx: &mut Tx, region: Option<Id>) -> Result<()> {
    match region {
        Some(id) if !regions::lock_shared(tx, id).await? => Err(unknown_region()),
        _ => Ok(()),
    }
}

fn unknown_region() -> Error {
    Error::invalid("region", "names no region")
}

fn view(row: VenueRow) -> Venue {
    let VenueRow { latitude, longitude, .. } = row;
    Venue {
        uri: Uri(format!("/venues/{}", row.id)),
        name: row.name,
        region: Uri(format!("/regions/{}", row.region_id)),
        longitude,
        latitude,
        address: row.address,
        map: AbsoluteUri(format!("https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}")),
    }
}
