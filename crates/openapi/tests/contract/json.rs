//! Tests of the parser of JSON bodies.

use std::sync::LazyLock;

use boxoffice_openapi::{Contract, RequestError, repeated_name};
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{errors_of, operation};

/// Parses the body of a request that may be any JSON.
fn parse(body: &[u8]) -> Result<Value, RequestError> {
    static CONTRACT: LazyLock<Contract> = LazyLock::new(|| operation(json!([]), json!({ "application/json": { "schema": {} } })));
    let operation = CONTRACT.find("POST", "/things/1").unwrap();
    Ok(operation.check("/things/1", None, &HeaderMap::new(), body)?.body)
}

fn malformed_text(error: RequestError) -> String {
    match error {
        RequestError::MalformedBody(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rejects_duplicate_property_names() {
    for body in [r#"{"a":1,"b":2,"a":3}"#, r#"{"a":1,"\u0061":1}"#, r#"[{"b":{"a":null,"a":null}}]"#] {
        let text = malformed_text(parse(body.as_bytes()).unwrap_err());
        assert!(text.contains(r#""a" is in one object more than once at line 1 column"#), "{text}");
    }
    let long = format!(r#"{{"{0}":1,"{0}":2}}"#, "\\u202e".repeat(5000));
    assert!(malformed_text(parse(long.as_bytes()).unwrap_err()).len() < 1000);
    assert!(parse(br#"{"a":{"a":1},"A":2,"a ":3}"#).is_ok());
    assert_eq!(repeated_name(r#"{"a": 1, "b": [{"c": 1.5, "c": null}]}"#).as_deref(), Some("c"));
    assert_eq!(repeated_name(r#"{"a": {"a": "x"}, "b": {"a": true}}"#), None);
    assert_eq!(repeated_name("{"), None);
}

#[test]
fn limits_nesting() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(nested(100).as_bytes()).is_ok());
    for body in [nested(1000), "[".repeat(1 << 20), r#"{"a":"#.repeat(1 << 18)] {
        let text = malformed_text(parse(body.as_bytes()).unwrap_err());
        assert!(text.starts_with("The request's body has too many levels of arrays and objects: line 1, column"), "{text}");
    }
}

#[test]
fn limits_number_of_values() {
    let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
    let object = |count: usize| {
        let members: Vec<_> = (0..count).map(|name| format!(r#""{name}":[]"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    // The outer list or object counts as a value too.
    assert!(parse(list(99_999).as_bytes()).is_ok());
    assert!(parse(object(99_999).as_bytes()).is_ok());
    for body in [list(100_000), object(100_000), format!("[{}]", vec![list(10); 9_999].join(","))] {
        let text = malformed_text(parse(body.as_bytes()).unwrap_err());
        assert_eq!(text, "The request's body has more than 100000 values. Send fewer at once.");
    }
}

#[test]
fn parses_every_notation_of_an_integer() {
    for (text, expected) in [("1.0", 1), ("1e2", 100), ("-0.0", 0), ("2500e-2", 25), ("-1.20E1", -12)] {
        assert_eq!(parse(text.as_bytes()).unwrap(), Value::from(expected), "{text}");
    }
    for text in ["1.5", "1e-1", "1e300", "9007199254740993.0"] {
        assert!(parse(text.as_bytes()).unwrap().is_f64(), "{text}");
    }
}

#[test]
fn accepts_numbers_out_of_range_and_marks_them() {
    let properties = json!({ "b": { "enum": ["-1e999 \" 1e999"] }, "d": { "enum": [1.5] }, "e": { "enum": [7] } });
    let contract = operation(json!([]), json!({ "application/json": { "schema": { "properties": properties } } }));
    let body = r#"{"a\\":1e999,"b":"-1e999 \" 1e999","c":[-1E+999,7],"d":1.5,"e":7}"#;
    let marked = errors_of(&contract, "/things/1", &[], body);
    assert_eq!(marked, [r"a\ is a number out of range", "c is a number out of range"]);
    for malformed in ["1e999x", "[1e999", "1e999 1", "{1e999}", "01e999", "1e999e9"] {
        assert!(malformed_text(parse(malformed.as_bytes()).unwrap_err()).contains("is not valid JSON"), "{malformed}");
    }
}

/// Returns a value whose integers are floating-point numbers.
fn numbers_as_f64(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.into_iter().map(numbers_as_f64).collect(),
        Value::Object(object) => object.into_iter().map(|(name, value)| (name, numbers_as_f64(value))).collect(),
        other => other,
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..8).prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn parses_serialized_values_like_serde_json(value in values()) {
        let text = serde_json::to_vec(&value).unwrap();
        let parsed = parse(&text).unwrap();
        prop_assert_eq!(numbers_as_f64(parsed), numbers_as_f64(serde_json::from_slice::<Value>(&text).unwrap()));
    }
}
