//! Values at the edges of what a schema allows.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use serde_json::{Map, Value, json};

use super::bundle::SchemaBundle;
use super::generator::{BUDGET, Generator, count, kind};
use super::number::NumberRange;
use super::{Sampler, text};

/// The most values for one schema.
const VALUES: usize = 500;

/// The most characters of a text, and the most items of an array or entries of an object.
const CHARACTERS: usize = 10_000;
const ITEMS: usize = 100;

/// Below this many levels no edges are looked for: an object has those of its properties, and of theirs.
const LEVELS: usize = 2;

impl Sampler {
    /// Valid values at the edges of the schema: shortest and longest, smallest and largest, each of an enumeration, null where it
    /// may be, the leap day, texts beyond ASCII; an object with all properties, with the required ones alone, and with each
    /// property at its own edges. At most 500 values, none with a text of more than 10,000 characters or an array of more than
    /// 100 items.
    ///
    /// Among them is the empty text where the schema allows it, even if a server takes a blank for missing.
    pub fn boundaries(&self) -> Vec<Value> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
        let mut edges = BoundaryValues { closed: &self.closed, rng: &mut rng, left: BUDGET };
        let mut values: Vec<Value> = Vec::new();
        for value in edges.of(&self.closed.root["allOf"][0], 0) {
            if values.len() < VALUES && !values.contains(&value) && self.validator.is_valid(&value) {
                values.push(value);
            }
        }
        values
    }
}

/// Collects values that are likely to be valid.
struct BoundaryValues<'a> {
    closed: &'a SchemaBundle,
    rng: &'a mut Xoshiro256PlusPlus,
    /// What making them may come to yet.
    left: usize,
}

