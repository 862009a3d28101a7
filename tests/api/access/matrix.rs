//! The matrix: every operation, every kind of caller. Each cell is held to the rules, and the whole to the table in the repository.

use std::collections::BTreeMap;
use std::{env, fs};

use boxoffice::auth::Scope;

use super::callers::Caller;
use super::fixtures::Cast;
use super::privacy::{self, Secrets};
use super::rules::{ROWS, Row};
use crate::on_both_databases;
use crate::support::{Response, Snapshot, TestApp, operations};

on_both_databases![every_operation_matches_access_rules];

/// Where the answers stand, for people to read.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/access/matrix.md");

/// What a cell is answered: status and, of a rejection, the code.
type Cell = (u16, String);

#[test]
fn every_operation_has_access_rule() {
    let mut asked: Vec<&str> = ROWS.iter().map(|row| row.operation).collect();
    asked.dedup();

    let operations = operations();
    let all: Vec<&str> = operations.iter().map(|operation| operation.id.as_str()).collect();

    assert_eq!(asked, all, "each operation has rows, in the contract's order");
    for row in ROWS {
        let operation = operations.iter().find(|operation| operation.id == row.operation).unwrap();
        let path = row.path.split('?').next().unwrap();
        let is_same = |(asked, told): (&str, &str)| told.starts_with('{') || asked == told;
        let both = || path.split('/').zip(operation.path.split('/'));
        assert!(path.split('/').count() == operation.path.split('/').count() && both().all(is_same), "{}: {path}", row.name());
        let may = ROWS.iter().filter(|other| other.operation == row.operation).flat_map(|row| row.may);
        assert!(may.count() > 0, "{}: nobody may", row.name());
        let is_reached =
            |caller: &Caller| !operation.needs_key || caller.scope().is_some_and(|scope| operation.scopes.contains(&scope));
        assert!(row.may.iter().all(is_reached), "{}: whoever may has to reach it", row.name());
    }
}

async fn every_operation_matches_access_rules(app: TestApp) {
    let is_sqlite = app.database_url.starts_with("sqlite:");
    let cast = Cast::gather(app).await;
    let mut before = Snapshot::take(&cast.app).await;
    let secrets = Secrets::of(&cast);
    let mut answers: BTreeMap<(usize, Caller), Cell> = BTreeMap::new();
    let mut read = Vec::new();
    let mut wrong = Vec::new();

    // First all that is refused, then what only reads: none of it changes anything. What changes something comes last, each time on
    // the app as it was.
    let changes = |row: &Row| cast.operation(row).method != "GET" || row.operation == "token_authentication_get";
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
                    cast.prepare(row, &cast.things).await;
                }
                let answer = cast.ask(row, &cast.things, caller).await;
                if !is_expected(&cast, row, caller, &answer) {
                    wrong.push(format!("{} as {caller:?}: {} {}", row.name(), answer.status, answer.body));
                }
                read.extend(secrets.in_answer(row, caller, &cast.told(row, &cast.things), &answer));
                answers.insert((index, caller), cell(&answer));
                if phase == 2 {
                    before.restore().await;
                }
            }
            let changed = before.changes().await;
            if !changed.is_empty() {
                wrong.push(format!("{}: what was refused or read has changed something: {changed:#?}", row.name()));
                before.restore().await;
            }
        }
    }

    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(privacy::wrongly_read(&read), Vec::<&privacy::Read>::new());
    assert_eq!(answers.len(), ROWS.len() * Caller::ALL.len());
    let table = format!("{}\n{}", table(&cast, &answers), privacy::table(&read));
    if is_sqlite && env::var_os("BOXOFFICE_WRITE").is_some() {
        fs::write(TABLE, &table).unwrap();
    }
    let kept = fs::read_to_string(TABLE).unwrap_or_default();
    assert!(table == kept, "tests/access/matrix.md is old; BOXOFFICE_WRITE=1 writes it anew:\n{}", difference(&kept, &table));
}

fn cell(answer: &Response) -> Cell {
    let is_refused = answer.status >= 400;
    (answer.status, if is_refused { answer.code().to_owned() } else { String::new() })
}

