//! Values just outside of what a schema allows. Those just inside are [`Sampler::boundaries`](super::Sampler::boundaries).

use serde_json::{Value, json};

use super::charset_policy::AllowedCharacters;
use super::compile;

/// What is wrong about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InvalidKind {
    /// Null or blank where something is required, which counts as missing (wire facts), whatever the schema says.
    Missing,
    /// Another type.
    Type,
    /// Too long, too short, too large, too small, too many, too few, or between the steps.
    Bounds,
    /// Not one of the enumeration.
    Enum,
    /// A text of another pattern or format, or with characters that the front door refuses whatever the schema says.
    Form,
}

/// A value that is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidValue {
    /// The value.
    pub value: Value,
    /// Why it isn't allowed.
    pub kind: InvalidKind,
}

impl InvalidValue {
    fn new(kind: InvalidKind, value: impl Into<Value>) -> Self {
        Self { value: value.into(), kind }
    }
}

/// Every way in which a value can be wrong by its schema, which has no references any more ([`super::resolve`]). What only looks
/// wrong, such as a text of a format that nobody checks, is not among them; nor is anything, where the schema is none.
pub fn wrong_values(schema: &Value, required: bool) -> Vec<InvalidValue> {
    let Ok(validator) = compile(schema) else { return Vec::new() };
    let characters = AllowedCharacters::of(schema);
    let is_refused_anyway = |wrong: &InvalidValue| wrong.kind == InvalidKind::Missing || characters.wrong(&wrong.value).is_some();
    let mut wrong = candidates(schema, required);
    wrong.retain(|wrong| is_refused_anyway(wrong) || !validator.is_valid(&wrong.value));
    wrong
}

/// Texts with NUL, with a bell, in two lines, and with what turns the text that follows.
const UNSEEN: [&str; 4] = ["a\0b", "a\u{7}b", "a\nb", "a\u{202e}b"];

fn candidates(schema: &Value, required: bool) -> Vec<InvalidValue> {
    let mut wrong = Vec::new();
    if required {
        wrong.extend([json!(null), json!(""), json!(" \t")].map(|value| InvalidValue::new(InvalidKind::Missing, value)));
    }
    wrong.extend(wrong_types(schema));
    let number = |keyword: &str| schema[keyword].as_f64();
    let bounds = |value: Value| InvalidValue::new(InvalidKind::Bounds, value);
    if schema["type"] == "string" {
        wrong.extend(UNSEEN.map(|text| InvalidValue::new(InvalidKind::Form, text)));
        wrong.extend(number("maxLength").map(|max| bounds("x".repeat(max as usize + 1).into())));
        wrong.extend(number("minLength").filter(|min| *min > 1.0).map(|min| bounds("x".repeat(min as usize - 1).into())));
        for (keyword, kind) in [("pattern", InvalidKind::Form), ("enum", InvalidKind::Enum), ("format", InvalidKind::Form)] {
            let is_checked =
                |value: &Value| compile(&json!({ keyword: value })).is_ok_and(|alone| !alone.is_valid(&json!("?! no")));
            wrong.extend(schema.get(keyword).filter(|value| is_checked(value)).map(|_| InvalidValue::new(kind, "?! no")));
        }
        let impossible: &[&str] = match schema["format"].as_str() {
            Some("event-time") => &["2026-13-01T10:00", "2026-02-30T10:00", "2026-01-01T25:00", "2026-01-01"],
            Some("birth-date") => &["1990-02-30", "31-02-1990"],
            Some("date") => &["2026-02-30", "2026-13-01"],
            Some("date-time") => &["2026-02-30T10:00:00Z", "2026-01-01T25:00:00Z"],
            _ => &[],
        };
        wrong.extend(impossible.iter().map(|text| InvalidValue::new(InvalidKind::Form, *text)));
    }
    wrong.extend(number("minimum").map(|min| bounds(plain(min - 1.0))));
    wrong.extend(number("maximum").map(|max| bounds(plain(max + 1.0))));
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        wrong.extend(number(bound).filter(|_| schema[exclusive] == true).map(|bound| bounds(plain(bound))));
    }
    wrong.extend(number("multipleOf").map(|step| bounds(json!(1.0 + step / 10.0))));
    if schema["type"] == "integer" {
        let known = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_i64).max();
        wrong.extend(known.map(|most| InvalidValue::new(InvalidKind::Enum, most.saturating_add(1))));
    }
    if schema["type"] == "array" {
        wrong.extend(number("minItems").filter(|min| *min > 0.0).map(|_| bounds(json!([]))));
        wrong.extend(number("maxItems").map(|max| bounds(json!(vec![json!("x"); max as usize + 1]))));
        wrong.extend(wrong_types(&schema["items"]).map(|item| InvalidValue::new(item.kind, json!([item.value]))));
        let texts = UNSEEN.iter().filter(|_| schema["items"]["type"] == "string");
        wrong.extend(texts.map(|text| InvalidValue::new(InvalidKind::Form, json!([text]))));
    }
    if schema["type"] == "object" {
        wrong.extend(number("minProperties").map(|_| bounds(json!({}))));
        let inside = candidates(&schema["additionalProperties"], false);
        wrong.extend(inside.into_iter().map(|each| InvalidValue::new(each.kind, json!({ "x": each.value }))));
    }
    wrong
}

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

