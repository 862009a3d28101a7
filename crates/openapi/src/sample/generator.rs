//! One value, made from a schema level by level.

use std::collections::HashSet;

use anyhow::{anyhow, bail};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::{IndexedRandom, SliceRandom};
use serde_json::{Map, Value, json};

use super::bundle::{SchemaBundle, is_simple, reference};
use super::merge::merge;
use super::number::NumberRange;
use super::text;
use crate::compile;

/// Below this many levels, or with this many values made, only what must be is made, and the least of it: schemas that refer to
/// themselves and to each other have no end otherwise, or a far one.
const FULL_DEPTH: usize = 4;
const FULL_VALUES: usize = 300;

/// No value has more levels. Only a schema whose `allOf` hides from [`Closed::height`] what it refers to gets here.
const MAX_DEPTH: usize = 40;

/// Longer texts and lists are not made.
const MAX_LENGTH: usize = 100_000;

/// What all tries together may come to: values, with as many characters of a text counted as one. It takes about a second, and
/// holds up the thread that it is done on.
pub const BUDGET: usize = 100_000;
const CHARACTERS: usize = 16;

/// Makes one value.
pub struct Generator<'a> {
    closed: &'a SchemaBundle,
    rng: &'a mut Xoshiro256PlusPlus,
    /// How likely a property is there that needn't be.
    optional: f64,
    made: usize,
    /// How much of [`BUDGET`] is left.
    left: &'a mut usize,
}

impl<'a> Generator<'a> {
    /// Makes a value with properties that are optional as often as said: 0 never, 1 always. What it takes is taken from `left`.
    pub fn new(closed: &'a SchemaBundle, rng: &'a mut Xoshiro256PlusPlus, optional: f64, left: &'a mut usize) -> Self {
        Self { closed, rng, optional, made: 0, left }
    }

    /// A value of the whole schema, which is likely to be valid.
    ///
    /// # Errors
    /// When one of its schemas allows nothing that can be made; the error names its place.
    pub fn generate(mut self) -> anyhow::Result<Value> {
        self.value(&self.closed.root["allOf"][0], "", 0)
    }

    /// A value of a schema that stands at `place`, so many levels below the whole.
    pub fn value(&mut self, schema: &Value, place: &str, level: usize) -> anyhow::Result<Value> {
        self.made += 1;
        self.spend(1, place)?;
        let (schema, place) = self.resolve_terminating(schema, place)?;
        if level > MAX_DEPTH {
            bail!("`{place}` is more than {MAX_DEPTH} levels deep");
        }
        let is_small = self.closed.min_depth(schema) == Some(0);
        if schema["nullable"] == true && (self.rng.random_bool(0.1) || !is_small && self.is_minimal(level)) {
            return Ok(Value::Null);
        }
        for keyword in ["example", "default"] {
            if let Some(example) = schema.get(keyword)
                && self.rng.random_bool(0.5)
            {
                return Ok(example.clone());
            }
        }
        let flat = self.flatten(schema, &place, level)?;
        if let Some(values) = flat.get("enum").and_then(Value::as_array) {
            return values.choose(self.rng).cloned().ok_or_else(|| anyhow!("`{place}` has no value that all its parts allow"));
        }
        match kind(&flat) {
            "object" => self.object(&flat, &place, level),
            "array" => self.array(&flat, &place, level),
            "boolean" => Ok(json!(self.rng.random_bool(0.5))),
            "integer" | "number" => {
                let numbers = NumberRange::new(&flat).ok_or_else(|| anyhow!("`{place}` has no number within its bounds"))?;
                self.retry_until_valid(&flat, &place, |maker, _| Some(numbers.pick(maker.rng)))
            }
            _ => self.text(&flat, &place),
        }
    }

    fn spend(&mut self, cost: usize, place: &str) -> anyhow::Result<()> {
        *self.left = self.left.saturating_sub(cost);
        if *self.left == 0 {
            bail!("`{place}` would make more than {BUDGET} values");
        }
        Ok(())
    }

