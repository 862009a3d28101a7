//! Self-contained schemas: a schema with copies of all schemas that it refers to.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::pattern::Pattern;
use crate::schema::{EXTENSIBLE_ENUM, SubschemaForm, subschema_form};
use crate::{Direction, compile};

/// The location of the bundled schema, which has none in the document.
pub const ROOT: &str = "schema";

/// A schema with all schemas that it refers to.
#[derive(Debug)]
pub struct SchemaBundle {
    /// `{ "allOf": [schema], "$defs": { "0": …, "1": … } }`. All references have the form `#/$defs/0`.
    pub root: Value,
    /// The location of each of `$defs` in the document.
    pointers: Vec<String>,
    /// The [`min_depth`](Self::min_depth) of each of `$defs`.
    depths: Vec<Option<usize>>,
    /// All patterns; `None` for one that texts can't be generated from.
    pub patterns: BTreeMap<String, Option<Pattern>>,
}

impl SchemaBundle {
    /// Bundles a schema of a document for one direction: removes the properties of the other direction.
    ///
    /// # Errors
    /// If the target of a reference doesn't exist or is outside of the document.
    pub fn new(document: &Value, schema: &Value, direction: Direction) -> anyhow::Result<Self> {
        let other_direction = match direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        let mut bundler =
            Bundler { document, other_direction, pointers: Vec::new(), numbers: BTreeMap::new(), patterns: BTreeMap::new() };
        let root = bundler.copy(schema)?;
        let mut defs: Map<String, Value> = Map::new();
        // Each copy may add pointers. A loop instead of a recursion, because some documents have chains of a thousand references.
        while let Some(pointer) = bundler.pointers.get(defs.len()).cloned() {
            let target =
                bundler.target(&pointer).with_context(|| format!("a schema refers to `{pointer}`, which doesn't exist"))?;
            let copy = bundler.copy(target)?;
            defs.insert(defs.len().to_string(), copy);
        }
        let depths = vec![None; defs.len()];
        let root = json!({ "allOf": [root], "$defs": defs });
        let mut bundle = Self { root, pointers: bundler.pointers, depths, patterns: bundler.patterns };
        bundle.compute_depths();
        bundle.drop_invalid_examples();
        Ok(bundle)
    }

    /// Follows references. Returns the target and its location, or the arguments if the schema is not a reference.
    pub fn follow<'a>(&'a self, mut schema: &'a Value, pointer: &str) -> (&'a Value, String) {
        let mut pointer = pointer.to_owned();
        // A chain longer than the number of schemas is circular.
        for _ in 0..=self.pointers.len() {
            let Some(number) = reference(schema) else { break };
            schema = &self.root["$defs"][number.to_string()];
            pointer.clone_from(&self.pointers[number]);
        }
        (schema, pointer)
    }

    /// Converts a pointer in `root` to one in the document, or from the bundled schema.
    pub fn document_pointer(&self, pointer: &str) -> String {
        let in_def = pointer.strip_prefix("/$defs/").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
        match in_def.and_then(|(number, rest)| Some((self.pointers.get(number.parse::<usize>().ok()?)?, rest))) {
            Some((pointer, rest)) => format!("{pointer}/{rest}"),
            None => format!("{ROOT}{}", pointer.strip_prefix("/allOf/0").unwrap_or(pointer)),
        }
    }

    /// Returns the number of nested arrays and objects in the smallest value of a schema. `None` if every value is infinite.
    pub fn min_depth(&self, schema: &Value) -> Option<usize> {
        if let Some(number) = reference(schema) {
            return self.depths[number];
        }
        if schema["nullable"] == true || schema.get("enum").is_some() {
            return Some(0);
        }
        let mut depth = 0;
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if let Some(property) = schema["properties"].get(name) {
                depth = depth.max(1 + self.min_depth(property)?);
            }
        }
        if schema["minItems"].as_u64() > Some(0) {
            depth = depth.max(1 + self.min_depth(&schema["items"])?);
        }
        for subschema in schema["allOf"].as_array().into_iter().flatten() {
            depth = depth.max(self.min_depth(subschema)?);
        }
        for branches in ["oneOf", "anyOf"].iter().filter_map(|keyword| schema[keyword].as_array()) {
            depth = depth.max(branches.iter().filter_map(|branch| self.min_depth(branch)).min()?);
        }
        Some(depth)
    }

    /// Computes the depths of `$defs` iteratively, until none changes: each may depend on all others.
    fn compute_depths(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for number in 0..self.depths.len() {
                let depth = self.min_depth(&self.root["$defs"][number.to_string()]);
                changed |= depth != self.depths[number];
                self.depths[number] = depth;
            }
        }
    }

    /// Removes examples that violate their own schemas, so that the generator can use the others.
    fn drop_invalid_examples(&mut self) {
        let defs = self.root["$defs"].clone();
        self.root["allOf"].as_array_mut().into_iter().flatten().for_each(|schema| drop_invalid_examples(schema, &defs));
        self.root["$defs"].as_object_mut().into_iter().flatten().for_each(|(_, schema)| drop_invalid_examples(schema, &defs));
    }
}

/// Copies schemas from a document.
struct Bundler<'a> {
    document: &'a Value,
    /// The keyword of properties that are removed: `readOnly` or `writeOnly`.
    other_direction: &'static str,
    /// The locations of the schemas found so far, by number.
    pointers: Vec<String>,
    /// The number of each location.
    numbers: BTreeMap<String, usize>,
    patterns: BTreeMap<String, Option<Pattern>>,
}

