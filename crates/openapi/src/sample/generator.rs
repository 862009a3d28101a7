//! Generation of a random value for a schema, level by level.
//!
//! At each level, the schema is flattened: `allOf` is merged, one branch of `oneOf` and `anyOf` is chosen, and references are followed.
//! A value of the flat schema's type is then generated. It may still be invalid, so [`Sampler`](super::Sampler) validates it.

use std::collections::HashSet;

use anyhow::{anyhow, bail};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::{IndexedRandom, SliceRandom};
use serde_json::{Map, Value, json};

use super::ExampleUse;
use super::bundle::{ROOT, SchemaBundle, is_simple, reference};
use super::merge::merge;
use super::number::NumberRange;
use super::text;
use crate::{compile, escape};

/// Beyond this depth or number of values, only required values of minimum size are generated. Otherwise, values of recursive schemas
/// would be infinite or huge.
const FULL_DEPTH: usize = 4;
const FULL_VALUES: usize = 300;

/// Maximum depth of a value. Only schemas reach it whose recursion [`SchemaBundle::min_depth`] can't see, because `allOf` hides it.
const MAX_DEPTH: usize = 40;

/// Maximum length of strings and arrays.
const MAX_LENGTH: usize = 100_000;

/// Number of characters for which the generation of a text from a pattern leaves room, if no minimum length requires more.
const PATTERN_LENGTH: usize = 1_000;

/// Maximum cost of all attempts together: each value costs 1, and each [`CHARACTERS_PER_COST`] characters of a string cost 1. Spending
/// it takes about a second and blocks the thread.
pub const BUDGET: usize = 100_000;
const CHARACTERS_PER_COST: usize = 16;

/// Maximum number of attempts to generate a single string or number.
const VALUE_ATTEMPTS: u32 = 50;

