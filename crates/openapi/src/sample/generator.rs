//! Generation of a random value for a schema, level by level.
//!
//! At each level, the schema is flattened ([`flat_schema`](super::flat_schema)): `allOf` is merged, one branch of `oneOf` and `anyOf`
//! is chosen, and references are followed. A value of the flat schema's type is then generated: objects and arrays here, texts and
//! numbers in [`scalar`](super::scalar). It may still be invalid, so [`Sampler`](super::Sampler) validates it.

use std::collections::HashSet;

use anyhow::{anyhow, bail};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

use super::ExampleUse;
use super::bundle::{ROOT, SchemaBundle, reference};
use super::flat_schema::is_flat;
use super::text;
use crate::escape;

/// Beyond this depth or number of values, only required values of minimum size are generated. Otherwise, values of recursive schemas
/// would be infinite or huge.
const FULL_DEPTH: usize = 4;
const FULL_VALUES: usize = 300;

/// Maximum depth of a value. Only schemas reach it whose recursion [`SchemaBundle::min_depth`] can't see, because `allOf` hides it.
const MAX_DEPTH: usize = 40;

/// Maximum length of strings and arrays.
pub(super) const MAX_LENGTH: usize = 100_000;

/// Maximum cost of all attempts together: each value costs 1, and each [`CHARACTERS_PER_COST`] characters of a string cost 1. Spending
/// it takes about a second and blocks the thread.
pub const BUDGET: usize = 100_000;
pub(super) const CHARACTERS_PER_COST: usize = 16;

/// Generator of one value.
pub struct Generator<'a> {
    pub(super) bundle: &'a SchemaBundle,
    pub(super) rng: &'a mut Xoshiro256PlusPlus,
    /// The probability of an optional property.
    optional: f64,
    examples: ExampleUse,
    /// True if an invalid value is generated for a part of the schema that has no valid one.
    allows_invalid: bool,
    /// Number of values generated so far.
    generated: usize,
    /// The rest of [`BUDGET`].
    budget: &'a mut usize,
}

/// The keywords of a flat schema of an object.
struct ObjectSchema<'s> {
    flat: &'s Map<String, Value>,
    pointer: &'s str,
    /// The nesting level of the object.
    level: usize,
    required: Vec<&'s str>,
    properties: &'s Map<String, Value>,
    patterns: &'s Map<String, Value>,
    additional: &'s Value,
    /// Minimum number of properties.
    minimum: usize,
    /// Maximum number of properties.
    maximum: usize,
}

impl<'a> Generator<'a> {
    /// Creates a generator. `optional` is the probability of an optional property, from 0 to 1. The cost is subtracted from `budget`.
    pub fn new(bundle: &'a SchemaBundle, rng: &'a mut Xoshiro256PlusPlus, optional: f64, budget: &'a mut usize) -> Self {
        Self { bundle, rng, optional, examples: ExampleUse::Sometimes, allows_invalid: false, generated: 0, budget }
    }

    /// Changes the use of examples.
    pub fn with_examples(self, examples: ExampleUse) -> Self {
        Self { examples, ..self }
    }

    /// Allows invalid values for the parts of the schema that have no valid one.
    pub fn allowing_invalid(self) -> Self {
        Self { allows_invalid: true, ..self }
    }

    /// Generates a value of the bundled schema that is likely to be valid.
    ///
    /// # Errors
    /// If no value can be generated for a schema. The error names the schema's location.
    pub fn generate(mut self) -> anyhow::Result<Value> {
        self.value(&self.bundle.root["allOf"][0], ROOT, 0)
    }

    /// Generates a value of the schema at a location and a nesting level.
    pub fn value(&mut self, schema: &Value, pointer: &str, level: usize) -> anyhow::Result<Value> {
        match self.valid_value(schema, pointer, level) {
            Err(_) if self.allows_invalid => Ok(self.value_of_type(schema, pointer, level)),
            result => result,
        }
    }

    /// Generates a value that has the type of a schema, and perhaps nothing else.
    fn value_of_type(&mut self, schema: &Value, pointer: &str, level: usize) -> Value {
        let target = || self.bundle.follow(schema, pointer).0.as_object().cloned().unwrap_or_default();
        let flat = self.flatten(schema, pointer, level).unwrap_or_else(|_| target());
        match type_of(&flat) {
            "object" => json!({}),
            "array" => json!([]),
            "boolean" => json!(false),
            "integer" | "number" => json!(0),
            _ => {
                let formatted =
                    flat.get("format").and_then(Value::as_str).and_then(|format| text::formatted(self.rng, format, 0));
                formatted.unwrap_or_else(|| text::word(self.rng).to_owned()).into()
            }
        }
    }

