//! A job that watches the machine's clock, logs its steps, and corrects stored times after it was ahead.
//!
//! The server's time follows the machine's clock, see [`Clock`](crate::kernel::types::clock::Clock). A clock that is ahead for a
//! while leaves rows with times in the future: reservations, keys, codes, mails, payments and idempotency keys would stay in use
//! for as long as the clock was ahead. They are corrected as if they had been created at the time of the correction. Times that
//! only record an event, such as the ledger's, are not changed. The correction is repeated for a minute, because a request that reads
//! the time before the clock is right may store it later.

use std::time::{Duration, Instant};

use boxoffice_http::error::Result;
use parking_lot::Mutex;
use slog::{error, warn};

use crate::features::catalog::events::notices;
use crate::features::identity::verification_codes;
use crate::features::sales::event_returns;
use crate::features::sales::orders::{self, waiting_list};
use crate::features::sales::payments;
use crate::kernel::auth;
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::clock::{ClockStep, MAX_LEAD, Timestamp};
use crate::kernel::types::id::Id;
use crate::kernel::{idempotency, outbox};
use crate::state::App;

/// Smaller differences between the server's time and the machine's clock are not logged.
const NOTICEABLE: Duration = Duration::from_secs(1);
/// Interval at which a clock that was set forward is logged again.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Number of times that a clock that was set forward is logged. After that, the new time is taken to be right.
const MAX_REPEATS: u32 = 24;
/// Number of checks that correct stored times after the clock was ahead. With the job's interval of 30 seconds, the last one follows a
/// minute after the first: longer than a request waits for a lock or for the payment gateway.
const CORRECTIONS: u32 = 3;

/// The state of the job.
#[derive(Debug, Default)]
pub struct ClockWatch(Mutex<WatchState>);

#[derive(Debug, Default)]
struct WatchState {
    /// The last step forward that was not followed by a step back.
    forward: Option<ForwardStep>,
    /// True if the highest identifier was ahead of the time at the last check.
    is_id_ahead: bool,
    /// Number of the next checks that correct stored times.
    corrections: u32,
}

#[derive(Debug)]
struct ForwardStep {
    step: ClockStep,
    logged_at: Instant,
    repeats: u32,
}

/// Job step: logs steps of the machine's clock, and corrects stored times in the future once the clock is right. Returns 0.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn watch(app: &App) -> Result<u64> {
    log_steps(app);
    check_ids(app, app.db.highest_id().await?);
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
    Ok(0)
}

/// Returns whether the machine's clock may be wrong: it was set far forward in the last day, or it differs from that of the database.
/// Then work that can wait should wait, such as deleting what seems to have expired.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn may_be_wrong(app: &App) -> Result<bool> {
    log_steps(app);
    let was_set_forward = app.clock_watch.0.lock().forward.is_some();
    Ok(was_set_forward || differing_clocks(app).await?.is_some())
}

/// Returns the times of the machine and of the database if they differ by more than [`MAX_LEAD`]. SQLite has no clock of its own.
async fn differing_clocks(app: &App) -> Result<Option<(Timestamp, Timestamp)>> {
    let Some(database) = app.db.clock_time().await? else { return Ok(None) };
    let machine = app.clock.machine_time();
    let differ = database > machine.plus(MAX_LEAD) || machine > database.plus(MAX_LEAD);
    Ok(differ.then_some((machine, database)))
}

/// Logs what the machine's clock has done since the last call.
fn log_steps(app: &App) {
    let mut state = app.clock_watch.0.lock();
    for step in app.clock.take_steps() {
        let (expected, clock) = (step.before.format_rfc3339(), step.after.format_rfc3339());
        if step.is_back() {
            error!(app.log, "the machine's clock was set back; the server follows it"; "expected" => expected, "clock" => clock);
            (state.forward, state.corrections) = (None, CORRECTIONS);
        } else {
            log_step_forward(app, &step);
            state.forward = Some(ForwardStep { step, logged_at: Instant::now(), repeats: 0 });
        }
    }
    if let Some(forward) = state.forward.as_mut().filter(|forward| forward.logged_at.elapsed() >= REPEAT_INTERVAL) {
        log_step_forward(app, &forward.step);
        (forward.logged_at, forward.repeats) = (Instant::now(), forward.repeats + 1);
    }
    state.forward.take_if(|forward| forward.repeats >= MAX_REPEATS);
    drop(state);
    let (time, clock) = (app.clock.now(), app.clock.machine_time());
    if time > clock.plus(NOTICEABLE) {
        warn!(app.log, "the machine's clock was set back; the server's time runs at half speed until the clock has caught up";
            "time" => time.format_rfc3339(), "clock" => clock.format_rfc3339());
    }
}

fn log_step_forward(app: &App, step: &ClockStep) {
    error!(app.log, "the machine's clock was set forward, or the machine was suspended; reservations, codes and sessions end by \
        the new time. If it is wrong, correct the clock: the server follows without a restart";
        "expected" => step.before.format_rfc3339(), "clock" => step.after.format_rfc3339());
}

/// Generates identifiers above those of all servers. If they are far ahead of the time, a clock was ahead on this server or on
/// another one, and stored times need a correction.
fn check_ids(app: &App, highest: Id) {
    let now = app.clock.now();
    let until = Timestamp(highest.0.saturating_mul(100));
    let is_ahead = until > now.plus(MAX_LEAD);
    let is_new = Timestamp(app.clock.last_id().0.saturating_mul(100)).plus(MAX_LEAD) < until;
    app.clock.ensure_ids_after(highest);
    let mut state = app.clock_watch.0.lock();
    if is_ahead && (is_new || !state.is_id_ahead) {
        state.corrections = CORRECTIONS;
        warn!(app.log, "identifiers are ahead of the clock, because a server's clock was ahead; new ones are counted from the \
            highest one until the clock has caught up"; "clock" => now.format_rfc3339(), "identifiers" => until.format_rfc3339());
    }
    state.is_id_ahead = is_ahead;
}

/// Corrects all stored times that decide about the future and lie too far in it.
async fn correct_future(app: &App, tx: &mut Tx, now: Timestamp) -> Result<()> {
    // Other servers may be ahead by this much.
    let latest = now.plus(MAX_LEAD);
    let keys = auth::correct_future(tx, now, latest).await?;
    let codes = verification_codes::correct_future(tx, now, latest).await?;
    let orders = orders::correct_future(tx, now, latest).await?;
    let offers = waiting_list::correct_future(tx, now, latest).await?;
    let payments = payments::correct_future(tx, now, latest).await?;
    let mails = outbox::correct_future(tx, now, latest).await?;
    let notices = notices::correct_future(tx, latest).await?;
    let returns = event_returns::correct_future(tx, latest).await?;
    let requests = idempotency::correct_future(tx, now, latest).await?;
    if keys + codes + orders + offers + payments + mails + notices + returns + requests > 0 {
        warn!(app.log, "stored times in the future were corrected"; "clock" => now.format_rfc3339(), "keys" => keys,
            "codes" => codes, "orders" => orders, "offers" => offers, "payments" => payments, "mails" => mails, "notices" => notices,
            "returns" => returns, "idempotency_keys" => requests);
    }
    Ok(())
}
