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
fn validates_multipart_responses() {
    let schema = json!({ "type": "object", "required": ["count", "photo"], "properties": {
        "count": { "type": "integer" },
        "photo": { "type": "string", "format": "binary", "maxLength": 1 },
        "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
        "owner": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } },
    } });
    let texts = json!({ "oneOf": [
        { "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } },
        { "type": "object", "required": ["b"], "properties": { "b": { "type": "string" } } },
    ] });
    let (count, tag) = ("name=\"count\"\r\n\r\n5", "name=tags\r\n\r\na");
    let photo = "name=photo; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\u{1}\u{2}\r\n\u{3}";
    let (owner, nobody) = ("name=owner\r\nContent-Type: application/json\r\n\r\n{\"name\": \"Ama\"}", "name=owner\r\n\r\n{}");
    for (schema, parts, expected) in [
        (&schema, vec![count, photo], vec![]),
        (&schema, vec![count, photo, tag, tag, owner], vec![]),
        (&schema, vec![photo], vec!["lacks count"]),
        (&schema, vec![count], vec!["lacks photo"]),
        (&schema, vec!["name=count\r\n\r\nmany", photo], vec!["at /count must be an integer"]),
        (&schema, vec![count, photo, nobody], vec!["at /owner lacks name"]),
        (&schema, vec![count, photo, tag, "name=tags\r\n\r\nc"], vec!["at /tags/* must be one of: a, b"]),
        (&texts, vec!["name=b\r\n\r\nx"], vec![]),
        (&texts, vec!["name=a\r\n\r\nx"], vec!["must match one of several schemas"]),
        // Only names tell which property a part is.
        (&schema, vec!["filename=a\r\n\r\n5"], vec![]),
    ] {
        let parts: String = parts.iter().map(|part| format!("--X\r\nContent-Disposition: form-data; {part}\r\n")).collect();
        for media_type in ["multipart/form-data; boundary=X", "multipart/mixed; boundary=\"X\""] {
            let found = content_violations(media_type, schema.clone(), format!("{parts}--X--\r\n").as_bytes());
            let expected: Vec<_> = expected.iter().map(|expected| format!("has a body that {expected}")).collect();
            assert_eq!(found, expected, "{media_type} {parts}");
        }
    }
}

#[test]
fn multipart_response_has_its_boundary() {
    let violations = |media_type: &str, body: &str| content_violations(media_type, json!({ "type": "string" }), body.as_bytes());
    let part = "--X\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
    for (media_type, body, expected) in [
        ("multipart/mixed; boundary=X", format!("{part}--X--"), ""),
        ("multipart/mixed", format!("{part}--X--"), "has no boundary in its media type"),
        ("multipart/mixed; boundary=Y", format!("{part}--X--"), "has a body that doesn't end with its boundary"),
        ("multipart/mixed; boundary=X", part.to_owned(), "has a body that doesn't end with its boundary"),
        ("multipart/form-data; boundary=X", "{}".to_owned(), "has a body that doesn't end with its boundary"),
    ] {
        let expected = if expected.is_empty() { vec![] } else { vec![expected] };
        assert_eq!(violations(media_type, &body), expected, "{media_type} {body}");
    }
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
