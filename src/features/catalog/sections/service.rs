//! Operations on sections.

use boxoffice_http::error::{Error, Result, reject_if};

use super::model::{Section, SectionCreate, SectionRow, SectionUpdate, SectionUri, view_long, view_short};
use super::{places, store};
use crate::features::catalog::events::{self, EventRow};
use crate::features::catalog::hosts;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx, ViolationExt, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::embedded::{Embedded, EmbeddedById};
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Maximum number of sections of an event. Every response with the event includes all of them.
const MAX_SECTIONS: i64 = 100;

pub async fn create(ctx: &Ctx, caller: &Caller, event: Id, new: &SectionCreate) -> Result<Section> {
    let row = transaction!(ctx.unit, |tx| create_in_tx(tx, caller, new.row(ctx.app.clock.next_id(), event)).await)?;
    Ok(view_short(&row, ctx.app.clock.now()))
}

async fn create_in_tx(tx: &mut Tx, caller: &Caller, row: SectionRow) -> Result<SectionRow> {
    // Locked, so that concurrent requests can't exceed the limit, and the event can't be removed or cancelled before the commit.
    let event = events::lock_managed(tx, caller, row.event_id).await?;
    check_sales(&row)?;
    event.check_changeable()?;
    hosts::require_active(tx, event.host_id).await?;
    reject_if(store::count_of_event(tx, event.id).await? >= MAX_SECTIONS, codes::SECTION_TOO_MANY)?;
    store::insert(tx, std::slice::from_ref(&row)).await.on_taken("sections_event_id", "name", codes::SECTION_TAKEN)?;
    Ok(row)
}

pub async fn get(ctx: &Ctx, caller: &Caller, uri: SectionUri) -> Result<Section> {
    let now = ctx.app.clock.now();
    let mut reader = ctx.unit.read().await?;
    let row = load(&mut reader, uri, now).await?;
    events::load_visible(&mut reader, caller, row.event_id).await?;
    Ok(view_long(&row, now))
}

/// Returns a section without a permission check.
///
/// # Errors
/// [`Error::NOT_FOUND`] if no section has this URI.
pub async fn load(reader: &mut Reader, uri: SectionUri, now: Timestamp) -> Result<SectionRow> {
    let row = store::find_all(reader, [uri.section], now).await?.remove(&uri.section);
    row.filter(|row| uri.names(row)).ok_or(Error::NOT_FOUND)
}

/// Returns the sections with these identifiers as responses embed them outside the section's event, by identifier. Unknown
/// identifiers are skipped.
pub async fn find_embedded(
    reader: &mut Reader,
    ids: impl IntoIterator<Item = Id>,
    now: Timestamp,
) -> Result<EmbeddedById<Section>> {
    let rows = store::find_all(reader, ids, now).await?;
    rows.into_iter().map(|(id, row)| Ok((id, Embedded::new(&view_long(&row, now))?))).collect()
}

pub async fn update(ctx: &Ctx, caller: &Caller, uri: SectionUri, change: &SectionUpdate) -> Result<Section> {
    let row = transaction!(ctx.unit, |tx| update_in_tx(&ctx.app, tx, caller, uri, change).await)?;
    Ok(view_long(&row, ctx.app.clock.now()))
}

async fn update_in_tx(app: &App, tx: &mut Tx, caller: &Caller, uri: SectionUri, change: &SectionUpdate) -> Result<SectionRow> {
    let (row, event) = lock_managed(app, tx, caller, uri).await?;
    let row = change.apply(row);
    check_sales(&row)?;
    event.check_changeable()?;
    let updated = store::update(tx, &row).await.on_taken("sections_event_id", "name", codes::SECTION_TAKEN)?;
    if updated { Ok(row) } else { Err(codes::SECTION_CAPACITY.into()) }
}

pub async fn delete(ctx: &Ctx, caller: &Caller, uri: SectionUri) -> Result<()> {
    transaction!(ctx.unit, |tx| delete_in_tx(&ctx.app, tx, caller, uri).await)
}

async fn delete_in_tx(app: &App, tx: &mut Tx, caller: &Caller, uri: SectionUri) -> Result<()> {
    let (row, _) = lock_managed(app, tx, caller, uri).await?;
    // Void tickets still refer to the section, so a foreign key rejects its removal.
    let deleted = store::delete(tx, row.id).await.on_foreign_key(codes::SECTION_IN_USE)?;
    if deleted { Ok(()) } else { Err(codes::SECTION_IN_USE.into()) }
}

/// Locks and returns a section and its event, if the caller may change it. Releases the section's expired reservations.
async fn lock_managed(app: &App, tx: &mut Tx, caller: &Caller, uri: SectionUri) -> Result<(SectionRow, EventRow)> {
    let now = app.clock.now();
    let event = load(tx, uri, now).await?.event_id;
    let event = events::lock_managed(tx, caller, event).await?;
    places::lock_available(app, tx, [uri.section], now).await?;
    Ok((load(tx, uri, now).await?, event))
}

fn check_sales(row: &SectionRow) -> Result<()> {
    if row.sales_end > row.sales_start { Ok(()) } else { Err(Error::invalid("salesEnd", "must be after salesStart")) }
}