/// Generator of one value.
pub struct Generator<'a> {
    bundle: &'a SchemaBundle,
    rng: &'a mut Xoshiro256PlusPlus,
    /// The probability of an optional property.
    optional: f64,
    examples: ExampleUse,
    /// Whether an invalid value is generated for a part of the schema that has no valid one.
    allows_invalid: bool,
    /// Number of values generated so far.
    generated: usize,
    /// The rest of [`BUDGET`].
    budget: &'a mut usize,
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
            "integer" | "number" => {
                let numbers = NumberRange::new(flat).ok_or_else(|| anyhow!("`{pointer}` has no number within its bounds"))?;
                self.retry_until_valid(flat, &pointer, |generator, _| Some(numbers.pick(generator.rng)))
            }
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
    fn spend(&mut self, cost: usize, pointer: &str) -> anyhow::Result<()> {
        *self.budget = self.budget.saturating_sub(cost);
        if *self.budget == 0 {
            bail!("`{pointer}` requires more than {BUDGET} values");
        }
        Ok(())
    }

    /// Follows references. Fails if every value of the target is infinite.
    fn resolve_terminating<'s>(&self, schema: &'s Value, pointer: &str) -> anyhow::Result<(&'s Value, String)>
    where
        'a: 's,
    {
        let (target, pointer) = self.bundle.follow(schema, pointer);
        if reference(schema).is_some() && self.bundle.min_depth(schema).is_none() {
            bail!("`{pointer}` requires itself without end");
        }
        Ok((target, pointer))
    }

    fn is_minimal(&self, level: usize) -> bool {
        level >= FULL_DEPTH || self.generated >= FULL_VALUES
    }

    /// Merges a schema with its `allOf` and with one branch of its `oneOf` and `anyOf`. The result is not a reference, and its
    /// exclusive bounds are numbers.
    pub fn flatten(&mut self, schema: &Value, pointer: &str, level: usize) -> anyhow::Result<Map<String, Value>> {
        let bundle = self.bundle;
        let (schema, pointer) = self.resolve_terminating(schema, pointer)?;
        let mut flat = schema.as_object().cloned().unwrap_or_default();
        for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            match flat.get(exclusive) {
                Some(Value::Bool(true)) => drop(flat.remove(bound).map(|limit| flat.insert(exclusive.to_owned(), limit))),
                Some(Value::Bool(false)) => drop(flat.remove(exclusive)),
                _ => {}
            }
        }
        flat.remove("allOf");
        self.flatten_condition(schema, &pointer, level, &mut flat)?;
        for (number, parent) in schema["allOf"].as_array().into_iter().flatten().enumerate() {
            merge(&mut flat, self.flatten(parent, &format!("{pointer}/allOf/{number}"), level)?);
            let (parent, _) = bundle.follow(parent, "");
            if let Some(constraint) =
                discriminator_value(&parent["discriminator"], &pointer, &flat).filter(|_| !has_branches(parent))
            {
                merge(&mut flat, constraint);
            }
        }
        if let Some(constraint) = any_discriminator_value(&schema["discriminator"]).filter(|_| !has_branches(schema)) {
            merge(&mut flat, constraint);
        }
        for keyword in ["oneOf", "anyOf"] {
            flat.remove(keyword);
            let Some(branches) = schema[keyword].as_array() else { continue };
            let mut candidates: Vec<(Option<usize>, usize)> =
                branches.iter().enumerate().map(|(number, branch)| (bundle.min_depth(branch), number)).collect();
            candidates.retain(|(depth, _)| depth.is_some());
            // A branch that only excludes values says nothing about the others.
            let only_excludes = |branch: &Value| branch.as_object().is_some_and(|branch| branch.keys().eq(["not"]));
            if candidates.iter().any(|(_, number)| !only_excludes(&branches[*number])) {
                candidates.retain(|(_, number)| !only_excludes(&branches[*number]));
            }
            candidates.shuffle(self.rng);
            if self.is_minimal(level) {
                candidates.sort_by_key(|(depth, _)| *depth);
            }
            let Some((_, number)) = candidates.first() else { bail!("`{pointer}/{keyword}` has only branches without end") };
            let branch = &branches[*number];
            let chosen = self.flatten(branch, &format!("{pointer}/{keyword}/{number}"), level)?;
            merge(&mut flat, chosen);
            if let Some(constraint) = discriminator_value(&schema["discriminator"], &bundle.follow(branch, "").1, &flat) {
                merge(&mut flat, constraint);
            }
        }
        self.flatten_dependent_schemas(schema, &pointer, level, &mut flat)?;
        require_dependents(&mut flat);
        Ok(flat)
    }

    /// Merges the schemas that depend on a required property.
    fn flatten_dependent_schemas(
        &mut self,
        schema: &Value,
        pointer: &str,
        level: usize,
        flat: &mut Map<String, Value>,
    ) -> anyhow::Result<()> {
        flat.remove("dependentSchemas");
        for (name, dependent) in schema["dependentSchemas"].as_object().into_iter().flatten() {
            let required = flat.get("required").and_then(Value::as_array);
            if required.is_some_and(|required| required.iter().any(|other| other == name)) {
                merge(flat, self.flatten(dependent, &format!("{pointer}/dependentSchemas/{}", escape(name)), level)?);
            }
        }
        Ok(())
    }

    /// Merges either `if` and `then`, or `else`.
    fn flatten_condition(
        &mut self,
        schema: &Value,
        pointer: &str,
        level: usize,
        flat: &mut Map<String, Value>,
    ) -> anyhow::Result<()> {
        for keyword in ["if", "then", "else"] {
            flat.remove(keyword);
        }
        if !schema["if"].is_object() {
            return Ok(());
        }
        let chosen = if self.rng.random_bool(0.5) { ["if", "then"].as_slice() } else { &["else"] };
        for keyword in chosen.iter().filter(|keyword| schema[**keyword].is_object()) {
            merge(flat, self.flatten(&schema[*keyword], &format!("{pointer}/{keyword}"), level)?);
        }
        Ok(())
    }

    fn object(&mut self, flat: &Map<String, Value>, pointer: &str, level: usize) -> anyhow::Result<Value> {
        let none = Map::new();
        let properties = flat.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> =
            flat.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let minimum = count_limit(flat, "minProperties").unwrap_or(0);
        let maximum = count_limit(flat, "maxProperties").unwrap_or(usize::MAX);
        let additional = flat.get("additionalProperties").unwrap_or(&Value::Bool(true));
        let patterns = flat.get("patternProperties").and_then(Value::as_object).unwrap_or(&none);
        let mut object = Map::new();
        for name in &required {
            let (schema, at) = match properties.get(*name) {
                Some(schema) => (schema, format!("{pointer}/properties/{}", escape(name))),
                None if additional == false => bail!("`{pointer}` requires the property {name}, but doesn't allow it"),
                None => (additional, format!("{pointer}/additionalProperties")),
            };
            if !object.contains_key(*name) {
                object.insert((*name).to_owned(), self.value(schema, &at, level + 1)?);
            }
        }
        for (name, schema) in properties {
            let wanted = object.len() < minimum || (!self.is_minimal(level) && self.rng.random_bool(self.optional));
            if !wanted || object.contains_key(name) || object.len() >= maximum {
                continue;
            }
            // An optional property without a value is left out.
            if let Ok(value) = self.value(schema, &format!("{pointer}/properties/{}", escape(name)), level + 1) {
                object.insert(name.clone(), value);
            }
        }
        let is_map = (additional.is_object() || !patterns.is_empty()) && !self.is_minimal(level);
        let more = if is_map { self.rng.random_range(0..=2) } else { 0 };
        let wanted = minimum.max(object.len() + more).min(maximum);
        if object.len() < wanted.min(minimum) && additional == false && patterns.is_empty()
            || wanted > MAX_LENGTH
            || minimum > maximum
            || required.len() > maximum
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
            let (name, schema, at) = match patterns.iter().nth((number - 1) % patterns.len().max(1)) {
                Some((pattern, schema)) => {
                    (self.matching_name(pattern, pointer)?, schema, format!("{pointer}/patternProperties/{}", escape(pattern)))
                }
                None => {
                    (self.property_name(flat, pointer, number, level)?, additional, format!("{pointer}/additionalProperties"))
                }
            };
            if !properties.contains_key(&name) {
                let value = self.value(schema, &at, level + 1)?;
                object.insert(name, value);
            }
        }
        // Properties in the document's order.
        let position = |name: &String| properties.keys().position(|property| property == name).unwrap_or(usize::MAX);
        let mut entries: Vec<(String, Value)> = object.into_iter().collect();
        entries.sort_by_key(|(name, _)| position(name));
        Ok(Value::Object(entries.into_iter().collect()))
    }

    /// Generates the name of an additional property.
    fn property_name(&mut self, flat: &Map<String, Value>, pointer: &str, number: usize, level: usize) -> anyhow::Result<String> {
        if let Some(names) = flat.get("propertyNames").filter(|names| names.is_object()) {
            let name = self.value(names, &format!("{pointer}/propertyNames"), level + 1)?;
            return Ok(crate::to_plain_string(&name));
        }
        Ok(if number <= 3 { text::word(self.rng).to_owned() } else { format!("{}{number}", text::word(self.rng)) })
    }

    /// Generates the name of a property that matches a pattern.
    fn matching_name(&mut self, pattern: &str, pointer: &str) -> anyhow::Result<String> {
        let found = self.bundle.patterns.get(pattern).and_then(Option::as_ref).and_then(|pattern| {
            (0..VALUE_ATTEMPTS).map(|_| pattern.text(self.rng, &(0..=4), PATTERN_LENGTH)).find(|name| pattern.matches(name))
        });
        found.ok_or_else(|| anyhow!("no name for a property of `{pointer}` can be generated from its pattern, {pattern}"))
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
        items.extend(self.items(flat, pointer, level, minimum.saturating_sub(items.len()).min(wanted), wanted)?);
        if let Some(contained) = flat.get("contains").filter(|_| !is_closed) {
            let schema = json!({ "allOf": [flat.get("items").unwrap_or(&json!({})), contained] });
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

    fn text(&mut self, flat: &Map<String, Value>, pointer: &str) -> anyhow::Result<Value> {
        let minimum = count_limit(flat, "minLength").unwrap_or(0);
        let maximum = count_limit(flat, "maxLength").unwrap_or(usize::MAX);
        if minimum > maximum || minimum > MAX_LENGTH {
            bail!("`{pointer}` has contradictory numbers of characters");
        }
        self.spend(minimum / CHARACTERS_PER_COST, pointer)?;
        let format = flat.get("format").and_then(Value::as_str);
        let pattern = match flat.get("pattern").and_then(Value::as_str) {
            Some(pattern) => match self.bundle.patterns.get(pattern) {
                Some(Some(pattern)) => Some(pattern),
                _ => bail!("no text for `{pointer}` can be generated from its pattern, {pattern}"),
            },
            None => None,
        };
        self.retry_until_valid(flat, pointer, |generator, attempt| {
            let rng = &mut *generator.rng;
            // The format has characters of its own, so less and less is added.
            let padding = if attempt == 0 { 0 } else { minimum.saturating_sub(attempt as usize / 2) };
            let formatted = format.and_then(|format| {
                let text = text::formatted(rng, format, padding)?;
                Some(text::shortest(format).filter(|_| text.len() > maximum).map_or(text, str::to_owned))
            });
            let candidate = match (pattern, formatted) {
                (_, Some(formatted)) if pattern.is_none() || attempt % 2 == 0 => formatted,
                (Some(pattern), formatted) => {
                    let repeats = [0..=4, minimum..=minimum, minimum / 2..=minimum / 2 + 2, 0..=minimum, 0..=0, 0..=12];
                    let date_time = text::date_times(rng).find(|text| pattern.matches(text));
                    let mut text = date_time.unwrap_or_else(|| {
                        pattern.text(rng, &repeats[attempt as usize % repeats.len()], minimum.max(PATTERN_LENGTH))
                    });
                    // A pattern without an anchor at its end allows more characters.
                    text.extend(std::iter::repeat_n('x', minimum.saturating_sub(text.chars().count())));
                    let rest = formatted.as_deref().and_then(|formatted| formatted.get(text.len()..));
                    text.push_str(rest.filter(|_| attempt % 4 == 1).unwrap_or_default());
                    text
                }
                (None, _) => text::words(rng, minimum, maximum.min(minimum.max(10) + 14)),
            };
            let fits = (minimum..=maximum).contains(&candidate.chars().count())
                && pattern.is_none_or(|pattern| pattern.matches(&candidate));
            fits.then_some(Value::String(candidate))
        })
    }

    /// Calls `make` with the number of the attempt until it returns a value that satisfies `not`, and the format if there is a pattern
    /// too, which `make` satisfies.
    fn retry_until_valid(
        &mut self,
        flat: &Map<String, Value>,
        pointer: &str,
        make: impl Fn(&mut Self, u32) -> Option<Value>,
    ) -> anyhow::Result<Value> {
        // A text that matches the pattern may violate the format.
        let has_both = flat.contains_key("format") && flat.contains_key("pattern");
        let validator = if has_both && is_simple(flat) || flat.contains_key("not") {
            let mut rest = flat.clone();
            let not = rest.remove("not");
            rest.remove("nullable");
            // Compiling a pattern takes longer than all else.
            rest.remove("pattern");
            let schema = match not {
                Some(not) => json!({ "allOf": [rest], "not": not, "$defs": self.bundle.root["$defs"] }),
                None => Value::Object(rest),
            };
            Some(compile(&schema)?)
        } else {
            None
        };
        (0..VALUE_ATTEMPTS)
            .filter_map(|attempt| make(self, attempt))
            .find(|value| validator.as_ref().is_none_or(|validator| validator.is_valid(value)))
            .ok_or_else(|| anyhow!("`{pointer}` had no valid value in {VALUE_ATTEMPTS} attempts"))
    }
}

/// Makes the properties required on which a required property depends.
fn require_dependents(flat: &mut Map<String, Value>) {
    let Some(Value::Object(dependents)) = flat.remove("dependentRequired") else { return };
    let mut required = flat.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut next = 0;
    while let Some(name) = required.get(next) {
        let added = name.as_str().and_then(|name| dependents.get(name)?.as_array()).into_iter().flatten();
        let added: Vec<Value> = added.filter(|name| !required.contains(name)).cloned().collect();
        required.extend(added);
        next += 1;
    }
    flat.insert("required".to_owned(), required.into());
}

/// Returns the constraint of a discriminator on the schema at `pointer`, which is a branch of the discriminator's schema or includes
/// it with `allOf`: a property contains the schema's name. Only the schemas of the mapping and the named schemas of the document have a
/// constraint.
fn discriminator_value(discriminator: &Value, pointer: &str, flat: &Map<String, Value>) -> Option<Map<String, Value>> {
    let property = discriminator["propertyName"].as_str()?;
    let schema = pointer.strip_prefix("#/components/schemas/").filter(|name| !name.contains('/'));
    let is_schema = |target: &Value| target.as_str().is_some_and(|target| target == pointer || Some(target) == schema);
    let mapped = discriminator["mapping"].as_object().into_iter().flatten().find(|(_, target)| is_schema(target));
    let name = match mapped {
        Some((name, _)) => name,
        // The branch restricts its own name.
        None if flat.get("properties")?.get(property)?.get("enum").is_some() => return None,
        None => schema?,
    };
    property_constraint(property, json!([name]))
}

/// Returns the constraint of a discriminator on its own schema, if other schemas include it with `allOf`: any of their names.
fn any_discriminator_value(discriminator: &Value) -> Option<Map<String, Value>> {
    let names = discriminator["mapping"].as_object()?.keys().cloned().collect();
    property_constraint(discriminator["propertyName"].as_str()?, names)
}

fn property_constraint(property: &str, values: Value) -> Option<Map<String, Value>> {
    json!({ "required": [property], "properties": { property: { "enum": values } } }).as_object().cloned()
}

/// Returns whether [`Generator::flatten`] would return a copy of a schema. Copying is most of the work of a small value.
fn is_flat(schema: &Map<String, Value>) -> bool {
    let combining = [
        "allOf",
        "oneOf",
        "anyOf",
        "if",
        "then",
        "else",
        "discriminator",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "dependentRequired",
        "dependentSchemas",
    ];
    !combining.iter().any(|keyword| schema.contains_key(*keyword))
}

/// Returns whether a schema allows null. An enumeration without null excludes it.
fn allows_null(schema: &Value) -> bool {
    let values = schema["enum"].as_array();
    schema["nullable"] == true && values.is_none_or(|values| values.contains(&Value::Null))
}

fn has_branches(schema: &Value) -> bool {
    ["oneOf", "anyOf"].iter().any(|keyword| schema[keyword].is_array())
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