impl<'a> Bundler<'a> {
    /// Returns the schema at a location of the document.
    fn target(&self, pointer: &str) -> Option<&'a Value> {
        self.document.pointer(&percent_decode_str(pointer.strip_prefix('#')?).decode_utf8_lossy())
    }

    fn is_removed(&self, schema: &Value) -> bool {
        let target = schema["$ref"].as_str().and_then(|pointer| self.target(pointer)).unwrap_or(schema);
        target[self.other_direction] == true
    }

    /// Adds the names of the properties of the other direction that a schema and its `allOf` declare. `followed` has the references that
    /// were followed already.
    fn collect_removed(&self, schema: &Value, followed: &mut BTreeSet<String>, names: &mut BTreeSet<String>) {
        let schema = match schema["$ref"].as_str() {
            Some(pointer) if !followed.insert(pointer.to_owned()) => return,
            Some(pointer) => self.target(pointer).unwrap_or(schema),
            None => schema,
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        names.extend(properties.filter(|(_, property)| self.is_removed(property)).map(|(name, _)| name.clone()));
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.collect_removed(part, followed, names);
        }
    }

    /// Copies a schema. Replaces references by numbers and removes properties of the other direction.
    fn copy(&mut self, schema: &Value) -> anyhow::Result<Value> {
        self.copy_part(schema, &BTreeSet::new())
    }

    /// Copies a schema that is a part of an `allOf`, whose other parts declare the properties of the other direction with these names.
    fn copy_part(&mut self, schema: &Value, removed: &BTreeSet<String>) -> anyhow::Result<Value> {
        let Some(object) = schema.as_object() else { return Ok(schema.clone()) };
        if let Some(pointer) = object.get("$ref").and_then(Value::as_str) {
            if !pointer.starts_with('#') {
                bail!("`{pointer}` is outside of the document: bundle it into one file first");
            }
            let next = self.pointers.len();
            let number = *self.numbers.entry(pointer.to_owned()).or_insert(next);
            if number == next {
                self.pointers.push(pointer.to_owned());
            }
            return Ok(json!({ "$ref": format!("#/$defs/{number}") }));
        }
        let mut removed = removed.clone();
        self.collect_removed(schema, &mut BTreeSet::new(), &mut removed);
        let mut copy = Map::new();
        for (keyword, value) in object {
            let named_patterns = value.as_object().filter(|_| keyword == "patternProperties");
            for pattern in named_patterns.into_iter().flat_map(Map::keys) {
                self.patterns.entry(pattern.clone()).or_insert_with(|| Pattern::new(pattern));
            }
            let value = match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    let mut copies = Map::new();
                    for (name, property) in properties {
                        if !removed.contains(name) {
                            copies.insert(name.clone(), self.copy(property)?);
                        }
                    }
                    copies.into()
                }
                ("required", Value::Array(names)) => {
                    let remains = |name: &&Value| name.as_str().is_none_or(|name| !removed.contains(name));
                    names.iter().filter(remains).cloned().collect()
                }
                ("pattern", Value::String(pattern)) => {
                    self.patterns.entry(pattern.clone()).or_insert_with(|| Pattern::new(pattern));
                    value.clone()
                }
                // Every reference is to a schema of the document.
                ("$defs", _) => value.clone(),
                _ => match (subschema_form(keyword), value) {
                    (Some(SubschemaForm::Named), Value::Object(named)) => {
                        let copy = |(name, subschema): (&String, &Value)| Ok((name.clone(), self.copy(subschema)?));
                        Value::Object(named.iter().map(copy).collect::<anyhow::Result<_>>()?)
                    }
                    (Some(SubschemaForm::List), Value::Array(parts)) if keyword == "allOf" => {
                        parts.iter().map(|part| self.copy_part(part, &removed)).collect::<anyhow::Result<_>>()?
                    }
                    (Some(SubschemaForm::List), Value::Array(subschemas)) => {
                        subschemas.iter().map(|subschema| self.copy(subschema)).collect::<anyhow::Result<_>>()?
                    }
                    (Some(SubschemaForm::Single), subschema) => self.copy(subschema)?,
                    _ => value.clone(),
                },
            };
            copy.insert(keyword.clone(), value);
        }
        // Samples only have known values; validation accepts others.
        if let Some(values) = copy.remove(EXTENSIBLE_ENUM).filter(Value::is_array) {
            copy.entry("enum").or_insert(values);
        }
        Ok(copy.into())
    }
}

/// Returns the number in `$defs` of the schema that a schema refers to.
pub fn reference(schema: &Value) -> Option<usize> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?.parse().ok()
}

/// Removes invalid examples from a schema and its subschemas.
fn drop_invalid_examples(schema: &mut Value, defs: &Value) {
    let Value::Object(object) = schema else { return };
    for keyword in ["example", "default"] {
        if let Some(example) = object.remove(keyword) {
            let resolved = if is_simple(object) { json!(object) } else { json!({ "allOf": [object], "$defs": defs }) };
            if compile(&resolved).is_ok_and(|validator| validator.is_valid(&example)) {
                object.insert(keyword.to_owned(), example);
            }
        }
    }
    for (keyword, value) in object {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(|property| drop_invalid_examples(property, defs));
            }
            ("allOf" | "oneOf" | "anyOf", Value::Array(subschemas)) => {
                subschemas.iter_mut().for_each(|subschema| drop_invalid_examples(subschema, defs))
            }
            ("items" | "additionalProperties", subschema) => drop_invalid_examples(subschema, defs),
            _ => {}
        }
    }
}

/// Returns whether a schema has no subschemas.
pub fn is_simple(schema: &Map<String, Value>) -> bool {
    !["properties", "items", "additionalProperties", "allOf", "oneOf", "anyOf", "not"]
        .iter()
        .any(|subschema| schema.contains_key(*subschema))
}
