//! JSON report for programs.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::sort_findings;
use super::totals::{TagTotals, Totals};
use crate::model::{Coverage, Finding, KnownFinding, Report};

/// Members of `report.json`, in this order. `docs/compare-report.schema.json` describes them.
///
/// Operations are in the document's order. Findings about the server as a whole come first, then those of each operation. Two
/// runs with the same findings differ in `started` and `seconds` only.
#[derive(Serialize)]
struct JsonReport<'a> {
    /// Title and version of the document.
    document: &'a str,
    /// Address of the target.
    target: &'a str,
    /// Address of the reference, or null.
    reference: Option<&'a str>,
    /// Seed of the generated requests.
    seed: u64,
    /// Start time (RFC 3339).
    started: DateTime<Utc>,
    /// Duration in seconds.
    seconds: f64,
    /// Number of requests sent.
    requests: usize,
    /// The result in one sentence.
    verdict: String,
    /// The totals.
    totals: Totals,
    /// The totals of each tag: `tag` and the members of `totals`.
    tags: Vec<TagTotals>,
    /// The operations, see [`Coverage`].
    operations: &'a [Coverage],
    /// The findings, see [`Finding`].
    findings: Vec<&'a Finding>,
    /// Findings in the baseline, with `reason` and `expires`.
    known: Vec<&'a KnownFinding>,
    /// The notes.
    notes: &'a [String],
}

/// Returns the text of `report.json`.
///
/// # Errors
/// Fails if the JSON can't be serialized.
pub fn json(report: &Report) -> anyhow::Result<String> {
    let totals = Totals::new(report);
    let json = JsonReport {
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
        findings: sort_findings(report, &report.findings, |finding| finding),
        known: sort_findings(report, &report.known, |known| &known.finding),
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
    fn has_totals_and_sorted_findings() {
        let mut report = example::report();
        let text = json(&report).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["totals"]["findings"], 4);
        assert_eq!(read["tags"][0]["tag"], "Orders");
        assert_eq!(read["tags"][0]["declared"], 6);
        assert_eq!(read["operations"][0]["checks"]["response.body"], serde_json::json!({"made": 6, "failed": 2}));
        let operations: Vec<&Value> = read["findings"].as_array().unwrap().iter().map(|finding| &finding["operation"]).collect();
        assert_eq!(operations, ["", "order_create", "order_create", "ticket_read"]);
        assert_eq!(read["known"][0]["reason"], "Fixed in 3.1.");
        assert_eq!(read["known"][0]["check"], "response.header");

        let schema: Value = serde_json::from_str(include_str!("../../../../docs/compare-report.schema.json")).unwrap();
        let errors: Vec<_> = jsonschema::validator_for(&schema).unwrap().iter_errors(&read).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");

        report.findings.reverse();
        assert_eq!(json(&report).unwrap(), text);
    }
}
