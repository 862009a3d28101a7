//! What the references of a document lead to.
//!
//! A reference gives way to what it leads to where that is finite and not large. One that leads into a circle stays, and is
//! followed when a value gets there ([`Kept`]): otherwise a document whose schemas all know each other would never end.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Context, bail};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::schema_registry::SchemaRegistry;
use super::schema::compile;

/// What a reference gives way to has this many values at the most, counted with all that it refers to itself.
const INLINE_LIMIT: usize = 5_000;

/// More references in a row than any sensible document has: beyond it they lead in a circle.
const MAX_HOPS: usize = 64;

/// Keywords whose values are data, in which nothing is a reference.
const DATA: [&str; 4] = ["default", "enum", "example", "value"];

/// Keywords whose values have names for keys, and no keywords.
const NAMED: [&str; 12] = [
    "paths",
    "properties",
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

/// A document whose references can be followed.
#[derive(Debug)]
pub struct References<'a> {
    document: &'a Value,
    /// Those of the document that stay.
    pub kept: Arc<SchemaRegistry>,
    /// How many values each reference comes to; `None` where it stays.
    sizes: RefCell<HashMap<&'a str, Option<usize>>>,
}

impl<'a> References<'a> {
    /// A document's references, none of which have been looked at.
    fn new(document: &'a Value) -> Self {
        Self { document, kept: Arc::default(), sizes: RefCell::default() }
    }

    /// Reads all references of a document.
    ///
    /// # Errors
    /// When one leads nowhere, or out of the document.
    pub fn read(document: &'a Value) -> anyhow::Result<Self> {
        let mut references = Self::new(document);
        let mut all = HashSet::new();
        references_in(document, false, &mut all);
        for reference in &all {
            references.target(reference)?;
        }
        let stay = all.into_iter().filter(|reference| references.size(reference).is_none());
        // A circle of nothing but references says nothing.
        let target = |reference| Some(references.follow_text(reference)).filter(|target| self::reference(target).is_none());
        let open = |reference| target(reference).map_or_else(|| json!({}), |target| references.inline(target));
        let kept = stay.map(|reference| (reference.to_owned(), open(reference)));
        references.kept = Arc::new(SchemaRegistry::new(kept));
        Ok(references)
    }

    /// What a reference leads to.
    fn target(&self, reference: &str) -> anyhow::Result<&'a Value> {
        let Some(pointer) = reference.strip_prefix('#') else {
            bail!(
                "`{reference}` leads out of the document; make it one document first: npx @redocly/cli bundle FILE -o whole.yaml"
            );
        };
        let pointer = percent_decode_str(pointer).decode_utf8_lossy();
        self.document.pointer(&pointer).with_context(|| format!("the reference `{reference}` leads nowhere in the document"))
    }

    fn follow_text(&self, reference: &str) -> &'a Value {
        self.target(reference).map_or(&Value::Null, |target| self.follow(target))
    }

    /// Follows references until something else is found.
    pub fn follow(&self, node: &'a Value) -> &'a Value {
        let mut node = node;
        for _ in 0..MAX_HOPS {
            match reference(node) {
                Some(reference) => node = self.target(reference).unwrap_or(&Value::Null),
                None => break,
            }
        }
        node
    }

    /// A value with its references followed, but for those that stay. Itself, it is no reference any more.
    pub fn inline(&self, value: &'a Value) -> Value {
        let followed = self.inline_in(self.follow(value), false);
        if value["nullable"] == true && followed["nullable"] != true { nullable(followed) } else { followed }
    }

    fn inline_in(&self, value: &'a Value, is_named: bool) -> Value {
        match value {
            Value::Object(_) if !is_named && reference(value).is_some_and(|reference| self.size(reference).is_some()) => {
                self.inline(value)
            }
            // Strictly, nothing counts beside a reference; but everybody who writes this means it.
            Value::Object(object) if !is_named && reference(value).is_some() => {
                let kept = json!({ "$ref": object["$ref"] });
                if value["nullable"] == true { nullable(kept) } else { kept }
            }
            Value::Object(object) => {
                let inner = object.iter().map(|(key, value)| {
                    let inner =
                        if is_data(key, is_named) { value.clone() } else { self.inline_in(value, is_names(key, is_named)) };
                    (key.clone(), inner)
                });
                inner.collect::<Map<_, _>>().into()
            }
            Value::Array(items) => items.iter().map(|item| self.inline_in(item, false)).collect(),
            _ => value.clone(),
        }
    }

    /// How many values a reference comes to; `None` when it stays. While it is being counted it counts as staying, so that what
    /// leads into a circle does.
    fn size(&self, reference: &'a str) -> Option<usize> {
        if let Some(size) = self.sizes.borrow().get(reference) {
            return *size;
        }
        self.sizes.borrow_mut().insert(reference, None);
        // What leads nowhere is told where references are read.
        let size =
            self.target(reference).map_or(Some(1), |target| self.size_of(target, false)).filter(|size| *size <= INLINE_LIMIT);
        self.sizes.borrow_mut().insert(reference, size);
        size
    }

    fn size_of(&self, value: &'a Value, is_named: bool) -> Option<usize> {
        match value {
            Value::Object(object) => match reference(value).filter(|_| !is_named) {
                Some(reference) => self.size(reference),
                None => object
                    .iter()
                    .filter(|(key, _)| !is_data(key, is_named))
                    .try_fold(1, |sum, (key, value)| Some(sum + self.size_of(value, is_names(key, is_named))?)),
            },
            Value::Array(items) => items.iter().try_fold(1, |sum, item| Some(sum + self.size_of(item, false)?)),
            _ => Some(1),
        }
    }
}

