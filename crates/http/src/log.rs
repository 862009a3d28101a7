//! Log on standard error: readable text at a terminal, JSON lines elsewhere.

use std::io::{self, IsTerminal, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use slog::{Drain, FnValue, Level, Logger, OwnedKVList, PushFnValue, Record, o};
use slog_async::{Async, AsyncGuard, OverflowStrategy};

pub use crate::line_writer::wait_for_last_lines;
use crate::line_writer::{self, LineWriterGuard};

/// Maximum number of lines that wait for a terminal. Lines beyond that are dropped, and their number is logged.
const QUEUED_TERMINAL_LINES: usize = 16 * 1024;

/// Writes all queued lines when dropped.
pub enum LogGuard {
    /// Of a terminal.
    Terminal(AsyncGuard),
    /// Of JSON lines.
    Json(LineWriterGuard),
}

/// Changes the least important level that is logged, while the program runs.
#[derive(Debug, Clone)]
pub struct LevelControl {
    configured: Level,
    current: Arc<AtomicUsize>,
}

impl LevelControl {
    /// Sets the level to `debug`, or back to the configured one. Returns the new level.
    pub fn set_debug(&self, is_debug: bool) -> Level {
        let level = if is_debug { Level::Debug } else { self.configured };
        self.current.store(level.as_usize(), Ordering::Relaxed);
        level
    }
}

/// Passes on the lines of the current level and above.
struct LevelDrain<D> {
    drain: D,
    level: Arc<AtomicUsize>,
}

impl<D: Drain> Drain for LevelDrain<D> {
    type Ok = Option<D::Ok>;
    type Err = Option<D::Err>;

    fn log(&self, record: &Record<'_>, values: &OwnedKVList) -> Result<Self::Ok, Self::Err> {
        if !self.is_enabled(record.level()) {
            return Ok(None);
        }
        self.drain.log(record, values).map(Some).map_err(Some)
    }

    fn is_enabled(&self, level: Level) -> bool {
        level.as_usize() <= self.level.load(Ordering::Relaxed)
    }
}

/// Opens a log of this level and above. Dropping the guard writes all queued lines.
///
/// # Errors
/// Returns an error if the thread that writes the lines cannot be started.
pub fn open(level: Level) -> io::Result<(Logger, LevelControl, LogGuard)> {
    let current = Arc::new(AtomicUsize::new(level.as_usize()));
    let control = LevelControl { configured: level, current: Arc::clone(&current) };
    // The filter comes before the queue, so that a filtered line costs nothing.
    if stderr().is_terminal() {
        let decorator = slog_term::TermDecorator::new().stderr().build();
        let format = slog_term::FullFormat::new(decorator).use_utc_timestamp().build().ignore_res();
        let (drain, guard) = Async::new(format)
            .chan_size(QUEUED_TERMINAL_LINES)
            .overflow_strategy(OverflowStrategy::DropAndReport)
            .build_with_guard();
        let drain = LevelDrain { drain: drain.fuse(), level: current };
        return Ok((Logger::root(drain.fuse(), o!()), control, LogGuard::Terminal(guard)));
    }
    let (buffer, guard) = line_writer::start(stderr())?;
    let json = slog_json::Json::new(buffer).set_flush(true).set_newlines(true).add_key_value(o!(
        "ts" => FnValue(|_: &Record<'_>| timestamp()),
        "level" => FnValue(|record: &Record<'_>| level_name(record.level())),
        "msg" => PushFnValue(|record: &Record<'_>, serializer| serializer.emit(record.msg())),
    ));
    let drain = LevelDrain { drain: Mutex::new(json.build()).ignore_res(), level: current };
    Ok((Logger::root(drain.fuse(), o!()), control, LogGuard::Json(guard)))
}

/// Returns the time of a line.
pub(crate) fn timestamp() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Returns the usual name of a level.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Critical => "critical",
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
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

/// Returns a log that discards everything. For tests.
pub fn silent() -> Logger {
    Logger::root(slog::Discard, o!())
}
