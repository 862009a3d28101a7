//! Violations of responses.

use serde_json::{Value, json};

use super::{contract, response_violations};

/// Returns the violations of a response of a media type with this schema, in words.
fn content_violations(media_type: &str, schema: Value, body: &[u8]) -> Vec<String> {
    let node = if schema.is_null() { json!({}) } else { json!({ "schema": schema }) };
    let content = json!({ media_type: node });
    let operation = json!({ "responses": { "200": { "content": content } } });
    let contract = contract(json!({ "/things": { "get": operation } }), json!({}));
    let headers = [(http::header::CONTENT_TYPE, media_type.parse().unwrap())].into_iter().collect();
    let (_, violations) = contract.validate_response("GET", "/things", 200, &headers, body).unwrap();
    violations.into_iter().map(|violation| violation.normalized).collect()
}

#[test]
fn validates_responses_of_other_media_types_than_json() {
    let form = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
    let urlencoded = "application/x-www-form-urlencoded";
    let binary = json!({ "type": "string", "format": "binary", "minLength": 2, "maxLength": 3 });
    for (media_type, schema, body, expected) in [
        ("text/plain", json!({ "type": "string", "enum": ["on", "off"] }), "on", ""),
        ("text/plain", json!({ "type": "string", "enum": ["on", "off"] }), "maybe", "must be one of: on, off"),
        ("text/plain; charset=utf-8", json!({ "type": "integer", "maximum": 9 }), "10", "must be at most 9"),
        ("text/plain", json!({ "type": "integer" }), "abc", "must be an integer"),
        ("text/csv", json!({ "type": "array", "items": {} }), "a,b", ""),
        (urlencoded, form.clone(), "a=1", ""),
        (urlencoded, form.clone(), "a=x", "at /a must be an integer"),
        (urlencoded, form.clone(), "", "lacks a"),
        (urlencoded, form, "a=1&b=1", "has the undeclared b"),
        ("image/png", binary.clone(), "\u{1}\u{2}", ""),
        ("image/png", binary.clone(), "\u{1}", "must have at least 2 bytes"),
        ("application/octet-stream", binary, "1234", "must have at most 3 bytes"),
        ("application/json", Value::Null, "{\"a\":1", "is no JSON"),
        ("text/json", json!({ "type": "object" }), "[]", "must be an object"),
        ("application/json", Value::Null, "", ""),
        ("application/json", json!({ "type": "number" }), "1e400", "can't be read"),
        ("application/json", json!({ "type": "string" }), "\"\\ud800\"", "can't be read"),
        ("application/json", json!({}), &"[".repeat(200), "can't be read"),
        ("application/json", json!({ "type": "integer", "format": "int64" }), "9223372036854775807", ""),
        (
            "application/json",
            json!({ "type": "integer", "format": "int64" }),
            "9223372036854775808",
            "must be at most 9223372036854775807",
        ),
        ("application/json", json!({ "type": "string", "format": "email" }), "\"\\\"john doe\\\"@example.com\"", ""),
        ("application/json", json!({ "type": "string", "format": "email" }), "\"a@[192.0.2.1]\"", ""),
        ("application/json", json!({ "type": "string", "format": "email" }), "\"a\"", "must be a valid email"),
        ("application/json", json!({ "type": "string", "format": "byte" }), "\"QUF=\"", ""),
        ("application/json", json!({ "type": "string", "format": "byte" }), "\"QUF\"", "must be a valid byte"),
    ] {
        let found = content_violations(media_type, schema.clone(), body.as_bytes());
        let expected = if expected.is_empty() { vec![] } else { vec![format!("has a body that {expected}")] };
        assert_eq!(found, expected, "{media_type} {schema} {body}");
    }
}

#[test]
fn rejects_write_only_properties_in_responses() {
    let password = json!({ "type": "string", "writeOnly": true });
    let account = json!({ "type": "object", "properties": { "id": {}, "password": password } });
    let combined = json!({ "allOf": [account, { "properties": { "name": {} } }] });
    for schema in [account, combined] {
        assert_eq!(response_violations(schema.clone(), json!({}), &json!({ "id": 1 })), [""; 0]);
        assert_eq!(
            response_violations(schema, json!({}), &json!({ "id": 1, "password": "x" })),
            ["body/password: is write-only"]
        );
    }
}
