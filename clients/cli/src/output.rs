//! Output: tables, JSON and single properties.

use std::cell::RefCell;
use std::fmt::Debug;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::rc::Rc;

use anyhow::bail;
use boxoffice_client::{ByteStream, Error, ResponseValue, types};
use comfy_table::{ContentArrangement, Table, presets};
use futures_util::TryStreamExt;
use serde::Serialize;
use serde_json::{Map, Value};
use terminal_size::{Width, terminal_size};

use crate::failure::Failure;
use crate::generated::CliConfig;

/// Longest text in a column of a list; longer ones are cut.
const COLUMN_CHARACTERS: usize = 40;

/// A format of the output.
pub enum Format {
    /// A table of the columns, or of all simple properties.
    Table {
        /// The columns; none are all.
        columns: Vec<String>,
    },
    /// JSON.
    Json,
    /// One property, as text.
    Field(String),
}

/// The body of the last response, which the generated code passes to this program.
#[derive(Clone)]
pub struct Responses {
    last: Rc<RefCell<Option<Value>>>,
    is_verbose: bool,
}

impl Responses {
    /// Creates the receiver of responses.
    pub fn new(is_verbose: bool) -> Self {
        Self { last: Rc::default(), is_verbose }
    }

    /// Returns the body of the last response, if it has one.
    pub fn take(&self) -> Option<Value> {
        self.last.take()
    }

    fn describe<T>(&self, response: &ResponseValue<T>) {
        if self.is_verbose {
            let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("-");
            let (status, id, etag) = (response.status().as_u16(), header("x-request-id"), header("etag"));
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "{status}, request {id}, ETag {etag}");
        }
    }
}

impl CliConfig for Responses {
    fn success_item<T: Serialize + Debug>(&self, value: &ResponseValue<T>) {
        self.describe(value);
        // The body was read from JSON, so it can be written as JSON.
        *self.last.borrow_mut() = serde_json::to_value(&**value).ok();
    }

    fn success_no_item(&self, value: &ResponseValue<()>) {
        self.describe(value);
    }

    // `execute` returns the error as well.
    fn error<T: Serialize + Debug>(&self, _: &Error<T>) {}

    // No operation has progenitor's kind of pages.
    fn list_start<T: Serialize + Debug>(&self) {}
    fn list_item<T: Serialize + Debug>(&self, _: &T) {}
    fn list_end_success<T: Serialize + Debug>(&self) {}
    fn list_end_error<T: Serialize + Debug>(&self, _: &Error<T>) {}
}

/// Writes a response that is not JSON, such as an image, to standard output.
///
/// # Errors
/// Returns an error if the response ends early or is a web page, or if standard output is a terminal and the response isn't text.
pub async fn write_bytes(response: ResponseValue<ByteStream>) -> anyhow::Result<()> {
    let content_type =
        response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    if content_type.starts_with("text/html") {
        bail!("the response is a web page, which this API doesn't have: check the address of the server");
    }
    let mut stdout = io::stdout();
    if stdout.is_terminal() && !content_type.starts_with("text/") {
        bail!("the response is {content_type}, which a terminal can't show: redirect it to a file");
    }
    let mut chunks = response.into_inner().into_inner().map_err(Error::<types::Error>::ResponseBodyError);
    while let Some(chunk) = chunks.try_next().await? {
        if !accept_closed(stdout.write_all(&chunk).and_then(|()| stdout.flush()))? {
            break;
        }
    }
    Ok(())
}

/// Writes a text to standard output.
///
/// # Errors
/// Returns an error if standard output can't be written.
pub fn write_text(text: &[u8]) -> Result<(), Failure> {
    accept_closed(io::stdout().write_all(text)).map(|_| ()).map_err(|error| Failure::other(&error))
}

