//! Timestamps (microseconds since 1970, in UTC), their formats in requests and responses, and the clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use boxoffice_openapi::parse_date_time;
use chrono::{DateTime, SecondsFormat, Utc};
use parking_lot::Mutex;

use super::id::Id;
use sqlx::postgres::{PgHasArrayType, PgTypeInfo};

/// Microseconds of a day.
pub const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// A time in microseconds since 1970-01-01 UTC, which both databases store exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx_macros::Type)]
#[sqlx(transparent)]
pub struct Timestamp(pub i64);

impl PgHasArrayType for Timestamp {
    fn array_type_info() -> PgTypeInfo {
        i64::array_type_info()
    }
}

impl Timestamp {
    /// 0000-01-01T00:00:00Z, the earliest time that a request can have.
    pub const EARLIEST: Timestamp = Timestamp(-62_167_219_200_000_000);
    /// 9999-12-31T23:59:00Z, the end of an event without an end.
    pub const NEVER: Timestamp = Timestamp(253_402_300_740_000_000);

    /// Adds a duration. Saturates at the largest timestamp.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// Subtracts a duration. Saturates at the smallest timestamp.
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    /// Returns the time since an earlier timestamp. Zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    /// Returns the start of the next second.
    pub fn next_second(self) -> Self {
        Self((self.seconds() + 1) * 1_000_000)
    }

    /// Returns the start of its minute.
    pub fn start_of_minute(self) -> Self {
        Self(self.0 - self.0.rem_euclid(60_000_000))
    }

    /// Returns the whole seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Returns the time as a type of chrono.
    pub fn utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0).unwrap_or_default()
    }

    /// Formats the day as `2026-11-21`, for dates of birth.
    pub fn format_date(self) -> String {
        self.utc().format("%Y-%m-%d").to_string()
    }

    /// Formats as `2026-11-21T18:30`, for the start and end of events and sales.
    pub fn format_minutes(self) -> String {
        let mut text = self.format_rfc3339();
        text.truncate("2026-11-21T18:30".len());
        text
    }

    /// Formats as `2026-11-21 18:30`, for the schedule of advertisements.
    pub fn format_plain_minutes(self) -> String {
        self.utc().format("%Y-%m-%d %H:%M").to_string()
    }

    /// Formats as `2026-11-21 18:30:05`, for the start of sessions.
    pub fn format_plain_seconds(self) -> String {
        self.utc().format("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// Formats as `2026-11-21T18:30:05+00:00`, for tickets, admissions and all other RFC 3339 times.
    pub fn format_rfc3339(self) -> String {
        self.utc().to_rfc3339_opts(SecondsFormat::Secs, false)
    }

    /// Parses a date and time, see [`parse_date_time`].
    pub fn parse(text: &str) -> Option<Self> {
        parse_date_time(text).map(|time| Self(time.timestamp_micros()))
    }
}

/// The largest difference between the time of a [`Clock`] and that of the machine.
pub const MAX_LEAD: Duration = Duration::from_secs(2 * 60 * 60);
/// Servers whose identifiers are ahead of the time choose different remainders of this divisor.
const ID_SLOTS: i64 = 64;
/// Largest number of steps that are kept until they are read.
const MAX_STEPS: usize = 16;

/// Source of the time and of new identifiers.
///
/// If the machine's clock is set back by at most [`MAX_LEAD`], the time does not go back: it runs at half speed until the
/// machine's clock has caught up. So expired reservations and keys stay expired, and due work is delayed by less than the whole
/// step. A larger step corrects a clock that was wrong before, and this clock follows at once. Identifiers rise in any case.
#[derive(Debug)]
pub struct Clock {
    /// Microseconds added to the machine's clock, for tests.
    offset: AtomicI64,
    reading: Mutex<Reading>,
    last_id: AtomicI64,
    /// The remainder of identifiers that are ahead of the time. It differs between most servers, so that they don't generate the
    /// same identifiers.
    slot: i64,
}

#[derive(Debug, Default)]
struct Reading {
    /// The last reading of the machine's clock that was not behind, with the instant of the reading.
    last: Option<(Instant, i64)>,
    steps: Vec<ClockStep>,
}

/// A step of the machine's clock by more than [`MAX_LEAD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// The time that was expected at the moment of the step.
    pub before: Timestamp,
    /// The time that the machine's clock showed.
    pub after: Timestamp,
}

