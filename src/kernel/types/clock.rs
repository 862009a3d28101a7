//! Timestamps (microseconds since 1970, in UTC), their formats in requests and responses, and the clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use boxoffice_openapi::parse_date_time;
use chrono::{DateTime, SecondsFormat, Utc};

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
    pub fn date(self) -> String {
        self.utc().format("%Y-%m-%d").to_string()
    }

    /// Formats as `2026-11-21T18:30`, for the start and end of events and sales.
    pub fn to_minutes(self) -> String {
        let mut text = self.format_rfc3339();
        text.truncate("2026-11-21T18:30".len());
        text
    }

    /// Formats as `2026-11-21 18:30`, for the schedule of advertisements.
    pub fn format_slot(self) -> String {
        self.utc().format("%Y-%m-%d %H:%M").to_string()
    }

    /// Formats as `2026-11-21 18:30:05`, for the start of sessions.
    pub fn to_plain_seconds(self) -> String {
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
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
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
        std::mem::take(&mut self.reading.lock().unwrap_or_else(PoisonError::into_inner).steps)
    }

    /// Simulates that the machine's clock is set forward.
    pub fn advance(&self, duration: Duration) {
        self.offset.fetch_add(micros(duration), Ordering::Relaxed);
    }

    /// Simulates that the machine's clock is set back.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_times_in_every_format_as_utc() {
        for (text, expected) in [
            ("2026-12-01T19:30", Some("2026-12-01T19:30")),
            ("2026-12-01 19:30", Some("2026-12-01T19:30")),
            ("2026-12-01T19:30:15", Some("2026-12-01T19:30")),
            ("2026-12-01T19:30:15.123456", Some("2026-12-01T19:30")),
            ("2026-12-01T19:30Z", Some("2026-12-01T19:30")),
            ("2026-12-01T19:30:00+02:00", Some("2026-12-01T17:30")),
            ("2026-12-01T19:30-0530", Some("2026-12-02T01:00")),
            ("9999-12-31T23:59", Some("9999-12-31T23:59")),
            ("0000-01-01T00:00", Some("0000-01-01T00:00")),
            ("0000-01-01T00:00+01:00", None),
            ("9999-12-31T23:59-01:00", None),
            ("2026-12-31T23:59:60Z", Some("2027-01-01T00:00")),
            ("9999-12-31T23:59:60", None),
            ("2026-13-01T19:30", None),
            ("2026-02-30T19:30", None),
            ("yesterday", None),
        ] {
            let read = Timestamp::parse(text).map(Timestamp::to_minutes);
            assert_eq!(read.as_deref(), expected, "{text}");
        }
        assert_eq!(Timestamp::parse("9999-12-31T23:59"), Some(Timestamp::NEVER));
    }

    #[test]
    fn runs_at_half_speed_after_the_clock_is_set_back() {
        let clock = Clock::default();
        let before = clock.now();
        clock.rewind(Duration::from_secs(3600));
        let readings: Vec<Timestamp> = (0..1000).map(|_| clock.now()).collect();
        assert!(readings.is_sorted() && before <= readings[0], "it never goes back");
        assert!(readings[999].0 - before.0 < 3_600_000_000, "and does not leap");

        clock.advance(Duration::from_secs(7200));
        assert!(clock.now().0 - before.0 >= 3_600_000_000, "forward it goes at once");
    }

    #[test]
    fn identifiers_exceed_those_of_a_clock_ahead() {
        let clock = Clock::default();
        let later = Id(clock.next_id().0 + 36_000_000);
        clock.ensure_ids_after(later);
        clock.ensure_ids_after(Id(1));
        assert_eq!(clock.next_id(), Id(later.0 + 1));
    }

    #[test]
    fn follows_a_large_step_back_with_rising_identifiers() {
        const DAYS: Duration = Duration::from_secs(40 * 24 * 60 * 60);
        let clock = Clock::default();
        let before = (clock.now(), clock.next_id());

        clock.advance(DAYS);
        let ahead = (clock.now(), clock.next_id());
        clock.rewind(DAYS);
        let after = (clock.now(), clock.next_id(), clock.next_id());

        assert!(ahead.0 >= before.0.plus(DAYS));
        assert!(before.0 <= after.0 && after.0 < before.0.plus(MAX_LEAD), "the time follows the machine's clock");
        assert!(before.1 < ahead.1 && ahead.1 < after.1 && after.1 < after.2, "identifiers rise");
        let steps: Vec<bool> = clock.take_steps().iter().map(ClockStep::is_back).collect();
        assert_eq!(steps, [false, true]);
        assert_eq!(clock.take_steps(), []);
    }

    #[test]
    fn servers_ahead_of_the_time_generate_different_identifiers() {
        let ids = |slot: i64| {
            let clock = Clock { slot, ..Clock::default() };
            clock.ensure_ids_after(Id(clock.next_id().0 + 2 * micros(MAX_LEAD) / 100));
            (0..100).map(move |_| clock.next_id()).collect::<Vec<Id>>()
        };
        let (one, other) = (ids(3), ids(4));
        assert!(one.is_sorted_by(|a, b| a < b) && one.iter().all(|id| id.0 % ID_SLOTS == 3));
        assert!(one.iter().all(|id| !other.contains(id)));
    }

    #[test]
    fn identifiers_have_14_digits_and_increase() {
        let clock = Clock::default();
        let ids: Vec<Id> = (0..1000).map(|_| clock.next_id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert!(ids.iter().all(|id| id.to_string().len() == 14));
    }
}
