//! The access matrix: every operation with every kind of caller. Each cell is compared with the rules, and the whole matrix with
//! the table in the repository.

use std::collections::BTreeMap;
use std::{env, fs};

use boxoffice_openapi::Scope;

use super::callers::Caller;
use super::fixtures::AccessFixtures;
use super::privacy::{self, Secrets};
use super::rules::{ROWS, Row};
use crate::support::{Response, Snapshot, TestApp, operations, rejection};

on_both_databases![every_operation_matches_access_rules];

/// The table of all responses.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/access/matrix.md");

/// The status of a response and its error code.
type Cell = (u16, String);

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
        let may = ROWS.iter().filter(|other| other.operation == row.operation).flat_map(|row| row.may);
        assert!(may.count() > 0, "{}: no caller is allowed", row.name());
        let is_reached =
            |caller: &Caller| !operation.needs_key || caller.scope().is_some_and(|scope| operation.scopes.contains(&scope));
        assert!(row.may.iter().all(is_reached), "{}: an allowed caller lacks the scope", row.name());
    }
}

async fn every_operation_matches_access_rules(app: TestApp) {
    let is_sqlite = app.database_url.starts_with("sqlite:");
    let fixtures = AccessFixtures::create(app).await;
    let mut before = Snapshot::take(&fixtures.app).await;
    let secrets = Secrets::of(&fixtures);
    let mut responses: BTreeMap<(usize, Caller), Cell> = BTreeMap::new();
    let mut read = Vec::new();
    let mut wrong = Vec::new();

    // Rejected and reading requests first: they change nothing. Each changing request is sent to a restored database.
    let changes = |row: &Row| fixtures.operation(row).method != "GET" || row.operation == "token_authentication_get";
    let phase_of = |row: &Row, caller: &Caller| match (row.may.contains(caller), changes(row)) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    };
    for phase in 0..=2 {
        for (index, row) in ROWS.iter().enumerate() {
            let callers = Caller::ALL.iter().map(|(caller, ..)| *caller).filter(|caller| phase_of(row, caller) == phase);
            for caller in callers {
                if phase == 2 {
                    fixtures.prepare(row, &fixtures.ids).await;
                }
                let response = fixtures.request(row, &fixtures.ids, caller).send().await;
                if !is_expected(&fixtures, row, caller, &response) {
                    wrong.push(format!("{} as {caller:?}: {} {}", row.name(), response.status, response.body));
                }
                read.extend(secrets.in_answer(row, caller, &fixtures.request_text(row, &fixtures.ids), &response));
                responses.insert((index, caller), cell(&response));
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
    assert_eq!(responses.len(), ROWS.len() * Caller::ALL.len());
    let table = format!("{}\n{}", table(&fixtures, &responses), privacy::table(&read));
    if is_sqlite && env::var_os("BOXOFFICE_WRITE").is_some() {
        fs::write(TABLE, &table).unwrap();
    }
    let kept = fs::read_to_string(TABLE).unwrap_or_default();
    assert!(table == kept, "tests/access/matrix.md is old; BOXOFFICE_WRITE=1 writes it anew:\n{}", difference(&kept, &table));
}

fn cell(response: &Response) -> Cell {
    let is_refused = response.status >= 400;
    (response.status, if is_refused { response.code().to_owned() } else { String::new() })
}

/// Returns whether a response is as the contract and the rules say.
fn is_expected(fixtures: &AccessFixtures, row: &Row, caller: Caller, response: &Response) -> bool {
    if row.may.contains(&caller) {
        return (200..300).contains(&response.status);
    }
    let operation = fixtures.operation(row);
    let is_reached = |scope: Scope| operation.scopes.contains(&scope);
    let expected = match caller {
        _ if !operation.needs_key => row.others,
        Caller::NoKey | Caller::EmptyKey => (401, "key.missing"),
        _ if !caller.scope().is_some_and(is_reached) => (403, "key.refused"),
        _ => row.except.iter().find(|(except, ..)| *except == caller).map_or(row.others, |(_, status, code)| (*status, *code)),
    };
    // The requirement specifies the messages of these two.
    let text = match expected.1 {
        "key.missing" => Some("Your request could not be authenticated."),
        "key.refused" | "resource.not-yours" => Some("You are restricted from accessing this resource."),
        _ => None,
    };
    // Some clients read the text of a foreign resource's 403 from `error`.
    let has_error = expected.1 != "resource.not-yours" || response.body["error"] == response.body["message"];
    rejection(response) == expected && text.is_none_or(|text| response.body["message"] == text) && has_error
}

/// The short form of each error code in the table, and its meaning.
const SHORT: [(&str, &str, &str); 6] = [
    ("key.missing", "401", "no key (`key.missing`)"),
    ("key.refused", "403k", "the key is invalid or lacks the scope (`key.refused`)"),
    ("resource.not-yours", "403", "the resource belongs to another account (`resource.not-yours`)"),
    ("resource.not-found", "404", "the resource doesn't exist for this caller (`resource.not-found`)"),
    ("arguments.invalid", "400", "the argument doesn't exist for this caller (`arguments.invalid`)"),
    ("admission.none", "400a", "this caller can admit none of the tickets (`admission.none`)"),
];

/// Returns the table in Markdown.
fn table(fixtures: &AccessFixtures, responses: &BTreeMap<(usize, Caller), Cell>) -> String {
    let mut text = "# Access matrix\n\nThe responses of a real server to every operation of the contract, called by every kind of caller with the resources of the owner,\n\
        the sender and the host. The test `every_operation_matches_access_rules` sends the requests on SQLite and on PostgreSQL, compares each response with\n\
        `tests/api/access/rules.rs`, and checks that rejected requests change nothing. `BOXOFFICE_WRITE=1 cargo test --test api access::matrix::` updates this file.\n\n\
        Successful responses are **bold**. The others:\n\n"
        .to_owned();
    for (_, short, meaning) in SHORT {
        text.push_str(&format!("- `{short}`: {meaning}\n"));
    }
    text.push_str("\nThe callers:\n\n");
    for (_, short, meaning) in Caller::ALL {
        text.push_str(&format!("- `{short}`: {meaning}\n"));
    }
    let width = ROWS.iter().map(|row| row.name().len()).max().unwrap_or_default() + 2;
    let mut tag = "";
    for (index, row) in ROWS.iter().enumerate() {
        let operation = fixtures.operation(row);
        if operation.tag != tag {
            tag = &operation.tag;
            let heads = Caller::ALL.map(|(_, short, _)| format!(" {short:7} |")).concat();
            let rules = format!("| {} |{}", "-".repeat(width), " ------- |".repeat(Caller::ALL.len()));
            text.push_str(&format!("\n## {tag}\n\n| {:width$} |{heads}\n{rules}\n", "operation"));
        }
        let cells = Caller::ALL.map(|(caller, ..)| format!(" {:7} |", describe(&responses[&(index, caller)]))).concat();
        let name = match row.variant {
            "" => format!("`{}`", row.operation),
            variant => format!("`{}` ({variant})", row.operation),
        };
        text.push_str(&format!("| {name:width$} |{cells}\n"));
    }
    text
}

fn describe((status, code): &Cell) -> String {
    match SHORT.iter().find(|(long, ..)| long == code) {
        Some((_, short, _)) => (*short).to_owned(),
        None if code.is_empty() => format!("**{status}**"),
        None => format!("{status} `{code}`"),
    }
}

/// Returns the lines of each text that the other doesn't have.
fn difference(old: &str, new: &str) -> String {
    let lacking = |sign: char, of: &str, other: &str| {
        let lines = of.lines().filter(|line| !other.lines().any(|theirs| theirs == *line));
        lines.map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    lacking('-', old, new) + &lacking('+', new, old)
}
