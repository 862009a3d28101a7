//! What the section operations mean.

use super::model::{Section, SectionCreate, SectionRow, SectionUpdate, SectionUri, view_long, view_short};
use super::store;
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::db::{Tx, ViolationExt, transaction};
use boxoffice_http::error::{Code, Error, Result};
use crate::features::catalog::events::{self, EventRow};
use crate::features::catalog::hosts;

/// The sections that an event can have: whoever reads it is shown all of them.
const MAX_SECTIONS: i64 = 100;

pub async fn create(app: &App, caller: &Caller, event: Id, new: &SectionCreate) -> Result<Section> {
    let row = transaction!(app.db, |tx| add(tx, caller, new.row(app.clock.next_id(), event)).await)?;
    Ok(view_short(&row, app.clock.now()))
}

async fn add(tx: &mut Tx, caller: &Caller, row: SectionRow) -> Result<SectionRow> {
    // Held, so that its sections come one by one, and lest it goes or is cancelled before this one is there.
    let event = events::lock(tx, row.event_id).await?.ok_or(Error::NOT_FOUND)?;
    hosts::require_administrator(tx, caller, event.host_id).await?;
    check_sales(&row)?;
    event.check_changeable()?;
    hosts::require_active(tx, event.host_id).await?;
    if store::count_of_event(tx, event.id).await? >= MAX_SECTIONS {
        return Err(Code::SectionTooMany.into());
    }
    store::insert(tx, &row).await.on_unique("sections_event_id_name_key", Code::SectionTaken)?;
    Ok(row)
}

pub async fn get(app: &App, caller: &Caller, uri: SectionUri) -> Result<Section> {
    let now = app.clock.now();
    let mut tx = app.db.read().await?;
    let row = load(&mut tx, uri, now).await?;
    events::load_visible(&mut tx, caller, row.event_id).await?;
    Ok(view_long(&row, now))
}

/// A section, whoever asks.
///
/// # Errors
/// [`Error::NOT_FOUND`] where there is none of this URI.
pub async fn load(tx: &mut Tx, uri: SectionUri, now: Timestamp) -> Result<SectionRow> {
    let row = store::find_by_ids(tx, [uri.section], now).await?.remove(&uri.section);
    row.filter(|row| uri.names(row)).ok_or(Error::NOT_FOUND)
}

pub async fn update(app: &App, caller: &Caller, uri: SectionUri, change: &SectionUpdate) -> Result<Section> {
    let now = app.clock.now();
    let row = transaction!(app.db, |tx| modify(tx, caller, uri, change, now).await)?;
    Ok(view_long(&row, now))
}

async fn modify(tx: &mut Tx, caller: &Caller, uri: SectionUri, change: &SectionUpdate, now: Timestamp) -> Result<SectionRow> {
    let (row, event) = load_managed(tx, caller, uri, now).await?;
    let row = change.apply(row);
    check_sales(&row)?;
    event.check_changeable()?;
    let updated = store::update(tx, &row).await.on_unique("sections_event_id_name_key", Code::SectionTaken)?;
    if updated { Ok(row) } else { Err(Code::SectionCapacity.into()) }
}

pub async fn delete(app: &App, caller: &Caller, uri: SectionUri) -> Result<()> {
    let now = app.clock.now();
    transaction!(app.db, |tx| remove(tx, caller, uri, now).await)
}

async fn remove(tx: &mut Tx, caller: &Caller, uri: SectionUri, now: Timestamp) -> Result<()> {
    let (row, _) = load_managed(tx, caller, uri, now).await?;
    // Tickets that were made void keep their section too, which a foreign key says.
    let deleted = store::delete(tx, row.id).await.on_foreign_key(Code::SectionInUse)?;
    if deleted { Ok(()) } else { Err(Code::SectionInUse.into()) }
}

/// A section for who may change it, locked and without the reservations that are over; and its event.
async fn load_managed(tx: &mut Tx, caller: &Caller, uri: SectionUri, now: Timestamp) -> Result<(SectionRow, EventRow)> {
    store::release_expired(tx, [uri.section], now).await?;
    store::lock(tx, uri.section).await?;
    let row = load(tx, uri, now).await?;
    let event = events::load_managed(tx, caller, row.event_id).await?;
    Ok((row, event))
}

fn check_sales(row: &SectionRow) -> Result<()> {
    if row.sales_end > row.sales_start { Ok(()) } else { Err(Error::invalid("salesEnd", "must be after salesStart")) }
}
