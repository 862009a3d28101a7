//! What is noted of an operation while it is asked.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::model::{Check, Coverage, Finding};
use super::operation_under_test::Subject;

/// The most characters that are kept of what was answered.
const KEPT: usize = 2000;

/// A key that a server gave: a report is read by more people than may use it.
#[expect(clippy::unwrap_used, reason = "a mistake in the code, seen by the first comparison")]
static KEY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""key"\s*:\s*"[^"]*""#).unwrap());

/// Something that is not as the document says.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Its place in the document, as a JSON pointer.
    pub pointer: String,
    /// See [`Finding::summary`].
    pub summary: String,
    /// See [`Finding::expected`].
    pub expected: String,
    /// See [`Finding::actual`].
    pub actual: String,
}

/// What was asked of an operation, and what was found. The same finding is kept once, and counted.
#[derive(Debug)]
pub struct OperationRecorder {
    /// What was asked.
    pub coverage: Coverage,
    found: Vec<(Finding, usize)>,
}

impl OperationRecorder {
    /// Nothing asked yet.
    pub fn new(subject: &Subject<'_>) -> Self {
        let operation = subject.operation;
        let coverage = Coverage {
            operation: operation.id.clone(),
            method: operation.method.clone(),
            path: operation.path.clone(),
            tag: subject.tag.clone(),
            checks: BTreeMap::new(),
            declared: operation.statuses.clone(),
            seen: BTreeSet::new(),
            left_out: None,
        };
        Self { coverage, found: Vec::new() }
    }

    /// Notes that a check was made, and what it found. `curl` is the request as a command.
    pub fn judge(&mut self, check: Check, curl: &str, fault: Option<Fault>) {
        let tally = self.coverage.checks.entry(check).or_default();
        tally.made += 1;
        let Some(fault) = fault else { return };
        tally.failed += 1;
        let same = |(finding, _): &&mut (Finding, usize)| finding.check == check && finding.summary == fault.summary;
        match self.found.iter_mut().find(same) {
            Some((_, times)) => *times += 1,
            None => {
                let Fault { pointer, summary, expected, actual } = fault;
                let (operation, curl) = (self.coverage.operation.clone(), curl.to_owned());
                self.found.push((
                    Finding { check, operation, pointer, summary, expected, actual: shortened(&without_keys(&actual)), curl },
                    1,
                ));
            }
        }
    }

    /// What was asked, and each finding with how often it was found.
    pub fn finish(self) -> (Coverage, Vec<Finding>) {
        let counted = self.found.into_iter().map(|(mut finding, times)| {
            if times > 1 {
                finding.actual = format!("{} (found {times} times; this is the first)", finding.actual);
            }
            finding
        });
        (self.coverage, counted.collect())
    }
}

fn without_keys(text: &str) -> Cow<'_, str> {
    KEY.replace_all(text, r#""key":"…""#)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(KEPT) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}
