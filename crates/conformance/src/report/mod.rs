//! What a comparison found, for whoever is to know: a page to read, JSON for programs, JUnit's XML for build servers, and text
//! for the terminal.
//!
//! What a server answers is not to be trusted. Markup is escaped by the libraries that write it, and `visible` takes the
//! characters from it that XML forbids and terminals obey.

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

/// Writes `report.json`, `junit.xml` and `report.html` into a folder, which is made where there is none.
///
/// # Errors
/// When the folder can't be made or a file can't be written; names which.
pub fn write(folder: &Path, report: &Report) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("the folder {} can't be made", folder.display()))?;
    let files = [("report.json", json::json(report)?), ("junit.xml", junit::junit(report)?), ("report.html", html::html(report))];
    for (name, content) in files {
        let file = folder.join(name);
        fs::write(&file, content).with_context(|| format!("{} can't be written", file.display()))?;
    }
    Ok(())
}

/// Findings by what they are about: first the server as a whole, then the operations in the document's order.
fn in_order<'a, T>(report: &Report, findings: &'a [T], of: impl Fn(&T) -> &Finding) -> Vec<&'a T> {
    let mut ordered: Vec<&T> = findings.iter().collect();
    ordered.sort_by_cached_key(|item| {
        let finding = of(item);
        let place = report.operations.iter().position(|operation| operation.operation == finding.operation);
        (place, finding.operation.clone(), finding.check, finding.summary.clone())
    });
    ordered
}

/// A tag as it is shown.
fn tag_name(tag: &str) -> &str {
    if tag.is_empty() { "no tag" } else { tag }
}

/// A text whose control characters can be seen: as the pictures that Unicode has of them, or else as U+FFFD. Tabs and ends of
/// lines stay.
///
/// What is left can stand in XML 1.0 (its production `Char`), and no terminal takes it for a command.
fn visible(text: &str) -> String {
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
    fn three_files_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("made/by/it");
        write(&folder, &example::report()).unwrap();
        for name in ["report.json", "junit.xml", "report.html"] {
            assert!(fs::read_to_string(folder.join(name)).unwrap().contains("order_create"), "{name}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("junit.xml");
        fs::create_dir(&taken).unwrap();
        let error = write(folder.path(), &example::report()).unwrap_err();
        assert_eq!(error.to_string(), format!("{} can't be written", taken.display()));
        let error = write(&folder.path().join("report.json/below"), &example::report()).unwrap_err();
        assert!(error.to_string().ends_with("report.json/below can't be made"), "{error}");
    }

    #[test]
    fn no_control_character_stays() {
        assert_eq!(visible("a\0\x1B[31m\r\n\tb\x7F\u{9B}\u{FFFF}é漢🎟"), "a␀␛[31m␍\n\tb␡\u{FFFD}\u{FFFD}é漢🎟");
    }

    /// For whoever changes the page: `REPORT=/tmp/report cargo test --lib report::tests::an_example -- --ignored`.
    #[test]
    #[ignore = "writes an example into the folder $REPORT, to be looked at in a browser"]
    fn an_example_is_written() {
        write(Path::new(&std::env::var("REPORT").unwrap()), &example::report()).unwrap();
    }
}
