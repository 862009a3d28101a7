//! Baseline of known findings, each with the day on which it expires.
//!
//! The file is YAML or JSON:
//!
//! ```yaml
//! - check: response.body
//!   operation: order_create
//!   summary: the response 201 has a body that lacks number   # optional: without it, all findings of the check in the operation
//!   expires: 2026-12-31                                      # last day on which the entry applies
//!   reason: Fixed in 3.1, which is released in December.
//! ```

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use chrono::NaiveDate;
use serde::Deserialize;
use serde_yaml_ng::Value;

use super::model::{Check, Finding, KnownFinding, operation_label};

/// Instruction in the error of an invalid entry.
const ENTRY_FORMAT: &str =
    "Write check, operation, expires (YYYY-MM-DD) and reason, and optionally the summary of a single finding.";

/// Known findings. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: Vec<BaselineEntry>,
}

/// One entry of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaselineEntry {
    check: Check,
    /// The operationId; empty for findings about the server or the document as a whole.
    operation: String,
    /// The finding's exact summary. Without it, the entry covers every finding of the check in the operation.
    summary: Option<String>,
    expires: NaiveDate,
    reason: String,
}

/// Findings, split by a baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineResult {
    /// Findings without a valid entry.
    pub findings: Vec<Finding>,
    /// Findings with an entry.
    pub known: Vec<KnownFinding>,
    /// Notes about expired entries and entries without a finding.
    pub notes: Vec<String>,
}

impl Baseline {
    /// Reads a baseline from a file.
    ///
    /// # Errors
    /// Fails if the file can't be read, is not a list, or has an invalid entry. The error contains the number of the entry.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("the baseline {} can't be read", file.display()))?;
        Self::parse(&text).with_context(|| format!("the baseline {}", file.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let entries: Option<Vec<Value>> = serde_yaml_ng::from_str(text).context("is not a list of entries in YAML or JSON")?;
        let entries = entries.unwrap_or_default().into_iter().zip(1..).map(|(entry, number)| {
            BaselineEntry::parse(entry).map_err(|error| anyhow!("entry {number}: {error}. {ENTRY_FORMAT}"))
        });
        Ok(Self { entries: entries.collect::<anyhow::Result<_>>()? })
    }

    /// Splits findings into new and known ones. An entry applies up to and including its day.
    pub fn apply(&self, findings: Vec<Finding>, today: NaiveDate) -> BaselineResult {
        let mut notes = Vec::new();
        for (entry, number) in self.entries.iter().zip(1..) {
            let name =
                format!("Entry {number} of the baseline ({} of {})", entry.check.name(), operation_label(&entry.operation));
            if !findings.iter().any(|finding| entry.matches(finding)) {
                notes.push(format!("{name} has no finding. Remove it, unless its operation was left out."));
            } else if entry.expires < today {
                notes.push(format!("{name} expired on {}. Fix the finding, or change the day.", entry.expires));
            }
        }
        let mut result = BaselineResult { findings: Vec::new(), known: Vec::new(), notes };
        for finding in findings {
            match self.entries.iter().find(|entry| entry.expires >= today && entry.matches(&finding)) {
                Some(BaselineEntry { reason, expires, .. }) => {
                    result.known.push(KnownFinding { finding, reason: reason.clone(), expires: *expires });
                }
                None => result.findings.push(finding),
            }
        }
        result
    }
}

impl BaselineEntry {
    fn parse(entry: Value) -> anyhow::Result<Self> {
        let entry: Self = serde_path_to_error::deserialize(entry)?;
        ensure!(!entry.reason.trim().is_empty(), "the reason is blank");
        Ok(entry)
    }

