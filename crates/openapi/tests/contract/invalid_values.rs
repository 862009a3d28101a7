//! Tests of invalid values as test data.

use boxoffice_openapi::invalid_values::{InvalidKind, invalid_values_for};
use serde_json::{Value, json};

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
        (json!({ "type": "number", "exclusiveMaximum": 10 }), InvalidKind::Bounds, json!(10)),
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
        (json!({ "oneOf": [{ "type": "integer", "minimum": 0 }, { "type": "boolean" }] }), InvalidKind::Bounds, json!(-1)),
        (json!({ "anyOf": [{ "type": "integer" }, { "type": "boolean" }] }), InvalidKind::Type, json!("seven")),
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
    let texts = ["a\0b", "a\u{7}b", "a\nb", "a\u{202e}b"];
    let invisible =
        |schema: Value| invalid(schema).into_iter().filter(|(_, value)| texts.iter().any(|text| value == text)).count();
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
        assert!(!invalid(schema.clone()).iter().any(|(kind, value)| *kind == InvalidKind::Form && value == "?! no"), "{schema}");
    }
    assert_eq!(invalid(json!({})), []);
    // The text is valid for the other alternative.
    let alternatives = invalid(json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }] }));
    assert!(!alternatives.contains(&(InvalidKind::Type, json!("seven"))), "{alternatives:?}");
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
