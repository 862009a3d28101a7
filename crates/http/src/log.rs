//! Log on standard error: readable text at a terminal, JSON lines elsewhere.

use std::io::{IsTerminal, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slog::{Drain, Level, LevelFilter, Logger, o};
use slog_async::{Async, AsyncGuard, OverflowStrategy};

/// Maximum number of queued lines. Lines beyond that are dropped, and their number is logged.
const QUEUE_LINES: usize = 16 * 1024;

/// Opens a log of this level and above. Dropping the guard writes all queued lines.
pub fn open(level: Level) -> (Logger, AsyncGuard) {
    let (drain, guard) = if stderr().is_terminal() {
        let decorator = slog_term::TermDecorator::new().stderr().build();
        queue(slog_term::FullFormat::new(decorator).use_utc_timestamp().build().ignore_res())
    } else {
        // If standard error is closed, lines are lost. The server continues.
        queue(Mutex::new(slog_json::Json::default(stderr())).ignore_res())
    };
    // The filter comes before the queue, so that a filtered line costs nothing.
    (Logger::root(LevelFilter::new(drain, level).fuse(), o!()), guard)
}

fn queue(drain: impl Drain<Err = slog::Never, Ok = ()> + Send + 'static) -> (slog::Fuse<Async>, AsyncGuard) {
    let (queue, guard) =
        Async::new(drain).chan_size(QUEUE_LINES).overflow_strategy(OverflowStrategy::DropAndReport).build_with_guard();
    (queue.fuse(), guard)
}

/// Limits repeated log lines to one per second.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<Suppressed>);

#[derive(Debug, Default)]
struct Suppressed {
    logged_at: Option<Instant>,
    count: u64,
}

impl Throttle {
    /// Returns the number of lines suppressed since the last one; `None` if this line is to be suppressed too.
    pub fn line(&self) -> Option<u64> {
        let mut suppressed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if suppressed.logged_at.is_some_and(|logged_at| logged_at.elapsed() < Duration::from_secs(1)) {
            suppressed.count += 1;
            return None;
        }
        suppressed.logged_at = Some(Instant::now());
        Some(std::mem::take(&mut suppressed.count))
    }
}

/// Returns a log that discards everything.
pub fn silent() -> Logger {
    Logger::root(slog::Discard, o!())
}