/// A number as it is usually written: a whole one without a fraction, as long as it is exact.
fn plain(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(schema: Value) -> Vec<(InvalidKind, Value)> {
        wrong_values(&schema, false).into_iter().map(|wrong| (wrong.kind, wrong.value)).collect()
    }

    #[test]
    fn a_value_is_wrong_in_the_way_that_is_told() {
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
            (json!({ "type": "object", "additionalProperties": { "type": "boolean" } }), InvalidKind::Type, json!({ "x": 1 })),
        ] {
            let found = wrong(schema.clone());
            assert!(found.contains(&(kind, value.clone())), "{schema} lacks {value}: {found:?}");
        }
    }

    #[test]
    fn a_text_has_characters_that_it_may_not_have() {
        let unseen =
            |schema: Value| wrong(schema).into_iter().filter(|(_, value)| UNSEEN.iter().any(|text| value == text)).count();
        assert_eq!(unseen(json!({ "type": "string" })), 4);
        assert_eq!(unseen(json!({ "type": "string", "x-multiline": true })), 3);
        assert_eq!(unseen(json!({ "type": "string", "format": "password" })), 1);
        let items = wrong(json!({ "type": "array", "items": { "type": "string" } }));
        assert!(items.contains(&(InvalidKind::Form, json!(["a\u{202e}b"]))), "{items:?}");
    }

    #[test]
    fn what_only_looks_wrong_is_left_out() {
        for schema in [
            json!({ "type": "string", "format": "password" }),
            json!({ "type": "string", "format": "image", "minLength": 9 }),
            json!({ "type": "string", "pattern": "no" }),
        ] {
            assert!(
                !wrong(schema.clone()).iter().any(|(kind, value)| *kind == InvalidKind::Form && value == "?! no"),
                "{schema}"
            );
        }
        assert_eq!(wrong(json!({})), []);
        assert_eq!(wrong(json!({ "type": "no such type" })), []);
    }

    #[test]
    fn what_is_required_is_wrong_without_a_value() {
        let missing = |required| {
            let wrong = wrong_values(&json!({ "type": "string" }), required);
            wrong.into_iter().filter(|wrong| wrong.kind == InvalidKind::Missing).map(|wrong| wrong.value).collect::<Vec<_>>()
        };
        assert_eq!(missing(true), [json!(null), json!(""), json!(" \t")]);
        assert_eq!(missing(false), [json!(null); 0]);
    }
}
