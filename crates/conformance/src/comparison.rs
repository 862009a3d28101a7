//! A comparison: checks several operations concurrently and reports them in the document's order.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use boxoffice_http::error::Code;
use boxoffice_openapi::drift::{self, Difference};
use boxoffice_openapi::{Contract, Operation};
use chrono::{DateTime, Utc};
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::Value;

use super::model::{Check, Coverage, EXCLUDED, Finding, Report};
use super::operation_run::OperationRun;
use super::operation_under_test::OperationUnderTest;
use super::server_kind::{self, ServerKind};
use super::target::Target;

/// Number of operations checked concurrently. The requests of one operation are sequential.
const CONCURRENT_OPERATIONS: usize = 4;

/// Number of headers that are remembered to find repeated ones. A proxy may run for days.
const MAX_USED_HEADERS: usize = 1_000_000;

/// Title of the built-in document.
const BUILTIN_TITLE: &str = "boxoffice";

/// Facts about the server that the built-in document describes. They are not in the document.
#[derive(Debug, Default)]
pub struct BuiltinServer {
    /// The document that it emits for its endpoints.
    pub emitted: Value,
    /// The error codes that it sends.
    pub codes: Vec<Code>,
}

/// A document and the servers to check.
#[derive(Debug)]
pub struct Comparison {
    /// The document.
    pub contract: Arc<Contract>,
    /// The server to check.
    pub target: Target,
    /// The server to compare it with.
    pub reference: Option<Target>,
    /// Seed of the generated requests.
    pub seed: u64,
    /// The operationIds to check.
    pub selected: BTreeSet<String>,
    /// True for the built-in document: the platform's rules beyond OpenAPI are checked too.
    is_builtin: bool,
    /// The error codes of the platform.
    pub codes: Vec<Code>,
    /// Differences between the built-in document and the server's endpoints, by method and path.
    drift: BTreeMap<String, Vec<Difference>>,
    /// Kind of the target, found at the start.
    kind: OnceLock<ServerKind>,
    /// Names and values of headers that must be unique.
    used_headers: Mutex<HashSet<(String, String)>>,
}

impl Comparison {
    /// Prepares a comparison.
    pub fn new(
        contract: impl Into<Arc<Contract>>,
        mut target: Target,
        mut reference: Option<Target>,
        seed: u64,
        selected: BTreeSet<String>,
        builtin: BuiltinServer,
    ) -> Self {
        let contract = contract.into();
        for target in [Some(&mut target), reference.as_mut()].into_iter().flatten() {
            target.client.contract = Some(Arc::clone(&contract));
        }
        let is_builtin = is_builtin_document(&contract);
        let mut drift: BTreeMap<String, Vec<Difference>> = BTreeMap::new();
        if is_builtin {
            for difference in drift::compare(&contract.document, &builtin.emitted) {
                drift.entry(difference.operation.clone()).or_default().push(difference);
            }
        }
        Self {
            contract,
            target,
            reference,
            seed,
            selected,
            is_builtin,
            codes: builtin.codes,
            drift,
            kind: OnceLock::new(),
            used_headers: Mutex::default(),
        }
    }

    /// Checks the selected operations. Calls `on_operation` after each, in the document's order.
    pub async fn run(&self, mut on_operation: impl FnMut(&Coverage)) -> Report {
        let started = Utc::now();
        let operations: Vec<_> =
            self.contract.operations().map(|operation| OperationUnderTest::new(&self.contract, operation, self.seed)).collect();
        let kind = server_kind::detect(self, &operations).await;
        let kind = *self.kind.get_or_init(|| kind);
        let mut pending = futures::stream::iter(&operations)
            .map(|operation| self.run_operation(&operations, operation))
            .buffered(CONCURRENT_OPERATIONS);
        let mut runs = Vec::new();
        while let Some(run) = pending.next().await {
            on_operation(&run.recorder.coverage);
            runs.push(run);
        }
        let (mut coverage, mut findings) = (Vec::new(), self.find_undocumented_operations());
        findings.extend(self.find_preparation_failures());
        for run in &mut runs {
            run.timed(async |run| run.run_with_task().await).await;
        }
        for run in &mut runs {
            run.timed(async |run| run.check_pages().await).await;
            run.timed(async |run| run.run_in_turn().await).await;
        }
        // Some resources may be gone afterwards.
        for run in &mut runs {
            run.timed(async |run| run.run_last().await).await;
        }
        let mut notes = Vec::new();
        for run in runs {
            notes.extend(run.notes);
            let (operation, found) = run.recorder.finish();
            coverage.push(operation);
            findings.extend(found);
        }
        let request_count = |target: &Target| target.client.request_count();
        let requests = request_count(&self.target) + self.reference.as_ref().map_or(0, request_count);
        let mut report = self.report(started, requests, coverage, findings);
        report.notes.extend(notes);
        report.notes.extend(kind.note().map(str::to_owned));
        report
    }

    /// Builds a report of what was checked since `started`.
    pub fn report(&self, started: DateTime<Utc>, requests: usize, operations: Vec<Coverage>, findings: Vec<Finding>) -> Report {
        let info = &self.contract.document["info"];
        Report {
            document: format!(
                "{} {}",
                info["title"].as_str().unwrap_or("a document without a title"),
                info["version"].as_str().unwrap_or_default()
            ),
            target: self.target.client.base_url.clone(),
            reference: self.reference.as_ref().map(|reference| reference.client.base_url.clone()),
            seed: self.seed,
            started,
            // The clock may have been set back.
            seconds: (Utc::now() - started).as_seconds_f64().max(0.0),
            requests,
            operations,
            findings,
            known: Vec::new(),
            notes: self.contract.warnings.clone(),
        }
    }

