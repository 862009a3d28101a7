//! Text report for the terminal.

use std::collections::BTreeMap;

use super::totals::{Totals, pluralize};
use super::{escape_control_characters, sort_findings, tag_label, truncate};
use crate::model::{EXCLUDED, Finding, NOT_REQUESTED, Report, STOPPED, operation_label};

/// Longest printed value of `expected`, `actual` and the request, in characters. The files contain more.
const MAX_VALUE_LENGTH: usize = 600;

/// Returns the report as text: document and server, a table of tags, findings, notes, totals and verdict.
///
/// Findings beyond `max_findings` are counted, but not printed.
pub fn text(report: &Report, max_findings: usize) -> String {
    let totals = Totals::new(report);
    let mut text = format!("{} and {}:\n\n{}\n", report.document, report.target, table(report));
    let findings = sort_findings(report, &report.findings, |finding| finding);
    let short = |value: &str| truncate(value, MAX_VALUE_LENGTH);
    for finding in findings.iter().take(max_findings) {
        let finding_text = Finding {
            expected: short(&finding.expected),
            actual: short(&finding.actual),
            curl: short(&finding.curl),
            ..(*finding).clone()
        };
        text += &format!(
            "{} of {}: {}\n{}\n",
            finding.check.name(),
            operation_label(&finding.operation),
            finding.summary,
            details(&finding_text)
        );
    }
    if let hidden @ 1.. = findings.len().saturating_sub(max_findings) {
        text += &format!("{} not printed because of --max-findings {max_findings}.\n\n", pluralize(hidden, "more finding"));
    }
    for note in &report.notes {
        text += &format!("Note: {note}\n");
    }
    for (reason, names) in left_out(report) {
        text += &format!("Left out: {}: {reason}.\n", names.join(", "));
    }
    let Totals { operations, reached, left_out, declared, seen, checks, known, .. } = totals;
    text += &format!(
        "{reached} of {operations} operations reached, {left_out} left out; {seen} of {declared} responses seen; {checks} checks made \
         with {requests} requests in {seconds:.1} s; {findings} and {known} known; seed {seed}.\n{verdict}\n",
        requests = report.requests,
        seconds = report.seconds,
        findings = pluralize(totals.findings, "finding"),
        seed = report.seed,
        verdict = totals.verdict(),
    );
    escape_control_characters(&text)
}

/// Returns the operations that were left out, by reason, except those that the user has excluded, stopped or not requested.
fn left_out(report: &Report) -> BTreeMap<&str, Vec<&str>> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for operation in &report.operations {
        if let Some(reason) = operation.left_out.as_deref().filter(|reason| ![EXCLUDED, NOT_REQUESTED, STOPPED].contains(reason))
        {
            reasons.entry(reason).or_default().push(operation_label(&operation.operation));
        }
    }
    reasons
}

/// Returns a table with a line for each tag.
fn table(report: &Report) -> String {
    let header = ["", "operations", "responses", "checks", "findings", "known"].map(str::to_owned);
    let tags = Totals::by_tag(report).into_iter().map(|tag| {
        let Totals { operations, reached, declared, seen, checks, findings, known, .. } = tag.totals;
        let (reached, seen) = (format!("{reached}/{operations}"), format!("{seen}/{declared}"));
        [tag_label(&tag.tag).to_owned(), reached, seen, checks.to_string(), findings.to_string(), known.to_string()]
    });
    let lines: Vec<[String; 6]> = [header].into_iter().chain(tags).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 6] = std::array::from_fn(width);
    lines.iter().fold(String::new(), |mut table, [tag, numbers @ ..]| {
        table += &format!("{tag:<width$}", width = widths[0]);
        for (number, width) in numbers.iter().zip(&widths[1..]) {
            table += &format!("  {number:>width$}");
        }
        table + "\n"
    })
}

/// Returns the fields of a finding except its summary, one or more lines each.
pub fn details(finding: &Finding) -> String {
    let mut text = String::new();
    for (name, value) in [
        ("rule", finding.check.rule()),
        ("expected", &finding.expected),
        ("actual", &finding.actual),
        ("document", &finding.pointer),
        ("request", &finding.curl),
    ] {
        if !value.is_empty() {
            text += &format!("  {name:<8}  {}\n", value.replace('\n', "\n            "));
        }
    }
    if finding.occurrences > 1 {
        text += &format!("  requests  {}\n", finding.occurrences);
    }
    text
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn counts_findings_beyond_maximum() {
        let report = example::report();
        let all = text(&report, 4);
        let some = text(&report, 1);
        assert!(all.contains("response.body of order_create: The property `total` is a number.\n"), "{all}");
        assert!(!all.contains("--max-findings"), "{all}");
        assert!(some.contains("3 more findings not printed because of --max-findings 1."), "{some}");
        assert_eq!(some.matches("  rule ").count(), 1, "{some}");
        for text in [all, some] {
            assert!(
                text.ends_with("4 findings and 1 known; seed 42.\nThe server does not match the document: 4 findings.\n"),
                "{text}"
            );
        }
    }

    #[test]
    fn table_has_line_for_each_tag() {
        let text = text(&example::report(), 0);
        let table = [
            "         operations  responses  checks  findings  known",
            "Orders          2/2        3/6      16         2      1",
            "Tickets         1/2        2/3       3         1      0",
            "no tag          0/0        0/0       0         1      0",
        ];
        let start = format!("boxoffice 3.0.0 and http://127.0.0.1:8080/v3:\n\n{}\n\n", table.join("\n"));
        assert!(text.starts_with(&start), "{text}");
    }

    #[test]
    fn escapes_and_truncates_responses() {
        let text = text(&example::report_of(&"\x1B]0;mine\x07".repeat(1000)), 10);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
        let actual = text.lines().find(|line| line.starts_with("  actual")).unwrap();
        assert!(actual.ends_with(" …") && actual.chars().count() < 700, "{actual}");
    }
}
