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
    /// Wrong pattern or format, or a character that `AllowedCharacters` forbids even if the schema allows it.
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
        values.extend(number(bound).filter(|_| schema[exclusive] == true).map(|bound| bounds(to_number(bound))));
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
    for part in schema["allOf"].as_array().into_iter().flatten() {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn invalid(schema: Value) -> Vec<(InvalidKind, Value)> {
        invalid_values_for(&schema, false).into_iter().map(|invalid| (invalid.kind, invalid.value)).collect()
    }

    #[test]
    fn returns_invalid_values_with_their_kind() {
        for (schema, kind, value) in [
            (json!({ "type": "string" }), InvalidKind::Type, json!(7)),
            (json!({ "type": "string", "minLength": 3, "maxLength": 4 }), InvalidKind::Bounds, json!("xx")),
            (json!({ "type": "string", "minLength": 3, "maxLength": 4 }), InvalidKind::Bounds, json!("xxxxx")),
            (json!({ "type": "string", "enum": ["a"] }), InvalidKind::Enum, json!("?! no")),
            (json!({ "type": "string", "format": "uuid" }), InvalidKind::Form, json!("?! no")),
            (json!({ "type": "string", "pattern": "^a" }), InvalidKind::Form, json!("?! no")),
            (json!({ "type": "string", "format": "date" }), InvalidKind::Form, json!("2026-02-30")),
            (json!({ "type": "integer", "minimum": 1, "maximum": 9 }), InvalidKind::Bounds, json!(0)),
            (json!({ "type": "integer", "minimum": 1, "maximum": 9 }), InvalidKind::Bounds, json!(10)),
            (json!({ "type": "integer", "enum": [1, 4] }), InvalidKind::Enum, json!(5)),
            (json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true }), InvalidKind::Bounds, json!(0)),
            (json!({ "type": "number", "multipleOf": 0.01 }), InvalidKind::Bounds, json!(1.001)),
            (json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1 }), InvalidKind::Bounds, json!([])),
            (json!({ "type": "array", "items": { "type": "integer" } }), InvalidKind::Type, json!(["seven"])),
            (json!({ "type": "object", "minProperties": 1 }), InvalidKind::Bounds, json!({})),
            (json!({ "type": "integer", "format": "int32" }), InvalidKind::Bounds, json!(2_147_483_648_i64)),
            (json!({ "type": "array", "items": { "type": "string", "enum": ["a"] } }), InvalidKind::Enum, json!(["?! no"])),
            (
                json!({ "type": "array", "uniqueItems": true, "items": { "type": "string", "example": "x" } }),
                InvalidKind::Bounds,
                json!(["x", "x"]),
            ),
            (json!({ "type": "object", "additionalProperties": { "type": "boolean" } }), InvalidKind::Type, json!({ "x": 1 })),
        ] {
            let found = invalid(schema.clone());
            assert!(found.contains(&(kind, value.clone())), "{schema} lacks {value}: {found:?}");
        }
    }

    #[test]
    fn returns_objects_with_one_invalid_property() {
        let address = json!({ "type": "object", "required": ["zip"], "additionalProperties": false, "properties": {
            "zip": { "type": "string", "pattern": "^[0-9]{5}$", "example": "12345" },
            "floor": { "type": "integer", "minimum": 0, "example": 2 },
        }, "example": { "zip": "12345" } });
        let lines = json!({ "type": "array", "items": address });
        for (kind, value) in [
            (InvalidKind::Form, json!({ "zip": "12345", "undeclared": 1 })),
            (InvalidKind::Form, json!({})),
            (InvalidKind::Type, json!({ "zip": 7 })),
            (InvalidKind::Bounds, json!({ "zip": "12345", "floor": -1 })),
        ] {
            let (found, in_lines) = (invalid(address.clone()), invalid(lines.clone()));
            assert!(found.contains(&(kind, value.clone())), "{value}: {found:?}");
            assert!(in_lines.contains(&(kind, json!([value]))), "{value}: {in_lines:?}");
        }
        let named = |index: usize| (format!("p{index}"), json!({ "type": "integer" }));
        let few = json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 2 });
        let is_longer = |(kind, value): &(InvalidKind, Value)| {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            *kind == InvalidKind::Bounds && items.len() == 3 && items.iter().all(Value::is_i64)
        };
        assert!(invalid(few).iter().any(is_longer), "apart from their number, the items are valid");
        let wide = json!({ "type": "object", "properties": (0..100).map(named).collect::<serde_json::Map<_, _>>() });
        assert!(invalid(wide).len() < 40);
    }

    #[test]
    fn returns_forbidden_characters() {
        let invisible =
            |schema: Value| invalid(schema).into_iter().filter(|(_, value)| INVISIBLE.iter().any(|text| value == text)).count();
        assert_eq!(invisible(json!({ "type": "string" })), 4);
        assert_eq!(invisible(json!({ "type": "string", "x-multiline": true })), 3);
        assert_eq!(invisible(json!({ "type": "string", "format": "password" })), 1);
        let items = invalid(json!({ "type": "array", "items": { "type": "string" } }));
        assert!(items.contains(&(InvalidKind::Form, json!(["a\u{202e}b"]))), "{items:?}");
    }

    #[test]
    fn leaves_out_values_that_are_not_rejected() {
        for schema in [
            json!({ "type": "string", "format": "password" }),
            json!({ "type": "string", "format": "image", "minLength": 9 }),
            json!({ "type": "string", "pattern": "no" }),
        ] {
            assert!(
                !invalid(schema.clone()).iter().any(|(kind, value)| *kind == InvalidKind::Form && value == "?! no"),
                "{schema}"
            );
        }
        assert_eq!(invalid(json!({})), []);
        assert_eq!(invalid(json!({ "type": "no such type" })), []);
        for schema in [
            json!({ "type": "array", "items": { "type": "integer" }, "minItems": 4_000_000_000_u64, "maxItems": u64::MAX }),
            json!({ "type": "string", "minLength": 4_000_000_000_u64, "maxLength": u64::MAX }),
        ] {
            assert!(invalid(schema).iter().all(|(_, value)| value.to_string().len() < 100));
        }
    }

    #[test]
    fn returns_missing_values_only_if_required() {
        let missing = |required| {
            let values = invalid_values_for(&json!({ "type": "string" }), required).into_iter();
            values.filter(|invalid| invalid.kind == InvalidKind::Missing).map(|invalid| invalid.value).collect::<Vec<_>>()
        };
        assert_eq!(missing(true), [json!(null), json!(""), json!(" \t")]);
        assert_eq!(missing(false), [json!(null); 0]);
    }
}