impl BoundaryValues<'_> {
    fn maker(&mut self, optional: f64) -> Generator<'_> {
        Generator::new(self.closed, self.rng, optional, &mut self.left)
    }

    fn of(&mut self, schema: &Value, level: usize) -> Vec<Value> {
        if self.closed.min_depth(schema).is_none() {
            return Vec::new();
        }
        let (schema, _) = self.closed.follow(schema, "");
        let mut values = Vec::new();
        if schema["nullable"] == true {
            values.push(Value::Null);
        }
        let arms = ["oneOf", "anyOf"].iter().filter_map(|keyword| schema[keyword].as_array()).map(Vec::len).max();
        let mut seen = Vec::new();
        // Each of the arms is likely to be drawn in twice as many draws.
        for _ in 0..arms.map_or(1, |arms| 2 * arms) {
            let Ok(flat) = self.maker(1.0).flatten(schema, "", level) else { continue };
            if !seen.contains(&flat) {
                values.extend(self.of_flat(&flat, level));
                seen.push(flat);
            }
        }
        for optional in [1.0, 0.0] {
            values.extend(self.maker(optional).value(schema, "", level));
        }
        values
    }

    fn of_flat(&mut self, flat: &Map<String, Value>, level: usize) -> Vec<Value> {
        if let Some(values) = flat.get("enum").and_then(Value::as_array) {
            return values.clone();
        }
        match kind(flat) {
            "boolean" => vec![json!(true), json!(false)],
            "integer" | "number" => NumberRange::new(flat).map(|numbers| numbers.edges()).unwrap_or_default(),
            "string" => self.texts(flat).into_iter().map(Value::String).collect(),
            "array" => self.arrays(flat, level),
            "object" => self.objects(flat, level),
            _ => Vec::new(),
        }
    }

    fn texts(&mut self, flat: &Map<String, Value>) -> Vec<String> {
        let least = count(flat, "minLength").unwrap_or(0);
        let most = count(flat, "maxLength").filter(|most| *most <= CHARACTERS);
        let mut texts = Vec::new();
        if let Some(pattern) =
            flat.get("pattern").and_then(Value::as_str).and_then(|pattern| self.closed.patterns.get(pattern)?.as_ref())
        {
            let longest = most.unwrap_or(64);
            for extra in (0..8).chain([least, longest / 2, longest.saturating_sub(1), longest]) {
                texts.push(pattern.text(self.rng, &(extra..=extra)));
            }
            let fits = |length: usize| length >= least && most.is_none_or(|most| length <= most);
            texts.retain(|text| pattern.matches(text) && fits(text.chars().count()));
            texts.sort_by_key(|text| text.chars().count());
            // The shortest and the longest, and one between.
            let middle = texts.len() / 2;
            texts = [0, middle, texts.len().saturating_sub(1)].iter().filter_map(|at| texts.get(*at).cloned()).collect();
            texts.extend(text::moments(self.rng).filter(|moment| pattern.matches(moment)));
        }
        if let Some(format) = flat.get("format").and_then(Value::as_str) {
            texts.extend(format_edges(format).iter().map(|text| (*text).to_owned()));
            texts.extend(text::formatted(self.rng, format, 0));
        } else if texts.is_empty() {
            for length in [Some(least), Some(least + 1), most].into_iter().flatten().filter(|length| *length <= CHARACTERS) {
                texts.push("x".repeat(length));
                texts.push("é漢🎟".chars().cycle().take(length).collect());
            }
        }
        texts
    }

    fn arrays(&mut self, flat: &Map<String, Value>, level: usize) -> Vec<Value> {
        let least = count(flat, "minItems").unwrap_or(0);
        let mut values = Vec::new();
        for length in [Some(least), count(flat, "maxItems")].into_iter().flatten().filter(|length| *length <= ITEMS) {
            values.extend(self.maker(0.5).items(flat, "", level, length, length).map(Value::Array));
        }
        if level < LEVELS && least <= 1 {
            let items = flat.get("items").map(|items| self.of(items, level + 1)).unwrap_or_default();
            values.extend(items.into_iter().map(|item| json!([item])));
        }
        values
    }

    fn objects(&mut self, flat: &Map<String, Value>, level: usize) -> Vec<Value> {
        let schema = Value::Object(flat.clone());
        let mut values = Vec::new();
        let Ok(Value::Object(whole)) = self.maker(1.0).value(&schema, "", level) else { return values };
        if level < LEVELS {
            for (name, property) in flat.get("properties").and_then(Value::as_object).into_iter().flatten() {
                for value in self.of(property, level + 1) {
                    let mut object = whole.clone();
                    object.insert(name.clone(), value);
                    values.push(object.into());
                }
            }
        }
        if let Some(entry) = flat.get("additionalProperties").filter(|entry| entry.is_object()) {
            let sizes = [Some(count(flat, "minProperties").unwrap_or(0)), count(flat, "maxProperties")];
            for size in sizes.into_iter().flatten().filter(|size| *size <= ITEMS) {
                let mut object = whole.clone();
                let required = flat.get("required").and_then(Value::as_array);
                object.retain(|name, _| required.is_some_and(|required| required.contains(&json!(name))));
                for number in object.len()..size {
                    object.extend(self.maker(1.0).value(entry, "", level + 1).map(|value| (format!("entry{number}"), value)));
                }
                values.push(object.into());
            }
        }
        values
    }
}

/// Texts of a format that a careless reader gets wrong.
fn format_edges(format: &str) -> &'static [&'static str] {
    match format {
        "date-time" => &[
            "2028-02-29T23:59:59Z",
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2027-01-01T00:30:00+14:00",
            "2027-01-01T00:00:00.123456Z",
        ],
        "date" => &["2028-02-29", "1970-01-01", "9999-12-31"],
        "time" => &["00:00:00Z", "23:59:59Z", "12:00:00.5+05:30"],
        "event-time" => &["2028-02-29T23:59", "2028-02-29 23:59:59", "2027-01-01T00:30+14:00", "2027-01-01T00:00:00.123456Z"],
        "birth-date" => &["2000-02-29", "29-02-2000"],
        "email" => &["a@b.co", "first.last+tag@example.com", "o'neil@sub.example.com"],
        "hostname" => &["a", "xn--bcher-kva.example"],
        "uri" => &["https://example.com", "https://example.com:8443/caf%C3%A9?q=a%20b&q=c#top", "urn:isbn:9780141036144"],
        "uri-reference" => &["/", "?q=a%20b", "#top", "../caf%C3%A9", "//example.com/"],
        "uuid" => &["00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"],
        "ipv4" => &["0.0.0.0", "255.255.255.255"],
        "ipv6" => &["::", "::1", "::ffff:192.0.2.1"],
        "byte" => &["", "AA==", "+/+/"],
        _ => &[],
    }
}
