//! Resolution of the references (`$ref`) in a document.
//!
//! A reference is replaced by its target if the target is neither recursive nor large. All others remain, and their targets are
//! compiled once and shared ([`SchemaRegistry`]), because inlining them would take endless time or too much memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Context, bail};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::schema::{Direction, Schema};
use crate::schema_registry::SchemaRegistry;
use crate::source::{EXTERNAL_FILES, readable};

/// Maximum number of JSON values in an inlined target, including nested targets.
const INLINE_LIMIT: usize = 5_000;

/// Maximum length of a chain of references. Longer chains are circular.
pub const MAX_REFERENCE_CHAIN: usize = 64;

/// Keywords whose values are data and contain no references.
const DATA_KEYWORDS: [&str; 5] = ["const", "default", "enum", "example", "value"];

/// Keywords whose values are maps from names: their keys are not keywords.
const MAP_KEYWORDS: [&str; 22] = [
    EXTERNAL_FILES,
    "$defs",
    "definitions",
    "dependentRequired",
    "dependentSchemas",
    "mediaTypes",
    "pathItems",
    "paths",
    "patternProperties",
    "properties",
    "securitySchemes",
    "webhooks",
    "examples",
    "headers",
    "content",
    "responses",
    "schemas",
    "parameters",
    "requestBodies",
    "callbacks",
    "links",
    "encoding",
];

/// The references of a document.
#[derive(Debug)]
pub struct References<'a> {
    document: &'a Value,
    /// The targets of the references that are not inlined.
    pub registry: Arc<SchemaRegistry>,
    /// Number of JSON values in the target of each reference; `None` if the target isn't inlined.
    sizes: RefCell<HashMap<&'a str, Option<usize>>>,
    schemas: RefCell<HashMap<SchemaKey, Arc<Schema>>>,
}

/// The identity of a schema: its node, or the target if the node is only a reference. `is_reference` tells them apart.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SchemaKey {
    node: *const Value,
    is_reference: bool,
    direction: Direction,
}

impl<'a> References<'a> {
    fn new(document: &'a Value) -> Self {
        Self { document, registry: Arc::default(), sizes: RefCell::default(), schemas: RefCell::default() }
    }

    /// Collects all references of a document, and registers the targets that are not inlined.
    pub fn read(document: &'a Value) -> Self {
        let mut references = Self::new(document);
        let mut all = HashSet::new();
        collect_references(document, false, &mut all);
        let remaining = all.into_iter().filter(|reference| references.size(reference).is_none());
        // A circle of references without any schema allows every value.
        let target = |reference| Some(references.follow_to_target(reference)).filter(|target| self::reference(target).is_none());
        let resolved = |reference| target(reference).map_or_else(|| json!({}), |target| references.inline(target));
        let schemas = remaining.map(|reference| (reference.to_owned(), resolved(reference)));
        references.registry = Arc::new(SchemaRegistry::new(schemas, is_builtin(document)));
        references
    }

    fn follow_to_target(&self, reference: &str) -> &'a Value {
        target(self.document, reference).map_or(&Value::Null, |target| self.follow(target))
    }

    /// Returns the schema of a node. All nodes with the same reference share one: the error responses of a document's operations would
    /// otherwise take most of its memory.
    pub fn schema(&self, node: &'a Value, direction: Direction) -> Arc<Schema> {
        let is_reference = reference(node).is_some() && node.as_object().is_some_and(|object| object.len() == 1);
        let identity = if is_reference { self.follow(node) } else { node };
        let key = SchemaKey { node: std::ptr::from_ref(identity), is_reference, direction };
        let mut schemas = self.schemas.borrow_mut();
        Arc::clone(schemas.entry(key).or_insert_with(|| Arc::new(Schema::new(self, node, direction))))
    }

    /// Follows a chain of references to its end. Returns the node itself if it is not a reference.
    pub fn follow(&self, node: &'a Value) -> &'a Value {
        let mut node = node;
        for _ in 0..MAX_REFERENCE_CHAIN {
            match reference(node) {
                Some(reference) => node = target(self.document, reference).unwrap_or(&Value::Null),
                None => break,
            }
        }
        node
    }

    /// Returns a copy of a value with its references inlined, except recursive and large ones. The value itself is always inlined.
    pub fn inline(&self, value: &'a Value) -> Value {
        let inlined = self.inline_in(self.follow(value), false);
        if value["nullable"] == true && inlined["nullable"] != true { nullable(inlined) } else { inlined }
    }

    fn inline_in(&self, value: &'a Value, is_map: bool) -> Value {
        match value {
            Value::Object(_) if !is_map && reference(value).is_some_and(|reference| self.size(reference).is_some()) => {
                self.inline(value)
            }
            // OpenAPI 3.0 ignores all keywords beside a reference, but documents with `nullable` there rely on it.
            Value::Object(object) if !is_map && reference(value).is_some() => {
                let remaining = json!({ "$ref": object["$ref"] });
                if value["nullable"] == true { nullable(remaining) } else { remaining }
            }
            Value::Object(object) => {
                let entries = object.iter().map(|(key, value)| {
                    let copy = if is_data(key, is_map) { value.clone() } else { self.inline_in(value, has_names(key, is_map)) };
                    (key.clone(), copy)
                });
                entries.collect::<Map<_, _>>().into()
            }
            Value::Array(items) => items.iter().map(|item| self.inline_in(item, false)).collect(),
            _ => value.clone(),
        }
    }

    /// Counts the JSON values in the target of a reference. `None` if the target is recursive or large.
    fn size(&self, reference: &'a str) -> Option<usize> {
        if let Some(size) = self.sizes.borrow().get(reference) {
            return *size;
        }
        // Until the size is known, nested occurrences of the same reference find this entry: they are recursive.
        self.sizes.borrow_mut().insert(reference, None);
        let size = target(self.document, reference).map_or(Some(1), |target| self.size_of(target, false));
        let size = size.filter(|size| *size <= INLINE_LIMIT);
        self.sizes.borrow_mut().insert(reference, size);
        size
    }

    fn size_of(&self, value: &'a Value, is_map: bool) -> Option<usize> {
        match value {
            Value::Object(object) => match reference(value).filter(|_| !is_map) {
                Some(reference) => self.size(reference),
                None => object
                    .iter()
                    .filter(|(key, _)| !is_data(key, is_map))
                    .try_fold(1, |sum, (key, value)| Some(sum + self.size_of(value, has_names(key, is_map))?)),
            },
            Value::Array(items) => items.iter().try_fold(1, |sum, item| Some(sum + self.size_of(item, false)?)),
            _ => Some(1),
        }
    }
}

