//! Totals of a comparison.

use serde::Serialize;

use crate::model::{Coverage, Report};

/// Totals of all operations or of one tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Operations of the document.
    pub operations: usize,
    /// Operations that returned at least one response.
    pub reached: usize,
    /// Operations that no request was sent to.
    pub left_out: usize,
    /// Responses that the document declares, as pairs of operation and status.
    pub declared: usize,
    /// Declared responses that were seen.
    pub seen: usize,
    /// Checks made.
    pub checks: usize,
    /// Findings that are not in the baseline.
    pub findings: usize,
    /// Findings that are in the baseline.
    pub known: usize,
}

/// Totals of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TagTotals {
    /// The tag; empty for operations without one, and for findings about the server or the document as a whole.
    pub tag: String,
    /// The totals.
    #[serde(flatten)]
    pub totals: Totals,
}

impl Totals {
    /// Returns the totals of all operations.
    pub fn new(report: &Report) -> Self {
        let mut totals = Self { findings: report.findings.len(), known: report.known.len(), ..Self::default() };
        report.operations.iter().for_each(|operation| totals.add(operation));
        totals
    }

    /// Returns the totals of each tag, in the document's order.
    pub fn by_tag(report: &Report) -> Vec<TagTotals> {
        let mut tags: Vec<TagTotals> = Vec::new();
        for operation in &report.operations {
            totals_of(&mut tags, &operation.tag).add(operation);
        }
        for finding in &report.findings {
            totals_of(&mut tags, report.tag(finding)).findings += 1;
        }
        for known in &report.known {
            totals_of(&mut tags, report.tag(&known.finding)).known += 1;
        }
        tags
    }

    fn add(&mut self, operation: &Coverage) {
        self.operations += 1;
        self.reached += usize::from(!operation.seen.is_empty());
        self.left_out += usize::from(operation.left_out.is_some());
        self.declared += operation.declared.len();
        self.seen += operation.seen.intersection(&operation.declared).count();
        self.checks += operation.check_count();
    }

    /// Returns the result in one sentence.
    pub fn verdict(&self) -> String {
        let Self { findings, known, reached, left_out, .. } = *self;
        if findings > 0 {
            return format!("The server does not match the document: {}.", pluralize(findings, "finding"));
        }
        if reached == 0 {
            return "Nothing was compared: no operation was reached.".to_owned();
        }
        let exception = if known > 0 { format!(" except for {}", pluralize(known, "known finding")) } else { String::new() };
        let limit = if left_out > 0 { ", as far as it was checked" } else { "" };
        format!("The server matches the document{exception}{limit}.")
    }
}

/// Returns the totals of a tag, which is added if it is new.
fn totals_of<'a>(tags: &'a mut Vec<TagTotals>, tag: &str) -> &'a mut Totals {
    let index = tags.iter().position(|known| known.tag == tag).unwrap_or(tags.len());
    if index == tags.len() {
        tags.push(TagTotals { tag: tag.to_owned(), totals: Totals::default() });
    }
    &mut tags[index].totals
}

/// Returns a number with its noun: `1 finding`, `2 findings`.
pub fn pluralize(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn tags_add_up_to_totals() {
        let report = example::report();
        let all = Totals::new(&report);
        let tags = Totals::by_tag(&report);

        let sum = |count: fn(&Totals) -> usize| tags.iter().map(|tag| count(&tag.totals)).sum::<usize>();
        let sums = Totals {
            operations: sum(|totals| totals.operations),
            reached: sum(|totals| totals.reached),
            left_out: sum(|totals| totals.left_out),
            declared: sum(|totals| totals.declared),
            seen: sum(|totals| totals.seen),
            checks: sum(|totals| totals.checks),
            findings: sum(|totals| totals.findings),
            known: sum(|totals| totals.known),
        };
        assert_eq!(sums, all);
        let expected = Totals { operations: 4, reached: 3, left_out: 1, declared: 9, seen: 5, checks: 19, findings: 4, known: 1 };
        assert_eq!(all, expected);
        assert_eq!(tags.iter().map(|tag| tag.tag.as_str()).collect::<Vec<_>>(), ["Orders", "Tickets", ""]);
    }

    #[test]
    fn verdict_covers_checked_operations_only() {
        let verdict =
            |findings, known, reached, left_out| Totals { findings, known, reached, left_out, ..Totals::default() }.verdict();
        assert_eq!(verdict(0, 0, 5, 0), "The server matches the document.");
        assert_eq!(verdict(0, 1, 5, 2), "The server matches the document except for 1 known finding, as far as it was checked.");
        assert_eq!(verdict(2, 1, 5, 2), "The server does not match the document: 2 findings.");
        assert_eq!(verdict(0, 0, 0, 0), "Nothing was compared: no operation was reached.");
    }
}
