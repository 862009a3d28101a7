//! Notices of changed and cancelled events, which a job mails to the holders of tickets.

use std::time::Duration;

use boxoffice_http::error::Result;

use super::model::EventRow;
use crate::features::catalog::venues::{self, VenueChangeRow};
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::stored_text::stored_as_text;
use crate::state::Ctx;

/// The time for which changes of an event are collected before they are reported. It bounds the number of mails that a host can
/// cause.
const CHANGE_DELAY: Duration = Duration::from_secs(10 * 60);
/// Events of a changed venue for which a step stores notices.
const VENUE_BATCH: i64 = 200;

/// The kind of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
pub enum NoticeKind {
    /// The start, the end, the time from which gates admit, the venue, or its name or address was changed.
    Changed,
    /// The event was cancelled.
    Cancelled,
}

stored_as_text!(NoticeKind);

/// A row of `event_notices`.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct NoticeRow {
    /// The event.
    pub event_id: Id,
    /// The kind.
    pub kind: NoticeKind,
    /// The start that the holders know.
    pub starts: Timestamp,
    /// The end that the holders know; `None` in a row of a server of an earlier version.
    pub ends: Option<Timestamp>,
    /// The time that the holders know from which gates admit.
    pub admission_from: Option<Timestamp>,
    /// The name of the venue that the holders know.
    pub venue: String,
    /// The address of the venue that the holders know; `None` in a row of a server of an earlier version.
    pub address: Option<String>,
    /// The holders of tickets up to this one have got their mail.
    pub last_ticket_id: Id,
}

/// Stores the notice of a change, if a time or the venue of a locked event is another one and tickets were sold. An event that is over
/// stays without one. A change to the past has one, so that a correction of it is compared with what the holders know.
pub async fn store_change(tx: &mut Tx, before: &EventRow, after: &EventRow, now: Timestamp) -> Result<()> {
    let known = |event: &EventRow| (event.starts, event.ends, event.admission_from, event.venue_id);
    let is_over = before.ends <= now && after.ends <= now;
    if known(before) == known(after) || before.popularity == 0 || is_over {
        return Ok(());
    }
    insert(tx, before, NoticeKind::Changed, now.plus(CHANGE_DELAY)).await
}

/// Stores the notice of the cancellation of a locked event, if tickets were sold.
pub async fn store_cancellation(tx: &mut Tx, event: &EventRow, now: Timestamp) -> Result<()> {
    if event.popularity == 0 || event.ends <= now { Ok(()) } else { insert(tx, event, NoticeKind::Cancelled, now).await }
}

/// Job step: stores the notices of a few events whose venue got another name or address. Returns 1, or 0 if there is nothing to do; call
/// it until it returns 0.
pub async fn store_changes_of_venues(ctx: &Ctx) -> Result<u64> {
    if !venues::has_changes(&mut ctx.unit.read().await?).await? {
        return Ok(0);
    }
    transaction!(ctx.unit, |tx| store_next_change_of_venue(tx, ctx.app.clock.now()).await)
}

async fn store_next_change_of_venue(tx: &mut Tx, now: Timestamp) -> Result<u64> {
    let Some(change) = venues::claim_change(tx).await? else { return Ok(0) };
    let events = lock_of_venue(tx, &change).await?;
    let Some(last) = events.last().copied() else {
        venues::remove_change(tx, change.venue_id).await?;
        return Ok(1);
    };
    insert_for_venue(tx, &change, last, now).await?;
    venues::advance_change(tx, change.venue_id, last).await?;
    Ok(1)
}

/// Returns the next events of a changed venue, which can't be removed before the transaction ends.
async fn lock_of_venue(tx: &mut Tx, change: &VenueChangeRow) -> Result<Vec<Id>> {
    let events = tx.select("id from events where true").and_where("venue_id = ?", Some(change.venue_id));
    events.and_where("id > ?", Some(change.last_event_id)).for_key_share().push_bind(" limit ?", VENUE_BATCH).scalars().await
}

/// The statement that inserts notices. If there is one of an event already, it keeps what the holders know, and all of them get a mail.
/// After some of them were mailed, they know what was true until now.
macro_rules! insert {
    ($known:literal) => {
        concat!(
            "insert into event_notices (event_id, kind, starts, ends, admission_from, venue, address, due, last_ticket_id) select ",
            $known,
            " on conflict (event_id, kind) do update set last_ticket_id = 0,
             starts = case when event_notices.last_ticket_id = 0 then event_notices.starts else excluded.starts end,
             ends = case when event_notices.last_ticket_id = 0 then event_notices.ends else excluded.ends end,
             admission_from = case when event_notices.last_ticket_id = 0 then event_notices.admission_from
                 else excluded.admission_from end,
             venue = case when event_notices.last_ticket_id = 0 then event_notices.venue else excluded.venue end,
             address = case when event_notices.last_ticket_id = 0 then event_notices.address else excluded.address end"
        )
    };
}

