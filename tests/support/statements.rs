//! Records the texts of the statements that the servers of the tests run, for `tests/plans`.
//!
//! sqlx reports each statement as an event of `tracing`, those of the server at the level TRACE. Each process appends a text to a file
//! of its own when it sees the text for the first time. As for `coverage`, remove the folder before a run whose statements are to be
//! judged.

use std::collections::HashSet;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use parking_lot::Mutex;
use regex::Regex;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The folder of the files, below cargo's target folder.
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/statements");

/// The records of this process.
#[derive(Default)]
struct Recorded {
    /// The texts that sqlx has reported.
    reported: HashSet<String>,
    /// The lines that the file has.
    lines: HashSet<String>,
    file: Option<File>,
}

static RECORDED: LazyLock<Mutex<Recorded>> = LazyLock::new(Mutex::default);

/// Starts to record the statements of this process.
pub fn start() {
    // This fails if it was started before.
    let _ = tracing::subscriber::set_global_default(Recorder);
}

struct Recorder;

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query" && *metadata.level() == Level::TRACE
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    fn event(&self, event: &Event<'_>) {
        let mut statement = StatementText::default();
        event.record(&mut statement);
        record(&statement.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The text of the statement of an event: its field `db.statement`, or `summary` if that is the whole text.
#[derive(Default)]
struct StatementText(String);

impl Visit for StatementText {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_text = field.name() == "db.statement" || field.name() == "summary" && self.0.is_empty();
        if is_text && !value.trim().is_empty() {
            value.clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// Records a text, or each of those that `boxoffice::kernel::db::Writes` executes together.
fn record(text: &str) {
    static ENDS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^with statement_1 as \(\n|;\n|\n\), statement_\d+ as \(\n|\n\)\n").unwrap());

    let recorded = &mut *RECORDED.lock();
    if !recorded.reported.contains(text) {
        recorded.reported.insert(text.to_owned());
        ENDS.split(text).filter(|statement| !statement.is_empty()).for_each(|statement| recorded.record_statement(statement));
    }
}

impl Recorded {
    /// Records a text in one line. Only the first row of a table of values is kept, so that each number of rows isn't a line of its own.
    fn record_statement(&mut self, text: &str) {
        static ROWS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\((?:[$?]\d*,?)+\))(?:, \((?:[$?]\d*,?)+\))+").unwrap());

        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = ROWS.replace_all(&line, "$1");
        if !self.lines.contains(&*line) {
            let file = self.file.get_or_insert_with(|| {
                fs::create_dir_all(FOLDER).unwrap();
                let path = Path::new(FOLDER).join(std::process::id().to_string());
                File::options().append(true).create(true).open(path).unwrap()
            });
            file.write_all(format!("{line}\n").as_bytes()).unwrap();
            self.lines.insert(line.into_owned());
        }
    }
}
