//! The job that mails changes of events to the holders of tickets.

use boxoffice_http::error::Result;
use serde_json::json;

use super::store::{self, NoticeEventRow};
use crate::features::catalog::events::EventStatus;
use crate::features::catalog::events::notices::{self, NoticeKind, NoticeRow};
use crate::kernel::db::{Tx, transaction};
use crate::kernel::outbox::{self, Mail, MailTemplate, Recipient};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Holders of tickets to whom a step stores mails.
const BATCH: i64 = 200;

/// Job step: stores the notices of a few events of a changed venue, or else the mails about a changed or cancelled event to a few
/// holders of tickets. Returns 1, or 0 if there is nothing to do; call it until it returns 0.
pub async fn report_events(ctx: &Ctx) -> Result<u64> {
    if notices::store_changes_of_venues(ctx).await? > 0 {
        return Ok(1);
    }
    if !notices::is_any_due(&mut ctx.unit.read().await?, ctx.app.clock.now()).await? {
        return Ok(0);
    }
    transaction!(ctx.unit, |tx| report_next(&ctx.app, tx).await)
}

async fn report_next(app: &App, tx: &mut Tx) -> Result<u64> {
    let now = app.clock.now();
    let Some(notice) = notices::claim(tx, now).await? else { return Ok(0) };
    let event = store::notice_event(tx, notice.event_id).await?;
    let Some(event) = event.filter(|event| is_true(&notice, event)) else {
        notices::remove(tx, &notice).await?;
        return Ok(1);
    };
    if event.ends <= now {
        // Perhaps by mistake. As long as the holders expect the event, a correction is compared with what they know.
        let is_expected = notice.kind == NoticeKind::Changed && notice.ends.is_some_and(|ends| ends > now);
        if is_expected {
            notices::postpone(tx, &notice, now).await?
        } else {
            notices::remove(tx, &notice).await?
        }
        return Ok(1);
    }
    let holders = store::holders(tx, event.id, notice.last_ticket_id, BATCH).await?;
    let mails: Vec<Mail<'_>> = holders.iter().map(|(_, holder)| mail(&notice, &event, *holder)).collect();
    outbox::push(app, tx, mails).await?;
    match holders.last() {
        Some((last_ticket, _)) if holders.len() as i64 == BATCH => notices::advance(tx, &notice, *last_ticket).await?,
        _ => notices::remove(tx, &notice).await?,
    }
    Ok(1)
}

/// Returns whether the event still differs from what its holders know. A change may have been taken back.
fn is_true(notice: &NoticeRow, event: &NoticeEventRow) -> bool {
    let is_cancelled = event.status == EventStatus::Cancelled;
    match notice.kind {
        NoticeKind::Changed => {
            let has_other_end = |ends| (ends, notice.admission_from) != (event.ends, event.admission_from);
            let has_other_time = notice.starts != event.starts || notice.ends.is_some_and(has_other_end);
            let has_other_address = notice.address.as_ref().is_some_and(|address| *address != event.address);
            !is_cancelled && (has_other_time || notice.venue != event.venue || has_other_address)
        }
        NoticeKind::Cancelled => is_cancelled,
    }
}

fn mail(notice: &NoticeRow, event: &NoticeEventRow, holder: Id) -> Mail<'static> {
    // A notice of an earlier version does not have these times: its mail shows no change of them.
    let (ends, admission_from) = match notice.ends {
        Some(ends) => (ends, notice.admission_from),
        None => (event.ends, event.admission_from),
    };
    let (template, event) = match notice.kind {
        NoticeKind::Changed => (MailTemplate::EventChanged, event.clone()),
        // Shows the times and the venue of the last mail, also if the event was changed shortly before.
        NoticeKind::Cancelled => {
            let (venue, address) = (notice.venue.clone(), notice.address.clone().unwrap_or_else(|| event.address.clone()));
            let known = NoticeEventRow { starts: notice.starts, ends, admission_from, venue, address, ..event.clone() };
            (MailTemplate::EventCancelled, known)
        }
    };
    let end = |ends: Timestamp| (ends != Timestamp::NEVER).then_some(ends.0);
    let mut values = json!({
        "event": {
            "number": event.id.to_string(), "title": event.title, "starts": event.starts.0, "ends": end(event.ends),
            "admission_from": event.admission_from.map(|time| time.0), "venue": event.venue, "address": event.address,
        },
        "before": {
            "starts": notice.starts.0, "ends": end(ends), "admission_from": admission_from.map(|time| time.0), "venue": notice.venue,
        },
    });
    if let Some(address) = &notice.address {
        values["before"]["address"] = address.as_str().into();
    }
    Mail { recipient: Recipient::Account(holder), template, values }
}
