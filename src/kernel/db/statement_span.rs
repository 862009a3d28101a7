//! Spans of statements.

use boxoffice_http::traces::{Span, SpanKind};

/// Maximum length of a statement's text in a span, in bytes. The spans that wait to be sent are in memory.
const MAX_TEXT: usize = 2048;

/// Begins the span of a statement below `parent`. It has the text with placeholders, and no values.
pub(super) fn statement_span(parent: &Span, system: &'static str, text: &str) -> Span {
    let span = parent.child(SpanKind::Client, || summary(text).into());
    span.set("db.system.name", || system.into());
    span.set("db.query.text", || text[..text.floor_char_boundary(MAX_TEXT)].to_owned().into());
    span
}

/// Returns the operation and the first table of a statement, such as `select orders`, or of the first one of several.
pub fn summary(text: &str) -> String {
    let mut words = text.trim_start_matches("with statement_1 as (").split_ascii_whitespace();
    let operation = words.next().unwrap_or_default();
    let table = match operation {
        "update" => words.next(),
        _ => words.skip_while(|word| !matches!(*word, "from" | "into")).nth(1),
    };
    let table = table.filter(|table| table.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    table.map_or_else(|| operation.to_owned(), |table| format!("{operation} {table}"))
}
