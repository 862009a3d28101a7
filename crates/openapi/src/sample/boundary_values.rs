//! Boundary values: valid values at the limits of a schema.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use serde_json::{Map, Value, json};

use super::bundle::SchemaBundle;
use super::generator::{BUDGET, Generator, count_limit, type_of};
use super::number::NumberRange;
use super::{Sampler, text};

/// Maximum number of values for one schema.
const VALUES_LIMIT: usize = 500;

/// Maximum number of characters of a string.
const CHARACTERS_LIMIT: usize = 10_000;

/// Maximum number of items of an array or entries of an object.
const ITEMS_LIMIT: usize = 100;

/// Number of nesting levels whose properties and items get boundary values of their own.
const LEVELS_LIMIT: usize = 2;

impl Sampler {
    /// Returns valid values at the limits of the schema: shortest and longest, smallest and largest, all values of an enumeration,
    /// null, the leap day, strings beyond ASCII; objects with all properties, with only the required ones, and with each property at
    /// its own limits. At most 500 values, without strings of more than 10,000 characters and arrays of more than 100 items.
    ///
    /// Contains the empty string if the schema allows it, even though a server may treat a blank value as missing.
    pub fn boundaries(&self) -> Vec<Value> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
        let mut boundaries = BoundaryValues { bundle: &self.bundle, rng: &mut rng, budget: BUDGET };
        let mut values: Vec<Value> = Vec::new();
        for value in boundaries.of_schema(&self.bundle.root["allOf"][0], 0) {
            if values.len() < VALUES_LIMIT && !values.contains(&value) && self.validator.is_valid(&value) {
                values.push(value);
            }
        }
        values
    }
}

/// Collector of boundary values that are likely to be valid.
struct BoundaryValues<'a> {
    bundle: &'a SchemaBundle,
    rng: &'a mut Xoshiro256PlusPlus,
    /// The rest of [`BUDGET`].
    budget: usize,
}

