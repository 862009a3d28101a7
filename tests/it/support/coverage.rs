//! Which of the contract's answers the tests have seen, of all that it declares.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use boxoffice::contract::Contract;

/// An operationId and a status.
type Pair = (String, u16);

/// What was answered during this run.
static SEEN: Mutex<BTreeSet<Pair>> = Mutex::new(BTreeSet::new());

/// Notes that an operation was answered with a status, as the contract describes it.
pub fn saw(operation: &str, status: u16) {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert((operation.to_owned(), status));
}

/// The contract's answers, and those that nothing has asked for.
pub struct Coverage {
    operations: usize,
    declared: BTreeSet<Pair>,
    unseen: Vec<Pair>,
}

/// What the tests of this run have seen so far.
pub fn of_this_run() -> Coverage {
    let contract = Contract::builtin().unwrap();
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    Coverage::of(&contract, &seen)
}

impl Coverage {
    fn of(contract: &Contract, seen: &BTreeSet<Pair>) -> Self {
        let pairs = |operation: &boxoffice::contract::Operation| {
            let id = operation.id.clone();
            operation.statuses.iter().map(move |status| (id.clone(), *status)).collect::<Vec<_>>()
        };
        let declared: BTreeSet<_> = contract.operations().flat_map(pairs).collect();
        Self { operations: contract.operations().count(), unseen: declared.difference(seen).cloned().collect(), declared }
    }

    /// Whether every answer that the contract declares was seen.
    pub fn is_whole(&self) -> bool {
        self.unseen.is_empty()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (declared, unseen) = (self.declared.len(), self.unseen.len());
        writeln!(f, "contract: {} operations, {declared} answers declared, {} seen", self.operations, declared - unseen)?;
        for (operation, status) in &self.unseen {
            writeln!(f, "  never seen: {operation} {status}")?;
        }
        Ok(())
    }
}

crate::plain_tests![an_answer_that_was_never_seen_is_told, an_answer_that_is_not_declared_counts_for_nothing];

fn seen(pairs: &[(&str, u16)]) -> String {
    let operation = serde_json::json!({ "operationId": "time_get", "responses": { "200": {}, "500": {} } });
    let contract = Contract::new(serde_json::json!({ "paths": { "/time": { "get": operation } } })).unwrap();
    let seen = pairs.iter().map(|(operation, status)| ((*operation).to_owned(), *status)).collect();
    let coverage = Coverage::of(&contract, &seen);
    format!("{} {coverage}", coverage.is_whole())
}

fn an_answer_that_was_never_seen_is_told() {
    let one = seen(&[("time_get", 200)]);
    let both = seen(&[("time_get", 200), ("time_get", 500)]);

    assert_eq!(one, "false contract: 1 operations, 2 answers declared, 1 seen\n  never seen: time_get 500\n");
    assert_eq!(both, "true contract: 1 operations, 2 answers declared, 2 seen\n");
}

fn an_answer_that_is_not_declared_counts_for_nothing() {
    let other = seen(&[("time_get", 404), ("time_set", 500)]);

    assert!(other.starts_with("false contract: 1 operations, 2 answers declared, 0 seen\n"), "{other}");
}
