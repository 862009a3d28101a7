//! The log: to standard error, for people at a terminal and as JSON lines elsewhere.

use std::io::{IsTerminal, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slog::{Drain, Level, LevelFilter, Logger, o};
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

/// Lets something be told once a second, however often it happens.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<Untold>);

#[derive(Debug, Default)]
struct Untold {
    told: Option<Instant>,
    count: u64,
}

impl Seldom {
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

/// The same log for a part that is to be heard only when something is wrong.
pub fn warnings_only(log: &Logger) -> Logger {
    Logger::root(LevelFilter::new(log.clone(), Level::Warning).fuse(), o!())
}

/// A log that goes nowhere.
pub fn silent() -> Logger {
    Logger::root(slog::Discard, o!())
}
