//! Changes of text for readers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Change, Impact};
use crate::drift::document::PROSE;
use crate::escape;

/// Parts of a document that contain nothing but prose.
const PROSE_PARTS: [&str; 3] = ["/info", "/tags", "/components/examples"];
/// Keywords whose members are named by the document: their names are no keywords.
const NAMED: [&str; 9] =
    ["properties", "schemas", "parameters", "responses", "headers", "paths", "content", "requestBodies", "variables"];

/// Returns the changes of prose in all parts that both documents have, by JSON pointer.
pub(super) fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(old, new, "", false, &mut changes);
    changes
}

fn compare(old: &Value, new: &Value, pointer: &str, is_named: bool, changes: &mut Vec<Change>) {
    if old == new {
        return;
    }
    match (old, new) {
        (Value::Object(olds), Value::Object(news)) => {
            let names: BTreeSet<&String> = olds.keys().chain(news.keys()).collect();
            for name in names {
                let pointer = format!("{pointer}/{}", escape(name));
                let (old, new) = (&old[name], &new[name]);
                let is_prose = !is_named && PROSE.contains(&name.as_str()) || PROSE_PARTS.contains(&pointer.as_str());
                if is_prose && old != new {
                    changes.push(Change { impact: Impact::Prose, place: pointer, text: verb(old, new).to_owned() });
                } else if !is_prose {
                    compare(old, new, &pointer, !is_named && NAMED.contains(&name.as_str()), changes);
                }
            }
        }
        (Value::Array(olds), Value::Array(news)) => {
            for (index, (old, new)) in olds.iter().zip(news).enumerate() {
                compare(old, new, &format!("{pointer}/{index}"), false, changes);
            }
        }
        _ => {}
    }
}

fn verb(old: &Value, new: &Value) -> &'static str {
    match (old.is_null(), new.is_null()) {
        (true, _) => "added",
        (_, true) => "removed",
        _ => "changed",
    }
}
