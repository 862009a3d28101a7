//! Property tests: random cases through the API, compared with a model.

use std::fmt::Debug;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};

mod complimentary;
mod copies;
mod prices;
mod searches;

/// The maximum number of attempts to simplify a failed case.
const SHRINKING: usize = 40;

/// Checks random cases, and fails with the smallest that fails. `BOXOFFICE_CASES` sets another number of cases.
async fn check_cases<T: Debug>(number: usize, strategy: impl Strategy<Value = T>, check: impl AsyncFn(&T) -> TestCaseResult) {
    let number = std::env::var("BOXOFFICE_CASES").map_or(number, |number| number.parse().unwrap());
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    for _ in 0..number {
        let mut case = strategy.new_tree(&mut runner).unwrap();
        let Err(mut failure) = check(&case.current()).await else { continue };
        let mut smallest = case.current();
        let mut smaller = case.simplify();
        for _ in 0..SHRINKING {
            if !smaller {
                break;
            }
            smaller = match check(&case.current()).await {
                Err(found) => {
                    (failure, smallest) = (found, case.current());
                    case.simplify()
                }
                Ok(()) => case.complicate(),
            };
        }
        panic!("{failure}\n{smallest:#?}");
    }
}
