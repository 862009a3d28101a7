//! The baseline: findings that are known and left for now, each until a day.
//!
//! It is a file of YAML, or of JSON, which is YAML:
//!
//! ```yaml
//! - check: answer.body
//!   operation: order_create
//!   summary: The body lacks `number`.   # may be left out: then whatever the check finds in the operation
//!   expires: 2026-12-31                 # the last day on which it is left
//!   reason: Mended in 3.1, which is rolled out in December.
//! ```

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use chrono::NaiveDate;
use serde::Deserialize;
use serde_yaml_ng::Value;

use super::model::{Check, Finding, KnownFinding, subject};

/// What an entry must look like, for whoever wrote one that doesn't.
const ENTRY: &str = "Write check, operation, expires (YYYY-MM-DD) and reason, and summary where only one finding is meant.";

/// Known findings, read from a file. The default knows none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: Vec<Entry>,
}

/// One entry of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    check: Check,
    /// The operationId; empty for findings about the server or the document as a whole.
    operation: String,
    /// The finding's exact summary; without it, every finding of the check in the operation.
    summary: Option<String>,
    expires: NaiveDate,
    reason: String,
}

/// Findings held against a baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineResult {
    /// Those that it doesn't have, or not any more.
    pub findings: Vec<Finding>,
    /// Those that it has.
    pub known: Vec<KnownFinding>,
    /// What is to be done about its entries: those that are over, and those that nothing was found of.
    pub notes: Vec<String>,
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// When the file can't be read or is no list, or an entry isn't as it must be; names the file, the entry and what to do.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("the baseline {} can't be read", file.display()))?;
        Self::parse(&text).with_context(|| format!("the baseline {}", file.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let entries: Option<Vec<Value>> = serde_yaml_ng::from_str(text).context("is no list of entries in YAML or JSON")?;
        let entries = entries
            .unwrap_or_default()
            .into_iter()
            .zip(1..)
            .map(|(entry, number)| Entry::read(entry).map_err(|error| anyhow!("entry {number}: {error}. {ENTRY}")));
        Ok(Self { entries: entries.collect::<anyhow::Result<_>>()? })
    }

    /// Tells the findings that are known on a day from those that aren't. An entry counts up to and with the day it names.
    pub fn apply(&self, findings: Vec<Finding>, today: NaiveDate) -> BaselineResult {
        let mut notes = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let name = format!("Entry {} of the baseline ({} of {})", index + 1, entry.check.name(), subject(&entry.operation));
            if !findings.iter().any(|finding| entry.matches(finding)) {
                notes.push(format!("{name}: nothing was found of it. Remove it, unless its operation was left out."));
            } else if entry.expires < today {
                notes.push(format!("{name} is over since {}. Mend what it names, or give it another day.", entry.expires));
            }
        }
        let mut applied = BaselineResult { findings: Vec::new(), known: Vec::new(), notes };
        for finding in findings {
            match self.entries.iter().find(|entry| entry.expires >= today && entry.matches(&finding)) {
                Some(Entry { reason, expires, .. }) => {
                    applied.known.push(KnownFinding { finding, reason: reason.clone(), expires: *expires });
                }
                None => applied.findings.push(finding),
            }
        }
        applied
    }
}

impl Entry {
    fn read(entry: Value) -> anyhow::Result<Self> {
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

    const ENTRY_OF_ORDERS: &str = "- {check: answer.body, operation: order_create, expires: 2026-11-21, reason: Mended in 3.1.}";

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
        }
    }

    fn refusal(text: &str) -> String {
        format!("{:#}", Baseline::parse(text).unwrap_err())
    }

    #[test]
    fn an_entry_hides_its_finding_up_to_and_with_its_day() {
        let baseline = Baseline::parse(ENTRY_OF_ORDERS).unwrap();
        let found = finding(Check::Body, "order_create", "The body lacks `number`.");

        let on_its_day = baseline.apply(vec![found.clone()], day("2026-11-21"));
        let known = KnownFinding { finding: found.clone(), reason: "Mended in 3.1.".to_owned(), expires: day("2026-11-21") };
        assert_eq!(on_its_day, BaselineResult { findings: vec![], known: vec![known], notes: vec![] });

        let after = baseline.apply(vec![found.clone()], day("2026-11-22"));
        assert_eq!((after.findings, after.known), (vec![found], vec![]));
        let note = "Entry 1 of the baseline (answer.body of order_create) is over since 2026-11-21. Mend what it names, or give \
                    it another day.";
        assert_eq!(after.notes, [note]);
    }

    #[test]
    fn an_entry_hides_nothing_but_what_it_names() {
        let whole = Baseline::parse(ENTRY_OF_ORDERS).unwrap();
        let exact = "[{check: answer.body, operation: order_create, summary: A., expires: 2026-11-21, reason: Known.}]";
        let exact = Baseline::parse(exact).unwrap();
        let others = [
            finding(Check::Header, "order_create", "A."),
            finding(Check::Body, "order_list", "A."),
            finding(Check::Body, "", "A."),
        ];
        let one = finding(Check::Body, "order_create", "A.");
        let two = finding(Check::Body, "order_create", "B.");
        let all = || others.iter().chain([&one, &two]).cloned().collect::<Vec<_>>();

        let hidden = |baseline: &Baseline| {
            let applied = baseline.apply(all(), day("2026-11-21"));
            assert_eq!(applied.findings.len() + applied.known.len(), all().len());
            applied.known.into_iter().map(|known| known.finding).collect::<Vec<_>>()
        };
        assert_eq!(hidden(&whole), [one.clone(), two.clone()]);
        assert_eq!(hidden(&exact), [one]);
    }

    #[test]
    fn an_entry_that_nothing_was_found_of_is_told() {
        let applied = Baseline::parse(ENTRY_OF_ORDERS).unwrap().apply(vec![], day("2026-11-21"));
        let note = "Entry 1 of the baseline (answer.body of order_create): nothing was found of it. Remove it, unless its \
                    operation was left out.";
        assert_eq!(applied.notes, [note]);
    }

    #[test]
    fn an_empty_file_knows_nothing() {
        assert_eq!(Baseline::parse("").unwrap(), Baseline::default());
        assert_eq!(Baseline::parse("# nothing\n[]").unwrap(), Baseline::default());
    }

    #[test]
    fn a_wrong_entry_is_refused_by_its_number_and_with_what_to_do() {
        let entry = "{check: answer.body, operation: a, expires: 2026-11-21, reason: Known.";
        for (wrong, says) in [
            ("{check: answer.body, operation: a, reason: Known.}".to_owned(), "missing field `expires`"),
            (format!("{entry}, until: 1}}"), "until: unknown field `until`"),
            (
                entry.replace("answer.body", "answer.soul") + "}",
                "check: unknown variant `answer.soul`, expected one of `operation.reach",
            ),
            (entry.replace("2026-11-21", "soon") + "}", "expires: input contains invalid characters"),
            (entry.replace("Known.", "' '") + "}", "the reason is blank"),
        ] {
            let refusal = refusal(&format!("[{entry}}}, {wrong}]"));
            assert!(refusal.starts_with(&format!("entry 2: {says}")) && refusal.ends_with(ENTRY), "{refusal}");
        }
        assert!(refusal("check: answer.body").starts_with("is no list of entries"));
        let absent = Baseline::read(Path::new("/nowhere/known.yaml")).unwrap_err();
        assert!(format!("{absent:#}").starts_with("the baseline /nowhere/known.yaml can't be read"));
    }
}
