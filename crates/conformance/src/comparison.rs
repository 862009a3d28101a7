//! A comparison from beginning to end: every operation is asked, several at a time, and told in the document's order.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Utc;
use futures::StreamExt;
use serde_json::Value;

use super::operation_run::OperationRun;
use super::model::{Check, Coverage, Finding, Report};
use super::target::Target;
use super::operation_under_test::Subject;
use boxoffice_openapi::drift::{self, Difference};
use boxoffice_openapi::{Contract, Operation};

/// How many operations are asked at the same time. The requests of one are sent one after the other.
const AT_A_TIME: usize = 4;

/// What is compared.
#[derive(Debug)]
pub struct Comparison {
    /// What the server is held against.
    pub contract: Contract,
    /// The server.
    pub target: Target,
    /// The server that it is compared with besides.
    pub reference: Option<Target>,
    /// What the generated requests follow from.
    pub seed: u64,
    /// The operations that are asked, by operationId; the others are left out.
    pub asked: BTreeSet<String>,
    /// Whether the document is this program's own, so that the server follows its rules beyond OpenAPI's and its drift is told.
    is_own: bool,
    /// Where the server as written and its document differ, by method and path.
    drift: BTreeMap<String, Vec<Difference>>,
}

impl Comparison {
    /// Prepares a comparison. `emitted` is the document that the server of this program emits for its endpoints.
    pub fn new(
        contract: Contract,
        target: Target,
        reference: Option<Target>,
        seed: u64,
        asked: BTreeSet<String>,
        emitted: &Value,
    ) -> Self {
        let is_own = is_own(&contract);
        let mut drift: BTreeMap<String, Vec<Difference>> = BTreeMap::new();
        if is_own {
            for difference in drift::compare(&contract.document, emitted) {
                drift.entry(difference.operation.clone()).or_default().push(difference);
            }
        }
        Self { contract, target, reference, seed, asked, is_own, drift }
    }

    /// Asks every operation, and tells of each when it is done, in the document's order.
    pub async fn run(&self, mut done: impl FnMut(&Coverage)) -> Report {
        let started = Utc::now();
        let subjects: Vec<_> = self.contract.operations().map(|operation| Subject::new(&self.contract, operation)).collect();
        let mut interviews =
            futures::stream::iter(&subjects).map(|subject| self.interview(&subjects, subject)).buffered(AT_A_TIME);
        let mut held = Vec::new();
        while let Some(interview) = interviews.next().await {
            done(&interview.record.coverage);
            held.push(interview);
        }
        let (mut operations, mut findings) = (Vec::new(), self.undocumented_operations());
        for mut interview in held {
            interview.check_pages().await;
            let (coverage, found) = interview.record.finish();
            operations.push(coverage);
            findings.extend(found);
        }
        let info = &self.contract.document["info"];
        let sent = |side: &Target| side.server.sent();
        Report {
            document: format!(
                "{} {}",
                info["title"].as_str().unwrap_or("a document without a title"),
                info["version"].as_str().unwrap_or_default()
            ),
            target: self.target.server.address.clone(),
            reference: self.reference.as_ref().map(|side| side.server.address.clone()),
            seed: self.seed,
            started,
            seconds: (Utc::now() - started).as_seconds_f64(),
            requests: sent(&self.target) + self.reference.as_ref().map_or(0, sent),
            operations,
            findings,
            known: Vec::new(),
            notes: self.contract.warnings.clone(),
        }
    }

    async fn interview<'a>(&'a self, subjects: &'a [Subject<'a>], subject: &'a Subject<'a>) -> OperationRun<'a> {
        let mut interview = OperationRun::new(self, subjects, subject);
        if self.asked.contains(&subject.operation.id) {
            interview.run().await;
        } else {
            interview.record.coverage.left_out = Some("--only or --skip leaves it out".to_owned());
        }
        interview
    }

    /// Whether the document is this program's own, or a version of it.
    pub fn is_builtin(&self) -> bool {
        self.is_own
    }

    /// Where the server as written differs from the document in an operation; nothing is known of another document's server.
    pub fn drift_of(&self, operation: &Operation) -> Option<&[Difference]> {
        let name = format!("{} {}", operation.method, operation.path);
        self.is_own.then(|| self.drift.get(&name).map_or(&[][..], Vec::as_slice))
    }

    /// What the server as written has beyond the document's operations.
    fn undocumented_operations(&self) -> Vec<Finding> {
        let described: BTreeSet<_> =
            self.contract.operations().map(|operation| format!("{} {}", operation.method, operation.path)).collect();
        let beyond = self.drift.iter().filter(|(name, _)| !described.contains(*name)).flat_map(|(_, differences)| differences);
        beyond
            .map(|difference| Finding {
                check: Check::Undescribed,
                operation: String::new(),
                pointer: "/paths".to_owned(),
                summary: difference.to_string(),
                expected: difference.document.clone(),
                actual: difference.server.clone(),
                curl: String::new(),
            })
            .collect()
    }
}

/// Whether a document is this program's own, or a version of it: its title is the program's name.
pub fn is_own(contract: &Contract) -> bool {
    contract.document["info"]["title"] == env!("CARGO_PKG_NAME")
}