/// Returns whether a document is the built-in one: its operations have scopes.
fn is_builtin(document: &Value) -> bool {
    let items = document["paths"].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_object);
    items.flat_map(Map::values).any(|operation| operation["x-scopes"].is_array())
}

/// Returns a self-contained copy of a value of the document: references are inlined, and the targets of recursive and large ones are
/// copied to the same pointers as in the document, so that the copy can be compiled without the document.
pub fn resolve(document: &Value, value: &Value) -> Value {
    let references = References::new(document);
    let mut resolved = references.inline(value);
    let mut targets = BTreeMap::new();
    let mut found = HashSet::new();
    collect_references(&resolved, false, &mut found);
    let mut pending: Vec<String> = found.into_iter().map(str::to_owned).collect();
    while let Some(reference) = pending.pop() {
        targets.entry(reference).or_insert_with_key(|reference| {
            let target = references.inline(references.follow_to_target(reference));
            let mut nested = HashSet::new();
            collect_references(&target, false, &mut nested);
            pending.extend(nested.into_iter().map(str::to_owned));
            target
        });
    }
    // In ascending order, so that an outer target doesn't overwrite one inside it.
    for (reference, target) in targets {
        insert_at(&mut resolved, reference.trim_start_matches('#'), target);
    }
    resolved
}

/// Adds all references in a value to `found`. `is_map` is true if its keys are names.
pub fn collect_references<'a>(value: &'a Value, is_map: bool, found: &mut HashSet<&'a str>) {
    match value {
        Value::Object(object) => match reference(value).filter(|_| !is_map) {
            Some(reference) => {
                found.insert(reference);
            }
            None => {
                let entries = object.iter().filter(|(key, _)| !is_data(key, is_map));
                entries.for_each(|(key, value)| collect_references(value, has_names(key, is_map), found));
            }
        },
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, false, found)),
        _ => {}
    }
}

/// Returns the direct target of a reference.
///
/// # Errors
/// If it doesn't exist or is outside of the document.
pub fn target<'a>(document: &'a Value, reference: &str) -> anyhow::Result<&'a Value> {
    let Some(pointer) = reference.strip_prefix('#') else {
        bail!("the reference `{reference}` is ignored: it leads out of the document");
    };
    let decoded = percent_decode_str(pointer).decode_utf8_lossy();
    document.pointer(&decoded).with_context(|| {
        let readable = readable(pointer);
        let reference = if readable == pointer { reference } else { &readable };
        format!("the reference `{reference}` is ignored: it leads nowhere")
    })
}

/// Returns the `$ref` of a node, if it is a reference.
pub fn reference(node: &Value) -> Option<&str> {
    node.get("$ref")?.as_str()
}

/// Returns whether the value of a key is data or an extension. `is_map` is true if the key is a name and not a keyword.
pub fn is_data(key: &str, is_map: bool) -> bool {
    !is_map && (DATA_KEYWORDS.contains(&key) || key.starts_with("x-"))
}

/// Returns whether the keys in the value of a key are names. `is_map` is true if the key itself is a name.
pub fn has_names(key: &str, is_map: bool) -> bool {
    !is_map && MAP_KEYWORDS.contains(&key)
}

fn nullable(schema: Value) -> Value {
    json!({ "nullable": true, "allOf": [schema] })
}

/// Inserts a value at a pointer and creates missing objects on the way. Does nothing if the pointer leads into an array.
fn insert_at(root: &mut Value, pointer: &str, target: Value) {
    let mut node = root;
    for step in pointer.split('/').skip(1) {
        let Value::Object(object) = node else { return };
        node = object.entry(unescape(step)).or_insert_with(|| json!({}));
    }
    *node = target;
}

/// Escapes a name for a JSON pointer (RFC 6901).
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Reverses [`escape`].
pub fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
