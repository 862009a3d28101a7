//! Time: one representation inside (microseconds since 1970, UTC), one function for each format on the wire.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use boxoffice_openapi::parse_date_time;
use chrono::{DateTime, Utc};

use super::id::Id;

/// A moment, in microseconds since 1970-01-01 UTC, which is what both databases keep exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, sqlx::Type)]
#[sqlx(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// 9999-12-31T23:59:00Z, the end of an event for which none was given (wire facts).
    pub const NEVER: Timestamp = Timestamp(253_402_300_740_000_000);

    /// This moment and some time more; a sum past the end of time stays at the end.
    pub fn plus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// This moment and some time less.
    pub fn minus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros))
    }

    /// The beginning of the second after this moment's.
    pub fn next_second(self) -> Self {
        Self((self.seconds() + 1) * 1_000_000)
    }

    /// Whole seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    fn utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0).unwrap_or_default()
    }

    /// `2026-11-21T18:30`: the start and end of events and sales.
    pub fn to_minutes(self) -> String {
        self.utc().format("%Y-%m-%dT%H:%M").to_string()
    }

    /// `2026-11-21 18:30`: the slots of advertisements.
    pub fn format_slot(self) -> String {
        self.utc().format("%Y-%m-%d %H:%M").to_string()
    }

    /// `2026-11-21 18:30:05`: the start of sessions.
    pub fn to_plain_seconds(self) -> String {
        self.utc().format("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// `2026-11-21T18:30:05+00:00`: tickets, admissions and everything that is an RFC 3339 date-time.
    pub fn format_rfc3339(self) -> String {
        self.utc().format("%Y-%m-%dT%H:%M:%S+00:00").to_string()
    }

    /// Reads a date and time; see [`parse_date_time`].
    pub fn parse(text: &str) -> Option<Self> {
        parse_date_time(text).map(|time| Self(time.timestamp_micros()))
    }
}

/// Where the time comes from, and new identifiers. It never goes back: when the machine's clock is put back, this one runs at half
/// the speed until the other has caught up. So what has expired stays so, and what is due soon doesn't wait for the whole step.
#[derive(Debug, Default)]
pub struct Clock {
    /// Microseconds by which this clock takes the machine's to be ahead, for tests.
    ahead: AtomicI64,
    /// When the machine's clock was followed last, and what it said.
    followed: Mutex<Option<(Instant, i64)>>,
    last_id: AtomicI64,
}

impl Clock {
    /// The present moment.
    pub fn now(&self) -> Timestamp {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let machine = Utc::now().timestamp_micros() + self.ahead.load(Ordering::Relaxed);
        if let Some((since, then)) = *followed {
            let slowly = then + i64::try_from(since.elapsed().as_micros() / 2).unwrap_or(i64::MAX);
            if machine < slowly {
                return Timestamp(slowly);
            }
        }
        *followed = Some((Instant::now(), machine));
        Timestamp(machine)
    }

    /// Puts the machine's clock forward, as this one sees it.
    pub fn advance(&self, duration: Duration) {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.ahead.fetch_add(micros, Ordering::Relaxed);
    }

    /// Puts the machine's clock back, as this one sees it.
    pub fn rewind(&self, duration: Duration) {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.ahead.fetch_sub(micros, Ordering::Relaxed);
    }

    /// Has all further identifiers be more than this one: a clock that was put back while no server ran would repeat them.
    pub fn ensure_ids_after(&self, last: Id) {
        self.last_id.fetch_max(last.0, Ordering::Relaxed);
    }

    /// A new identifier: the time in units of 100 microseconds, which has 14 digits, and always more than the last one.
    ///
    /// Two servers may draw the same one; the primary key refuses the second, and the transaction is run again.
    pub fn next_id(&self) -> Id {
        let now = self.now().0 / 100;
        let next = |last: i64| Some(now.max(last + 1));
        match self.last_id.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(last) | Err(last) => Id(now.max(last + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_every_shape_and_given_back_in_utc() {
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
    fn a_birth_date_is_read_in_both_shapes() {
        assert_eq!(parse_birth_date("1990-02-28").as_deref(), Some("1990-02-28"));
        assert_eq!(parse_birth_date("28-02-1990").as_deref(), Some("1990-02-28"));
        assert_eq!(parse_birth_date("30-02-1990"), None);
    }

    #[test]
    fn a_clock_that_is_put_back_is_followed_slowly() {
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
    fn identifiers_rise_above_those_of_a_later_clock() {
        let clock = Clock::default();
        let later = Id(clock.next_id().0 + 36_000_000);
        clock.ensure_ids_after(later);
        clock.ensure_ids_after(Id(1));
        assert_eq!(clock.next_id(), Id(later.0 + 1));
    }

    #[test]
    fn identifiers_have_14_digits_and_rise() {
        let clock = Clock::default();
        let ids: Vec<Id> = (0..1000).map(|_| clock.next_id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert!(ids.iter().all(|id| id.to_string().len() == 14));
    }
}
