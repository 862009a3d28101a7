//! Log of slow statements.

use std::sync::OnceLock;
use std::time::Duration;

use boxoffice_http::log::Throttle;
use slog::{Logger, warn};

/// Largest length of a statement in the log.
const MAX_CHARACTERS: usize = 2000;

/// Logs statements that take long, at most one per second. It is off until [`enable`](Self::enable) is called.
#[derive(Debug, Default)]
pub struct SlowStatements(OnceLock<SlowLog>);

#[derive(Debug)]
struct SlowLog {
    threshold: Duration,
    log: Logger,
    throttle: Throttle,
}

impl SlowStatements {
    /// Logs statements that take at least this time.
    pub fn enable(&self, threshold: Duration, log: Logger) {
        // It is enabled once, when the server starts.
        let _first = self.0.set(SlowLog { threshold, log, throttle: Throttle::default() });
    }

    /// Logs a statement if it was slow. The text has placeholders instead of values. `request_id` is that of the request that has run
    /// it; jobs and commands have none.
    pub fn record(&self, statement: &str, duration: Duration, request_id: Option<&str>) {
        let Some(slow) = self.0.get().filter(|slow| duration >= slow.threshold) else { return };
        if let Some(suppressed) = slow.throttle.line() {
            let words: Vec<&str> = statement.split_whitespace().collect();
            let text: String = words.join(" ").chars().take(MAX_CHARACTERS).collect();
            warn!(slow.log, "a database statement was slow"; "statement" => text,
                "duration_ms" => u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
                "request" => request_id, "suppressed" => suppressed);
        }
    }
}
