//! Schemas without the differences in notation that have no effect.

use std::collections::BTreeSet;
use std::ptr;

use serde_json::Value;

use super::{members, strings};
use crate::drift::document::{Document, Keywords, keywords_of};

/// A schema after its references were followed and the parts of its `allOf` were merged.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FlatSchema<'a> {
    /// The types; `None` if every type is allowed. Without `type`, they are those of the values.
    pub types: Option<BTreeSet<&'a str>>,
    /// The values of a closed list, also of one that is written as `oneOf` or `anyOf`.
    pub values: Option<Vec<&'a Value>>,
    /// The properties. A part of `allOf` may declare one again, mostly to restrict it: the outer and later declaration applies.
    pub properties: Keywords<'a>,
    /// The names of the required properties.
    pub required: BTreeSet<&'a str>,
    /// All other keywords.
    pub keywords: Keywords<'a>,
    /// The parts of `allOf` that can't be merged, because they have another value for one of the keywords.
    pub parts: Vec<&'a Value>,
}

impl<'a> FlatSchema<'a> {
    pub fn new(document: Document<'a>, schema: &'a Value) -> Self {
        let mut flat = Self::default();
        flat.merge(document, schema, &mut Vec::new());
        flat.values = flat.take_values();
        flat.types = flat.take_types();
        flat
    }

    /// Merges a schema with the parts of its `allOf`. `merged` has the schemas that were merged before, because a schema may contain
    /// itself.
    fn merge(&mut self, document: Document<'a>, schema: &'a Value, merged: &mut Vec<*const Value>) {
        let node = document.resolve(schema);
        if merged.contains(&ptr::from_ref(node)) {
            return;
        }
        let mut keywords = keywords_of(node);
        keywords.remove("$defs");
        let parts = keywords.remove("allOf").and_then(Value::as_array);
        let properties = keywords.remove("properties").map(members).unwrap_or_default();
        let required = keywords.remove("required").map(strings).unwrap_or_default();
        if has_other_value(&self.keywords, &keywords) {
            self.parts.push(schema);
            return;
        }
        merged.push(node);
        for (keyword, value) in keywords {
            self.keywords.entry(keyword).or_insert(value);
        }
        self.required.extend(required);
        for part in parts.into_iter().flatten() {
            self.merge(document, part, merged);
        }
        for (name, property) in properties {
            let declared = self.properties.entry(name).or_insert(property);
            if !keywords_of(property).is_empty() {
                *declared = property;
            }
        }
    }

    /// Removes the values of a closed list from the keywords.
    fn take_values(&mut self) -> Option<Vec<&'a Value>> {
        let lists = match self.keywords.remove("enum") {
            Some(list) => vec![list],
            None => self.take_alternatives("enum", "type")?,
        };
        // `nullable` is compared by itself.
        Some(lists.into_iter().filter_map(Value::as_array).flatten().filter(|value| !value.is_null()).collect())
    }

    /// Removes the types from the keywords.
    fn take_types(&mut self) -> Option<BTreeSet<&'a str>> {
        let types = match self.keywords.remove("type") {
            Some(kind) => Some(vec![kind]),
            None => self.take_alternatives("type", "type"),
        };
        match (types, &self.values) {
            (Some(types), _) => Some(types.into_iter().filter_map(Value::as_str).collect()),
            (None, Some(values)) => Some(values.iter().map(|value| type_of(value)).collect()),
            (None, None) => None,
        }
    }

    /// Removes `oneOf` or `anyOf` if its branches have only a keyword and perhaps a second one. Returns the keyword's values.
    fn take_alternatives(&mut self, keyword: &str, second: &str) -> Option<Vec<&'a Value>> {
        let value = |branch: &'a Value| {
            let mut keywords = keywords_of(branch);
            let value = keywords.remove(keyword)?;
            keywords.remove(second);
            keywords.is_empty().then_some(value)
        };
        ["oneOf", "anyOf"].into_iter().find_map(|alternatives| {
            let values = self.keywords.get(alternatives)?.as_array()?.iter().map(value).collect::<Option<Vec<_>>>()?;
            self.keywords.remove(alternatives);
            Some(values)
        })
    }

    /// Returns the branches of `oneOf` or `anyOf`.
    pub fn branches(&self, keyword: &str) -> Vec<&'a Value> {
        self.keywords.get(keyword).and_then(|branches| branches.as_array()).into_iter().flatten().collect()
    }

    /// Returns the branches of `oneOf` or `anyOf`, if the schema has nothing else.
    pub fn alternatives(&self) -> Vec<&'a Value> {
        let all = ["oneOf", "anyOf"].map(|keyword| self.branches(keyword)).concat();
        let wrapper = Self { keywords: self.keywords.clone(), ..Self::default() };
        if self.keywords.len() == 1 && *self == wrapper { all } else { Vec::new() }
    }
}

/// Returns whether two maps have different values for a key. The outer one of two defaults applies.
fn has_other_value(one: &Keywords, other: &Keywords) -> bool {
    other.iter().any(|(key, value)| *key != "default" && one.get(key).is_some_and(|present| present != value))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
