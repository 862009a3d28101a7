//! A period of time, as reports and the ledger are asked for one.

use schemars::JsonSchema;
use serde::Deserialize;

use super::clock::Timestamp;
use super::api_types::DateTimeInput;

/// From one moment to another, both within; open where one is not given.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub struct Period {
    from: Option<DateTimeInput>,
    to: Option<DateTimeInput>,
}

impl Period {
    /// What is wrong with `to`, if it comes before `from`.
    pub fn problem(&self) -> Option<&'static str> {
        self.from.zip(self.to).is_some_and(|(from, to)| to.0 < from.0).then_some("must not be before from")
    }

    /// The first moment within.
    pub fn start(&self) -> Option<Timestamp> {
        self.from.map(|from| from.0)
    }

    /// The first moment after it. What lists show has whole seconds, so all of the last one is within.
    pub fn end(&self) -> Option<Timestamp> {
        self.to.map(|to| to.0.next_second())
    }
}
