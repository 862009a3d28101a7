//! Runs the tests: each registers itself where it is written, by [`on_both_databases!`](crate::on_both_databases) or
//! [`plain_tests!`](crate::plain_tests), and this finds and runs them all, as Rust's own harness would.
//!
//! It is not Rust's own because of what comes after the last test: only then is it known which of the contract's answers the
//! tests have seen ([`coverage`]).

use std::fs;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Builder;

use super::coverage;
use super::notes::{self, Notes};
use super::world::World;

/// How a test ended: completed or left out, or why it failed.
pub type Outcome = Result<Completion, Failed>;

/// A test, as it registers itself.
pub struct Test {
    /// The path of the module that it stands in, from the crate's name on.
    module: &'static str,
    name: &'static str,
    run: fn() -> Outcome,
}

inventory::collect!(Test);

impl Test {
    /// A test of this name in a module.
    pub const fn new(module: &'static str, name: &'static str, run: fn() -> Outcome) -> Self {
        Self { module, name, run }
    }

    /// Its module and name, without the crate's.
    fn full_name(&self) -> String {
        let module = self.module.split_once("::").map_or("", |(_, module)| module);
        format!("{module}::{}", self.name)
    }
}

/// Runs the tests that the command line asks for. When that is all of them, what they saw of the contract is told and judged.
pub fn run() -> ExitCode {
    let arguments = Arguments::from_args();
    notes::take_panics(arguments.nocapture);
    let mut tests: Vec<_> = inventory::iter::<Test>().map(|test| (test.full_name(), test.run)).collect();
    tests.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let trials = tests.into_iter().map(|(name, run)| Trial::ignorable_test(name, run)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if arguments.list || arguments.ignored || conclusion.num_filtered_out > 0 {
        return conclusion.exit_code();
    }
    let coverage = coverage::of_this_run();
    // Where nobody can read it, the exit code still tells.
    let _ = writeln!(io::stdout(), "{coverage}");
    if coverage.is_whole() { conclusion.exit_code() } else { ExitCode::FAILURE }
}

/// Runs a test without a server of the harness's making.
pub fn plain(test: fn()) -> Outcome {
    let notes = Notes::default();
    notes.belong_to_this_thread();
    notes.outcome(panic::catch_unwind(test).map(|()| Completion::Completed))
}

/// The same for an asynchronous test.
pub fn plain_async<F: Future<Output = ()>>(test: fn() -> F) -> Outcome {
    block_on(async {
        test().await;
        Completion::Completed
    })
}

/// Runs a test of a server with an embedded database.
pub fn on_sqlite<F: Future<Output = ()>>(test: fn(World) -> F) -> Outcome {
    block_on(async {
        test(World::on_sqlite().await).await;
        Completion::Completed
    })
}

/// Runs a test of a server with a PostgreSQL database, where there is a PostgreSQL.
pub fn on_postgres<F: Future<Output = ()>>(test: fn(World) -> F) -> Outcome {
    block_on(async {
        let Some(world) = World::on_postgres().await else { return Completion::ignored_with("there is no PostgreSQL") };
        test(world).await;
        Completion::Completed
    })
}

/// Runs a test of two servers with one PostgreSQL database, where there is a PostgreSQL.
pub fn on_two_servers<F: Future<Output = ()>>(test: fn(World) -> F) -> Outcome {
    block_on(async {
        let Some(world) = World::on_two_servers().await else { return Completion::ignored_with("there is no PostgreSQL") };
        test(world).await;
        Completion::Completed
    })
}

/// Runs a test's future on a runtime of its own.
fn block_on(test: impl Future<Output = Completion>) -> Outcome {
    let notes = Notes::default();
    notes.belong_to_this_thread();
    let of_each_thread = notes.clone();
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().on_thread_start(move || of_each_thread.belong_to_this_thread());
    let runtime = runtime.build().map_err(|error| error.to_string())?;
    let ended = panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(test)));
    notes.outcome(ended)
}

crate::plain_tests![no_test_is_left_to_rusts_own_harness];

/// Which doesn't run here, and would leave it out without a word.
fn no_test_is_left_to_rusts_own_harness() {
    let attribute = regex::Regex::new(r"(?m)^\s*#\[(tokio::)?test\b").unwrap();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it")];
    let mut left = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if fs::read_to_string(&path).is_ok_and(|text| attribute.is_match(&text)) {
                left.push(path);
            }
        }
    }
    assert!(left.is_empty(), "to be registered by a macro of support/mod.rs: {left:#?}");
}
