//! Reports of a comparison: HTML for people, JSON for programs, JUnit XML for build servers, text for the terminal.
//!
//! Texts of the checked server are untrusted. The libraries that write markup escape it, and `escape_control_characters` replaces
//! characters that XML forbids or terminals interpret.

mod html;
mod json;
mod junit;
mod text;
mod totals;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod example;

use std::fs;
use std::path::Path;

use anyhow::Context;

pub use text::text;
pub use totals::{TagTotals, Totals};

use super::model::{Finding, Report};

/// Names of the files.
const FILES: [&str; 3] = ["report.json", "junit.xml", "report.html"];

/// Creates the folder of a report if necessary, and checks that files can be written there.
///
/// # Errors
/// Fails if the folder can't be created or written to. The error contains the path.
pub fn create_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("the folder {} can't be created", folder.display()))?;
    for name in FILES {
        let file = folder.join(name);
        let context = || format!("{} can't be written", file.display());
        let opened = fs::OpenOptions::new().create(true).append(true).open(&file).with_context(context)?;
        if opened.metadata().with_context(context)?.len() == 0 {
            fs::remove_file(&file).with_context(context)?;
        }
    }
    Ok(())
}

/// Writes `report.json`, `junit.xml` and `report.html` into a folder, which is created if necessary.
///
/// # Errors
/// Fails if the folder can't be created or a file can't be written. The error contains the path.
pub fn write(folder: &Path, report: &Report) -> anyhow::Result<()> {
    create_folder(folder)?;
    let contents = [json::json(report)?, junit::junit(report)?, html::html(report)];
    for (name, content) in FILES.into_iter().zip(contents) {
        let file = folder.join(name);
        fs::write(&file, content).with_context(|| format!("{} can't be written", file.display()))?;
    }
    Ok(())
}

/// Sorts findings by operation, in the document's order. Findings about the server as a whole come first.
fn sort_findings<'a, T>(report: &Report, items: &'a [T], finding: impl Fn(&T) -> &Finding) -> Vec<&'a T> {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort_by_cached_key(|item| {
        let finding = finding(item);
        let index = report.operations.iter().position(|operation| operation.operation == finding.operation);
        (index, finding.operation.clone(), finding.check, finding.summary.clone())
    });
    sorted
}

/// Returns a tag, or a description if it is empty.
fn tag_label(tag: &str) -> &str {
    if tag.is_empty() { "no tag" } else { tag }
}

/// Returns at most this number of characters of a text.
fn truncate(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => text[..end].to_owned() + " …",
        None => text.to_owned(),
    }
}

/// Replaces control characters by Unicode control pictures, or else by U+FFFD. Tabs and line feeds are kept.
///
/// The result is valid in XML 1.0 (production `Char`), and terminals find no escape sequence in it.
pub fn escape_control_characters(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' | '\n' => c,
            '\0'..='\x1F' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
            '\x7F' => '␡',
            '\u{80}'..='\u{9F}' | '\u{FFFE}' | '\u{FFFF}' => char::REPLACEMENT_CHARACTER,
            _ => c,
        })
        .collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn writes_three_files() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("created/by/write");
        write(&folder, &example::report()).unwrap();
        for name in ["report.json", "junit.xml", "report.html"] {
            assert!(fs::read_to_string(folder.join(name)).unwrap().contains("order_create"), "{name}");
        }
    }

    #[test]
    fn error_names_file_that_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("junit.xml");
        fs::create_dir(&taken).unwrap();
        let error = write(folder.path(), &example::report()).unwrap_err();
        assert_eq!(error.to_string(), format!("{} can't be written", taken.display()));
        fs::write(folder.path().join("report.json"), "").unwrap();
        let error = write(&folder.path().join("report.json/below"), &example::report()).unwrap_err();
        assert!(error.to_string().ends_with("report.json/below can't be created"), "{error}");
    }

    #[test]
    fn escapes_control_characters() {
        assert_eq!(escape_control_characters("a\0\x1B[31m\r\n\tb\x7F\u{9B}\u{FFFF}é漢🎟"), "a␀␛[31m␍\n\tb␡\u{FFFD}\u{FFFD}é漢🎟");
    }

    /// Writes an example report for a look in a browser: `REPORT=/tmp/report cargo test -p boxoffice-conformance -- --ignored`.
    #[test]
    #[ignore = "writes an example report into the folder $REPORT"]
    fn write_example_report() {
        write(Path::new(&std::env::var("REPORT").unwrap()), &example::report()).unwrap();
    }
}
