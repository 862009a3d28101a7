//! What the admission operations mean: redeemers admit to the sections of their token, the event's host to all of it.

use std::collections::HashMap;

use anyhow::anyhow;

use super::model::{Admission, AdmissionCreate, AdmissionFilter, AdmissionRow};
use super::store;
use crate::accounts;
use crate::app::App;
use crate::auth::Caller;
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::base::paging::Page;
use crate::base::wire::{OffsetSeconds, Uri};
use crate::db::{Tx, transaction};
use crate::error::{Code, Error, Result};
use crate::tickets::{self, Serial, TicketRow};
use crate::{events, sections, tokens};

pub async fn list(app: &App, caller: &Caller, event: Id, filter: &AdmissionFilter) -> Result<Page<Admission>> {
    let mut tx = app.db.read().await?;
    let event = events::load(&mut tx, event).await?;
    let reach = tokens::reach(&mut tx, caller, &event).await?;
    let found = store::list(&mut tx, event.id, reach, filter).await?;
    let entries = views(&mut tx, caller, found.rows, app.clock.now()).await?;
    Ok(filter.paging.page(found.total, entries))
}

pub async fn create(app: &App, caller: &Caller, event: Id, new: &AdmissionCreate) -> Result<Vec<Admission>> {
    transaction!(app.db, |tx| admit(app, tx, caller, event, new).await)
}

pub async fn get(app: &App, caller: &Caller, event: Id, admission: Id) -> Result<Admission> {
    let mut tx = app.db.read().await?;
    let event = events::load(&mut tx, event).await?;
    let row = store::find(&mut tx, event.id, admission).await?.ok_or(Error::NOT_FOUND)?;
    let reach = tokens::reach(&mut tx, caller, &event).await?;
    reach.require(&mut tx, row.section_id).await?;
    let mut views = views(&mut tx, caller, vec![row], app.clock.now()).await?;
    views.pop().ok_or(Error::NOT_FOUND)
}

/// Redeems what can be redeemed and records the admissions, in the order in which their serials were given first.
async fn admit(app: &App, tx: &mut Tx, caller: &Caller, event: Id, new: &AdmissionCreate) -> Result<Vec<Admission>> {
    let event = events::load(tx, event).await?;
    let reach = tokens::reach(tx, caller, &event).await?;
    let now = app.clock.now();
    let serials: Vec<String> = new.serials.iter().map(|serial| serial.0.clone()).collect();
    let redeemed = tickets::redeem(tx, event.id, &serials, reach, now).await?;
    if redeemed.is_empty() {
        return Err(Code::AdmissionNone.because("None of these tickets can be admitted."));
    }
    let redeemer = match given(new.redeemer.as_ref()) {
        Some(told) => told,
        None => redeemer_of(tx, caller).await?,
    };
    let device = given(new.device.as_ref()).unwrap_or_default();
    // Taking a ticket out leaves nothing for the same serial given again.
    let mut redeemed: HashMap<String, TicketRow> = redeemed.into_iter().map(|ticket| (ticket.serial.clone(), ticket)).collect();
    let admitted = serials.iter().filter_map(|serial| redeemed.remove(serial)).map(|ticket| AdmissionRow {
        id: app.clock.next_id(),
        event_id: event.id,
        section_id: ticket.section_id,
        ticket_id: ticket.id,
        serial: ticket.serial,
        patron_id: ticket.owner_id,
        redeemer: redeemer.clone(),
        device: device.clone(),
        admitted: now,
    });
    let admitted: Vec<AdmissionRow> = admitted.collect();
    store::insert(tx, &admitted).await?;
    views(tx, caller, admitted, now).await
}

/// What was told, unless it is blank.
fn given(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty()).cloned()
}

/// What the caller is recorded as where the request tells no redeemer: its token's URI, or its account's number.
async fn redeemer_of(tx: &mut Tx, caller: &Caller) -> Result<String> {
    match (caller.redeemer, caller.account) {
        (Some(redeemer), _) => Ok(tokens::uri(redeemer.event, redeemer.token).0),
        (None, Some(account)) => Ok(accounts::find(tx, account).await?.map_or_else(String::new, |row| row.number)),
        (None, None) => Ok(String::new()),
    }
}

/// Admissions with their sections and patrons, each loaded once.
async fn views(tx: &mut Tx, caller: &Caller, rows: Vec<AdmissionRow>, now: Timestamp) -> Result<Vec<Admission>> {
    let sections = sections::rows(tx, rows.iter().map(|row| row.section_id), now).await?;
    let patrons = accounts::views_for(tx, caller, rows.iter().map(|row| row.patron_id)).await?;
    let view = |row: AdmissionRow| {
        let found = sections.get(&row.section_id).zip(patrons.get(&row.patron_id));
        let (section, patron) = found.ok_or_else(|| anyhow!("admission {} lacks its section or patron", row.id))?;
        Ok(Admission {
            uri: Uri(format!("/events/{}/admissions/{}", row.event_id, row.id)),
            redeemer: row.redeemer,
            device: row.device,
            ticket: Serial(row.serial),
            patron: patron.clone(),
            section: sections::view_long(section, now),
            admitted: OffsetSeconds(row.admitted.to_offset_seconds()),
        })
    };
    rows.into_iter().map(view).collect()
}
