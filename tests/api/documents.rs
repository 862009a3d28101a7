//! The code blocks of the documents: each is run, compiled or checked by a test.

mod commands;
mod postgres;
mod runs;
mod snippets;

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The files whose tests check the blocks that are neither shell commands nor sessions, by document, heading and language. `commands`
/// checks all shell commands; `runs` and `postgres` also run those that need neither a network nor another machine.
const CHECKED: &[(&str, &str, &str, &str)] = &[
    ("CONTRIBUTING.md", "## Commits", "", "tests/api/documents/snippets.rs"),
    ("clients/go/README.md", "# Go client", "go", "tests/api/documents/snippets.rs"),
    ("clients/java/README.md", "# Java client", "java", "tests/api/documents/snippets.rs"),
    ("clients/go/README.md", "## Lists", "go", "tests/api/documents/snippets.rs"),
    ("clients/java/README.md", "## Clearing a property", "java", "tests/api/documents/snippets.rs"),
    ("clients/java/README.md", "## Lists", "java", "tests/api/documents/snippets.rs"),
    ("clients/python/README.md", "# Python client", "python", "tests/api/documents/snippets.rs"),
    ("clients/python/README.md", "## Lists", "python", "tests/api/documents/snippets.rs"),
    ("clients/rust/README.md", "## A sale", "rust,no_run", "clients/rust/src/lib.rs"),
    ("clients/typescript/README.md", "# TypeScript client", "ts", "tests/api/documents/snippets.rs"),
    ("clients/typescript/README.md", "## Lists", "ts", "tests/api/documents/snippets.rs"),
    ("docs/operating.md", "## Settings", "toml", "tests/api/documents/runs.rs"),
    ("docs/operating.md", "## systemd", "ini", "tests/api/documents/snippets.rs"),
    ("docs/operating.md", "### Change of a password", "sql", "tests/api/documents/postgres.rs"),
    ("docs/operating.md", "### PostgreSQL", "ini", "tests/api/documents/postgres.rs"),
    ("docs/qa.md", "### Baseline", "yaml", "tests/api/documents/runs.rs"),
    ("docs/qa.md", "### Build servers", "yaml", "tests/api/documents/runs.rs"),
    ("docs/qa.md", "### Configuration file", "yaml", "tests/conformance/mock/command.rs"),
    ("docs/testing.md", "## Writing a test", "rust", "tests/api/documents/snippets.rs"),
    ("docs/versioning.md", "## Deprecation", "text", "tests/conformance/deprecation.rs"),
    ("docs/versioning.md", "## Deprecation", "yaml", "tests/conformance/deprecation.rs"),
];

/// A code block of a document.
struct Block {
    document: String,
    /// The line of its first line, for messages.
    line: usize,
    /// The last heading before it.
    heading: String,
    /// Empty if the document names none.
    language: String,
    text: String,
}

impl Display for Block {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.document, self.line)
    }
}

fn path(document: &str) -> PathBuf {
    Path::new(ROOT).join(document)
}

fn read(document: &str) -> String {
    fs::read_to_string(path(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// Returns the documents of the book, which has all of them: `docs/build` checks that.
fn documents() -> Vec<String> {
    let summary = read("docs/SUMMARY.md");
    let links = summary.split("](").skip(1).map(|link| link.split(')').next().unwrap());
    links.map(|link| link.strip_prefix("../").map_or_else(|| format!("docs/{link}"), str::to_owned)).collect()
}

/// Returns the code blocks of a document.
fn blocks_of(document: &str) -> Vec<Block> {
    let (mut blocks, mut heading) = (Vec::new(), String::new());
    let text = read(document);
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let indent = line.len() - line.trim_start().len();
            let content = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim_start() != "```");
            let content = content.map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect();
            let (document, heading, language) = (document.to_owned(), heading.clone(), language.to_owned());
            blocks.push(Block { document, line: index + 2, heading, language, text: content });
        } else if line.starts_with('#') {
            line.clone_into(&mut heading);
        }
    }
    blocks
}

/// Returns the texts of the blocks below a heading.
fn texts(document: &str, heading: &str, language: &str) -> Vec<String> {
    let blocks = blocks_of(document).into_iter().filter(|block| block.heading == heading && block.language == language);
    let texts: Vec<_> = blocks.map(|block| block.text).collect();
    assert!(!texts.is_empty(), "{document} has no {language} below {heading}");
    texts
}

#[test]
fn every_block_is_checked() {
    let sessions = read("clients/cli/tests/session.rs");
    let mut used = BTreeSet::new();
    for document in documents() {
        let name = Path::new(&document).file_name().unwrap().to_str().unwrap();
        for block in blocks_of(&document) {
            let is_checked = match block.language.as_str() {
                // All of them are.
                "sh" => true,
                "console" => sessions.contains(&format!("/{document}\"")) || document == "clients/cli/README.md",
                language => CHECKED.iter().any(|(of, heading, in_language, test)| {
                    let is_entry = *of == document && *heading == block.heading && *in_language == language;
                    if is_entry {
                        used.insert((*of, *heading, *in_language));
                    }
                    is_entry && read(test).contains(name)
                }),
            };
            assert!(is_checked, "{block}: no test checks this block: `{}`, below `{}`", block.language, block.heading);
        }
    }
    let entries: BTreeSet<_> = CHECKED.iter().map(|(document, heading, language, _)| (*document, *heading, *language)).collect();
    assert_eq!(entries, used, "an entry has no block");
}
