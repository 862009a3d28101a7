//! How far a long task is, on standard error.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// A task that tells how far it is: a line that is written over at a terminal, and one in ten seconds elsewhere.
pub struct Progress {
    task: String,
    begun: Instant,
    told: Instant,
    is_terminal: bool,
}

impl Progress {
    /// A task that begins.
    pub fn new(task: &str) -> Self {
        let now = Instant::now();
        let progress = Self { task: task.to_owned(), begun: now, told: now, is_terminal: stderr().is_terminal() };
        progress.say(&format!("{task} …"));
        progress
    }

    /// So much is done of a part of it.
    pub fn tell(&mut self, part: &str, done: i64, of: i64) {
        let pause = if self.is_terminal { Duration::from_millis(100) } else { Duration::from_secs(10) };
        if self.told.elapsed() >= pause {
            self.told = Instant::now();
            self.say(&format!("{}: {part}, {done} of {of}", self.task));
        }
    }

    /// It is done.
    pub fn end(self) {
        self.say(&format!("{}: done in {:.1} s", self.task, self.begun.elapsed().as_secs_f64()));
        if self.is_terminal {
            let _unheard = writeln!(stderr());
        }
    }

    fn say(&self, line: &str) {
        // Nobody is left to tell when standard error is closed.
        let _unheard = if self.is_terminal { write!(stderr(), "\r\x1b[K{line}") } else { writeln!(stderr(), "{line}") };
    }
}
