//! Recorder of the checks made on one operation.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use boxoffice_openapi::Operation;
use regex::Regex;

use super::model::{Check, Coverage, Finding};
use super::operation_under_test::first_tag;

/// Longest excerpt of a response in a finding, in characters.
const MAX_EXCERPT_LENGTH: usize = 2000;

/// A key or another secret in a response. It is redacted, because a report has more readers than the key may have users.
#[expect(clippy::unwrap_used, reason = "the pattern is constant and every comparison compiles it")]
static KEY_PROPERTY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?i)"(key|[\w-]*(?:api_?key|password|secret|token))"\s*:\s*"[^"]*""#).unwrap());

/// Details of a failed check.
#[derive(Debug, Clone)]
pub struct CheckFailure {
    /// JSON pointer of the violated part of the document.
    pub pointer: String,
    /// See [`Finding::summary`].
    pub summary: String,
    /// See [`Finding::expected`].
    pub expected: String,
    /// See [`Finding::actual`].
    pub actual: String,
}

/// Coverage and findings of one operation. Equal findings are stored once and counted.
#[derive(Debug)]
pub struct OperationRecorder {
    /// Checks and statuses so far.
    pub coverage: Coverage,
    findings: Vec<Finding>,
    has_failed: bool,
}

impl OperationRecorder {
    /// Creates a recorder without any check.
    pub fn new(operation: &Operation) -> Self {
        let coverage = Coverage {
            operation: operation.id.clone(),
            method: operation.method.clone(),
            path: operation.path.clone(),
            tag: first_tag(operation).to_owned(),
            checks: BTreeMap::new(),
            declared: operation.statuses.clone(),
            seen: BTreeSet::new(),
            left_out: None,
            seconds: 0.0,
        };
        Self { coverage, findings: Vec::new(), has_failed: false }
    }

    /// Records a check and its failure, if any. `curl` returns the request as a command. It is called for the first failure of its
    /// kind only, because a body can be large.
    pub fn record(&mut self, check: Check, curl: impl FnOnce() -> String, failure: Option<CheckFailure>) {
        let counts = self.coverage.checks.entry(check).or_default();
        counts.made += 1;
        let Some(CheckFailure { pointer, summary, expected, actual }) = failure else { return };
        counts.failed += 1;
        self.has_failed = true;
        let is_equal = |finding: &&mut Finding| finding.check == check && finding.summary == summary;
        if let Some(finding) = self.findings.iter_mut().find(is_equal) {
            finding.occurrences += 1;
            return;
        }
        let (operation, curl) = (self.coverage.operation.clone(), curl());
        let [expected, actual] = [expected, actual].map(|text| truncate(&redact_keys(&text)));
        let occurrences = 1;
        self.findings.push(Finding { check, operation, pointer, summary, expected, actual, curl, occurrences });
    }

    /// Returns the findings so far.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns whether a check has failed since the last call.
    pub fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.has_failed)
    }

    /// Returns the coverage and the findings.
    pub fn finish(self) -> (Coverage, Vec<Finding>) {
        (self.coverage, self.findings)
    }
}

fn redact_keys(text: &str) -> Cow<'_, str> {
    KEY_PROPERTY.replace_all(text, r#""$1":"…""#)
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_EXCERPT_LENGTH) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use boxoffice_openapi::Contract;
    use serde_json::json;

    use super::*;

    #[test]
    fn both_texts_are_redacted_and_truncated() {
        let document = json!({ "openapi": "3.0.3", "paths": { "/a": { "get": { "responses": { "200": {} } } } } });
        let contract = Contract::new(document).unwrap();
        let mut recorder = OperationRecorder::new(contract.operations().next().unwrap());
        let text = format!(r#"200 {{"password":"hunter2","note":"{}"}}"#, "x".repeat(3000));
        let (pointer, summary) = (String::new(), String::new());
        let failure = CheckFailure { pointer, summary, expected: text.clone(), actual: text };
        recorder.record(Check::Complete, String::new, Some(failure));
        let finding = &recorder.findings()[0];
        assert_eq!(finding.expected, finding.actual);
        assert!(!finding.expected.contains("hunter2") && finding.expected.chars().count() < 2010, "{finding:?}");
    }
}
