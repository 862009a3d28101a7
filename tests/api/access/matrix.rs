//! The access matrix: every operation with every kind of caller. Each response is compared with the rules, and the personal data in
//! all of them with the table in the repository.

use std::{env, fs};

use boxoffice_openapi::Scope;
use serde_json::json;

use super::callers::Caller;
use super::fixtures::AccessFixtures;
use super::privacy::{self, Secrets};
use super::rules::{ROWS, Row};
use crate::support::{Response, Snapshot, TestApp, operations, rejection, test_on};

/// The table of personal data.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/access/privacy.md");

#[test]
fn every_operation_has_access_rule() {
    let mut requested: Vec<&str> = ROWS.iter().map(|row| row.operation).collect();
    requested.dedup();

    let operations = operations();
    let all: Vec<&str> = operations.iter().map(|operation| operation.id.as_str()).collect();

    assert_eq!(requested, all, "each operation has rows, in the contract's order");
    for row in ROWS {
        let operation = operations.iter().find(|operation| operation.id == row.operation).unwrap();
        let path = row.path.split('?').next().unwrap();
        let is_same = |(requested, actual): (&str, &str)| actual.starts_with('{') || requested == actual;
        let both = || path.split('/').zip(operation.path.split('/'));
        assert!(path.split('/').count() == operation.path.split('/').count() && both().all(is_same), "{}: {path}", row.name());
        let may = ROWS.iter().filter(|other| other.operation == row.operation).flat_map(Row::allowed);
        assert!(may.count() > 0, "{}: no caller is allowed", row.name());
        let is_reached =
            |caller: &Caller| !operation.needs_key || caller.scope().is_some_and(|scope| operation.scopes.contains(&scope));
        assert!(row.allowed().iter().all(is_reached), "{}: an allowed caller lacks the scope", row.name());
    }
}

#[test_on(sqlite, postgres)]
async fn every_operation_matches_access_rules(app: TestApp) {
    let is_sqlite = app.database_url.starts_with("sqlite:");
    let fixtures = AccessFixtures::create(app).await;
    let mut before = Snapshot::take(&fixtures.app).await;
    let secrets = Secrets::of(&fixtures);
    let mut read = Vec::new();
    let mut wrong = Vec::new();

    // Rejected and reading requests first: they change nothing. Each changing request is sent to a restored database.
    let changes = |row: &Row| fixtures.operation(row).method != "GET" || row.operation == "token_authentication_get";
    let phase_of = |row: &Row, caller: &Caller| match (row.allowed().contains(caller), changes(row)) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    };
    for phase in 0..=2 {
        for row in ROWS {
            for caller in Caller::ALL.iter().copied().filter(|caller| phase_of(row, caller) == phase) {
                if phase == 2 {
                    fixtures.prepare(row, &fixtures.ids).await;
                }
                let response = fixtures.request(row, &fixtures.ids, caller).send().await;
                if !is_expected(&fixtures, row, caller, &response) {
                    wrong.push(format!("{} as {caller:?}: {} {}", row.name(), response.status, response.body));
                }
                read.extend(secrets.in_response(row, caller, &fixtures.request_text(row, &fixtures.ids), &response));
                if phase == 2 {
                    before.restore().await;
                }
            }
            let changed = before.changes().await;
            if !changed.is_empty() {
                wrong.push(format!("{}: a rejected or reading request has changed the database: {changed:#?}", row.name()));
                before.restore().await;
            }
        }
    }

    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(privacy::forbidden_reads(&read), Vec::<&privacy::Read>::new());
    let table = privacy::table(&read);
    if is_sqlite && env::var_os("BOXOFFICE_WRITE").is_some() {
        fs::write(TABLE, &table).unwrap();
    }
    let kept = fs::read_to_string(TABLE).unwrap_or_default();
    assert!(
        table == kept,
        "tests/api/access/privacy.md is stale: run this test with BOXOFFICE_WRITE=1\n{}",
        difference(&kept, &table)
    );
}

/// Returns whether a response is as the contract and the rules say.
fn is_expected(fixtures: &AccessFixtures, row: &Row, caller: Caller, response: &Response) -> bool {
    if row.allowed().contains(&caller) {
        return (200..300).contains(&response.status);
    }
    let operation = fixtures.operation(row);
    let is_reached = |scope: Scope| operation.scopes.contains(&scope);
    let expected = match caller {
        _ if !operation.needs_key => row.others,
        Caller::NoKey | Caller::EmptyKey | Caller::BlankKey => (401, "key.missing"),
        _ if !caller.scope().is_some_and(is_reached) => (403, "key.refused"),
        _ => row.except.iter().find(|(except, ..)| *except == caller).map_or(row.others, |(_, status, code)| (*status, *code)),
    };
    let restricted = "You are restricted from accessing this resource.";
    let required = match expected.1 {
        "key.missing" => json!({ "message": "Your request could not be authenticated.", "code": expected.1 }),
        "key.refused" => json!({ "message": restricted, "code": expected.1 }),
        // Some clients read the text from `error`.
        "resource.not-yours" => json!({ "error": restricted, "message": restricted, "code": expected.1 }),
        _ => return rejection(response) == expected,
    };
    (response.status, &response.body) == (expected.0, &required)
}

/// Returns the lines of each text that the other doesn't have.
fn difference(old: &str, new: &str) -> String {
    let lacking = |sign: char, of: &str, other: &str| {
        let lines = of.lines().filter(|line| !other.lines().any(|theirs| theirs == *line));
        lines.map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    lacking('-', old, new) + &lacking('+', new, old)
}
