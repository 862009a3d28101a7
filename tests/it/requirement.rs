//! The contract's operations and those that the requirement lists: none is lacking, and none is there without saying so.

use std::collections::BTreeSet;

use crate::plain_tests;
use crate::support::operations;

plain_tests![
    the_contract_has_every_operation_of_the_requirement,
    what_the_requirement_does_not_list_is_marked,
    what_the_requirement_lists_is_not_marked,
];

/// The requirement's operations, as methods and paths.
const REQUIRED: &str = include_str!("data/operations.txt");

/// A method and a path without the names of its variables, which the contract may choose.
fn shape(operation: &str) -> String {
    let segments = operation.trim().split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

fn required() -> BTreeSet<String> {
    REQUIRED.lines().filter(|line| !line.trim().is_empty()).map(shape).collect()
}

/// The contract's operations that are marked as a supplement, or those that aren't.
fn contracted(is_supplement: bool) -> BTreeSet<String> {
    let operations = operations().into_iter().filter(|operation| operation.is_supplement() == is_supplement);
    operations.map(|operation| shape(&format!("{} {}", operation.method, operation.path))).collect()
}

fn assert_empty<'a>(wrong: impl Iterator<Item = &'a String>) {
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn the_contract_has_every_operation_of_the_requirement() {
    let all: BTreeSet<_> = contracted(false).union(&contracted(true)).cloned().collect();
    assert!(required().len() >= 98, "the list is whole");
    assert_empty(required().difference(&all));
}

fn what_the_requirement_does_not_list_is_marked() {
    assert_empty(contracted(false).difference(&required()));
}

fn what_the_requirement_lists_is_not_marked() {
    assert_empty(contracted(true).intersection(&required()));
}
