//! A schema that stands alone, with every schema that it refers to: what is made from it needs no document any more.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::Direction;
use super::pattern::Pattern;
use crate::compile;

/// A schema and every schema that it refers to.
#[derive(Debug)]
pub struct SchemaBundle {
    /// `{ "allOf": [schema], "$defs": { "0": …, "1": … } }`, whose references are all of the form `#/$defs/0`.
    pub root: Value,
    /// Where in the document each of `$defs` stands.
    places: Vec<String>,
    /// Of each of `$defs`, see [`Closed::height`].
    heights: Vec<Option<usize>>,
    /// Every pattern in it, and none where no text can be made from it.
    pub patterns: BTreeMap<String, Option<Pattern>>,
}

impl SchemaBundle {
    /// Closes a schema over a document, for values that go one way: properties of the other direction are taken out.
    ///
    /// # Errors
    /// When a reference leads nowhere.
    pub fn new(document: &Value, schema: &Value, direction: Direction) -> anyhow::Result<Self> {
        let hidden = match direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        let mut reader = Bundler { document, hidden, places: Vec::new(), numbers: BTreeMap::new(), patterns: BTreeMap::new() };
        let root = reader.copy(schema)?;
        let mut defs: Map<String, Value> = Map::new();
        // Each copy may find further ones; a list instead of a recursion, as some documents have a thousand that are chained.
        while let Some(place) = reader.places.get(defs.len()).cloned() {
            let target = reader.target(&place).with_context(|| format!("nothing is at `{place}`, to which a schema refers"))?;
            let copy = reader.copy(target)?;
            defs.insert(defs.len().to_string(), copy);
        }
        let heights = vec![None; defs.len()];
        let root = json!({ "allOf": [root], "$defs": defs });
        let mut closed = Self { root, places: reader.places, heights, patterns: reader.patterns };
        closed.compute_depths();
        closed.drop_invalid_examples();
        Ok(closed)
    }

    /// The schema that a schema refers to, and its place; itself and the place given, where it refers to none.
    pub fn follow<'a>(&'a self, mut schema: &'a Value, place: &str) -> (&'a Value, String) {
        let mut place = place.to_owned();
        // No chain of references is longer than there are schemas, unless it is a circle, which has no height.
        for _ in 0..=self.places.len() {
            let Some(number) = reference(schema) else { break };
            schema = &self.root["$defs"][number.to_string()];
            place.clone_from(&self.places[number]);
        }
        (schema, place)
    }

    /// A place in [`Closed::root`] as one in the document.
    pub fn document_pointer(&self, pointer: &str) -> String {
        let in_def = pointer.strip_prefix("/$defs/").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
        match in_def.and_then(|(number, rest)| Some((self.places.get(number.parse::<usize>().ok()?)?, rest))) {
            Some((place, rest)) => format!("{place}/{rest}"),
            None => pointer.strip_prefix("/allOf/0").unwrap_or(pointer).to_owned(),
        }
    }

    /// How many levels of arrays and objects the least value of a schema has; `None` where it would never end.
    pub fn min_depth(&self, schema: &Value) -> Option<usize> {
        if let Some(number) = reference(schema) {
            return self.heights[number];
        }
        if schema["nullable"] == true || schema.get("enum").is_some() {
            return Some(0);
        }
        let mut height = 0;
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if let Some(property) = schema["properties"].get(name) {
                height = height.max(1 + self.min_depth(property)?);
            }
        }
        if schema["minItems"].as_u64() > Some(0) {
            height = height.max(1 + self.min_depth(&schema["items"])?);
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            height = height.max(self.min_depth(part)?);
        }
        for arms in ["oneOf", "anyOf"].iter().filter_map(|keyword| schema[keyword].as_array()) {
            height = height.max(arms.iter().filter_map(|arm| self.min_depth(arm)).min()?);
        }
        Some(height)
    }

    /// Finds the heights of `$defs`, each from those of the others, until no more change.
    fn compute_depths(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for number in 0..self.heights.len() {
                let height = self.min_depth(&self.root["$defs"][number.to_string()]);
                changed |= height != self.heights[number];
                self.heights[number] = height;
            }
        }
    }

    /// Takes out the examples that their own schemas don't allow, so that those which stay can be used.
    fn drop_invalid_examples(&mut self) {
        let mut root = self.root.take();
        let mut defs = root["$defs"].take();
        let whole = defs.clone();
        root["allOf"].as_array_mut().into_iter().flatten().for_each(|schema| check_examples(schema, &whole));
        defs.as_object_mut().into_iter().flatten().for_each(|(_, schema)| check_examples(schema, &whole));
        root["$defs"] = defs;
        self.root = root;
    }
}