    fn matches(&self, finding: &Finding) -> bool {
        self.check == finding.check
            && self.operation == finding.operation
            && self.summary.as_ref().is_none_or(|summary| *summary == finding.summary)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    const ENTRY: &str = "- {check: response.body, operation: order_create, expires: 2026-11-21, reason: Fixed in 3.1.}";

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn finding(check: Check, operation: &str, summary: &str) -> Finding {
        Finding {
            check,
            operation: operation.to_owned(),
            pointer: String::new(),
            summary: summary.to_owned(),
            expected: String::new(),
            actual: String::new(),
            curl: String::new(),
            occurrences: 1,
        }
    }

    fn parse_error(text: &str) -> String {
        format!("{:#}", Baseline::parse(text).unwrap_err())
    }

    #[test]
    fn entry_applies_up_to_and_including_its_day() {
        let baseline = Baseline::parse(ENTRY).unwrap();
        let finding = finding(Check::Body, "order_create", "The body lacks `number`.");

        let on_last_day = baseline.apply(vec![finding.clone()], day("2026-11-21"));
        let known = KnownFinding { finding: finding.clone(), reason: "Fixed in 3.1.".to_owned(), expires: day("2026-11-21") };
        assert_eq!(on_last_day, BaselineResult { findings: vec![], known: vec![known], notes: vec![] });

        let after = baseline.apply(vec![finding.clone()], day("2026-11-22"));
        assert_eq!((after.findings, after.known), (vec![finding], vec![]));
        let note =
            "Entry 1 of the baseline (response.body of order_create) expired on 2026-11-21. Fix the finding, or change the day.";
        assert_eq!(after.notes, [note]);
    }

    #[test]
    fn entry_applies_to_its_own_findings_only() {
        let without_summary = Baseline::parse(ENTRY).unwrap();
        let with_summary = "[{check: response.body, operation: order_create, summary: A., expires: 2026-11-21, reason: Known.}]";
        let with_summary = Baseline::parse(with_summary).unwrap();
        let a = finding(Check::Body, "order_create", "A.");
        let b = finding(Check::Body, "order_create", "B.");
        let all = [
            finding(Check::Header, "order_create", "A."),
            finding(Check::Body, "order_list", "A."),
            finding(Check::Body, "", "A."),
            a.clone(),
            b.clone(),
        ];

        let known = |baseline: &Baseline| {
            let result = baseline.apply(all.to_vec(), day("2026-11-21"));
            assert_eq!(result.findings.len() + result.known.len(), all.len());
            result.known.into_iter().map(|known| known.finding).collect::<Vec<_>>()
        };
        assert_eq!(known(&without_summary), [a.clone(), b]);
        assert_eq!(known(&with_summary), [a]);
    }

    #[test]
    fn entry_without_finding_is_noted() {
        let result = Baseline::parse(ENTRY).unwrap().apply(vec![], day("2026-11-21"));
        let note = "Entry 1 of the baseline (response.body of order_create) has no finding. Remove it, unless its operation was left \
                    out.";
        assert_eq!(result.notes, [note]);
    }

    #[test]
    fn empty_file_has_no_entries() {
        assert_eq!(Baseline::parse("").unwrap(), Baseline::default());
        assert_eq!(Baseline::parse("# nothing\n[]").unwrap(), Baseline::default());
    }

    #[test]
    fn rejects_invalid_entry_with_its_number() {
        let entry = "{check: response.body, operation: a, expires: 2026-11-21, reason: Known.";
        for (invalid, message) in [
            ("{check: response.body, operation: a, reason: Known.}".to_owned(), "missing field `expires`"),
            (format!("{entry}, until: 1}}"), "until: unknown field `until`"),
            (
                entry.replace("response.body", "response.soul") + "}",
                "check: unknown variant `response.soul`, expected one of `operation.reach",
            ),
            (entry.replace("2026-11-21", "soon") + "}", "expires: input contains invalid characters"),
            (entry.replace("Known.", "' '") + "}", "the reason is blank"),
        ] {
            let error = parse_error(&format!("[{entry}}}, {invalid}]"));
            assert!(error.starts_with(&format!("entry 2: {message}")) && error.ends_with(ENTRY_FORMAT), "{error}");
        }
        assert!(parse_error("check: response.body").starts_with("is not a list of entries"));
        let absent = Baseline::read(Path::new("/nowhere/known.yaml")).unwrap_err();
        assert!(format!("{absent:#}").starts_with("the baseline /nowhere/known.yaml can't be read"));
    }
}
