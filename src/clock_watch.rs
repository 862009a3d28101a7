//! A job that watches the machine's clock, logs its steps, and corrects stored times after it was ahead.
//!
//! The server's time follows the machine's clock, see [`Clock`](crate::kernel::types::clock::Clock). A clock that is ahead for a
//! while leaves rows with times in the future: reservations, keys, codes, mails, payments and idempotency keys would stay in use
//! for as long as the clock was ahead. They are corrected as if they had been created at the time of the correction. Times that
//! only record an event, such as the ledger's, are not changed. The correction is repeated for a minute, because a request that reads
//! the time before the clock is right may store it later.
//!
//! A process that has just started can't know whether its clock is right. If stored times are ahead of the clock, it first waits for
//! [`SETTLING_TIME`], in which NTP may set a clock that is behind. If its clock is ahead of the last time that a server has seen, which
//! is [stored](crate::kernel::clock_state), only what had expired before that time is [deleted](deletion_time) for a day.

use std::time::{Duration, Instant};

use anyhow::bail;
use boxoffice_http::error::Result;
use parking_lot::Mutex;
use slog::{error, warn};

use crate::features::catalog::events::{self, notices};
use crate::features::identity::verification_codes;
use crate::features::sales::event_returns;
use crate::features::sales::orders::{self, waiting_list};
use crate::features::sales::payments;
use crate::kernel::auth;
use crate::kernel::clock_state::{self, ClockState};
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::clock::{MAX_LEAD, Timestamp};
use crate::kernel::types::id::Id;
use crate::kernel::{idempotency, outbox};
use crate::state::App;

/// Smaller differences between the server's time and the machine's clock are not logged.
const NOTICEABLE: Duration = Duration::from_secs(1);
/// Interval at which a step forward that is not accepted yet is logged again.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Time without a step of the clock, from the start on, before stored times in the future are corrected.
pub const SETTLING_TIME: Duration = Duration::from_secs(10 * 60);
/// Number of checks that correct stored times after the clock was ahead. With the job's interval of 30 seconds, the last one follows a
/// minute after the first: longer than a request waits for a lock or for the payment gateway.
const CORRECTIONS: u32 = 3;

/// The state of the job.
#[derive(Debug, Default)]
pub struct ClockWatch(Mutex<WatchState>);

#[derive(Debug, Default)]
struct WatchState {
    /// The time of the first check, or of the last step after it.
    steady_since: Option<Timestamp>,
    /// The last time at which the log got a step forward that is not accepted yet.
    step_logged: Option<Instant>,
    /// True if stored times were ahead of the clock at the last check.
    is_behind: bool,
    /// True if they are corrected after [`SETTLING_TIME`].
    is_correction_due: bool,
    /// Number of the next checks that correct stored times.
    corrections: u32,
}

/// Job step: logs steps of the machine's clock, and corrects stored times in the future once the clock is right. Returns 0.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn watch(app: &App) -> Result<u64> {
    let (time, steady_since) = log_steps(app);
    let highest = app.db.highest_id().await?;
    let state = clock_state::load(&mut app.db.read().await?).await?;
    check_stored_times(app, highest, state.last_seen, steady_since);
    if let Some((machine, database)) = differing_clocks(app).await? {
        error!(app.log, "the clock of this machine differs from that of the database: correct the wrong one";
            "clock" => machine.format_rfc3339(), "database_clock" => database.format_rfc3339());
        // Stored times can't be judged by a clock that may be wrong.
        return Ok(0);
    }
    if app.clock_watch.0.lock().corrections > 0 {
        let now = app.clock.now();
        transaction!(app.db, |tx| correct_future(app, tx, now).await)?;
        let mut state = app.clock_watch.0.lock();
        state.corrections = state.corrections.saturating_sub(1);
    }
    // If the state was just corrected, this changes nothing, and the next run reads it.
    store_time(app, state, time, steady_since).await?;
    Ok(0)
}

/// Returns the time by which jobs decide what has expired and can be deleted. After a step forward, of the machine's clock or since a
/// server last ran, it is the time before the step, until a day has passed: the new time may be wrong. Returns `None` while the clock
/// differs from that of the database; then nothing is deleted.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn deletion_time(app: &App) -> Result<Option<Timestamp>> {
    let (now, steady_since) = log_steps(app);
    if differing_clocks(app).await?.is_some() {
        return Ok(None);
    }
    let old = clock_state::load(&mut app.db.read().await?).await?;
    let state = store_time(app, old, now, steady_since).await?;
    Ok(Some(state.before_step.map_or(now, |before| before.min(now))))
}

/// Confirms that the machine's clock is right, so that what has expired is deleted at once.
///
/// # Errors
/// Returns an error if the clock differs from that of the database, or the database fails.
pub async fn accept_time(app: &App) -> anyhow::Result<()> {
    if let Some((machine, database)) = differing_clocks(app).await? {
        let (machine, database) = (machine.format_rfc3339(), database.format_rfc3339());
        bail!("the clock of this machine ({machine}) differs from that of the database ({database}): correct the wrong one");
    }
    transaction!(app.db, |tx| clock_state::accept(tx, app.clock.now()).await).map_err(Into::into)
}

