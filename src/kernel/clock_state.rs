//! The last time that a server has seen, in the database: a new process compares its clock with it.

use std::time::Duration;

use boxoffice_http::error::Result;

use super::db::{Reader, Tx};
use super::types::clock::{MAX_LEAD, Timestamp};

/// Time after which a step forward is taken to be right.
const ACCEPTANCE: Duration = Duration::from_secs(24 * 60 * 60);
/// The time is stored once per interval.
const STORE_INTERVAL: Duration = Duration::from_secs(60);

/// The state that all processes on the database share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx_macros::FromRow)]
pub struct ClockState {
    /// The last time that a server has seen; 0 until one has run.
    pub last_seen: Timestamp,
    /// The time before a step forward that is not accepted yet.
    pub before_step: Option<Timestamp>,
    /// The time at which that step is accepted.
    pub accepted_at: Option<Timestamp>,
}

impl ClockState {
    /// Returns the state at `now`, for a process whose clock has had no step since `steady_since`. If that is more than [`MAX_LEAD`]
    /// after the last time, there was a step forward. Otherwise the process itself has seen the time pass, although it stored nothing.
    ///
    /// A second step doesn't prolong the wait for the first one. Otherwise a server that is stopped each night would never accept a
    /// time.
    pub fn at(mut self, now: Timestamp, steady_since: Timestamp) -> Self {
        if self.accepted_at.is_some_and(|at| at <= now) {
            (self.before_step, self.accepted_at) = (None, None);
        }
        let is_step = self.last_seen.0 > 0 && steady_since > self.last_seen.plus(MAX_LEAD);
        if is_step && self.before_step.is_none() {
            (self.before_step, self.accepted_at) = (Some(self.last_seen), Some(now.plus(ACCEPTANCE)));
        }
        if now >= self.last_seen.plus(STORE_INTERVAL) {
            self.last_seen = now;
        }
        self
    }
}

/// Returns the stored state.
pub async fn load(reader: &mut Reader) -> Result<ClockState> {
    reader.query("select last_seen, before_step, accepted_at from clock_state").one().await
}

/// Replaces a state, unless another process has done so.
pub async fn replace(tx: &mut Tx, old: ClockState, new: ClockState) -> Result<()> {
    tx.query("update clock_state set last_seen = $1, before_step = $2, accepted_at = $3 where last_seen = $4")
        .bind(new.last_seen)
        .bind(new.before_step)
        .bind(new.accepted_at)
        .bind(old.last_seen)
        .execute()
        .await
}

/// Accepts the time `now` at once.
pub async fn accept(tx: &mut Tx, now: Timestamp) -> Result<()> {
    tx.query("update clock_state set last_seen = $1, before_step = null, accepted_at = null").bind(now).execute().await
}

/// Corrects a state that was stored while the clock was ahead: at a time after `latest`.
pub async fn correct_future(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<()> {
    tx.query("update clock_state set last_seen = $1, before_step = null, accepted_at = null where last_seen > $2")
        .bind(now)
        .bind(latest)
        .execute()
        .await
}
