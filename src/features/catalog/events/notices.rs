//! Notices of changed and cancelled events, which a job mails to the holders of tickets.

use std::time::Duration;

use boxoffice_http::error::Result;

use super::model::EventRow;
use crate::kernel::db::Tx;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::stored_text::stored_as_text;

/// The time for which changes of an event are collected before they are reported. It bounds the number of mails that a host can
/// cause.
const CHANGE_DELAY: Duration = Duration::from_secs(10 * 60);

/// The kind of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
pub enum NoticeKind {
    /// The start, the end, the time from which gates admit, or the venue was changed.
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
    /// The holders of tickets up to this one have got their mail.
    pub last_ticket_id: Id,
}

/// Stores the notice of a change, if a time or the venue of a locked event is another one and tickets were sold.
pub async fn store_change(tx: &mut Tx, before: &EventRow, after: &EventRow, now: Timestamp) -> Result<()> {
    let known = |event: &EventRow| (event.starts, event.ends, event.admission_from, event.venue_id);
    if known(before) == known(after) || before.popularity == 0 || after.ends <= now {
        return Ok(());
    }
    insert(tx, before, NoticeKind::Changed, now.plus(CHANGE_DELAY)).await
}

/// Stores the notice of the cancellation of a locked event, if tickets were sold.
pub async fn store_cancellation(tx: &mut Tx, event: &EventRow, now: Timestamp) -> Result<()> {
    if event.popularity == 0 || event.ends <= now { Ok(()) } else { insert(tx, event, NoticeKind::Cancelled, now).await }
}

/// Inserts a notice. If there is one already, it keeps what the holders know, and all of them get a mail. After some of them were mailed,
/// they know what was true until now.
async fn insert(tx: &mut Tx, known: &EventRow, kind: NoticeKind, due: Timestamp) -> Result<()> {
    tx.query(
        "insert into event_notices (event_id, kind, starts, venue, due, last_ticket_id, ends, admission_from)
         select $1, $2, $3, name, $5, 0, $6, $7 from venues where id = $4
         on conflict (event_id, kind) do update set last_ticket_id = 0,
             starts = case when event_notices.last_ticket_id = 0 then event_notices.starts else excluded.starts end,
             venue = case when event_notices.last_ticket_id = 0 then event_notices.venue else excluded.venue end,
             ends = case when event_notices.last_ticket_id = 0 then event_notices.ends else excluded.ends end,
             admission_from = case when event_notices.last_ticket_id = 0 then event_notices.admission_from
                 else excluded.admission_from end",
    )
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
pub async fn is_any_due(tx: &mut Tx, now: Timestamp) -> Result<bool> {
    tx.query("select exists (select 1 from event_notices where due <= $1)").bind(now).scalar().await
}

/// Locks and returns a due notice that no other server works on.
pub async fn claim(tx: &mut Tx, now: Timestamp) -> Result<Option<NoticeRow>> {
    let select = if tx.is_postgres() {
        "select event_id, kind, starts, ends, admission_from, venue, last_ticket_id from event_notices where due <= $1
         order by due limit 1 for update skip locked"
    } else {
        "select event_id, kind, starts, ends, admission_from, venue, last_ticket_id from event_notices where due <= $1
         order by due limit 1"
    };
    tx.query(select).bind(now).optional().await
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