/// Replaces the stored state `old` by that at `now`, and logs a step forward that is not accepted yet.
async fn store_time(app: &App, old: ClockState, now: Timestamp, steady_since: Timestamp) -> Result<ClockState> {
    let state = old.at(now, steady_since);
    if state != old {
        transaction!(app.db, |tx| clock_state::replace(tx, old, state).await)?;
    }
    let mut watch = app.clock_watch.0.lock();
    if let (Some(before), Some(accepted)) = (state.before_step, state.accepted_at)
        && state.last_seen <= now
        && watch.step_logged.is_none_or(|at| at.elapsed() >= REPEAT_INTERVAL)
    {
        watch.step_logged = Some(Instant::now());
        warn!(app.log, "the clock is much later than when a server last ran; for a day, only what had expired before is deleted. If the \
            time is wrong, correct the clock. If it is right, nothing is needed; `boxoffice admin jobs run \"apply the retention\" \
            --accept-time` ends the wait at once";
            "before" => before.format_rfc3339(), "clock" => now.format_rfc3339(), "until" => accepted.format_rfc3339());
    }
    Ok(state)
}

/// Returns the times of the machine and of the database if they differ by more than [`MAX_LEAD`]. SQLite has no clock of its own.
async fn differing_clocks(app: &App) -> Result<Option<(Timestamp, Timestamp)>> {
    let Some(database) = app.db.clock_time().await? else { return Ok(None) };
    let machine = app.clock.machine_time();
    let differ = database > machine.plus(MAX_LEAD) || machine > database.plus(MAX_LEAD);
    Ok(differ.then_some((machine, database)))
}

/// Logs the steps of the machine's clock since the last call. Returns the time, and the time since which there was none.
///
/// A time that is read later may follow a step that is not logged yet, and would be stored as one that the process has seen pass.
fn log_steps(app: &App) -> (Timestamp, Timestamp) {
    let time = app.clock.now();
    let mut state = app.clock_watch.0.lock();
    for step in app.clock.take_steps() {
        let (expected, clock) = (step.before.format_rfc3339(), step.after.format_rfc3339());
        state.steady_since = Some(step.after);
        if step.is_back() {
            error!(app.log, "the machine's clock was set back; the server follows it"; "expected" => expected, "clock" => clock);
            state.corrections = CORRECTIONS;
        } else {
            error!(app.log, "the machine's clock was set forward, or the machine was suspended; reservations, codes and sessions end by \
                the new time. If it is wrong, correct the clock: the server follows without a restart";
                "expected" => expected, "clock" => clock);
        }
    }
    let clock = app.clock.machine_time();
    let steady_since = *state.steady_since.get_or_insert(time);
    drop(state);
    if time > clock.plus(NOTICEABLE) {
        warn!(app.log, "the machine's clock was set back; the server's time runs at half speed until the clock has caught up";
            "time" => time.format_rfc3339(), "clock" => clock.format_rfc3339());
    }
    (time, steady_since)
}

/// Generates identifiers above those of all servers. If they or the last time that a server has seen are far ahead of the time, a clock
/// was ahead on this server or on another one, or this one is behind. Stored times are corrected once the clock has been steady.
fn check_stored_times(app: &App, highest: Id, last_seen: Timestamp, steady_since: Timestamp) {
    let now = app.clock.now();
    let ids_until = Timestamp(highest.0.saturating_mul(100));
    let stored = ids_until.max(last_seen);
    let is_behind = stored > now.plus(MAX_LEAD);
    let is_new = Timestamp(app.clock.last_id().0.saturating_mul(100)).plus(MAX_LEAD) < ids_until;
    app.clock.ensure_ids_after(highest);
    let mut state = app.clock_watch.0.lock();
    if is_behind && (is_new || !state.is_behind) {
        // After a step back that this server has seen, it corrects them at once.
        state.is_correction_due = state.corrections == 0;
        let when =
            if state.is_correction_due { ". They are corrected once the clock has been steady for 10 minutes" } else { "" };
        warn!(app.log, "stored times are ahead of the clock: a server's clock was ahead, or this machine's is behind{when}; identifiers \
            are counted on from the highest one";
            "clock" => now.format_rfc3339(), "stored" => stored.format_rfc3339());
    }
    state.is_behind = is_behind;
    state.is_correction_due &= is_behind;
    if state.is_correction_due && now.since(steady_since) >= SETTLING_TIME {
        (state.is_correction_due, state.corrections) = (false, CORRECTIONS);
    }
}

/// Corrects all stored times that decide about the future and lie too far in it.
async fn correct_future(app: &App, tx: &mut Tx, now: Timestamp) -> Result<()> {
    // Other servers may be ahead by this much.
    let latest = now.plus(MAX_LEAD);
    // First, because an order is locked before its events.
    let orders = orders::correct_future(app, tx, now, latest).await?;
    let cancellations = events::correct_future(tx, now, latest).await?;
    let keys = auth::correct_future(tx, now, latest).await?;
    let codes = verification_codes::correct_future(tx, now, latest).await?;
    let offers = waiting_list::correct_future(tx, now, latest).await?;
    let payments = payments::correct_future(tx, now, latest).await?;
    let mails = outbox::correct_future(tx, now, latest).await?;
    let notices = notices::correct_future(tx, latest).await?;
    let returns = event_returns::correct_future(tx, latest).await?;
    let requests = idempotency::correct_future(tx, now, latest).await?;
    clock_state::correct_future(tx, now, latest).await?;
    if cancellations + keys + codes + orders + offers + payments + mails + notices + returns + requests > 0 {
        warn!(app.log, "stored times in the future were corrected"; "clock" => now.format_rfc3339(),
            "cancellations" => cancellations, "keys" => keys,
            "codes" => codes, "orders" => orders, "offers" => offers, "payments" => payments, "mails" => mails, "notices" => notices,
            "returns" => returns, "idempotency_keys" => requests);
    }
    Ok(())
}
