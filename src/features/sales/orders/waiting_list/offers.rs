//! The job that offers free places to the accounts that wait for them.

use std::collections::{BTreeSet, HashMap};

use boxoffice_http::error::Result;

use super::model::{CandidateRow, OfferRow};
use super::store;
use crate::features::catalog::events::EventStatus;
use crate::features::catalog::sections::{self, SectionRow};
use crate::features::sales::mail_values::SalesMail;
use crate::features::sales::orders::inventory::account_maximum;
use crate::features::sales::orders::model::EventSaleRow;
use crate::features::sales::orders::pricing::check_on_sale;
use crate::features::sales::orders::store as orders;
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::outbox;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Largest number of offers that a step makes.
const BATCH: i64 = 100;

/// Job step: brings the waiting list of one section up to date. Ends the offers that have lapsed, offers the free places, and closes
/// entries that can't be served, and a list whose sale has ended. Returns the number of changed entries; call it until it returns 0.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn offer_places(ctx: &Ctx) -> Result<u64> {
    let now = ctx.app.clock.now();
    if !store::is_any_due(&mut ctx.unit.read().await?, now).await? {
        return Ok(0);
    }
    transaction!(ctx.unit, |tx| serve_next(&ctx.app, tx, now).await)
}

/// Serves a section that no other server works on.
async fn serve_next(app: &App, tx: &mut Tx, now: Timestamp) -> Result<u64> {
    let Some(id) = store::claim(tx, now).await? else { return Ok(0) };
    let Some(places) = sections::lock_available(app, tx, [id], now).await?.remove(&id) else { return Ok(0) };
    app.clock.require_not_set_back(now)?;
    let Some(section) = sections::find_all(tx, [id], now).await?.remove(&id) else { return Ok(0) };
    let Some(event) = orders::event_sale_status(tx, [section.event_id]).await?.pop() else { return Ok(0) };
    if is_closed(&section, &event, now) {
        sections::close_waiting(tx, id).await?;
        return store::close(tx, id).await;
    }
    let lapsed = store::lapse(tx, id, now).await?;
    let free: i64 = lapsed.iter().sum();
    let (offers, unservable) = if check_on_sale(&section, &event, now).is_ok() {
        let candidates = store::first_waiting(tx, id, places.left + free, BATCH).await?;
        let (servable, unservable) = split_servable(tx, &section, &event, candidates, now).await?;
        (next_offers(servable, places.left + free), unservable)
    } else {
        (Vec::new(), Vec::new())
    };
    store::close_entries(tx, &unservable).await?;
    let offered: i64 = offers.iter().map(|offer| offer.quantity).sum();
    let count = i64::try_from(offers.len() + unservable.len()).unwrap_or(i64::MAX);
    sections::adjust_waiting(tx, &[(id, -count, offered - free)]).await?;
    if !offers.is_empty() {
        let expires = now.plus(app.settings.reservation).min(section.sales_end);
        store::offer(tx, &offers, now, expires).await?;
        let mails = offers.iter().map(|offer| SalesMail::PlacesOffered { entry: offer.id }.to(offer.account_id));
        outbox::push_until(app, tx, mails, expires).await?;
    }
    Ok((lapsed.len() + offers.len() + unservable.len()) as u64)
}

/// Splits entries into those that can be served, and those that can't: the section has become too small for them or
/// their account was deactivated after they joined, or the account would exceed the section's maximum. As long as they waited, no
/// other account could order the free places.
async fn split_servable(
    reader: &mut Reader,
    section: &SectionRow,
    event: &EventSaleRow,
    candidates: Vec<CandidateRow>,
    now: Timestamp,
) -> Result<(Vec<OfferRow>, Vec<OfferRow>)> {
    let mut held: HashMap<Id, i64> = HashMap::new();
    if section.maximum_per_account.is_some() {
        let accounts: BTreeSet<Id> = candidates.iter().map(|candidate| candidate.entry.account_id).collect();
        let rows = orders::count_held(reader, &accounts, &BTreeSet::from([section.id]), now).await?;
        held.extend(rows.into_iter().map(|(account, _, tickets)| (account, tickets)));
    }
    let is_servable = |CandidateRow { entry, activated }: &CandidateRow| {
        let held = held.get(&entry.account_id).copied().unwrap_or_default();
        *activated && entry.quantity <= section.capacity && account_maximum(section, event, held, entry.quantity).is_ok()
    };
    let (servable, unservable): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_servable);
    let entries = |candidates: Vec<CandidateRow>| candidates.into_iter().map(|candidate| candidate.entry).collect();
    Ok((entries(servable), entries(unservable)))
}

/// Returns whether the list of a section ends, because nothing more will be sold.
fn is_closed(section: &SectionRow, event: &EventSaleRow, now: Timestamp) -> bool {
    section.sales_end <= now || event.ends <= now || event.status == EventStatus::Cancelled || event.host_removed
}

/// Returns the entries that are offered places, in the order of joining. An entry that needs more places than are left is passed
/// over.
fn next_offers(waiting: Vec<OfferRow>, mut left: i64) -> Vec<OfferRow> {
    let fits = |entry: &OfferRow| {
        let fits = entry.quantity <= left;
        left -= if fits { entry.quantity } else { 0 };
        fits
    };
    waiting.into_iter().filter(fits).collect()
}
