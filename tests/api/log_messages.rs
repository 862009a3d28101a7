//! The list of log messages in `docs/operating.md`, compared with the source.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The mock server has no operator.
const EXCLUDED: &str = "cli/mock.rs";

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with(EXCLUDED) {
            found.push(path);
        }
    }
}

/// Returns the level and the text of each message at `warning` and above, up to its first value.
fn messages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("crates/http/src"), &mut files);
    let call = Regex::new(r#"\b(warn|error|crit)!\(\s*[\w.]+,\s*"((?:[^"\\]|\\[\s\S])*)""#).unwrap();
    let any_call = Regex::new(r"\b(?:warn|error|crit)!\(").unwrap();
    let continued = Regex::new(r"\\\n\s*").unwrap();
    let mut messages = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let before = messages.len();
        for found in call.captures_iter(&text) {
            let message = continued.replace_all(&found[2], "").into_owned();
            let level = if &found[1] == "warn" { "warning" } else { "error" };
            messages.push((level.to_owned(), message.split('{').next().unwrap().to_owned()));
        }
        let calls = any_call.find_iter(&text).count();
        assert_eq!(messages.len() - before, calls, "{}: a message is no literal", file.display());
    }
    messages
}

#[test]
fn every_message_says_what_to_do() {
    let document = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operating.md")).unwrap();
    let rows = document.lines().skip_while(|line| *line != "## Log messages").skip(1).take_while(|line| !line.starts_with("## "));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = rows.filter(|line| line.starts_with("| ")).skip(1).map(cells).collect();
    let messages = messages();
    assert!(messages.len() > 25, "{}", messages.len());

    let is_documented = |level: &str, message: &str| {
        let mut rows = rows.iter();
        rows.any(|row| {
            row.len() == 4 && row[1] == level && message.starts_with(&row[0]) && row.iter().all(|cell| !cell.is_empty())
        })
    };
    let missing: Vec<&(String, String)> = messages.iter().filter(|(level, message)| !is_documented(level, message)).collect();
    assert!(missing.is_empty(), "without a row in docs/operating.md: {missing:#?}");
    let is_logged = |row: &&Vec<String>| messages.iter().any(|(level, message)| *level == row[1] && message.starts_with(&row[0]));
    let outdated: Vec<&String> = rows.iter().filter(|row| !is_logged(row)).map(|row| &row[0]).collect();
    assert!(outdated.is_empty(), "no longer logged: {outdated:#?}");
}
