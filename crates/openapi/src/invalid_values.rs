//! Invalid values for a schema, as test data. [`Sampler::boundaries`](crate::Sampler::boundaries) returns valid boundary values.

use serde_json::{Value, json};

use crate::charset_policy::AllowedCharacters;
use crate::sample::Sampler;
use crate::schema::{Direction, compile};

/// The reason why a value is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InvalidKind {
    /// Null or blank for a required argument. It counts as missing, even if the schema allows it.
    Missing,
    /// Wrong type.
    Type,
    /// Out of range: length, size, number of items, or not a multiple.
    Bounds,
    /// Not a value of the enumeration.
    Enum,
    /// Wrong pattern or format, or a character that [`AllowedCharacters`] forbids even if the schema allows it.
    Form,
}

/// A value that the server must reject.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidValue {
    /// The value.
    pub value: Value,
    /// The reason.
    pub kind: InvalidKind,
}

impl InvalidValue {
    fn new(kind: InvalidKind, value: impl Into<Value>) -> Self {
        Self { value: value.into(), kind }
    }
}

/// Returns values that violate a schema in every possible way. The schema must not contain references (see [`crate::resolve`]).
///
/// Values that only seem invalid are left out, such as a string of a format that isn't validated. Returns nothing if the schema can't
/// be compiled.
pub fn invalid_values_for(schema: &Value, required: bool) -> Vec<InvalidValue> {
    let Ok(validator) = compile(schema) else { return Vec::new() };
    let characters = AllowedCharacters::of(schema);
    let mut values = candidates(schema, required);
    values.retain(|candidate| {
        candidate.kind == InvalidKind::Missing
            || characters.violation(&candidate.value).is_some()
            || !validator.is_valid(&candidate.value)
    });
    values
}

/// Strings with NUL, a bell, a line break, and a bidirectional control.
const INVISIBLE: [&str; 4] = ["a\0b", "a\u{7}b", "a\nb", "a\u{202e}b"];

/// Largest length of a text or list. Many documents declare lengths that no server enforces, such as 2147483647.
const MAX_SIZE: f64 = 10_000.0;

/// Largest number of invalid objects for one schema, because each is a request.
const MAX_INVALID_OBJECTS: usize = 30;

/// Returns values that are likely to be invalid.
fn candidates(schema: &Value, required: bool) -> Vec<InvalidValue> {
    let mut values = Vec::new();
    if required {
        values.extend([json!(null), json!(""), json!(" \t")].map(|value| InvalidValue::new(InvalidKind::Missing, value)));
    }
    values.extend(wrong_types(schema));
    let number = |keyword: &str| schema[keyword].as_f64();
    let size = |keyword: &str| number(keyword).filter(|size| *size <= MAX_SIZE);
    let bounds = |value: Value| InvalidValue::new(InvalidKind::Bounds, value);
    if schema["type"] == "string" {
        values.extend(INVISIBLE.map(|text| InvalidValue::new(InvalidKind::Form, text)));
        values.extend(size("maxLength").map(|max| bounds("x".repeat(max as usize + 1).into())));
        values.extend(size("minLength").filter(|min| *min > 1.0).map(|min| bounds("x".repeat(min as usize - 1).into())));
        for (keyword, kind) in [("pattern", InvalidKind::Form), ("enum", InvalidKind::Enum), ("format", InvalidKind::Form)] {
            let is_validated =
                |value: &Value| compile(&json!({ keyword: value })).is_ok_and(|validator| !validator.is_valid(&json!("?! no")));
            values.extend(schema.get(keyword).filter(|value| is_validated(value)).map(|_| InvalidValue::new(kind, "?! no")));
        }
        let impossible: &[&str] = match schema["format"].as_str() {
            Some("event-time") => &["2026-13-01T10:00", "2026-02-30T10:00", "2026-01-01T25:00", "2026-01-01"],
            Some("birth-date") => &["1990-02-30", "31-02-1990", "1899-12-31", "31-12-1899"],
            Some("date") => &["2026-02-30", "2026-13-01"],
            Some("email") => &["\"a b\"@example.com", "a@192.0.2.1"],
            Some("date-time") => &["2026-02-30T10:00:00Z", "2026-01-01T25:00:00Z"],
            _ => &[],
        };
        values.extend(impossible.iter().map(|text| InvalidValue::new(InvalidKind::Form, *text)));
    }
    values.extend(number("minimum").map(|min| bounds(to_number(min - 1.0))));
    values.extend(number("maximum").map(|max| bounds(to_number(max + 1.0))));
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        // A boolean in OpenAPI 3.0, a number in later versions.
        let limit = number(exclusive).or_else(|| number(bound).filter(|_| schema[exclusive] == true));
        values.extend(limit.map(|limit| bounds(to_number(limit))));
    }
    values.extend(number("multipleOf").map(|step| bounds(json!(1.0 + step / 10.0))));
    if schema["type"] == "integer" {
        values.extend((schema["format"] == "int32").then(|| bounds(json!(i64::from(i32::MAX) + 1))));
        let largest = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_i64).max();
        values.extend(largest.map(|largest| InvalidValue::new(InvalidKind::Enum, largest.saturating_add(1))));
    }
    if schema["type"] == "array" {
        values.extend(number("minItems").filter(|min| *min > 0.0).map(|_| bounds(json!([]))));
        let sampler = Sampler::new(&Value::Null, &schema["items"], Direction::Request).ok();
        let item = |seed| sampler.as_ref().and_then(|sampler| sampler.sample(seed).ok()).unwrap_or_else(|| json!("x"));
        values.extend(size("maxItems").map(|max| bounds((0..=max as u64).map(item).collect())));
        let length = size("minItems").map_or(1, |min| (min as usize).max(1));
        let items = candidates(&schema["items"], false).into_iter();
        values.extend(items.map(|item| InvalidValue::new(item.kind, json!(vec![item.value; length]))));
        let repeated = Some(&schema["items"]).filter(|_| schema["uniqueItems"] == true).and_then(valid_value);
        values.extend(repeated.map(|item| bounds(json!(vec![item; length.max(2)]))));
    }
    // What is invalid for an alternative may be valid for another one.
    for part in ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| schema[keyword].as_array()).flatten() {
        for candidate in candidates(part, false) {
            if !values.contains(&candidate) {
                values.push(candidate);
            }
        }
    }
    if schema["type"] == "object" {
        values.extend(number("minProperties").map(|_| bounds(json!({}))));
        let entries = candidates(&schema["additionalProperties"], false);
        values.extend(entries.into_iter().map(|entry| InvalidValue::new(entry.kind, json!({ "x": entry.value }))));
        values.extend(invalid_objects(schema));
    }
    values
}

