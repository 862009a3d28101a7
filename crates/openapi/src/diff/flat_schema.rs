//! Schemas without the differences in notation that have no effect.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

use serde_json::Value;

use super::{members, strings};
use crate::drift::document::{Document, Keywords, keywords_of};
use crate::subtypes;

/// A schema after its references were followed and the parts of its `allOf` were merged.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FlatSchema<'a> {
    /// The types besides null; `None` if every type is allowed. Without `type`, they are those of the values.
    pub types: Option<BTreeSet<&'a str>>,
    /// True if null is allowed, by `nullable` or as a value of a list without a type.
    pub is_nullable: bool,
    /// The values besides null of a closed list, also of one that is written as `oneOf` or `anyOf`.
    pub values: Option<Vec<&'a Value>>,
    /// The declarations of each property: a value must be valid by all of them. Parts of `allOf` may declare a property again, mostly to
    /// restrict it.
    pub properties: BTreeMap<&'a str, Vec<&'a Value>>,
    /// The schemas of the items: an item must be valid by all of them.
    pub items: Vec<&'a Value>,
    /// The names of the properties that a value can't have, because their schema is `false`.
    pub excluded: BTreeSet<&'a str>,
    /// The names of the required properties.
    pub required: BTreeSet<&'a str>,
    /// All other keywords.
    pub keywords: Keywords<'a>,
    /// The parts of `allOf` that can't be merged, because they have another value for one of the keywords.
    pub parts: Vec<&'a Value>,
    /// The lists of all `enum`.
    lists: Vec<&'a Value>,
}

impl<'a> FlatSchema<'a> {
    /// Merges schemas that a value must all be valid by.
    pub fn new(document: Document<'a>, schemas: &[&'a Value]) -> Self {
        let mut flat = Self::default();
        let mut merged = Vec::new();
        for schema in schemas {
            flat.merge(document, schema, &mut merged);
        }
        let values = flat.take_values();
        flat.is_nullable = flat.keywords.remove("nullable").is_some()
            || !flat.keywords.contains_key("type") && values.iter().flatten().any(|value| value.is_null());
        flat.values = values.map(|values| values.into_iter().filter(|value| !value.is_null()).collect());
        flat.types = flat.take_types();
        for name in &flat.excluded {
            flat.properties.remove(name);
        }
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
        replace_content_keywords(&mut keywords);
        let parts = keywords.remove("allOf").and_then(Value::as_array);
        let properties = keywords.remove("properties").map(members).unwrap_or_default();
        let required = keywords.remove("required").map(strings).unwrap_or_default();
        let list = keywords.remove("enum");
        let items = keywords.remove("items");
        let combined: Option<Keywords> =
            keywords.into_iter().map(|(keyword, value)| Some((keyword, self.combine(keyword, value)?))).collect();
        let Some(combined) = combined else {
            self.parts.push(schema);
            return;
        };
        merged.push(node);
        self.keywords.extend(combined);
        self.lists.extend(list);
        self.items.extend(items);
        self.required.extend(required);
        for (name, property) in properties {
            if document.resolve(property) == false {
                self.excluded.insert(name);
            }
            self.properties.entry(name).or_default().push(property);
        }
        for part in parts.into_iter().flatten() {
            self.merge(document, part, merged);
        }
    }

    /// Returns the value that has the effect of both the present value of a keyword and another one; `None` if there is none.
    fn combine(&self, keyword: &str, value: &'a Value) -> Option<&'a Value> {
        let Some(present) = self.keywords.get(keyword).copied() else { return Some(value) };
        let greater = |is_greater: bool| Some(if is_greater { present } else { value });
        match keyword {
            _ if present == value => Some(present),
            // The outer one applies.
            "default" => Some(present),
            "minLength" | "minItems" | "minProperties" => greater(present.as_f64()? > value.as_f64()?),
            "maxLength" | "maxItems" | "maxProperties" => greater(present.as_f64()? < value.as_f64()?),
            "type" if present == "integer" && value == "number" => Some(present),
            "type" if present == "number" && value == "integer" => Some(value),
            _ => None,
        }
    }

    /// Removes the values of a closed list from the keywords. Of several lists, a value must be in each.
    fn take_values(&mut self) -> Option<Vec<&'a Value>> {
        let mut lists = std::mem::take(&mut self.lists).into_iter().filter_map(Value::as_array);
        let Some(first) = lists.next() else { return self.take_alternatives("enum", "type").map(|lists| items(lists).collect()) };
        let others: Vec<_> = lists.collect();
        Some(first.iter().filter(|value| others.iter().all(|list| list.contains(value))).collect())
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

    /// Returns the names that the discriminator has for branches, with their references: those of its mapping, and for other branches
    /// their own. Without branches, such as in a subtype, the names decide nothing.
    pub fn discriminator_names(&self) -> BTreeMap<&'a str, String> {
        let branches = ["oneOf", "anyOf"].map(|keyword| self.branches(keyword)).concat();
        let Some(discriminator) = self.keywords.get("discriminator").filter(|_| !branches.is_empty()) else {
            return BTreeMap::new();
        };
        let mapping = members(&discriminator["mapping"]).into_iter();
        let mut names: BTreeMap<_, _> =
            mapping.filter_map(|(name, target)| Some((name, subtypes::mapped_reference(target.as_str()?)))).collect();
        for branch in branches {
            if let Some((name, reference)) = subtypes::implied_name(branch)
                && !names.values().any(|mapped| mapped == reference)
            {
                names.entry(name).or_insert_with(|| reference.to_owned());
            }
        }
        names
    }
}

/// Replaces the keywords of OpenAPI 3.1 for encoded and binary content, which the document's conversion has also expressed as a format
/// of OpenAPI 3.0.
fn replace_content_keywords(keywords: &mut Keywords) {
    let has = |keyword: &str, value: &str| keywords.get(keyword).is_some_and(|present| *present == value);
    let replaced = [
        ("contentEncoding", has("format", "byte") && has("contentEncoding", "base64")),
        ("contentMediaType", has("format", "binary") && has("contentMediaType", "application/octet-stream")),
    ];
    for (keyword, _) in replaced.into_iter().filter(|(_, is_replaced)| *is_replaced) {
        keywords.remove(keyword);
    }
}

fn items(lists: Vec<&Value>) -> impl Iterator<Item = &Value> {
    lists.into_iter().filter_map(Value::as_array).flatten()
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
