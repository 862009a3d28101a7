//! Log on standard error: readable text at a terminal, JSON lines elsewhere.

use std::io::{IsTerminal, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slog::{Drain, Key, Level, LevelFilter, Logger, OwnedKVList, Record, Serializer, o};
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

/// Returns the log for dropshot: warnings and errors, without those about a single request. The dispatcher logs requests itself,
/// without their paths, because a path may contain an admission token's code.
pub fn for_dropshot(log: &Logger) -> Logger {
    Logger::root(LevelFilter::new(DropRequestLines(log.clone()), Level::Warning).fuse(), o!())
}

struct DropRequestLines(Logger);

impl Drain for DropRequestLines {
    type Ok = ();
    type Err = slog::Never;

    fn log(&self, record: &Record, values: &OwnedKVList) -> Result<(), slog::Never> {
        let mut probe = KeyProbe { has_uri: false };
        // The probe never returns an error.
        let _infallible = slog::KV::serialize(values, record, &mut probe);
        if probe.has_uri { Ok(()) } else { Drain::log(&self.0, record, values) }
    }
}

/// Detects the key under which dropshot logs a request's URI.
struct KeyProbe {
    has_uri: bool,
}

impl Serializer for KeyProbe {
    fn emit_arguments(&mut self, key: Key, _: &std::fmt::Arguments) -> slog::Result {
        self.has_uri |= key == "uri";
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use slog::warn;

    use super::*;

    /// Collects the messages.
    struct Messages(Arc<Mutex<Vec<String>>>);

    impl Drain for Messages {
        type Ok = ();
        type Err = slog::Never;

        fn log(&self, record: &Record, _: &OwnedKVList) -> Result<(), slog::Never> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record.msg().to_string());
            Ok(())
        }
    }

    #[test]
    fn dropshot_lines_about_requests_are_dropped() {
        let messages = Arc::default();
        let server = for_dropshot(&Logger::root(Messages(Arc::clone(&messages)), o!())).new(o!("local_addr" => "127.0.0.1:8080"));
        let request = server.new(o!("method" => "GET", "uri" => "/tokens/4K7QW2MZ")).new(o!());

        warn!(request, "request handling cancelled (client disconnected)"; "latency_us" => 12);
        warn!(server, "accept error"; "error" => "too many open files");

        assert_eq!(*messages.lock().unwrap_or_else(PoisonError::into_inner), ["accept error"]);
    }
}