/// Returns objects that are valid apart from one property: each with one value of every [`InvalidKind`], absent, or undeclared.
fn invalid_objects(schema: &Value) -> Vec<InvalidValue> {
    let Some(Value::Object(valid)) = valid_value(schema) else { return Vec::new() };
    let with = |name: &str, value: Value| {
        let mut object = valid.clone();
        object.insert(name.to_owned(), value);
        Value::Object(object)
    };
    let mut values = Vec::new();
    if schema["additionalProperties"] == false {
        values.push(InvalidValue::new(InvalidKind::Form, with("undeclared", json!(1))));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let mut object = valid.clone();
        object.shift_remove(name);
        values.push(InvalidValue::new(InvalidKind::Form, object));
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties.filter(|(_, property)| property["readOnly"] != true) {
        let mut invalid = invalid_values_for(property, false);
        invalid.sort_by_key(|invalid| invalid.kind);
        invalid.dedup_by_key(|invalid| invalid.kind);
        values.extend(invalid.into_iter().map(|invalid| InvalidValue::new(invalid.kind, with(name, invalid.value))));
    }
    values.truncate(MAX_INVALID_OBJECTS);
    values
}

/// Returns a valid value of a schema, if it has an example or one can be generated.
fn valid_value(schema: &Value) -> Option<Value> {
    let generated = || Sampler::new(&Value::Null, schema, Direction::Request).ok()?.sample(0).ok();
    let value = schema.get("example").cloned().or_else(generated)?;
    compile(schema).ok()?.is_valid(&value).then_some(value)
}

/// Returns values of other types than the schema's.
fn wrong_types(schema: &Value) -> impl Iterator<Item = InvalidValue> {
    let values = match schema["type"].as_str() {
        Some("string") => vec![json!(7), json!(true), json!(["x"]), json!({ "x": "y" })],
        Some("integer") => vec![json!("seven"), json!(1.5), json!(true), json!([1])],
        Some("number") => vec![json!("seven"), json!(true), json!([1])],
        Some("boolean") => vec![json!("true"), json!(1), json!([true])],
        Some("array") => vec![json!("x"), json!(7), json!({ "x": "y" })],
        Some("object") => vec![json!("x"), json!(7), json!(["x"])],
        _ => vec![],
    };
    values.into_iter().map(|value| InvalidValue::new(InvalidKind::Type, value))
}

/// Converts a number to JSON: to an integer if it is a whole number that is represented exactly.
fn to_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}
