//! Validation of responses against the contract, by which the proxy of the test suite fails a test.

use std::sync::LazyLock;

use boxoffice_openapi::Contract;
use http::HeaderMap;
use serde_json::{Value, json};

/// A small contract.
static SAMPLE: LazyLock<Contract> = LazyLock::new(|| {
    let json = |schema: Value| json!({ "application/json": { "schema": schema } });
    let part = json!({ "type": "object", "properties": {} });
    let zone = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string" },
            "size": part,
            "parts": { "type": "array", "items": part },
            "by-day": { "type": "object", "additionalProperties": part },
            "free": { "type": "object" },
        },
    });
    let created = json!({
        "headers": {
            "Location": { "required": true, "schema": { "type": "string", "pattern": "^/zones/" } },
            "Retry-After": { "schema": { "type": "integer" } },
        },
        "content": json(zone.clone()),
    });
    let half = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } } });
    let named = json!({ "allOf": [half("first"), half("last")] });
    let operation = |id: &str, responses: Value| json!({ "operationId": id, "responses": responses });
    let document = json!({
        "components": { "responses": { "Zone": { "content": json(zone) } } },
        "servers": [{ "url": "/v3" }],
        "paths": {
            "/zones": { "post": operation("zone_create", json!({ "201": created })) },
            "/zones/{zone}": {
                "get": operation("zone_get", json!({ "200": { "$ref": "#/components/responses/Zone" } })),
                "delete": operation("zone_delete", json!({ "204": {} })),
            },
            "/zones/named": { "get": operation("zone_named_get", json!({ "200": { "content": json(named) } })) },
            "/zones/first": { "get": operation("zone_first_get", json!({ "200": { "content": { "image/png": {} } } })) },
        },
    });
    Contract::new(document).unwrap()
});

/// Returns the violations of a response of the sample's.
fn violations(method: &str, path: &str, status: u16, headers: &[(&'static str, &str)], body: &str) -> Vec<String> {
    let headers = headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect();
    let (operation, violations) = SAMPLE.validate_response(method, path, status, &headers, body.as_bytes()).unwrap();
    violations.iter().map(|violation| format!("{} {status} {}", operation.id, violation.text)).collect()
}

const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
const LOCATION: (&str, &str) = ("location", "/zones/1");
const ZONE: &str = r#"{"name": "Top"}"#;

#[test]
fn accepts_declared_response() {
    assert_eq!(violations("GET", "/zones/1", 200, &[JSON], ZONE), [""; 0]);
    assert_eq!(violations("GET", "/v3/zones/1", 200, &[JSON], ZONE), [""; 0]);
    assert_eq!(violations("POST", "/zones", 201, &[JSON, LOCATION, ("retry-after", "7")], ZONE), [""; 0]);
    assert_eq!(violations("DELETE", "/zones/1", 204, &[], ""), [""; 0]);
}

#[test]
fn ignores_unknown_operation() {
    for (method, path) in [("GET", "/nowhere"), ("PATCH", "/zones"), ("GET", "/zones/"), ("GET", "/v4/zones/1")] {
        assert!(SAMPLE.validate_response(method, path, 404, &HeaderMap::new(), b"?").is_none(), "{method} {path}");
    }
}

#[test]
fn rejects_body_that_violates_schema() {
    assert_eq!(
        violations("GET", "/zones/1", 200, &[JSON], r#"{"name": 7}"#),
        [r#"zone_get 200 body/name: 7 is not of type "string" in {"name":7}"#]
    );
    assert_eq!(violations("GET", "/zones/1", 200, &[JSON], "{}"), [r#"zone_get 200 body: "name" is a required property in {}"#]);
}

#[test]
fn rejects_undeclared_property() {
    let zone = |zone: Value| violations("GET", "/zones/1", 200, &[JSON], &zone.to_string()).join(", ");
    let unexpected = "Additional properties are not allowed ('extra' was unexpected)";
    for (given, place) in [
        (json!({ "name": "Top", "extra": 1 }), ""),
        (json!({ "name": "Top", "size": { "extra": 1 } }), "/size"),
        (json!({ "name": "Top", "parts": [{}, { "extra": 1 }] }), "/parts/1"),
        (json!({ "name": "Top", "by-day": { "monday": { "extra": 1 } } }), "/by-day/monday"),
    ] {
        assert_eq!(zone(given.clone()), format!("zone_get 200 body{place}: {unexpected} in {given}"));
    }
    let described = json!({ "name": "Top", "size": {}, "parts": [{}], "by-day": { "monday": {} }, "free": { "extra": 1 } });
    assert_eq!(zone(described), "");
}

/// Each branch of the `allOf` alone would reject the properties of the others.
#[test]
fn rejects_undeclared_property_of_all_of() {
    let about = |named: Value| violations("GET", "/zones/named", 200, &[JSON], &named.to_string());
    assert_eq!(about(json!({ "first": "A", "last": "B" })), [""; 0]);
    assert_eq!(
        about(json!({ "first": "A", "last": "B", "extra": 1 })),
        [
            r#"zone_named_get 200 body: Unevaluated properties are not allowed ('extra' was unexpected) in {"first":"A","last":"B","extra":1}"#
        ]
    );
}

#[test]
fn rejects_undeclared_status() {
    assert_eq!(violations("GET", "/zones/1", 409, &[JSON], "{}"), ["zone_get 409 is not declared: {}"]);
}

#[test]
fn rejects_undeclared_media_type() {
    let text = ("content-type", "text/plain");
    assert_eq!(
        violations("GET", "/zones/1", 200, &[text], ZONE),
        [r#"zone_get 200 is `text/plain` and not one of ["application/json"]"#]
    );
    assert_eq!(
        violations("GET", "/zones/1", 200, &[], ZONE),
        [r#"zone_get 200 has no Content-Type, and is declared as one of ["application/json"]"#]
    );
}

#[test]
fn rejects_body_of_empty_response() {
    assert_eq!(violations("DELETE", "/zones/1", 204, &[JSON], "{}"), ["zone_delete 204 has a body: {}"]);
}

#[test]
fn rejects_missing_body() {
    let violations = violations("GET", "/zones/1", 200, &[JSON], "");
    assert!(violations.len() == 1 && violations[0].starts_with("zone_get 200 body is no JSON"), "{violations:?}");
}

#[test]
fn rejects_missing_header() {
    assert_eq!(violations("POST", "/zones", 201, &[JSON], ZONE), ["zone_create 201 lacks the header Location"]);
}

#[test]
fn rejects_header_that_violates_schema() {
    let elsewhere = ("location", "/venues/1");
    assert_eq!(
        violations("POST", "/zones", 201, &[JSON, elsewhere, ("retry-after", "soon")], ZONE),
        [
            r#"zone_create 201 Location: "/venues/1" does not match "^/zones/""#,
            r#"zone_create 201 Retry-After: "soon" is not of type "integer""#,
        ]
    );
}

#[test]
fn prefers_fixed_path_to_variable() {
    assert_eq!(SAMPLE.find("GET", "/zones/first").unwrap().id, "zone_first_get");
}