impl BoundaryValues<'_> {
    fn generator(&mut self, optional: f64) -> Generator<'_> {
        Generator::new(self.bundle, self.rng, optional, &mut self.budget)
    }

    fn of_schema(&mut self, schema: &Value, level: usize) -> Vec<Value> {
        if self.bundle.min_depth(schema).is_none() {
            return Vec::new();
        }
        let (schema, _) = self.bundle.follow(schema, "");
        let mut values = Vec::new();
        if schema["nullable"] == true {
            values.push(Value::Null);
        }
        let branches = ["oneOf", "anyOf"].iter().filter_map(|keyword| schema[keyword].as_array()).map(Vec::len).max();
        let mut seen = Vec::new();
        // `flatten` chooses a random branch. Twice as many attempts as branches are likely to choose each branch.
        for _ in 0..branches.map_or(1, |branches| 2 * branches) {
            let Ok(flat) = self.generator(1.0).flatten(schema, "", level) else { continue };
            if !seen.contains(&flat) {
                values.extend(self.of_flat_schema(&flat, level));
                seen.push(flat);
            }
        }
        for optional in [1.0, 0.0] {
            values.extend(self.generator(optional).value(schema, "", level));
        }
        values
    }

    fn of_flat_schema(&mut self, flat: &Map<String, Value>, level: usize) -> Vec<Value> {
        if let Some(values) = flat.get("enum").and_then(Value::as_array) {
            return values.clone();
        }
        match type_of(flat) {
            "boolean" => vec![json!(true), json!(false)],
            "integer" | "number" => NumberRange::new(flat).map(|range| range.boundaries()).unwrap_or_default(),
            "string" => self.strings(flat).into_iter().map(Value::String).collect(),
            "array" => self.arrays(flat, level),
            "object" => self.objects(flat, level),
            _ => Vec::new(),
        }
    }

    fn strings(&mut self, flat: &Map<String, Value>) -> Vec<String> {
        let minimum = count_limit(flat, "minLength").unwrap_or(0);
        let maximum = count_limit(flat, "maxLength").filter(|maximum| *maximum <= CHARACTERS_LIMIT);
        let mut texts = Vec::new();
        if let Some(pattern) =
            flat.get("pattern").and_then(Value::as_str).and_then(|pattern| self.bundle.patterns.get(pattern)?.as_ref())
        {
            let longest = maximum.unwrap_or(64);
            for extra in (0..8).chain([minimum, longest / 2, longest.saturating_sub(1), longest]) {
                texts.push(pattern.text(self.rng, &(extra..=extra), longest));
            }
            let fits = |length: usize| length >= minimum && maximum.is_none_or(|maximum| length <= maximum);
            texts.retain(|text| pattern.matches(text) && fits(text.chars().count()));
            texts.sort_by_key(|text| text.chars().count());
            // The shortest, the longest, and one in between.
            let middle = texts.len() / 2;
            texts = [0, middle, texts.len().saturating_sub(1)].iter().filter_map(|at| texts.get(*at).cloned()).collect();
            texts.extend(text::date_times(self.rng).filter(|text| pattern.matches(text)));
        }
        if let Some(format) = flat.get("format").and_then(Value::as_str) {
            texts.extend(format_boundaries(format).iter().map(|text| (*text).to_owned()));
            texts.extend(text::formatted(self.rng, format, 0));
        } else if texts.is_empty() {
            for length in
                [Some(minimum), Some(minimum + 1), maximum].into_iter().flatten().filter(|length| *length <= CHARACTERS_LIMIT)
            {
                texts.push("x".repeat(length));
                texts.push("é漢🎟".chars().cycle().take(length).collect());
            }
        }
        texts
    }

    fn arrays(&mut self, flat: &Map<String, Value>, level: usize) -> Vec<Value> {
        let minimum = count_limit(flat, "minItems").unwrap_or(0);
        let mut values = Vec::new();
        for length in [Some(minimum), count_limit(flat, "maxItems")].into_iter().flatten().filter(|length| *length <= ITEMS_LIMIT)
        {
            values.extend(self.generator(0.5).items(flat, "", level, length, length).map(Value::Array));
        }
        if level < LEVELS_LIMIT && minimum <= 1 {
            let items = flat.get("items").map(|items| self.of_schema(items, level + 1)).unwrap_or_default();
            values.extend(items.into_iter().map(|item| json!([item])));
        }
        values
    }

    fn objects(&mut self, flat: &Map<String, Value>, level: usize) -> Vec<Value> {
        let schema = Value::Object(flat.clone());
        let mut values = Vec::new();
        let Ok(Value::Object(full)) = self.generator(1.0).value(&schema, "", level) else { return values };
        if level < LEVELS_LIMIT {
            for (name, property) in flat.get("properties").and_then(Value::as_object).into_iter().flatten() {
                for value in self.of_schema(property, level + 1) {
                    let mut object = full.clone();
                    object.insert(name.clone(), value);
                    values.push(object.into());
                }
            }
        }
        if let Some(entry) = flat.get("additionalProperties").filter(|entries| entries.is_object()) {
            let sizes = [Some(count_limit(flat, "minProperties").unwrap_or(0)), count_limit(flat, "maxProperties")];
            for size in sizes.into_iter().flatten().filter(|size| *size <= ITEMS_LIMIT) {
                let mut object = full.clone();
                let required = flat.get("required").and_then(Value::as_array);
                object.retain(|name, _| required.is_some_and(|required| required.contains(&json!(name))));
                for number in object.len()..size {
                    object.extend(self.generator(1.0).value(entry, "", level + 1).map(|value| (format!("entry{number}"), value)));
                }
                values.push(object.into());
            }
        }
        values
    }
}

/// Returns strings of a format that careless parsers reject or misread.
fn format_boundaries(format: &str) -> &'static [&'static str] {
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
        "birth-date" => &["2000-02-29", "29-02-2000", "1900-01-01", "01-01-1900"],
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