    async fn run_operation<'a>(
        &'a self,
        operations: &'a [OperationUnderTest<'a>],
        operation: &'a OperationUnderTest<'a>,
    ) -> OperationRun<'a> {
        let mut run = OperationRun::new(self, operations, operation);
        if !self.selected.contains(&operation.spec.id) {
            run.recorder.coverage.left_out = Some(EXCLUDED.to_owned());
        } else if self.is_stopped() {
            run.leave_out_stopped();
        } else if let Some(reason) = self.target.missing_for(operation.spec) {
            run.recorder.coverage.left_out = Some(reason);
        } else {
            run.timed(async |run| run.run().await).await;
        }
        run
    }

    /// Returns if the comparison was stopped: no more requests are sent.
    pub fn is_stopped(&self) -> bool {
        self.target.client.stopped.load(Ordering::Relaxed)
    }

    /// Returns the kind of the target. Before the comparison has run, every server is a real one.
    pub fn kind(&self) -> ServerKind {
        self.kind.get().copied().unwrap_or(ServerKind::Real)
    }

    /// Returns if no earlier response had this value in a header that must be unique.
    pub fn is_first_use(&self, name: &str, value: &str) -> bool {
        let mut used = self.used_headers.lock();
        if used.len() >= MAX_USED_HEADERS {
            used.clear();
        }
        used.insert((name.to_owned(), value.to_owned()))
    }

    /// Returns if the document is the built-in one or a version of it.
    pub fn is_builtin(&self) -> bool {
        self.is_builtin
    }

    /// Returns the differences between an operation of the built-in document and the server's endpoint; `None` for other
    /// documents.
    pub fn drift_of(&self, operation: &Operation) -> Option<&[Difference]> {
        self.is_builtin.then(|| self.drift.get(&drift_key(operation)).map_or(&[][..], Vec::as_slice))
    }

    /// Returns a finding for each request of the preparation that a server rejected.
    fn find_preparation_failures(&self) -> Vec<Finding> {
        let targets = [(Some(&self.target), ""), (self.reference.as_ref(), " on the reference")];
        let failures = targets
            .into_iter()
            .filter_map(|(target, name)| Some((target?, name)))
            .flat_map(|(target, name)| target.preparation_failures().iter().map(move |failure| (target, name, failure)));
        failures
            .map(|(target, name, failure)| Finding {
                check: Check::Prepared,
                operation: failure.operation.clone(),
                pointer: self
                    .contract
                    .operation(&failure.operation)
                    .map_or_else(String::new, |operation| operation.pointer.clone()),
                summary: format!("a request that prepares the comparison{name} {}", failure.summary),
                expected: "a success status, so that the operations that need the resource can be asked".to_owned(),
                actual: failure.actual.clone(),
                curl: failure.request.as_ref().map_or_else(String::new, |request| target.curl(request)),
                occurrences: 1,
            })
            .collect()
    }

    /// Returns a finding for each endpoint of the server that the document lacks.
    fn find_undocumented_operations(&self) -> Vec<Finding> {
        let documented: BTreeSet<_> = self.contract.operations().map(drift_key).collect();
        let undocumented = self.drift.iter().filter(|(key, _)| !documented.contains(*key));
        undocumented
            .flat_map(|(_, differences)| differences)
            .map(|difference| Finding {
                check: Check::Undocumented,
                operation: String::new(),
                pointer: "/paths".to_owned(),
                summary: difference.to_string(),
                expected: difference.document.clone(),
                actual: difference.server.clone(),
                curl: String::new(),
                occurrences: 1,
            })
            .collect()
    }
}

/// Returns method and path, which identify an operation in the drift report.
fn drift_key(operation: &Operation) -> String {
    format!("{} {}", operation.method, operation.path)
}

/// Returns if a document is the built-in one or a version of it, by its title.
pub fn is_builtin_document(contract: &Contract) -> bool {
    contract.document["info"]["title"] == BUILTIN_TITLE
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::path::Path;

    use chrono::TimeDelta;
    use http::Response;
    use serde_json::json;

    use super::*;
    use crate::report;
    use crate::tests::{comparison, start};

    #[tokio::test]
    async fn clock_that_steps_back_loses_no_report() {
        let document =
            json!({ "openapi": "3.0.3", "info": { "title": "books", "version": "1" }, "paths": { "/a": { "get": {} } } });
        let address = start(|_| Response::new(String::new())).await;
        let comparison = comparison(document, None, &address).await;
        let report = comparison.report(Utc::now() + TimeDelta::minutes(1), 0, Vec::new(), Vec::new());
        report::write(tempfile::tempdir().unwrap().path(), &report).unwrap();
        assert!(report.seconds >= 0.0);
    }

    #[test]
    fn recognizes_builtin_document_by_title() {
        let contract = Contract::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/openapi.yaml"))).unwrap();
        let other = json!({ "openapi": "3.0.3", "info": { "title": "books", "version": "1" }, "paths": {} });
        assert!(is_builtin_document(&contract));
        assert!(!is_builtin_document(&Contract::new(other).unwrap()));
    }
}