/// Copies schemas out of a document.
struct Bundler<'a> {
    document: &'a Value,
    /// The keyword that says that a property doesn't go this way.
    hidden: &'static str,
    places: Vec<String>,
    numbers: BTreeMap<String, usize>,
    patterns: BTreeMap<String, Option<Pattern>>,
}

impl<'a> Bundler<'a> {
    fn target(&self, place: &str) -> Option<&'a Value> {
        self.document.pointer(&percent_decode_str(place.strip_prefix('#')?).decode_utf8_lossy())
    }

    fn is_hidden(&self, schema: &Value) -> bool {
        let target = schema["$ref"].as_str().and_then(|place| self.target(place)).unwrap_or(schema);
        target[self.hidden] == true
    }

    fn copy(&mut self, schema: &Value) -> anyhow::Result<Value> {
        let Some(object) = schema.as_object() else { return Ok(schema.clone()) };
        if let Some(place) = object.get("$ref").and_then(Value::as_str) {
            if !place.starts_with('#') {
                bail!("`{place}` is outside of the document: bundle it into one file first");
            }
            let next = self.places.len();
            let number = *self.numbers.entry(place.to_owned()).or_insert(next);
            if number == next {
                self.places.push(place.to_owned());
            }
            return Ok(json!({ "$ref": format!("#/$defs/{number}") }));
        }
        let mut copy = Map::new();
        for (keyword, value) in object {
            let value = match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    let mut kept = Map::new();
                    for (name, property) in properties {
                        if !self.is_hidden(property) {
                            kept.insert(name.clone(), self.copy(property)?);
                        }
                    }
                    kept.into()
                }
                ("required", Value::Array(names)) => {
                    let stays = |name: &&Value| {
                        let property = name.as_str().and_then(|name| object.get("properties")?.get(name));
                        !property.is_some_and(|property| self.is_hidden(property))
                    };
                    names.iter().filter(stays).cloned().collect()
                }
                ("allOf" | "oneOf" | "anyOf", Value::Array(parts)) => {
                    parts.iter().map(|part| self.copy(part)).collect::<anyhow::Result<_>>()?
                }
                ("items" | "additionalProperties" | "not", part) => self.copy(part)?,
                ("pattern", Value::String(pattern)) => {
                    self.patterns.entry(pattern.clone()).or_insert_with(|| Pattern::new(pattern));
                    value.clone()
                }
                _ => value.clone(),
            };
            copy.insert(keyword.clone(), value);
        }
        Ok(copy.into())
    }
}

/// Which of `$defs` a schema refers to.
pub fn reference(schema: &Value) -> Option<usize> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?.parse().ok()
}

fn check_examples(schema: &mut Value, defs: &Value) {
    let Value::Object(object) = schema else { return };
    for keyword in ["example", "default"] {
        if let Some(example) = object.remove(keyword) {
            let whole = if is_simple(object) { json!(object) } else { json!({ "allOf": [object], "$defs": defs }) };
            if compile(&whole).is_ok_and(|validator| validator.is_valid(&example)) {
                object.insert(keyword.to_owned(), example);
            }
        }
    }
    for (keyword, value) in object {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(|property| check_examples(property, defs));
            }
            ("allOf" | "oneOf" | "anyOf", Value::Array(parts)) => parts.iter_mut().for_each(|part| check_examples(part, defs)),
            ("items" | "additionalProperties", part) => check_examples(part, defs),
            _ => {}
        }
    }
}

/// Whether a schema has no other in it.
pub fn is_simple(schema: &Map<String, Value>) -> bool {
    !["properties", "items", "additionalProperties", "allOf", "oneOf", "anyOf", "not"]
        .iter()
        .any(|part| schema.contains_key(*part))
}
