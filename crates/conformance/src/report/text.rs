//! The report for the terminal.

use super::totals::{Totals, counted};
use super::{in_order, tag_name, visible};
use crate::model::{Finding, Report, subject};

/// How many characters are shown of what was expected and of what was not: the files have all of it.
const SHOWN: usize = 600;

/// The report as text: what was compared, a table of the tags, each finding in a few lines, notes, the sums and the verdict.
///
/// Findings beyond `max_findings` are counted and not shown.
pub fn text(report: &Report, max_findings: usize) -> String {
    let totals = Totals::of(report);
    let mut text = format!("{} and {}:\n\n{}\n", report.document, report.target, table(report));
    let findings = in_order(report, &report.findings, |finding| finding);
    for finding in findings.iter().take(max_findings) {
        let short = Finding { expected: shortened(&finding.expected), actual: shortened(&finding.actual), ..(*finding).clone() };
        text +=
            &format!("{} of {}: {}\n{}\n", finding.check.name(), subject(&finding.operation), finding.summary, details(&short));
    }
    if let hidden @ 1.. = findings.len().saturating_sub(max_findings) {
        text += &format!("{} more, which --max-findings {max_findings} doesn't show.\n\n", counted(hidden, "finding"));
    }
    for note in &report.notes {
        text += &format!("Note: {note}\n");
    }
    let Totals { operations, reached, left_out, declared, seen, checks, known, .. } = totals;
    text += &format!(
        "{reached} of {operations} operations reached, {left_out} left out; {seen} of {declared} answers seen; {checks} checks made \
         with {requests} requests in {seconds:.1} s; {findings} and {known} known; seed {seed}.\n{verdict}\n",
        requests = report.requests,
        seconds = report.seconds,
        findings = counted(totals.findings, "finding"),
        seed = report.seed,
        verdict = totals.verdict(),
    );
    visible(&text)
}

/// A line for each tag, with columns as wide as what stands in them.
fn table(report: &Report) -> String {
    let header = ["", "operations", "answers", "checks", "findings", "known"].map(str::to_owned);
    let tags = Totals::by_tag(report).into_iter().map(|tag| {
        let Totals { operations, reached, declared, seen, checks, findings, known, .. } = tag.totals;
        let (reached, seen) = (format!("{reached}/{operations}"), format!("{seen}/{declared}"));
        [tag_name(&tag.tag).to_owned(), reached, seen, checks.to_string(), findings.to_string(), known.to_string()]
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

/// What there is to say of a finding besides its summary, each in a line of its own or in as many as it has.
pub fn details(finding: &Finding) -> String {
    let mut text = String::new();
    for (name, value) in [
        ("asked", finding.check.asks()),
        ("expected", &finding.expected),
        ("actual", &finding.actual),
        ("document", &finding.pointer),
        ("request", &finding.curl),
    ] {
        if !value.is_empty() {
            text += &format!("  {name:<8}  {}\n", value.replace('\n', "\n            "));
        }
    }
    text
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => value[..end].to_owned() + " …",
        None => value.to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn findings_beyond_those_asked_for_are_counted() {
        let report = example::report();
        let all = text(&report, 4);
        let some = text(&report, 1);
        assert!(all.contains("answer.body of order_create: The property `total` is a number.\n"), "{all}");
        assert!(!all.contains("--max-findings"), "{all}");
        assert!(some.contains("3 findings more, which --max-findings 1 doesn't show."), "{some}");
        assert_eq!(some.matches("  asked ").count(), 1, "{some}");
        for text in [all, some] {
            assert!(text.ends_with("4 findings and 1 known; seed 42.\nNot as the document says: 4 findings.\n"), "{text}");
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_tag() {
        let text = text(&example::report(), 0);
        let table = [
            "         operations  answers  checks  findings  known",
            "Orders          2/2      3/6      16         2      1",
            "Tickets         1/2      2/3       3         1      0",
            "no tag          0/0      0/0       0         1      0",
        ];
        let start = format!("boxoffice 3.0.0 and http://127.0.0.1:8080/v3:\n\n{}\n\n", table.join("\n"));
        assert!(text.starts_with(&start), "{text}");
    }

    #[test]
    fn no_answer_gives_the_terminal_a_command_or_fills_it() {
        let text = text(&example::report_of(&"\x1B]0;mine\x07".repeat(1000)), 10);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
        let actual = text.lines().find(|line| line.starts_with("  actual")).unwrap();
        assert!(actual.ends_with(" …") && actual.chars().count() < 700, "{actual}");
    }
}
