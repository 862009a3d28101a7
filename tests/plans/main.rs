//! Judges how the databases would execute the statements that the tests have recorded below `target/tmp/statements`
//! (`tests/support/statements.rs`): no statement may read rows in proportion to a table, an event, a host, an account or a section
//! where a unique key or a bound narrows it, and none may lock rows by an update that changes nothing (see "Lock order" in
//! CONTRIBUTING.md). Prints the statements that do, and exits with 1 if there are any.
//!
//! It is no test of its own; cargo runs it only when it is named:
//!
//! ```sh
//! rm -rf target/tmp/statements && cargo test --workspace && cargo test --test plans
//! ```
//!
//! Both databases have empty tables and no statistics here, so no plan depends on them. SQLite plans by the text and the indexes
//! alone. PostgreSQL is asked for a plan without sequential scans: what it then still has to read completely, no index can narrow.
//! Which of several indexes it uses depends on its statistics, and is not judged.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the test suite")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, clippy::allow_attributes, reason = "shared by several test binaries")]
mod support;

mod access;
mod exceptions;
mod postgres;
mod sqlite;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use access::Access;
use exceptions::EXCEPTIONS;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let statements = recorded();
    let on_sqlite = sqlite::accesses(&statements).await;
    let on_postgres = postgres::accesses(&statements).await;
    let mut failures = Vec::new();
    if sqlite::plans_depend_on_values().await {
        failures.push("SQLite plans statements again for other values".to_owned());
    }
    for text in &statements {
        if !on_sqlite.contains_key(text) && !on_postgres.as_ref().is_none_or(|plans| plans.contains_key(text)) {
            failures.push(format!("neither database can plan it: {text}"));
        }
        if changes_nothing(text) {
            failures.push(format!("it locks rows by an update that changes nothing, instead of by `for_update`: {text}"));
        }
    }
    let mut used = BTreeSet::new();
    let plans = on_sqlite.iter().map(|plan| ("SQLite", plan));
    for (database, (text, accesses)) in plans.chain(on_postgres.iter().flatten().map(|plan| ("PostgreSQL", plan))) {
        for access in accesses.iter().filter(|access| !access.is_bounded()) {
            match EXCEPTIONS.iter().position(|exception| exception.covers(text)) {
                Some(index) => _ = used.insert(index),
                None => failures.push(format!("{database}: {access}\n    {text}")),
            }
        }
    }
    let unused = EXCEPTIONS.iter().enumerate().filter(|(index, _)| !used.contains(index));
    failures.extend(unused.map(|(_, exception)| format!("an exception that no statement needs: {exception}")));
    for failure in &failures {
        println!("  {failure}");
    }
    let (sqlite, postgres) = (on_sqlite.len(), on_postgres.as_ref().map_or(0, BTreeMap::len));
    println!("plans of {sqlite} statements on SQLite and {postgres} on PostgreSQL, {} unbounded", failures.len());
    // Without records, nothing was judged.
    if failures.is_empty() && sqlite > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns whether an update only locks rows, such as `update events set title = title where id = $1`.
fn changes_nothing(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').take(7).collect();
    matches!(words[..], ["update", _, "set", column, "=", value, "where"] if column == value)
}

/// The plans of the statements that a database can execute: the rows that each reads.
type Plans = BTreeMap<String, Vec<Access>>;

/// Parts of statements about the database itself, of tables of values, of tables that a test has renamed (a server reads the names of
/// all tables if its clock jumps meanwhile), and of tables that a test has created.
const NOT_PLANNED: [&str; 8] =
    ["_sqlx_migrations", "pragma_", "sqlite_master", "pg_", "information_schema", "unnest($", "gone_", "written_"];
/// The tests that run statements of their own on the server's database. These aren't judged, unless the server has the same.
const TESTS: [&str; 3] = ["tests/api", "tests/faults", "tests/support"];
/// The checks of the books. Their statements read everything, and aren't judged.
const INVARIANTS: &str = "src/invariants.rs";

/// Returns the recorded statements that read or change rows. A plain `insert` of values reads none, and PostgreSQL can't plan a table
/// of values without the types that the server gives it.
fn recorded() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [server, invariants] = ["src", INVARIANTS].map(|path| one_line(&sources(&root.join(path))));
    let tests = one_line(&TESTS.map(|path| sources(&root.join(path))).concat());
    let files = fs::read_dir(concat!(env!("CARGO_TARGET_TMPDIR"), "/statements")).into_iter().flatten();
    let text: String = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let is_judged = |line: &&str| {
        let verb = line.split(' ').next().unwrap_or_default();
        let is_insert_of_values = verb == "insert" && !line.contains("select ");
        // Some tests count the rows of each table.
        let is_count = line.starts_with("select count(*) from ") && !line.contains(" where ");
        let literal = format!("\"{line}\"");
        let is_of_tests = (is_count || tests.contains(&literal)) && !server.contains(&literal);
        ["select", "update", "delete", "insert", "with"].contains(&verb)
            && !is_insert_of_values
            && !NOT_PLANNED.iter().any(|part| line.contains(part))
            && !is_of_tests
            && !invariants.contains(&literal)
    };
    text.lines().filter(is_judged).map(str::to_owned).collect()
}

/// Returns the text of a source file, or of all source files below a folder.
fn sources(path: &Path) -> String {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().map(|entry| sources(&entry.unwrap().path())).collect();
    }
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    if is_source { fs::read_to_string(path).unwrap() } else { String::new() }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