    fn valid_value(&mut self, schema: &Value, pointer: &str, level: usize) -> anyhow::Result<Value> {
        self.generated += 1;
        self.spend(1, pointer)?;
        let (schema, pointer) = self.resolve_terminating(schema, pointer)?;
        if level > MAX_DEPTH {
            bail!("`{pointer}` is more than {MAX_DEPTH} levels deep");
        }
        let own_example = || schema.get("example").or_else(|| schema.get("default"));
        if let Some(example) = own_example().filter(|_| self.examples == ExampleUse::Always) {
            return Ok(example.clone());
        }
        let is_small = self.bundle.min_depth(schema) == Some(0);
        let is_varied = self.examples != ExampleUse::Always;
        if allows_null(schema) && (is_varied && self.rng.random_bool(0.1) || !is_small && self.is_minimal(level)) {
            return Ok(Value::Null);
        }
        for keyword in ["example", "default"] {
            if let Some(example) = schema.get(keyword)
                && self.examples == ExampleUse::Sometimes
                && self.rng.random_bool(0.5)
            {
                return Ok(example.clone());
            }
        }
        let merged;
        let flat = match schema.as_object().filter(|schema| is_flat(schema)) {
            Some(flat) => flat,
            None => {
                merged = self.flatten(schema, &pointer, level)?;
                &merged
            }
        };
        if self.examples == ExampleUse::Always
            && let Some(example) = flat.get("example").filter(|_| self.is_example_complete(schema))
        {
            return Ok(example.clone());
        }
        if let Some(values) = flat.get("enum").and_then(Value::as_array) {
            return values.choose(self.rng).cloned().ok_or_else(|| anyhow!("`{pointer}` has no value that all its parts allow"));
        }
        match type_of(flat) {
            "object" => self.object(flat, &pointer, level),
            "array" => self.array(flat, &pointer, level),
            "boolean" => Ok(json!(self.rng.random_bool(0.5))),
            "integer" | "number" => self.number(flat, &pointer),
            _ => self.text(flat, &pointer),
        }
    }

    /// Returns whether the merged example of a schema describes the whole value: each part of its `allOf` has an example.
    fn is_example_complete(&self, schema: &Value) -> bool {
        let parts = schema["allOf"].as_array().map(Vec::as_slice).unwrap_or_default();
        let has_example = |part: &Value| self.bundle.follow(part, "").0.get("example").is_some();
        schema.get("properties").is_none_or(|_| parts.is_empty()) && (parts.len() <= 1 || parts.iter().all(has_example))
    }

    /// Subtracts a cost from the budget, or fails if it is spent.
    pub(super) fn spend(&mut self, cost: usize, pointer: &str) -> anyhow::Result<()> {
        *self.budget = self.budget.saturating_sub(cost);
        if *self.budget == 0 {
            bail!("`{pointer}` requires more than {BUDGET} values");
        }
        Ok(())
    }

