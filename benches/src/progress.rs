//! Progress of a long task, on standard error.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Progress of a task: a line that is overwritten at a terminal, or a line every ten seconds elsewhere.
pub struct Progress {
    task: String,
    started: Instant,
    printed: Instant,
    is_terminal: bool,
}

impl Progress {
    /// Starts a task.
    pub fn new(task: &str) -> Self {
        let now = Instant::now();
        let progress = Self { task: task.to_owned(), started: now, printed: now, is_terminal: stderr().is_terminal() };
        progress.print(&format!("{task} …"));
        progress
    }

    /// Reports the progress of a part of the task.
    pub fn update(&mut self, part: &str, done: i64, total: i64) {
        let interval = if self.is_terminal { Duration::from_millis(100) } else { Duration::from_secs(10) };
        if self.printed.elapsed() >= interval {
            self.printed = Instant::now();
            self.print(&format!("{}: {part}, {done} of {total}", self.task));
        }
    }

    /// Ends the task.
    pub fn finish(self) {
        self.print(&format!("{}: done in {:.1} s", self.task, self.started.elapsed().as_secs_f64()));
        if self.is_terminal {
            let _ignored = writeln!(stderr());
        }
    }

    fn print(&self, line: &str) {
        // Fails only if standard error is closed.
        let _ignored = if self.is_terminal { write!(stderr(), "\r\x1b[K{line}") } else { writeln!(stderr(), "{line}") };
    }
}