impl ClockStep {
    /// Returns whether the clock was set back.
    pub fn is_back(&self) -> bool {
        self.after < self.before
    }
}

impl Default for Clock {
    fn default() -> Self {
        let slot = rand::random_range(0..ID_SLOTS);
        Self { offset: AtomicI64::new(0), reading: Mutex::default(), last_id: AtomicI64::new(0), slot }
    }
}

impl Clock {
    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        let mut reading = self.reading.lock();
        let Timestamp(machine) = self.machine_time();
        if let Some((since, last)) = reading.last {
            let elapsed = i64::try_from(since.elapsed().as_micros()).unwrap_or(i64::MAX);
            let at_half_speed = last + elapsed / 2;
            if machine < at_half_speed && at_half_speed - machine <= micros(MAX_LEAD) {
                return Timestamp(at_half_speed);
            }
            let expected = last + elapsed;
            let is_step = machine < at_half_speed || machine - expected > micros(MAX_LEAD);
            if is_step && reading.steps.len() < MAX_STEPS {
                reading.steps.push(ClockStep { before: Timestamp(expected), after: Timestamp(machine) });
            }
        }
        reading.last = Some((Instant::now(), machine));
        Timestamp(machine)
    }

    /// Requires that the clock was not set back since it has returned this time. Call it before a commit that ends something because
    /// its time is over.
    ///
    /// # Errors
    /// Returns an error if the clock was set back.
    pub fn require_not_set_back(&self, since: Timestamp) -> Result<()> {
        if self.now() < since { Err(Error::Unavailable(anyhow!("the clock was set back meanwhile"))) } else { Ok(()) }
    }

    /// Returns the time of the machine's clock, which [`now`](Self::now) exceeds by at most [`MAX_LEAD`].
    pub fn machine_time(&self) -> Timestamp {
        Timestamp(Utc::now().timestamp_micros() + self.offset.load(Ordering::Relaxed))
    }

    /// Returns the large steps of the machine's clock since the last call.
    pub fn take_steps(&self) -> Vec<ClockStep> {
        self.now();
        std::mem::take(&mut self.reading.lock().steps)
    }

    /// Simulates that the machine's clock is set forward. For tests.
    pub fn advance(&self, duration: Duration) {
        self.offset.fetch_add(micros(duration), Ordering::Relaxed);
    }

    /// Simulates that the machine's clock is set back. For tests.
    pub fn rewind(&self, duration: Duration) {
        self.offset.fetch_sub(micros(duration), Ordering::Relaxed);
    }

    /// Makes all further identifiers greater than `last`. Otherwise identifiers would repeat if the machine's clock was set
    /// back while no server ran.
    pub fn ensure_ids_after(&self, last: Id) {
        self.last_id.fetch_max(last.0, Ordering::Relaxed);
    }

    /// Returns the last identifier.
    pub fn last_id(&self) -> Id {
        Id(self.last_id.load(Ordering::Relaxed))
    }

    /// Returns a new identifier: the time in units of 100 microseconds, which has 14 digits, and always greater than the last
    /// one. After a clock that was ahead, identifiers are counted from the last one until the time has caught up with them.
    ///
    /// Two servers may generate the same identifier; then the primary key rejects the second, and its transaction is retried.
    pub fn next_id(&self) -> Id {
        let now = self.now().0 / 100;
        let next = |last: i64| match last + 1 {
            next if next <= now => now,
            next if next - now <= micros(MAX_LEAD) / 100 => next,
            next => next + (self.slot - next).rem_euclid(ID_SLOTS),
        };
        match self.last_id.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))) {
            Ok(last) | Err(last) => Id(next(last)),
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
