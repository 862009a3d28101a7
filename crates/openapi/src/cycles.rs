//! Removal of the references with which a schema applies to a value that it applies to already.
//!
//! A schema may contain itself in a property or an item: the value there is another one. In `allOf`, `oneOf` and the like it is the
//! same value, and its validation would never end:
//!
//! | cycle | repair |
//! |---|---|
//! | `Pet: { oneOf: [Cat, Dog] }`, `Cat: { allOf: [Pet, …] }` | `Cat` has a copy of `Pet` without its `oneOf` |
//! | `A: { allOf: [B] }`, `B: { allOf: [A] }` | the reference that closes the cycle is removed, with a warning |

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::resolver::{collect_references, escape, reference};

/// Keywords with subschemas of which not all apply.
const BRANCH_KEYWORDS: [&str; 7] = ["anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"];

/// A reference in a schema that applies to the same value.
#[derive(Debug, Clone)]
struct Edge {
    /// The pointer of the schema.
    from: String,
    /// The pointer of the reference.
    at: String,
    /// The pointer of the target.
    to: String,
    /// The pointer of the keyword around the reference that has other branches, if there is one.
    branches: Option<String>,
}

/// Removes all cycles from a document. Adds a warning for each reference without which the schema allows another value.
pub fn remove(document: &mut Value, warnings: &mut Vec<String>) {
    let mut references = HashSet::new();
    collect_references(document, false, &mut references);
    let mut schemas: Vec<String> = references.into_iter().filter_map(pointer_of).collect();
    // So that the same references are removed in each run.
    schemas.sort();
    let mut done = HashSet::new();
    for schema in schemas {
        while let Some(cycle) = find_cycle(document, &schema, &mut done, &mut Vec::new()) {
            break_cycle(document, &cycle, warnings);
        }
    }
}

/// Returns the pointer of a reference within the document.
fn pointer_of(reference: &str) -> Option<String> {
    Some(percent_decode_str(reference.strip_prefix('#')?).decode_utf8_lossy().into_owned())
}

/// Returns a cycle that the schema at a pointer leads to. `trail` are the references from the first schema to this one. `done` contains
/// the schemas without a cycle.
fn find_cycle(document: &Value, schema: &str, done: &mut HashSet<String>, trail: &mut Vec<Edge>) -> Option<Vec<Edge>> {
    if done.contains(schema) {
        return None;
    }
    if let Some(start) = trail.iter().position(|edge| edge.from == schema) {
        return Some(trail[start..].to_vec());
    }
    let mut edges = Vec::new();
    collect_edges(document.pointer(schema)?, schema, schema, None, &mut edges);
    for edge in edges {
        let target = edge.to.clone();
        trail.push(edge);
        if let Some(cycle) = find_cycle(document, &target, done, trail) {
            return Some(cycle);
        }
        trail.pop();
    }
    done.insert(schema.to_owned());
    None
}

/// Collects the references in a schema at `at`, those of its `allOf` first. `from` is the pointer of the outermost schema.
fn collect_edges(schema: &Value, from: &str, at: &str, branches: Option<&str>, found: &mut Vec<Edge>) {
    if let Some(to) = reference(schema).and_then(pointer_of) {
        found.push(Edge { from: from.to_owned(), at: at.to_owned(), to, branches: branches.map(str::to_owned) });
        return;
    }
    for keyword in ["allOf"].into_iter().chain(BRANCH_KEYWORDS) {
        let at = format!("{at}/{keyword}");
        let branches = branches.or((keyword != "allOf").then_some(at.as_str()));
        match &schema[keyword] {
            Value::Array(subschemas) => {
                for (index, subschema) in subschemas.iter().enumerate() {
                    collect_edges(subschema, from, &format!("{at}/{index}"), branches, found);
                }
            }
            Value::Object(named) if keyword == "dependentSchemas" => {
                for (name, subschema) in named {
                    collect_edges(subschema, from, &format!("{at}/{}", escape(name)), branches, found);
                }
            }
            subschema @ Value::Object(_) => collect_edges(subschema, from, &at, branches, found),
            _ => {}
        }
    }
}

/// Breaks a cycle. If a schema includes one of which it is a branch, the reference is replaced by a copy without the branches, because
/// the schema is the one that applies. Otherwise, a reference adds nothing and is removed.
fn break_cycle(document: &mut Value, cycle: &[Edge], warnings: &mut Vec<String>) {
    let next = cycle.iter().cycle().skip(1);
    let mut pairs = cycle.iter().zip(next);
    let inclusion = pairs.find_map(|(edge, next)| next.branches.as_ref().filter(|_| edge.branches.is_none()).map(|b| (edge, b)));
    if let Some((edge, branches)) = inclusion {
        let mut copy = document.pointer(&edge.to).cloned().unwrap_or_default();
        let (owner, keyword) = branches[edge.to.len()..].rsplit_once('/').unwrap_or_default();
        copy.pointer_mut(owner).and_then(Value::as_object_mut).and_then(|owner| owner.shift_remove(keyword));
        replace(document, &edge.at, copy);
        return;
    }
    let Some(edge) = cycle.iter().rfind(|edge| edge.branches.is_none()).or(cycle.last()) else { return };
    warnings.push(format!("the reference at {} is ignored: it leads back to the schema that contains it", edge.at));
    let (list, index) = edge.at.rsplit_once('/').unwrap_or_default();
    match (document.pointer_mut(list), index.parse::<usize>()) {
        (Some(Value::Array(branches)), Ok(index)) if branches.len() > 1 => drop(branches.remove(index)),
        _ => replace(document, &edge.at, json!({})),
    }
}

fn replace(document: &mut Value, pointer: &str, schema: Value) {
    if let Some(old) = document.pointer_mut(pointer) {
        *old = schema;
    }
}