    /// The schema that a schema refers to, and its place, unless it can have no value that ends.
    fn resolve_terminating<'s>(&self, schema: &'s Value, place: &str) -> anyhow::Result<(&'s Value, String)>
    where
        'a: 's,
    {
        let (target, place) = self.closed.follow(schema, place);
        if reference(schema).is_some() && self.closed.min_depth(schema).is_none() {
            bail!("`{place}` asks for itself without end");
        }
        Ok((target, place))
    }

    fn is_minimal(&self, level: usize) -> bool {
        level >= FULL_DEPTH || self.made >= FULL_VALUES
    }

    /// A schema with what its parts say (`allOf`), and one of its arms (`oneOf`, `anyOf`), as one, without references at its top.
    /// Exclusive bounds are numbers in it.
    pub fn flatten(&mut self, schema: &Value, place: &str, level: usize) -> anyhow::Result<Map<String, Value>> {
        let closed = self.closed;
        let (schema, place) = self.resolve_terminating(schema, place)?;
        let mut flat = schema.as_object().cloned().unwrap_or_default();
        for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            match flat.get(exclusive) {
                Some(Value::Bool(true)) => drop(flat.remove(bound).map(|limit| flat.insert(exclusive.to_owned(), limit))),
                Some(Value::Bool(false)) => drop(flat.remove(exclusive)),
                _ => {}
            }
        }
        flat.remove("allOf");
        for (number, part) in schema["allOf"].as_array().into_iter().flatten().enumerate() {
            merge(&mut flat, self.flatten(part, &format!("{place}/allOf/{number}"), level)?);
            let (parent, _) = closed.follow(part, "");
            if let Some(tag) = self.discriminator_value(&parent["discriminator"], &place, &flat).filter(|_| !has_arms(parent)) {
                merge(&mut flat, tag);
            }
        }
        if let Some(tag) = any_tag(&schema["discriminator"]).filter(|_| !has_arms(schema)) {
            merge(&mut flat, tag);
        }
        for keyword in ["oneOf", "anyOf"] {
            flat.remove(keyword);
            let Some(arms) = schema[keyword].as_array() else { continue };
            let mut arms: Vec<(Option<usize>, usize)> =
                arms.iter().enumerate().map(|(number, arm)| (closed.min_depth(arm), number)).collect();
            arms.retain(|(height, _)| height.is_some());
            arms.shuffle(self.rng);
            if self.is_minimal(level) {
                arms.sort_by_key(|(height, _)| *height);
            }
            let Some((_, number)) = arms.first() else { bail!("`{place}/{keyword}` has no arm that ends") };
            let arm = &schema[keyword][number];
            let chosen = self.flatten(arm, &format!("{place}/{keyword}/{number}"), level)?;
            merge(&mut flat, chosen);
            if let Some(tag) = self.discriminator_value(&schema["discriminator"], &closed.follow(arm, "").1, &flat) {
                merge(&mut flat, tag);
            }
        }
        Ok(flat)
    }

    /// What a discriminator asks of the schema at `place`, which is an arm beside it or has its schema for a part: its name in a
    /// property. What stands elsewhere than among the document's schemas has none.
    fn discriminator_value(&self, discriminator: &Value, place: &str, flat: &Map<String, Value>) -> Option<Map<String, Value>> {
        let property = discriminator["propertyName"].as_str()?;
        let schema = place.strip_prefix("#/components/schemas/").filter(|name| !name.contains('/'))?;
        let leads_here = |target: &Value| target.as_str().is_some_and(|target| target == place || target == schema);
        let mapped = discriminator["mapping"].as_object().into_iter().flatten().find(|(_, target)| leads_here(target));
        let name = match mapped {
            Some((name, _)) => name,
            // The arm says itself what it is called.
            None if flat.get("properties")?.get(property)?.get("enum").is_some() => return None,
            None => schema,
        };
        tagged(property, json!([name]))
    }

    fn object(&mut self, flat: &Map<String, Value>, place: &str, level: usize) -> anyhow::Result<Value> {
        let none = Map::new();
        let properties = flat.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> =
            flat.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let least = count(flat, "minProperties").unwrap_or(0);
        let most = count(flat, "maxProperties").unwrap_or(usize::MAX);
        // What isn't described, where the document says what it looks like.
        let additional = flat.get("additionalProperties").unwrap_or(&Value::Bool(true));
        let mut object = Map::new();
        for name in &required {
            let (schema, at) = match properties.get(*name) {
                Some(schema) => (schema, format!("{place}/properties/{}", escape(name))),
                None if additional == false => bail!("`{place}` asks for {name}, and allows no such property"),
                None => (additional, format!("{place}/additionalProperties")),
            };
            if !object.contains_key(*name) {
                object.insert((*name).to_owned(), self.value(schema, &at, level + 1)?);
            }
        }
        for (name, schema) in properties {
            let wanted = object.len() < least || (!self.is_minimal(level) && self.rng.random_bool(self.optional));
            if !wanted || object.contains_key(name) || object.len() >= most {
                continue;
            }
            // What can't be made may be left out, as it needn't be there.
            if let Ok(value) = self.value(schema, &format!("{place}/properties/{}", escape(name)), level + 1) {
                object.insert(name.clone(), value);
            }
        }
        let is_map = additional.is_object() && !self.is_minimal(level);
        let more = if is_map { self.rng.random_range(0..=2) } else { 0 };
        let wanted = least.max(object.len() + more).min(most);
        if object.len() < wanted.min(least) && additional == false || wanted > MAX_LENGTH || least > most || required.len() > most
        {
            bail!("`{place}` allows no number of properties that it also asks for");
        }
        for number in 1.. {
            if object.len() >= wanted {
                break;
            }
            let name = if number <= 3 { text::word(self.rng).to_owned() } else { format!("{}{number}", text::word(self.rng)) };
            if !properties.contains_key(&name) {
                let value = self.value(additional, &format!("{place}/additionalProperties"), level + 1)?;
                object.insert(name, value);
            }
        }
        // In the document's order.
        let place_of = |name: &String| properties.keys().position(|property| property == name).unwrap_or(usize::MAX);
        let mut entries: Vec<(String, Value)> = object.into_iter().collect();
        entries.sort_by_key(|(name, _)| place_of(name));
        Ok(Value::Object(entries.into_iter().collect()))
    }

    fn array(&mut self, flat: &Map<String, Value>, place: &str, level: usize) -> anyhow::Result<Value> {
        let least = count(flat, "minItems").unwrap_or(0);
        let most = count(flat, "maxItems").unwrap_or(usize::MAX);
        if least > most || least > MAX_LENGTH {
            bail!("`{place}` allows no number of items that it also asks for");
        }
        let wanted = if self.is_minimal(level) { least } else { self.rng.random_range(least..=most.min(least.max(1) + 1)) };
        self.items(flat, place, level, least, wanted).map(Value::Array)
    }

    /// Items of an array, `wanted` if there are as many, else fewer but at least `least`.
    pub fn items(
        &mut self,
        flat: &Map<String, Value>,
        place: &str,
        level: usize,
        least: usize,
        wanted: usize,
    ) -> anyhow::Result<Vec<Value>> {
        let schema = flat.get("items").unwrap_or(&Value::Bool(true));
        let unique = flat.get("uniqueItems").is_some_and(|unique| unique == true);
        let (mut items, mut seen) = (Vec::new(), HashSet::new());
        for _ in 0..wanted.saturating_mul(if unique { 10 } else { 1 }) {
            if items.len() >= wanted {
                break;
            }
            match self.value(schema, &format!("{place}/items"), level + 1) {
                Ok(item) if unique && !seen.insert(item.clone()) => {}
                Ok(item) => items.push(item),
                Err(_) if items.len() >= least => break,
                Err(error) => return Err(error),
            }
        }
        if items.len() < least {
            bail!("`{place}` asks for {least} different items, and {} were found", items.len());
        }
        Ok(items)
    }

    fn text(&mut self, flat: &Map<String, Value>, place: &str) -> anyhow::Result<Value> {
        let least = count(flat, "minLength").unwrap_or(0);
        let most = count(flat, "maxLength").unwrap_or(usize::MAX);
        if least > most || least > MAX_LENGTH {
            bail!("`{place}` allows no number of characters that it also asks for");
        }
        self.spend(least / CHARACTERS, place)?;
        let format = flat.get("format").and_then(Value::as_str);
        let pattern = match flat.get("pattern").and_then(Value::as_str) {
            Some(pattern) => match self.closed.patterns.get(pattern) {
                Some(Some(pattern)) => Some(pattern),
                _ => bail!("no text for `{place}` can be made from its pattern, {pattern}"),
            },
            None => None,
        };
        self.retry_until_valid(flat, place, |maker, attempt| {
            let rng = &mut *maker.rng;
            let padding = if attempt == 0 { 0 } else { least };
            let formatted = format.and_then(|format| text::formatted(rng, format, padding));
            let candidate = match (pattern, formatted) {
                (_, Some(formatted)) if pattern.is_none() || attempt % 2 == 0 => formatted,
                (Some(pattern), _) => {
                    let repeats = [0..=4, least..=least, least / 2..=least / 2 + 2, 0..=least, 0..=0, 0..=12];
                    let moment = text::moments(rng).find(|moment| pattern.matches(moment));
                    let mut text = moment.unwrap_or_else(|| pattern.text(rng, &repeats[attempt as usize % repeats.len()]));
                    // What isn't anchored at its end may go on.
                    text.extend(std::iter::repeat_n('x', least.saturating_sub(text.chars().count())));
                    text
                }
                (None, _) => text::words(rng, least, most.min(least.max(10) + 14)),
            };
            let fits =
                (least..=most).contains(&candidate.chars().count()) && pattern.is_none_or(|pattern| pattern.matches(&candidate));
            fits.then_some(Value::String(candidate))
        })
    }

    /// What `make` gives, as soon as it gives something that the schema allows: it is asked again and again, with the number of
    /// the attempt.
    fn retry_until_valid(
        &mut self,
        flat: &Map<String, Value>,
        place: &str,
        make: impl Fn(&mut Self, u32) -> Option<Value>,
    ) -> anyhow::Result<Value> {
        // What is made from a pattern may be against the format beside it.
        let several = flat.contains_key("format") && flat.contains_key("pattern");
        let mut plain = flat.clone();
        let not = plain.remove("not");
        let validator = if several && is_simple(&plain) || not.is_some() {
            plain.remove("nullable");
            let schema = match not {
                Some(not) => json!({ "allOf": [plain], "not": not, "$defs": self.closed.root["$defs"] }),
                None => Value::Object(plain),
            };
            Some(compile(&schema)?)
        } else {
            None
        };
        (0..50)
            .filter_map(|attempt| make(self, attempt))
            .find(|value| validator.as_ref().is_none_or(|validator| validator.is_valid(value)))
            .ok_or_else(|| anyhow!("`{place}` has no value that was found in 50 tries"))
    }
}

/// What a discriminator asks of a schema that others have for a part, when it is asked for itself: one of their names.
fn any_tag(discriminator: &Value) -> Option<Map<String, Value>> {
    let names = discriminator["mapping"].as_object()?.keys().cloned().collect();
    tagged(discriminator["propertyName"].as_str()?, names)
}

fn tagged(property: &str, names: Value) -> Option<Map<String, Value>> {
    json!({ "required": [property], "properties": { property: { "enum": names } } }).as_object().cloned()
}

fn has_arms(schema: &Value) -> bool {
    ["oneOf", "anyOf"].iter().any(|keyword| schema[keyword].is_array())
}

/// The type that a schema has, or means by its other keywords.
pub fn kind(flat: &Map<String, Value>) -> &str {
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| flat.contains_key(*keyword));
    match flat.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if has(&["properties", "required", "additionalProperties", "minProperties", "maxProperties"]) => "object",
        None if has(&["items", "minItems", "maxItems", "uniqueItems"]) => "array",
        None if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) => "number",
        None => "string",
    }
}

/// A keyword that counts something.
pub fn count(flat: &Map<String, Value>, keyword: &str) -> Option<usize> {
    flat.get(keyword).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok())
}

/// A name as a step of a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
