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
fn summary(text: &str) -> String {
    let mut words = text.trim_start_matches("with statement_1 as (").split_ascii_whitespace();
    let operation = words.next().unwrap_or_default();
    let table = match operation {
        "update" => words.next(),
        _ => words.skip_while(|word| !matches!(*word, "from" | "into")).nth(1),
    };
    let table = table.filter(|table| table.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    table.map_or_else(|| operation.to_owned(), |table| format!("{operation} {table}"))
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn names_operation_and_table() {
        for (text, expected) in [
            ("select id, number from orders where id = $1", "select orders"),
            ("insert into tickets (id) values ($1)", "insert tickets"),
            ("update sections set sold = $1", "update sections"),
            ("delete from outbox where id = $1", "delete outbox"),
            ("with statement_1 as (\ninsert into orders (id) select $1\n)\nupdate sections set sold = $2", "insert orders"),
            ("select count from (select 1)", "select"),
            ("commit", "commit"),
            ("", ""),
        ] {
            assert_eq!(summary(text), expected, "{text}");
        }
    }
}