/// Inserts the notices of those events of a changed venue after the last ones and up to this one that tickets were sold for and that are
/// not over.
async fn insert_for_venue(tx: &mut Tx, change: &VenueChangeRow, last_event: Id, now: Timestamp) -> Result<()> {
    tx.query(insert!(
        "e.id, $1, e.starts, e.ends, e.admission_from, $2, $3, $4, 0 from events e
         where e.venue_id = $5 and e.id > $6 and e.id <= $7 and e.ends > $8 and e.popularity > 0 and e.status <> 'Cancelled'"
    ))
    .bind(NoticeKind::Changed)
    .bind(change.name.clone())
    .bind(change.address.clone())
    .bind(now.plus(CHANGE_DELAY))
    .bind(change.venue_id)
    .bind(change.last_event_id)
    .bind(last_event)
    .bind(now)
    .execute()
    .await
}

/// Inserts the notice of an event, with the times and the venue of the last mail to the holders of its tickets: a change that no mail has
/// reported yet doesn't count, nor does one of the venue for which the job has not stored the event's notice yet.
async fn insert(tx: &mut Tx, known: &EventRow, kind: NoticeKind, due: Timestamp) -> Result<()> {
    tx.query(insert!(
        "$1, $2, case when n.kind is null then $3 else n.starts end, case when n.kind is null then $6 else n.ends end,
         case when n.kind is null then $7 else n.admission_from end, case when n.kind is null then coalesce(c.name, v.name) else n.venue end,
         case when n.kind is null then coalesce(c.address, v.address) else n.address end, $5, 0
         from venues v left join event_notices n on n.event_id = $1 and n.kind = 'Changed' and n.last_ticket_id = 0
         left join venue_changes c on c.venue_id = v.id and c.last_event_id < $1 where v.id = $4"
    ))
        .bind(known.id)
        .bind(kind)
        .bind(known.starts)
        .bind(known.venue_id)
        .bind(due)
        .bind(known.ends)
        .bind(known.admission_from)
        .execute()
        .await
}

/// Returns whether a notice is due. A cheap check, because usually there is none.
pub async fn is_any_due(reader: &mut Reader, now: Timestamp) -> Result<bool> {
    reader.query("select exists (select 1 from event_notices where due <= $1)").bind(now).scalar().await
}

/// Locks and returns a due notice that no other server works on.
pub async fn claim(reader: &mut Reader, now: Timestamp) -> Result<Option<NoticeRow>> {
    let select = if reader.is_postgres() {
        "select event_id, kind, starts, ends, admission_from, venue, address, last_ticket_id from event_notices where due <= $1
         order by due limit 1 for update skip locked"
    } else {
        "select event_id, kind, starts, ends, admission_from, venue, address, last_ticket_id from event_notices where due <= $1
         order by due limit 1"
    };
    reader.query(select).bind(now).optional().await
}

/// Makes a notice due later.
pub async fn postpone(tx: &mut Tx, notice: &NoticeRow, now: Timestamp) -> Result<()> {
    let update = "update event_notices set due = $3 where event_id = $1 and kind = $2";
    tx.query(update).bind(notice.event_id).bind(notice.kind).bind(now.plus(CHANGE_DELAY)).execute().await
}

/// Records that the holders of tickets up to this one have got their mail.
pub async fn advance(tx: &mut Tx, notice: &NoticeRow, last_ticket: Id) -> Result<()> {
    let update = "update event_notices set last_ticket_id = $3 where event_id = $1 and kind = $2";
    tx.query(update).bind(notice.event_id).bind(notice.kind).bind(last_ticket).execute().await
}

/// Removes a notice of which all holders have got their mail.
pub async fn remove(tx: &mut Tx, notice: &NoticeRow) -> Result<()> {
    let delete = "delete from event_notices where event_id = $1 and kind = $2";
    tx.query(delete).bind(notice.event_id).bind(notice.kind).execute().await
}

/// Makes notices due at `latest` that a clock ahead has postponed beyond it. Returns their number.
pub async fn correct_future(tx: &mut Tx, latest: Timestamp) -> Result<u64> {
    let latest = latest.plus(CHANGE_DELAY);
    tx.query("update event_notices set due = $1 where due > $1").bind(latest).rows_affected().await
}
