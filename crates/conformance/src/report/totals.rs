//! The sums of a comparison.

use serde::Serialize;

use crate::model::{Coverage, Report};

/// How much of a document was compared, and what came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The document's operations.
    pub operations: usize,
    /// Those of them that answered at least once.
    pub reached: usize,
    /// Those that nothing was asked of, on purpose.
    pub left_out: usize,
    /// The answers that the document declares, as pairs of operation and status.
    pub declared: usize,
    /// Those of them that were seen.
    pub seen: usize,
    /// Checks that were made.
    pub checks: usize,
    /// Findings that are not in the baseline.
    pub findings: usize,
    /// Findings that are.
    pub known: usize,
}

/// The totals of the operations that have a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TagTotals {
    /// The tag; empty for operations without one, and for findings about the server or the document as a whole.
    pub tag: String,
    /// Their totals.
    #[serde(flatten)]
    pub totals: Totals,
}

impl Totals {
    /// The totals of all operations.
    pub fn of(report: &Report) -> Self {
        let counted = Self { findings: report.findings.len(), known: report.known.len(), ..Self::default() };
        report.operations.iter().fold(counted, Self::and)
    }

    /// The totals of each tag, in the document's order.
    pub fn by_tag(report: &Report) -> Vec<TagTotals> {
        let mut tags: Vec<TagTotals> = Vec::new();
        let mut change = |tag: &str, with: &dyn Fn(Self) -> Self| match tags.iter_mut().find(|known| known.tag == tag) {
            Some(known) => known.totals = with(known.totals),
            None => tags.push(TagTotals { tag: tag.to_owned(), totals: with(Self::default()) }),
        };
        for operation in &report.operations {
            change(&operation.tag, &|totals| totals.and(operation));
        }
        for finding in &report.findings {
            change(report.tag(finding), &|totals| Self { findings: totals.findings + 1, ..totals });
        }
        for known in &report.known {
            change(report.tag(&known.finding), &|totals| Self { known: totals.known + 1, ..totals });
        }
        tags
    }

    /// These and one operation.
    fn and(self, operation: &Coverage) -> Self {
        Self {
            operations: self.operations + 1,
            reached: self.reached + usize::from(!operation.seen.is_empty()),
            left_out: self.left_out + usize::from(operation.left_out.is_some()),
            declared: self.declared + operation.declared.len(),
            seen: self.seen + operation.seen.intersection(&operation.declared).count(),
            checks: self.checks + operation.made(),
            ..self
        }
    }

    /// What came of it, in one sentence.
    pub fn verdict(&self) -> String {
        let Self { findings, known, reached, left_out, .. } = *self;
        let but = match known {
            0 => String::new(),
            known => format!(" but for {}", counted(known, "known finding")),
        };
        match findings {
            0 if reached == 0 => "Nothing was compared: no operation was reached.".to_owned(),
            0 if left_out > 0 => format!("As the document says{but}, in all that was asked."),
            0 => format!("As the document says{but}."),
            findings => format!("Not as the document says: {}.", counted(findings, "finding")),
        }
    }
}

/// A number and what is counted: `1 finding`, `2 findings`.
pub fn counted(number: usize, of_what: &str) -> String {
    format!("{number} {of_what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn the_tags_sum_up_to_all() {
        let report = example::report();
        let all = Totals::of(&report);
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
    fn the_verdict_says_no_more_than_was_asked() {
        let verdict =
            |findings, known, reached, left_out| Totals { findings, known, reached, left_out, ..Totals::default() }.verdict();
        assert_eq!(verdict(0, 0, 5, 0), "As the document says.");
        assert_eq!(verdict(0, 1, 5, 2), "As the document says but for 1 known finding, in all that was asked.");
        assert_eq!(verdict(2, 1, 5, 2), "Not as the document says: 2 findings.");
        assert_eq!(verdict(0, 0, 0, 0), "Nothing was compared: no operation was reached.");
    }
}
