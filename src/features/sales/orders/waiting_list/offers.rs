//! The job that offers free places to the accounts that wait for them.

use boxoffice_http::error::Result;
use serde_json::json;

use super::model::OfferRow;
use super::store;
use crate::features::catalog::events::EventStatus;
use crate::features::catalog::sections::{self, SectionRow};
use crate::features::sales::orders::model::EventSaleRow;
use crate::features::sales::orders::pricing::check_on_sale;
use crate::features::sales::orders::store as orders;
use crate::kernel::db::{Tx, transaction};
use crate::kernel::outbox::{self, Mail, MailTemplate, Recipient};
use crate::kernel::types::clock::Timestamp;
use crate::state::{App, Ctx};

/// Largest number of offers that a step makes.
const BATCH: i64 = 100;

/// Job step: brings the waiting list of one section up to date. Ends the offers that have lapsed, offers the free places, and closes
/// a list whose sale has ended. Returns the number of changed entries; call it until it returns 0.
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
    let Some(places) = sections::lock_available(tx, [id], now).await?.remove(&id) else { return Ok(0) };
    app.clock.require_not_set_back(now)?;
    let Some(section) = sections::find_by_ids(tx, [id], now).await?.remove(&id) else { return Ok(0) };
    let Some(event) = orders::event_sale_status(tx, [section.event_id]).await?.pop() else { return Ok(0) };
    if is_closed(&section, &event, now) {
        sections::close_waiting(tx, id).await?;
        return store::close(tx, id).await;
    }
    let lapsed = store::lapse(tx, id, now).await?;
    let free: i64 = lapsed.iter().sum();
    let offers = if check_on_sale(&section, &event, now).is_ok() {
        next_offers(store::first_waiting(tx, id, places.left + free, BATCH).await?, places.left + free)
    } else {
        Vec::new()
    };
    let offered: i64 = offers.iter().map(|offer| offer.quantity).sum();
    let count = i64::try_from(offers.len()).unwrap_or(i64::MAX);
    sections::adjust_waiting(tx, &[(id, -count, offered - free)]).await?;
    if !offers.is_empty() {
        let expires = now.plus(app.settings.reservation).min(section.sales_end);
        store::offer(tx, &offers, now, expires).await?;
        let mail = |offer: &OfferRow| Mail {
            recipient: Recipient::Account(offer.account_id),
            template: MailTemplate::PlacesOffered,
            values: json!({ "offer": offer.id.0 }),
        };
        outbox::push(app, tx, offers.iter().map(mail)).await?;
    }
    Ok((lapsed.len() + offers.len()) as u64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::types::id::Id;

    #[test]
    fn entries_that_fit_are_served_in_order() {
        let waiting = |quantities: &[i64]| {
            let entry =
                |(id, quantity): (i64, &i64)| OfferRow { id: Id(id), section_id: Id(1), account_id: Id(id), quantity: *quantity };
            (1..).zip(quantities).map(entry).collect::<Vec<_>>()
        };
        let served = |quantities: &[i64], places| -> Vec<i64> {
            next_offers(waiting(quantities), places).iter().map(|offer| offer.id.0).collect()
        };
        assert_eq!(served(&[2, 2, 1], 5), [1, 2, 3]);
        assert_eq!(served(&[2, 4, 1, 3], 5), [1, 3]);
        assert_eq!(served(&[4], 3), [0_i64; 0]);
    }
}
