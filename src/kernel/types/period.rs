//! A period of time, as a filter of lists and reports.

use boxoffice_http::error::{FieldError, Result, ensure_no_field_errors};
use schemars::JsonSchema;
use serde::Deserialize;

use super::api_types::DateTimeInput;
use super::clock::{DAY_MICROS, Timestamp};

/// A period from one time to another, both included. An absent end leaves the period open on that side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct Period {
    from: Option<DateTimeInput>,
    to: Option<DateTimeInput>,
}

impl Period {
    /// Returns what is wrong with `to` if it is before `from`.
    pub fn problem(&self) -> Option<FieldError> {
        let is_reversed = self.from.zip(self.to).is_some_and(|(from, to)| to.0 < from.0);
        is_reversed.then(|| FieldError::invalid("to", "must not be before from"))
    }

    /// Succeeds unless `to` is before `from`.
    ///
    /// # Errors
    /// [`Error::Invalid`](boxoffice_http::error::Error::Invalid).
    pub fn check(&self) -> Result<()> {
        ensure_no_field_errors(self.problem().into_iter().collect())
    }

    /// Returns the first time in the period.
    pub fn start(&self) -> Option<Timestamp> {
        self.from.map(|from| from.0)
    }

    /// Returns the first time after the period. Lists show whole seconds, so the whole last second is in the period.
    pub fn end(&self) -> Option<Timestamp> {
        self.to.map(|to| to.0.next_second())
    }

    /// Returns the first day of the period and the first day after it, as numbers of days since 1970 in UTC. `None` if the period
    /// begins or ends within a day.
    pub fn days(&self) -> Option<(Option<i64>, Option<i64>)> {
        let day = |time: Option<Timestamp>| match time {
            None => Some(None),
            Some(Timestamp(micros)) => (micros.rem_euclid(DAY_MICROS) == 0).then_some(Some(micros.div_euclid(DAY_MICROS))),
        };
        Some((day(self.start())?, day(self.end())?))
    }
}
