//! Judges the responses that the tests have recorded below `target/tmp/coverage` (`tests/support/coverage.rs`): prints how many of
//! the contract's declared responses were seen, lists the unseen ones, and exits with 1 if there are any.
//!
//! It is no test of its own; cargo runs it only when it is named:
//!
//! ```sh
//! rm -rf target/tmp/coverage && cargo test --workspace && cargo test --test coverage
//! ```
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the test suite")]

use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

use serde_yaml_ng::Value;

/// The methods that an OpenAPI path item may have; its other keys are no operations.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

fn main() -> ExitCode {
    let declared = declared();
    let seen = seen();
    let unseen: Vec<_> = declared.difference(&seen).collect();
    println!("{} of {} declared responses seen", declared.len() - unseen.len(), declared.len());
    for pair in &unseen {
        println!("  never seen: {pair}");
    }
    if unseen.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The `operationId status` pairs of the contract.
fn declared() -> BTreeSet<String> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/spec/openapi.yaml")).unwrap();
    let document: Value = serde_yaml_ng::from_str(&text).unwrap();
    let mut declared = BTreeSet::new();
    for item in document["paths"].as_mapping().unwrap().values() {
        for operation in METHODS.iter().filter_map(|method| item.get(method)) {
            let id = operation["operationId"].as_str().unwrap();
            let statuses = operation["responses"].as_mapping().unwrap().keys().map(|status| match status {
                Value::Number(status) => status.to_string(),
                status => status.as_str().unwrap().to_owned(),
            });
            declared.extend(statuses.map(|status| format!("{id} {status}")));
        }
    }
    declared
}

/// The pairs that the tests have recorded.
fn seen() -> BTreeSet<String> {
    let files = fs::read_dir(concat!(env!("CARGO_TARGET_TMPDIR"), "/coverage")).into_iter().flatten();
    files
        .flat_map(|file| fs::read_to_string(file.unwrap().path()).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}
