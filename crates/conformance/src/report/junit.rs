//! JUnit XML report, which Jenkins, GitLab and GitHub Actions read.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::text::details;
use super::totals::{Totals, pluralize};
use super::{escape_control_characters, tag_label};
use crate::model::{Check, Coverage, Finding, KnownFinding, Report, operation_label};

/// Findings of one check of an operation.
#[derive(Debug, Default)]
struct CheckResult<'a> {
    findings: Vec<&'a Finding>,
    known: Vec<&'a KnownFinding>,
}

/// Returns the text of `junit.xml`: a suite for each tag, with a test case for each check of an operation.
///
/// All findings of a check are one failure, because many readers show only the first failure of a test case. A check with known
/// findings only is skipped, and so is an operation that was left out. The time of an operation is shared by its test cases, in
/// proportion to the number of times that each check was made.
///
/// # Errors
/// Fails if the XML can't be serialized.
pub fn junit(report: &Report) -> anyhow::Result<String> {
    let mut junit = quick_junit::Report::new(escape_control_characters(&report.document));
    junit.set_timestamp(report.started).set_time(Duration::from_secs_f64(report.seconds));
    junit.add_test_suites(Totals::by_tag(report).iter().map(|tag| test_suite(report, &tag.tag)));
    Ok(junit.to_string()?)
}

fn test_suite(report: &Report, tag: &str) -> TestSuite {
    let mut results: BTreeMap<(&str, Check), CheckResult<'_>> = BTreeMap::new();
    let operations = || report.operations.iter().filter(|operation| operation.tag == tag);
    for operation in operations() {
        for check in operation.checks.keys() {
            results.entry((&operation.operation, *check)).or_default();
        }
    }
    for finding in report.findings.iter().filter(|finding| report.tag(finding) == tag) {
        results.entry((&finding.operation, finding.check)).or_default().findings.push(finding);
    }
    for known in report.known.iter().filter(|known| report.tag(&known.finding) == tag) {
        results.entry((&known.finding.operation, known.finding.check)).or_default().known.push(known);
    }
    let mut suite = TestSuite::new(escape_control_characters(tag_label(tag)));
    let seconds = operations().map(|operation| operation.seconds).sum();
    suite.set_timestamp(report.started).set_time(Duration::from_secs_f64(seconds));
    suite.add_test_cases(results.iter().map(|((operation, check), result)| {
        let time = time_of(report.operation(operation), *check);
        test_case(operation_label(operation), check.name(), result.status(*check), time)
    }));
    suite.add_test_cases(
        operations()
            .filter_map(|operation| Some((operation, operation.left_out.as_ref()?)))
            .map(|(operation, reason)| test_case(&operation.operation, "left out", skipped(reason), Duration::ZERO)),
    );
    suite
}

/// Returns the share of a check in the time of its operation.
fn time_of(operation: Option<&Coverage>, check: Check) -> Duration {
    let share = |operation: &Coverage| {
        let made = operation.checks.get(&check).map_or(0, |counts| counts.made);
        operation.seconds * made as f64 / operation.check_count().max(1) as f64
    };
    Duration::from_secs_f64(operation.map_or(0.0, share))
}

fn test_case(operation: &str, name: &str, status: TestCaseStatus, time: Duration) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(escape_control_characters(operation)).set_time(time);
    case
}

fn skipped(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(escape_control_characters(reason));
    status
}

impl CheckResult<'_> {
    fn status(&self, check: Check) -> TestCaseStatus {
        let Some(first) = self.findings.first() else {
            if self.known.is_empty() {
                return TestCaseStatus::success();
            }
            let reasons: Vec<_> = self.known.iter().map(|known| known_reason(known)).collect();
            return skipped(&reasons.join("\n"));
        };
        let message = match self.findings.len() {
            1 => first.summary.clone(),
            count => format!("{}, the first: {}", pluralize(count, "finding"), first.summary),
        };
        let descriptions: Vec<_> =
            self.findings.iter().map(|finding| format!("{}\n{}", finding.summary, details(finding))).collect();
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type(check.name());
        status.set_message(escape_control_characters(&message));
        status.set_description(escape_control_characters(&descriptions.join("\n")));
        status
    }
}

fn known_reason(known: &KnownFinding) -> String {
    format!("{} Known until {}: {}", known.finding.summary, known.expires, known.reason)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::report::example;

    fn parse(xml: &str) -> quick_junit::Report {
        quick_junit::Report::deserialize_from_str(xml).unwrap()
    }

    /// Message and description of a test case.
    fn texts(case: &TestCase) -> (&str, &str) {
        let (message, description) = match &case.status {
            TestCaseStatus::NonSuccess { message, description, .. } | TestCaseStatus::Skipped { message, description, .. } => {
                (message, description)
            }
            TestCaseStatus::Success { .. } => return ("", ""),
        };
        (message.as_deref().unwrap_or_default(), description.as_deref().unwrap_or_default())
    }

    #[test]
    fn has_test_case_for_each_check_of_an_operation() {
        let junit = parse(&junit(&example::report()).unwrap());
        assert_eq!((junit.test_suites.len(), junit.tests, junit.failures, junit.skipped, junit.errors), (3, 9, 3, 2, 0));
        assert_eq!(junit.time, Some(Duration::from_millis(12_340)));
        assert_eq!(junit.timestamp.unwrap().to_rfc3339(), "2026-11-21T16:30:00+00:00");
        let cases: Vec<_> = junit.test_suites.iter().flat_map(|suite| &suite.test_cases).collect();
        for message in [
            "2 findings, the first: The property `number` is missing.",
            "The header `Location` is missing. Known until 2026-12-31: Fixed in 3.1.",
            "It was left out by --skip account_deletion_create.",
        ] {
            assert!(cases.iter().any(|case| texts(case).0 == message), "{message}: {cases:#?}");
        }
        assert!(cases.iter().any(|case| case.classname.as_deref() == Some("the server as a whole")), "{cases:#?}");
    }

    #[test]
    fn escapes_markup_and_control_characters() {
        let hostile = "<a b='1'>]]>&amp;<!--\"\u{0}\u{1B}[31m\u{FFFF}é\n\u{1F39F}";
        let xml = junit(&example::report_of(hostile)).unwrap();
        let junit = parse(&xml);
        let escaped = escape_control_characters(hostile);
        let failure = junit.test_suites[0].test_cases.iter().map(texts).find(|(_, description)| !description.is_empty()).unwrap();
        assert_eq!(failure.0, escaped);
        assert!(failure.1.starts_with(&format!("{escaped}\n  rule ")), "{failure:?}");
        let is_forbidden = |c: char| matches!(c, '\0'..='\x08' | '\x0B'..='\x1F' | '\u{FFFE}' | '\u{FFFF}');
        assert!(!xml.contains(is_forbidden) && !xml.contains("]]>"), "{xml}");
    }
}