/// `value` with its references replaced by what they refer to. One that leads into a circle, or to something large, stays, and
/// what it leads to stands at the same place of the result as in the document: the result can be compiled without it.
pub fn resolve(document: &Value, value: &Value) -> Value {
    let references = References::new(document);
    let mut resolved = references.inline(value);
    let mut kept = BTreeMap::new();
    let mut open = HashSet::new();
    references_in(&resolved, false, &mut open);
    let mut open: Vec<String> = open.into_iter().map(str::to_owned).collect();
    while let Some(reference) = open.pop() {
        kept.entry(reference).or_insert_with_key(|reference| {
            let target = references.inline(references.follow_text(reference));
            let mut inner = HashSet::new();
            references_in(&target, false, &mut inner);
            open.extend(inner.into_iter().map(str::to_owned));
            target
        });
    }
    // The outer ones go before the inner ones, which are in their places then.
    for (reference, target) in kept {
        put(&mut resolved, reference.trim_start_matches('#'), target);
    }
    resolved
}

/// Takes the patterns out of a document that the regex engine can't read, and says which those are; and which examples aren't in
/// the document.
pub fn remove_unsupported(document: &mut Value) -> Vec<String> {
    let (mut seen, mut warnings) = (HashMap::new(), Vec::new());
    remove_invalid_patterns(document, false, String::new(), &mut seen, &mut warnings);
    warnings
}

fn remove_invalid_patterns(
    value: &mut Value,
    is_named: bool,
    pointer: String,
    seen: &mut HashMap<String, Option<String>>,
    warnings: &mut Vec<String>,
) {
    match value {
        Value::Object(object) => {
            if let Some(pattern) = object.get("pattern").and_then(Value::as_str).filter(|_| !is_named) {
                let unreadable = || compile(&json!({ "pattern": pattern })).err().map(|error| format!("{error:#}"));
                if let Some(why) = seen.entry(pattern.to_owned()).or_insert_with(unreadable) {
                    warnings.push(format!("the pattern at {pointer}/pattern is not checked: {why}"));
                    object.remove("pattern");
                }
            }
            if !is_named && object.get("externalValue").is_some_and(Value::is_string) {
                warnings
                    .push(format!("the example at {pointer} is not served: put its externalValue into the document, as `value`"));
            }
            for (key, value) in object.iter_mut().filter(|(key, _)| !is_data(key, is_named)) {
                remove_invalid_patterns(value, is_names(key, is_named), format!("{pointer}/{}", escape(key)), seen, warnings);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                remove_invalid_patterns(item, false, format!("{pointer}/{index}"), seen, warnings);
            }
        }
        _ => {}
    }
}

fn references_in<'a>(value: &'a Value, is_named: bool, found: &mut HashSet<&'a str>) {
    match value {
        Value::Object(object) => match reference(value).filter(|_| !is_named) {
            Some(reference) => {
                found.insert(reference);
            }
            None => {
                let inner = object.iter().filter(|(key, _)| !is_data(key, is_named));
                inner.for_each(|(key, value)| references_in(value, is_names(key, is_named), found));
            }
        },
        Value::Array(items) => items.iter().for_each(|item| references_in(item, false, found)),
        _ => {}
    }
}

/// Where a node leads, if it is a reference.
pub fn reference(node: &Value) -> Option<&str> {
    node.get("$ref")?.as_str()
}

/// Whether the value of this key is data, or a vendor's own.
fn is_data(key: &str, is_named: bool) -> bool {
    !is_named && (DATA.contains(&key) || key.starts_with("x-"))
}

/// Whether the keys of this key's value are names.
fn is_names(key: &str, is_named: bool) -> bool {
    !is_named && NAMED.contains(&key)
}

fn nullable(schema: Value) -> Value {
    json!({ "nullable": true, "allOf": [schema] })
}

/// Sets what a pointer leads to, unless it leads into an array.
fn put(root: &mut Value, pointer: &str, target: Value) {
    let mut node = root;
    for step in pointer.split('/').skip(1) {
        let Value::Object(object) = node else { return };
        node = object.entry(unescape(step)).or_insert_with(|| json!({}));
    }
    *node = target;
}

/// A name as a step of a JSON pointer (RFC 6901).
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A step of a JSON pointer as it was written in the document (RFC 6901).
pub fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