    /// Follows references. Fails if every value of the target is infinite.
    pub(super) fn resolve_terminating<'s>(&self, schema: &'s Value, pointer: &str) -> anyhow::Result<(&'s Value, String)>
    where
        'a: 's,
    {
        let (target, pointer) = self.bundle.follow(schema, pointer);
        if reference(schema).is_some() && self.bundle.min_depth(schema).is_none() {
            bail!("`{pointer}` requires itself without end");
        }
        Ok((target, pointer))
    }

    pub(super) fn is_minimal(&self, level: usize) -> bool {
        level >= FULL_DEPTH || self.generated >= FULL_VALUES
    }

    fn object(&mut self, flat: &Map<String, Value>, pointer: &str, level: usize) -> anyhow::Result<Value> {
        let none = Map::new();
        let map = |keyword: &str| flat.get(keyword).and_then(Value::as_object).unwrap_or(&none);
        let required = flat.get("required").and_then(Value::as_array).into_iter().flatten();
        let schema = ObjectSchema {
            flat,
            pointer,
            level,
            required: required.filter_map(Value::as_str).collect(),
            properties: map("properties"),
            patterns: map("patternProperties"),
            additional: flat.get("additionalProperties").unwrap_or(&Value::Bool(true)),
            minimum: count_limit(flat, "minProperties").unwrap_or(0),
            maximum: count_limit(flat, "maxProperties").unwrap_or(usize::MAX),
        };
        let mut object = Map::new();
        self.add_required(&schema, &mut object)?;
        self.add_optional(&schema, &mut object);
        self.add_additional(&schema, &mut object)?;
        // Properties in the document's order.
        let position = |name: &String| schema.properties.keys().position(|property| property == name).unwrap_or(usize::MAX);
        let mut entries: Vec<(String, Value)> = object.into_iter().collect();
        entries.sort_by_key(|(name, _)| position(name));
        Ok(Value::Object(entries.into_iter().collect()))
    }

    /// Adds the required properties.
    fn add_required(&mut self, schema: &ObjectSchema<'_>, object: &mut Map<String, Value>) -> anyhow::Result<()> {
        let pointer = schema.pointer;
        for name in &schema.required {
            let (property, at) = match schema.properties.get(*name) {
                Some(property) => (property, format!("{pointer}/properties/{}", escape(name))),
                None if schema.additional == false => bail!("`{pointer}` requires the property {name}, but doesn't allow it"),
                None => (schema.additional, format!("{pointer}/additionalProperties")),
            };
            if !object.contains_key(*name) {
                object.insert((*name).to_owned(), self.value(property, &at, schema.level + 1)?);
            }
        }
        Ok(())
    }

    /// Adds some of the other declared properties.
    fn add_optional(&mut self, schema: &ObjectSchema<'_>, object: &mut Map<String, Value>) {
        for (name, property) in schema.properties {
            let wanted = object.len() < schema.minimum || (!self.is_minimal(schema.level) && self.rng.random_bool(self.optional));
            if !wanted || object.contains_key(name) || object.len() >= schema.maximum {
                continue;
            }
            // An optional property without a value is left out.
            let pointer = format!("{}/properties/{}", schema.pointer, escape(name));
            if let Ok(value) = self.value(property, &pointer, schema.level + 1) {
                object.insert(name.clone(), value);
            }
        }
    }

    /// Adds properties that are not declared by name.
    fn add_additional(&mut self, schema: &ObjectSchema<'_>, object: &mut Map<String, Value>) -> anyhow::Result<()> {
        let ObjectSchema { pointer, level, properties, patterns, additional, minimum, maximum, .. } = *schema;
        let is_map = (additional.is_object() || !patterns.is_empty()) && !self.is_minimal(level);
        let more = if is_map { self.rng.random_range(0..=2) } else { 0 };
        let wanted = minimum.max(object.len() + more).min(maximum);
        if object.len() < wanted.min(minimum) && additional == false && patterns.is_empty()
            || wanted > MAX_LENGTH
            || minimum > maximum
            || schema.required.len() > maximum
        {
            bail!("`{pointer}` has contradictory numbers of properties");
        }
        for number in 1.. {
            if object.len() >= wanted {
                break;
            }
            // `propertyNames` may allow fewer names.
            if number > 10 * (wanted + 1) {
                if object.len() >= minimum {
                    break;
                }
                bail!("`{pointer}` has no valid names for {minimum} properties");
            }
            let pattern = patterns.iter().nth((number - 1) % patterns.len().max(1));
            let (property, at) = match pattern {
                Some((pattern, property)) => (property, format!("{pointer}/patternProperties/{}", escape(pattern))),
                None => (additional, format!("{pointer}/additionalProperties")),
            };
            let name = self.additional_name(schema, pattern.map(|(pattern, _)| pattern.as_str()), number, object)?;
            if !properties.contains_key(&name) {
                let value = self.value(property, &at, level + 1)?;
                object.insert(name, value);
            }
        }
        Ok(())
    }

    /// Generates the name of an additional property. `pattern` is the one in `patternProperties`.
    fn additional_name(
        &mut self,
        schema: &ObjectSchema<'_>,
        pattern: Option<&str>,
        number: usize,
        object: &Map<String, Value>,
    ) -> anyhow::Result<String> {
        let name = match pattern {
            Some(pattern) => self.matching_name(pattern, schema.pointer)?,
            None => self.property_name(schema.flat, schema.pointer, number, schema.level)?,
        };
        if !object.contains_key(&name) {
            return Ok(name);
        }
        // A pattern without an anchor at its end allows more characters.
        let names = schema.flat.get("propertyNames").and_then(Value::as_object).filter(|names| names.keys().eq(["pattern"]));
        let pattern = pattern.or_else(|| names?["pattern"].as_str());
        let pattern = pattern.and_then(|pattern| self.bundle.patterns.get(pattern)?.as_ref());
        let longer = format!("{name}{number}");
        Ok(if pattern.is_some_and(|pattern| pattern.matches(&longer)) { longer } else { name })
    }

    /// Generates a name that `propertyNames` allows.
    fn property_name(&mut self, flat: &Map<String, Value>, pointer: &str, number: usize, level: usize) -> anyhow::Result<String> {
        if let Some(names) = flat.get("propertyNames").filter(|names| names.is_object()) {
            let name = self.value(names, &format!("{pointer}/propertyNames"), level + 1)?;
            return Ok(crate::to_plain_string(&name));
        }
        Ok(if number <= 3 { text::word(self.rng).to_owned() } else { format!("{}{number}", text::word(self.rng)) })
    }

    fn array(&mut self, flat: &Map<String, Value>, pointer: &str, level: usize) -> anyhow::Result<Value> {
        let minimum = count_limit(flat, "minItems").unwrap_or(0);
        let maximum = count_limit(flat, "maxItems").unwrap_or(usize::MAX);
        if minimum > maximum || minimum > MAX_LENGTH {
            bail!("`{pointer}` has contradictory numbers of items");
        }
        let highest = maximum.min(minimum.max(1) + 1);
        let lowest = if self.examples == ExampleUse::Always { minimum.max(1).min(highest) } else { minimum };
        let wanted = if self.is_minimal(level) { minimum } else { self.rng.random_range(lowest..=highest) };
        let prefix = flat.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut items = Vec::new();
        for (number, schema) in prefix.iter().enumerate().take(maximum) {
            items.push(self.value(schema, &format!("{pointer}/prefixItems/{number}"), level + 1)?);
        }
        let is_closed = !prefix.is_empty() && flat.get("items").is_none_or(|items| items == false);
        let wanted = if is_closed { 0 } else { wanted.saturating_sub(items.len()) };
        let contained = flat.get("contains").filter(|_| !is_closed);
        let anything = json!({});
        let of_item = flat.get("items").unwrap_or(&anything);
        let limited;
        let others = match contained.filter(|_| flat.contains_key("maxContains")) {
            Some(contained) => {
                let mut others = flat.clone();
                others.insert("items".to_owned(), json!({ "allOf": [of_item, { "not": contained }] }));
                limited = others;
                &limited
            }
            None => flat,
        };
        items.extend(self.items(others, pointer, level, minimum.saturating_sub(items.len()).min(wanted), wanted)?);
        if let Some(contained) = contained {
            let schema = json!({ "allOf": [of_item, contained] });
            for index in prefix.len()..prefix.len() + count_limit(flat, "minContains").unwrap_or(1) {
                let item = self.value(&schema, &format!("{pointer}/contains"), level + 1)?;
                match items.get_mut(index) {
                    Some(other) => *other = item,
                    None => items.push(item),
                }
            }
        }
        Ok(items.into())
    }

    /// Generates `wanted` items of an array, or at least `minimum` if there are not enough different ones.
    pub fn items(
        &mut self,
        flat: &Map<String, Value>,
        pointer: &str,
        level: usize,
        minimum: usize,
        wanted: usize,
    ) -> anyhow::Result<Vec<Value>> {
        let schema = flat.get("items").unwrap_or(&Value::Bool(true));
        let is_unique = flat.get("uniqueItems").is_some_and(|unique| unique == true);
        let (mut items, mut seen) = (Vec::new(), HashSet::new());
        for _ in 0..wanted.saturating_mul(if is_unique { 10 } else { 1 }) {
            if items.len() >= wanted {
                break;
            }
            match self.value(schema, &format!("{pointer}/items"), level + 1) {
                Ok(item) if is_unique && !seen.insert(item.clone()) => {}
                Ok(item) => items.push(item),
                Err(_) if items.len() >= minimum => break,
                Err(error) => return Err(error),
            }
        }
        if items.len() < minimum {
            bail!("`{pointer}` requires {minimum} different items, and {} were found", items.len());
        }
        Ok(items)
    }
}

/// Returns whether a schema allows null. An enumeration without null excludes it.
fn allows_null(schema: &Value) -> bool {
    let values = schema["enum"].as_array();
    schema["nullable"] == true && values.is_none_or(|values| values.contains(&Value::Null))
}

/// Returns the type of a schema, or the type that its other keywords imply.
pub fn type_of(flat: &Map<String, Value>) -> &str {
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| flat.contains_key(*keyword));
    match flat.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if has(&["properties", "required", "additionalProperties", "minProperties", "maxProperties"]) => "object",
        None if has(&["items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"]) => "array",
        None if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) => "number",
        None => "string",
    }
}

/// Returns the value of a keyword that limits a count, such as `minItems`.
pub fn count_limit(flat: &Map<String, Value>, keyword: &str) -> Option<usize> {
    flat.get(keyword).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok())
}
