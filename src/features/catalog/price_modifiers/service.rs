//! What the price modifier operations mean: whoever manages an event prices its tickets.

use super::model::{Modifier, ModifierCreate, ModifierPath, ModifierRow, ModifierUpdate, view};
use super::store;
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::db::{Tx, ViolationExt, transaction};
use boxoffice_http::error::{Code, Error, FieldError, Result, ensure_no_field_errors};
use crate::features::catalog::events::{self, EventRow};
use crate::features::catalog::hosts;
use crate::features::catalog::sections::{self, SectionPath};

const NAME: &str = "modifiers_section_id_name_key";
/// The price modifiers that a section can have: every price is made of all of them.
const MOST: i64 = 50;

pub async fn create(app: &App, caller: &Caller, path: &SectionPath, new: &ModifierCreate) -> Result<Modifier> {
    let now = app.clock.now();
    let row = transaction!(app.db, |tx| add(tx, caller, path.event, new.row(app.clock.next_id(), path.section), now).await)?;
    Ok(view(path.event, row))
}

async fn add(tx: &mut Tx, caller: &Caller, event: Id, row: ModifierRow, now: Timestamp) -> Result<ModifierRow> {
    let uri = sections::SectionUri { event: Some(event), section: row.section_id };
    let section = sections::load(tx, uri, now).await?;
    let event = events::load_managed(tx, caller, section.event_id).await?;
    check_bounds(&row)?;
    event.check_changeable()?;
    hosts::require_active(tx, event.host_id).await?;
    // Held, so that its modifiers come one by one.
    sections::lock(tx, row.section_id).await?;
    if store::count_of_section(tx, row.section_id).await? >= MOST {
        return Err(Code::ModifierTooMany.into());
    }
    // The section may have been removed meanwhile, which a foreign key says.
    store::insert(tx, &row).await.on_unique(NAME, Code::ModifierTaken).on_foreign_key(Error::NOT_FOUND)?;
    Ok(row)
}

pub async fn get(app: &App, caller: &Caller, path: ModifierPath) -> Result<Modifier> {
    let mut tx = app.db.read().await?;
    let row = store::find(&mut tx, path).await?.ok_or(Error::NOT_FOUND)?;
    events::load_visible(&mut tx, caller, path.event).await?;
    Ok(view(path.event, row))
}

pub async fn update(app: &App, caller: &Caller, path: ModifierPath, change: &ModifierUpdate) -> Result<Modifier> {
    let row = transaction!(app.db, |tx| modify(tx, caller, path, change).await)?;
    Ok(view(path.event, row))
}

async fn modify(tx: &mut Tx, caller: &Caller, path: ModifierPath, change: &ModifierUpdate) -> Result<ModifierRow> {
    let (row, event) = lock_managed(tx, caller, path).await?;
    let row = change.apply(row);
    check_bounds(&row)?;
    event.check_changeable()?;
    store::update(tx, &row).await.on_unique(NAME, Code::ModifierTaken)?;
    Ok(row)
}

pub async fn delete(app: &App, caller: &Caller, path: ModifierPath) -> Result<()> {
    transaction!(app.db, |tx| {
        let (row, _) = lock_managed(tx, caller, path).await?;
        store::delete(tx, row.id).await
    })
}

/// A modifier for who may change it, which nobody else does before this transaction ends; and its event.
async fn lock_managed(tx: &mut Tx, caller: &Caller, path: ModifierPath) -> Result<(ModifierRow, EventRow)> {
    let row = store::lock(tx, path).await?.ok_or(Error::NOT_FOUND)?;
    let event = events::load_managed(tx, caller, path.event).await?;
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
