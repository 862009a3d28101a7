//! Operations on price modifiers. Callers who may manage the event may manage its price modifiers.

use boxoffice_http::error::{Error, FieldError, Result, ensure_no_field_errors, reject_if};

use super::model::{Modifier, ModifierCreate, ModifierPath, ModifierRow, ModifierUpdate, view};
use super::store;
use crate::features::catalog::events::{self, EventRow};
use crate::features::catalog::hosts;
use crate::features::catalog::sections::{self, SectionPath};
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Tx, ViolationExt, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::Ctx;

/// Maximum number of price modifiers of a section. Each price is computed from all of them.
const MAX_MODIFIERS: i64 = 50;

pub async fn list(ctx: &Ctx, caller: &Caller, path: &SectionPath, paging: PageRequest) -> Result<Page<Modifier>> {
    let now = ctx.app.clock.now();
    let mut reader = ctx.unit.read().await?;
    let uri = sections::SectionUri { event: Some(path.event), section: path.section };
    let section = sections::load(&mut reader, uri, now).await?;
    events::load_visible(&mut reader, caller, section.event_id).await?;
    Ok(store::list(&mut reader, section.id, paging).await?.map(|row| view(path.event, row)))
}

pub async fn create(ctx: &Ctx, caller: &Caller, path: &SectionPath, new: &ModifierCreate) -> Result<Modifier> {
    let now = ctx.app.clock.now();
    let row =
        transaction!(ctx.unit, |tx| create_in_tx(tx, caller, path.event, new.row(ctx.app.clock.next_id(), path.section), now)
            .await)?;
    Ok(view(path.event, row))
}

async fn create_in_tx(tx: &mut Tx, caller: &Caller, event: Id, row: ModifierRow, now: Timestamp) -> Result<ModifierRow> {
    let uri = sections::SectionUri { event: Some(event), section: row.section_id };
    let section = sections::load(tx, uri, now).await?;
    // Locked, so that concurrent requests can't exceed the limit.
    let event = events::lock_managed(tx, caller, section.event_id).await?;
    check_bounds(&row)?;
    event.check_changeable()?;
    hosts::require_active(tx, event.host_id).await?;
    reject_if(store::count_of_section(tx, row.section_id).await? >= MAX_MODIFIERS, codes::MODIFIER_TOO_MANY)?;
    // A foreign key rejects the modifier if the section was removed after it was loaded.
    store::insert(tx, std::slice::from_ref(&row))
        .await
        .on_taken("modifiers_section_id", "name", codes::MODIFIER_TAKEN)
        .on_foreign_key(Error::NOT_FOUND)?;
    Ok(row)
}

pub async fn get(ctx: &Ctx, caller: &Caller, path: ModifierPath) -> Result<Modifier> {
    let mut reader = ctx.unit.read().await?;
    let row = store::find(&mut reader, path).await?.ok_or(Error::NOT_FOUND)?;
    events::load_visible(&mut reader, caller, path.event).await?;
    Ok(view(path.event, row))
}

pub async fn update(ctx: &Ctx, caller: &Caller, path: ModifierPath, change: &ModifierUpdate) -> Result<Modifier> {
    let row = transaction!(ctx.unit, |tx| update_in_tx(tx, caller, path, change).await)?;
    Ok(view(path.event, row))
}

async fn update_in_tx(tx: &mut Tx, caller: &Caller, path: ModifierPath, change: &ModifierUpdate) -> Result<ModifierRow> {
    let (row, event) = lock_managed(tx, caller, path).await?;
    let row = change.apply(row);
    check_bounds(&row)?;
    event.check_changeable()?;
    store::update(tx, &row).await.on_taken("modifiers_section_id", "name", codes::MODIFIER_TAKEN)?;
    Ok(row)
}

pub async fn delete(ctx: &Ctx, caller: &Caller, path: ModifierPath) -> Result<()> {
    transaction!(ctx.unit, |tx| {
        let (row, _) = lock_managed(tx, caller, path).await?;
        store::delete(tx, row.id).await
    })
}

/// Locks and returns a modifier and its event, if the caller may change it. No other transaction changes the modifier until this
/// one ends.
async fn lock_managed(tx: &mut Tx, caller: &Caller, path: ModifierPath) -> Result<(ModifierRow, EventRow)> {
    store::find(tx, path).await?.ok_or(Error::NOT_FOUND)?;
    let event = events::lock_managed(tx, caller, path.event).await?;
    let row = store::lock(tx, path).await?.ok_or(Error::NOT_FOUND)?;
    Ok((row, event))
}

fn check_bounds(row: &ModifierRow) -> Result<()> {
    let mut problems = Vec::new();
    if row.available_from.zip(row.available_to).is_some_and(|(from, to)| to <= from) {
        problems.push(FieldError::invalid("availableTo", "must be after availableFrom"));
    }
    if row.min_order.zip(row.max_order).is_some_and(|(min, max)| max < min) {
        problems.push(FieldError::invalid("maxOrder", "must not be less than minOrder"));
    }
    ensure_no_field_errors(problems)
}
