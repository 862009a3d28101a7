//! Progress of a running comparison on standard error.

use std::io::{IsTerminal, Write, stderr};

use super::model::Coverage;

/// Writes the progress to standard error: on a terminal into one line that is overwritten, otherwise one line for each tag.
#[derive(Debug, Default)]
pub struct ComparisonProgress {
    done: usize,
    tag: String,
}

impl ComparisonProgress {
    /// Writes that an operation is done. `count` is the number of operations to check.
    pub fn update(&mut self, coverage: &Coverage, count: usize) {
        if coverage.left_out.is_none() {
            self.done += 1;
        }
        let is_new_tag = self.tag != coverage.tag;
        self.tag.clone_from(&coverage.tag);
        let line = format!("{}/{count} {}…", self.done, if self.tag.is_empty() { &coverage.path } else { &self.tag });
        // Writing fails when standard error is closed. The comparison goes on.
        let _ignored = match stderr().is_terminal() {
            true => write!(stderr(), "\r\x1b[K{line}"),
            false if is_new_tag => writeln!(stderr(), "{line}"),
            false => Ok(()),
        };
    }

    /// Clears the line on a terminal.
    pub fn finish(self) {
        if stderr().is_terminal() {
            let _ignored = write!(stderr(), "\r\x1b[K");
        }
    }
}
