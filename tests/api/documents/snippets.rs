//! Blocks that are parts of programs, or files of other programs.

use std::collections::BTreeSet;

use regex::Regex;

use super::{read, texts};
use crate::support::{TestApp, test_on};

// The example in `docs/testing.md`.
#[test_on(sqlite, postgres)]
async fn region_is_readable(app: TestApp) {
    let region = app.create_region().await;
    assert_eq!(app.request("GET", &region).send().await.status, 200);
}

/// Returns the first line of a block that is not in a program, or not in this order. In the program it may be indented.
fn missing<'a>(block: &'a str, program: &str) -> Option<&'a str> {
    let mut lines = program.lines().map(str::trim);
    block.lines().map(str::trim).find(|line| !line.is_empty() && !lines.any(|of_program| of_program == *line))
}

/// The programs of the clients are compiled by `clients/check`.
#[test]
fn snippets_are_in_programs() {
    for (document, heading, language, program) in [
        ("docs/testing.md", "## Writing a test", "rust", "tests/api/documents/snippets.rs"),
        ("clients/go/README.md", "# Go client", "go", "clients/go/examples/order/main.go"),
        ("clients/go/README.md", "## Lists", "go", "clients/go/checks/later_server/main.go"),
        ("clients/java/README.md", "# Java client", "java", "clients/java/src/example/java/PlaceOrder.java"),
        ("clients/java/README.md", "## Clearing a property", "java", "clients/java/src/check/java/LaterServer.java"),
        ("clients/java/README.md", "## Lists", "java", "clients/java/src/check/java/LaterServer.java"),
        ("clients/python/README.md", "# Python client", "python", "clients/python/examples/order.py"),
        ("clients/python/README.md", "## Lists", "python", "clients/python/checks/later_server.py"),
        ("clients/typescript/README.md", "# TypeScript client", "ts", "clients/typescript/src/examples/order.ts"),
        ("clients/typescript/README.md", "## Lists", "ts", "clients/typescript/src/checks/later_server.ts"),
    ] {
        for snippet in texts(document, heading, language) {
            assert_eq!(missing(&snippet, &read(program)), None, "{program} does not have this line of {document}");
        }
    }
}

/// The drop-in of systemd passes credentials to settings, whose names `variables_are_read` checks.
#[test]
fn credentials_are_passed() {
    let drop_in = &texts("docs/operating.md", "## systemd", "ini")[0];
    let entries = drop_in.strip_prefix("[Service]\n").expect("the entries are those of a service");
    let mut passed = BTreeSet::new();
    for entry in entries.lines() {
        match entry.split_once('=').unwrap() {
            ("LoadCredential", credential) => {
                assert!(passed.insert(credential.split_once(":/etc/boxoffice/").unwrap().0), "{entry}")
            }
            ("Environment", variable) => assert!(passed.remove(variable.split_once("_FILE=%d/").unwrap().1), "{entry}"),
            _ => panic!("{entry}"),
        }
    }
    assert!(passed.is_empty(), "no setting reads {passed:?}");
}

#[test]
fn subjects_of_commits_follow_their_rule() {
    let subject = Regex::new(r"^[a-z]+: [A-Z][a-z]+ .*[^.]$").unwrap();
    for example in texts("CONTRIBUTING.md", "## Commits", "").concat().lines() {
        assert!(subject.is_match(example) && example.len() <= 72, "{example}");
    }
}
