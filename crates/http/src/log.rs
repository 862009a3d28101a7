//! The log: to standard error, for people at a terminal and as JSON lines elsewhere.

use std::io::{IsTerminal, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slog::{Drain, Key, Level, LevelFilter, Logger, OwnedKVList, Record, Serializer, o};
use slog_async::{Async, AsyncGuard, OverflowStrategy};

/// Lines that may wait to be written; what comes when they are full is dropped, and the log says how much.
const QUEUE: usize = 16 * 1024;

/// A log of this level and above. What was logged is written when the guard is dropped at the latest.
pub fn open(level: Level) -> (Logger, AsyncGuard) {
    let (drain, guard) = if stderr().is_terminal() {
        let decorator = slog_term::TermDecorator::new().stderr().build();
        queue(slog_term::FullFormat::new(decorator).use_utc_timestamp().build().fuse())
    } else {
        queue(Mutex::new(slog_json::Json::default(stderr())).fuse())
    };
    // The filter stands before the queue, so that a line which isn't wanted costs nothing.
    (Logger::root(LevelFilter::new(drain, level).fuse(), o!()), guard)
}

fn queue(drain: impl Drain<Err = slog::Never, Ok = ()> + Send + 'static) -> (slog::Fuse<Async>, AsyncGuard) {
    let (queue, guard) = Async::new(drain).chan_size(QUEUE).overflow_strategy(OverflowStrategy::DropAndReport).build_with_guard();
    (queue.fuse(), guard)
}

/// The same log for dropshot, which is to be heard only when something is wrong, and never of a single request: the front door
/// tells of those, without their paths, in which an admission token's code may stand.
pub fn of_dropshot(log: &Logger) -> Logger {
    Logger::root(LevelFilter::new(DropRequestLines(log.clone()), Level::Warning).fuse(), o!())
}

struct DropRequestLines(Logger);

impl Drain for DropRequestLines {
    type Ok = ();
    type Err = slog::Never;

    fn log(&self, record: &Record, values: &OwnedKVList) -> Result<(), slog::Never> {
        let mut names = KeyProbe { has_uri: false };
        // It fails no more than looking at names can.
        let _looked_at = slog::KV::serialize(values, record, &mut names);
        if names.has_uri { Ok(()) } else { Drain::log(&self.0, record, values) }
    }
}

/// Looks for the name under which dropshot logs the address of a request.
struct KeyProbe {
    has_uri: bool,
}

impl Serializer for KeyProbe {
    fn emit_arguments(&mut self, name: Key, _: &std::fmt::Arguments) -> slog::Result {
        self.has_uri |= name == "uri";
        Ok(())
    }
}

/// Lets something be told once a second, however often it happens.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<Suppressed>);

#[derive(Debug, Default)]
struct Suppressed {
    told: Option<Instant>,
    count: u64,
}

impl Throttle {
    /// Whether it may be told now: then how often it happened untold since it was told last.
    pub fn line(&self) -> Option<u64> {
        let mut untold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if untold.told.is_some_and(|told| told.elapsed() < Duration::from_secs(1)) {
            untold.count += 1;
            return None;
        }
        untold.told = Some(Instant::now());
        Some(std::mem::take(&mut untold.count))
    }
}

/// A log that goes nowhere.
pub fn silent() -> Logger {
    Logger::root(slog::Discard, o!())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use slog::warn;

    use super::*;

    /// Keeps the texts of what is logged.
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl Drain for Kept {
        type Ok = ();
        type Err = slog::Never;

        fn log(&self, record: &Record, _: &OwnedKVList) -> Result<(), slog::Never> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(record.msg().to_string());
            Ok(())
        }
    }

    #[test]
    fn dropshot_tells_nothing_of_a_request() {
        let kept = Arc::default();
        let server = of_dropshot(&Logger::root(Kept(Arc::clone(&kept)), o!())).new(o!("local_addr" => "127.0.0.1:8080"));
        let request = server.new(o!("method" => "GET", "uri" => "/tokens/4K7QW2MZ")).new(o!());

        warn!(request, "request handling cancelled (client disconnected)"; "latency_us" => 12);
        warn!(server, "accept error"; "error" => "too many open files");

        assert_eq!(*kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner), ["accept error"]);
    }
}
