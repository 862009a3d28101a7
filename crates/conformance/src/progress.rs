//! How far a comparison is, while it runs.

use std::io::{IsTerminal, Write, stderr};

use super::model::Coverage;

/// Tells on standard error how far a comparison is: on a terminal in one line that is written over, else in a line for each tag.
#[derive(Debug, Default)]
pub struct Progress {
    done: usize,
    tag: String,
}

impl Progress {
    /// Tells that an operation is done, of so many that are asked.
    pub fn tell(&mut self, coverage: &Coverage, count: usize) {
        if coverage.left_out.is_none() {
            self.done += 1;
        }
        let is_new = self.tag != coverage.tag;
        self.tag.clone_from(&coverage.tag);
        let line = format!("{}/{count} {}…", self.done, if self.tag.is_empty() { &coverage.path } else { &self.tag });
        // Nobody is left to tell when standard error is closed.
        let _unheard = match stderr().is_terminal() {
            true => write!(stderr(), "\r\x1b[K{line}"),
            false if is_new => writeln!(stderr(), "{line}"),
            false => Ok(()),
        };
    }

    /// Takes the line away.
    pub fn end(self) {
        if stderr().is_terminal() {
            let _unheard = write!(stderr(), "\r\x1b[K");
        }
    }
}