/// Returns whether standard output is still open. If it is not, its reader, such as `head`, has seen enough.
fn accept_closed(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Prints a response.
///
/// # Errors
/// Returns an error if a property or column is unknown, or standard output can't be written.
pub fn print(response: &Value, format: &Format) -> Result<(), Failure> {
    let entries = response.as_array().or_else(|| response.get("entries").and_then(Value::as_array));
    let text = match (format, entries) {
        (Format::Json, _) => format!("{response:#}"),
        (Format::Field(name), None) => single_field_text(response, name, io::stdout().is_terminal())?,
        (Format::Field(name), Some(entries)) => {
            entries.iter().map(|entry| field_text(entry, name)).collect::<Result<Vec<_>, _>>()?.join("\n")
        }
        (Format::Table { columns }, Some(entries)) => {
            let total = response.get("total").and_then(Value::as_u64).filter(|total| *total != entries.len() as u64);
            let more = total.map(|total| format!("\n{} of {total}; --all reads all pages", entries.len()));
            list_table(entries, columns)? + &more.unwrap_or_default()
        }
        (Format::Table { columns }, None) => resource_table(response, columns)?,
    };
    if text.is_empty() {
        return Ok(());
    }
    write_text(format!("{text}\n").as_bytes())
}

/// Returns the table of a list: a row for each entry.
fn list_table(entries: &[Value], columns: &[String]) -> Result<String, Failure> {
    if entries.is_empty() {
        return Ok("no entries".to_owned());
    }
    let columns = if columns.is_empty() { simple_columns(entries) } else { columns.to_vec() };
    let mut table = table();
    table.set_header(&columns);
    for entry in entries {
        let cells = columns.iter().map(|column| Ok(shorten(&field_text(entry, column)?)));
        table.add_row(cells.collect::<Result<Vec<_>, Failure>>()?);
    }
    Ok(table.trim_fmt())
}

/// Returns the columns of the entries' properties that are no objects or lists, and that any entry has a value of. Entries without
/// properties have one column.
fn simple_columns(entries: &[Value]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for (name, value) in entries.iter().filter_map(Value::as_object).flatten() {
        let is_shown = !value.is_object() && !value.is_array() && !value.is_null() && value != "";
        if is_shown && !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    if columns.is_empty() { vec!["value".to_owned()] } else { columns }
}

/// Returns the table of a resource: a row for each property that has a value.
fn resource_table(resource: &Value, columns: &[String]) -> Result<String, Failure> {
    let mut table = table();
    if columns.is_empty() {
        let all = Map::new();
        for (name, value) in resource.as_object().unwrap_or(&all).iter().filter(|(_, value)| !value.is_null() && *value != "") {
            table.add_row([name.clone(), plain(value)]);
        }
    }
    for column in columns {
        table.add_row([column.clone(), field_text(resource, column)?]);
    }
    Ok(table.trim_fmt())
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some((Width(width), _)) = terminal_size().filter(|_| io::stdout().is_terminal()) {
        table.set_width(width);
    }
    table
}

/// Returns the text of a property that is printed alone: unchanged for a program that reads it, and on one line for a terminal.
fn single_field_text(resource: &Value, name: &str, is_terminal: bool) -> Result<String, Failure> {
    match field(resource, name)? {
        Value::String(text) if !is_terminal => Ok(text.clone()),
        value => Ok(plain(value)),
    }
}

/// Returns the text of a property on one line.
fn field_text(resource: &Value, name: &str) -> Result<String, Failure> {
    field(resource, name).map(plain)
}

/// Returns a property; `venue.name` is the name of the venue.
fn field<'a>(resource: &'a Value, name: &str) -> Result<&'a Value, Failure> {
    if !resource.is_object() {
        return Ok(resource);
    }
    let value = name.split('.').try_fold(resource, |value, part| value.get(part));
    match value {
        Some(value) => Ok(value),
        // An optional property may be missing.
        None if name.contains('.') => Ok(&Value::Null),
        None => {
            let known: Vec<_> = resource.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            Err(Failure::message(&format!("the response has no property {name}, but {}", known.join(", "))))
        }
    }
}

/// Returns a value as text on one line, without control characters, which a terminal would interpret.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace(char::is_control, " "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(COLUMN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_is_unchanged_unless_terminal_shows_it() {
        let event =
            json!({ "description": "Jazz,\n\n\toutdoors.\u{1b}[2J", "end": null, "venue": { "name": "A\nB" }, "capacity": 60 });
        let text =
            |name, is_terminal| single_field_text(&event, name, is_terminal).unwrap_or_else(|failure| panic!("{failure:?}"));

        assert_eq!(text("description", false), "Jazz,\n\n\toutdoors.\u{1b}[2J");
        assert_eq!(text("description", true), "Jazz,   outdoors. [2J");
        assert_eq!((text("venue.name", false), text("venue.name", true)), ("A\nB".to_owned(), "A B".to_owned()));
        for is_terminal in [false, true] {
            assert_eq!(text("capacity", is_terminal), "60");
            assert_eq!(text("end", is_terminal) + &text("venue.city", is_terminal), "");
            assert!(single_field_text(&event, "start", is_terminal).is_err());
        }
        assert_eq!(field_text(&event, "venue.name").ok().as_deref(), Some("A B"), "an entry of a list has one line");
    }
}