/// Whether a cell is answered as the contract and the rules say.
fn is_expected(cast: &Cast, row: &Row, caller: Caller, answer: &Response) -> bool {
    if row.may.contains(&caller) {
        return (200..300).contains(&answer.status);
    }
    let operation = cast.operation(row);
    let is_reached = |scope: Scope| operation.scopes.contains(&scope);
    let expected = match caller {
        _ if !operation.needs_key => row.others,
        Caller::NoKey | Caller::EmptyKey => (401, "key.missing"),
        _ if !caller.scope().is_some_and(is_reached) => (403, "key.refused"),
        _ => row.except.iter().find(|(except, ..)| *except == caller).map_or(row.others, |(_, status, code)| (*status, *code)),
    };
    // The requirement has the text of these two.
    let text = match expected.1 {
        "key.missing" => Some("Your request could not be authenticated."),
        "key.refused" => Some("You are restricted from accessing this resource."),
        _ => None,
    };
    (answer.status, answer.code()) == expected && text.is_none_or(|text| answer.body["message"] == text)
}

/// How a rejection is told in the table, and what it means.
const SHORT: [(&str, &str, &str); 6] = [
    ("key.missing", "401", "no key (`key.missing`)"),
    ("key.refused", "403k", "the key opens nothing, or doesn't reach the operation (`key.refused`)"),
    ("resource.not-yours", "403", "what was asked for isn't this caller's (`resource.not-yours`)"),
    ("resource.not-found", "404", "there is no such thing for this caller (`resource.not-found`)"),
    ("arguments.invalid", "400", "no such thing can be named by this caller (`arguments.invalid`)"),
    ("admission.none", "400a", "none of the tickets can be admitted by this caller (`admission.none`)"),
];

/// The table, in Markdown.
fn table(cast: &Cast, answers: &BTreeMap<(usize, Caller), Cell>) -> String {
    let mut text = "# Who may do what\n\nWhat a real server answers to every operation of the contract, asked by every kind of caller for what is the owner's, the\n\
        sender's and the host's. `every_operation_matches_access_rules` has asked, on SQLite and on PostgreSQL, has held each answer to `tests/api/access/rules.rs`,\n\
        and has seen that what was refused has changed nothing; each success was had on the same app. `BOXOFFICE_WRITE=1 cargo test --test it access::matrix::` writes this anew.\n\n\
        A success is **bold**. Of the refusals,\n\n"
        .to_owned();
    for (_, short, meaning) in SHORT {
        text.push_str(&format!("- `{short}`: {meaning}\n"));
    }
    text.push_str("\nThe callers, each by their key:\n\n");
    for (_, short, meaning) in Caller::ALL {
        text.push_str(&format!("- `{short}`: {meaning}\n"));
    }
    let width = ROWS.iter().map(|row| row.name().len()).max().unwrap_or_default() + 2;
    let mut tag = "";
    for (index, row) in ROWS.iter().enumerate() {
        let operation = cast.operation(row);
        if operation.tag != tag {
            tag = &operation.tag;
            let heads = Caller::ALL.map(|(_, short, _)| format!(" {short:7} |")).concat();
            let rules = format!("| {} |{}", "-".repeat(width), " ------- |".repeat(Caller::ALL.len()));
            text.push_str(&format!("\n## {tag}\n\n| {:width$} |{heads}\n{rules}\n", "operation"));
        }
        let cells = Caller::ALL.map(|(caller, ..)| format!(" {:7} |", told(&answers[&(index, caller)]))).concat();
        let name = match row.variant {
            "" => format!("`{}`", row.operation),
            variant => format!("`{}` ({variant})", row.operation),
        };
        text.push_str(&format!("| {name:width$} |{cells}\n"));
    }
    text
}

fn told((status, code): &Cell) -> String {
    match SHORT.iter().find(|(long, ..)| long == code) {
        Some((_, short, _)) => (*short).to_owned(),
        None if code.is_empty() => format!("**{status}**"),
        None => format!("{status} `{code}`"),
    }
}

/// The lines of one text that the other lacks.
fn difference(old: &str, new: &str) -> String {
    let lacking = |sign: char, of: &str, other: &str| {
        let lines = of.lines().filter(|line| !other.lines().any(|theirs| theirs == *line));
        lines.map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    lacking('-', old, new) + &lacking('+', new, old)
}
