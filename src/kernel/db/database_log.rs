//! Log of a database.

use std::time::Duration;

use boxoffice_http::log::Throttle;
use slog::{Logger, warn};

/// Largest length of a statement in the log.
const MAX_CHARACTERS: usize = 2000;

/// Log of the pools of a database and of slow statements.
#[derive(Debug)]
pub struct DatabaseLog {
    pub(super) log: Logger,
    /// The time from which a statement is logged as slow; `None`: never.
    slow_statement: Option<Duration>,
    throttle: Throttle,
}

impl DatabaseLog {
    /// Creates a log.
    pub(super) fn new(log: Logger, slow_statement: Option<Duration>) -> Self {
        Self { log, slow_statement, throttle: Throttle::default() }
    }

    /// Logs a statement if it was slow, at most one per second. The text has placeholders instead of values. `request_id` is that of the
    /// request that has run it; jobs and commands have none.
    pub(super) fn record_statement(&self, statement: &str, duration: Duration, request_id: Option<&str>) {
        if self.slow_statement.is_none_or(|threshold| duration < threshold) {
            return;
        }
        if let Some(suppressed) = self.throttle.line() {
            let words: Vec<&str> = statement.split_whitespace().collect();
            let text: String = words.join(" ").chars().take(MAX_CHARACTERS).collect();
            warn!(self.log, "a database statement was slow"; "statement" => text,
                "duration_ms" => u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
                "request" => request_id, "suppressed" => suppressed);
        }
    }
}
