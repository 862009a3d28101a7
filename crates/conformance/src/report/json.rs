//! The report for programs.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::in_order;
use super::totals::{TagTotals, Totals};
use crate::model::{Coverage, Finding, KnownFinding, Report};

/// `report.json`: an object with these members, in this order, which two runs can be compared by.
///
/// Operations are in the document's order, and findings in that of their operations, after those about the server as a whole.
/// What differs between two runs that found the same is `started` and `seconds` alone.
#[derive(Serialize)]
struct Json<'a> {
    /// Title and version of the document.
    document: &'a str,
    /// The server's address.
    target: &'a str,
    /// The other server's address, or null.
    reference: Option<&'a str>,
    /// The seed of the generated requests.
    seed: u64,
    /// When it began, as RFC 3339 has it.
    started: DateTime<Utc>,
    /// How long it took.
    seconds: f64,
    /// Requests that were sent.
    requests: usize,
    /// What came of it, in one sentence.
    verdict: String,
    /// The sums, see [`Totals`].
    totals: Totals,
    /// The sums of each tag: `tag` and the members of `totals`.
    tags: Vec<TagTotals>,
    /// What was asked of each operation, see [`Coverage`].
    operations: &'a [Coverage],
    /// What was found, see [`Finding`].
    findings: Vec<&'a Finding>,
    /// What was found and is in the baseline: a finding with `reason` and `expires`.
    known: Vec<&'a KnownFinding>,
    /// What should be known besides.
    notes: &'a [String],
}

/// The text of `report.json`.
///
/// # Errors
/// None that is known of: whatever a report holds can be said in JSON.
pub fn json(report: &Report) -> anyhow::Result<String> {
    let totals = Totals::of(report);
    let json = Json {
        document: &report.document,
        target: &report.target,
        reference: report.reference.as_deref(),
        seed: report.seed,
        started: report.started,
        seconds: report.seconds,
        requests: report.requests,
        verdict: totals.verdict(),
        totals,
        tags: Totals::by_tag(report),
        operations: &report.operations,
        findings: in_order(report, &report.findings, |finding| finding),
        known: in_order(report, &report.known, |known| &known.finding),
        notes: &report.notes,
    };
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::Value;

    use super::json;
    use crate::report::example;

    #[test]
    fn it_has_the_totals_and_what_was_found_in_order() {
        let mut report = example::report();
        let text = json(&report).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["totals"]["findings"], 4);
        assert_eq!(read["tags"][0]["tag"], "Orders");
        assert_eq!(read["tags"][0]["declared"], 6);
        assert_eq!(read["operations"][0]["checks"]["answer.body"], serde_json::json!({"made": 6, "failed": 2}));
        let about: Vec<&Value> = read["findings"].as_array().unwrap().iter().map(|finding| &finding["operation"]).collect();
        assert_eq!(about, ["", "order_create", "order_create", "ticket_read"]);
        assert_eq!(read["known"][0]["reason"], "Mended in 3.1.");
        assert_eq!(read["known"][0]["check"], "answer.header");

        report.findings.reverse();
        assert_eq!(json(&report).unwrap(), text);
    }
}
