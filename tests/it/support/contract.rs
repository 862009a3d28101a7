//! What the server answers, held against the contract.

use std::sync::LazyLock;

use boxoffice::contract::Contract;
use http::HeaderMap;
use serde_json::{Value, json};

/// The contract that the server answers by.
pub static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::builtin().unwrap());

/// The operation that answers a method at a path, and what is wrong with an answer of it, in sentences.
pub fn judge<'a>(
    contract: &'a Contract,
    (method, path): (&str, &str),
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
) -> Option<(&'a str, Vec<String>)> {
    let (operation, wrong) = contract.validate_response(method, path, status, headers, body)?;
    let told = wrong.into_iter().map(|wrong| format!("{} {status} {} ({method} {path})", operation.id, wrong.text));
    Some((&operation.id, told.collect()))
}

crate::plain_tests![
    an_answer_that_is_described_passes,
    an_operation_outside_the_contract_is_left_alone,
    an_answer_of_another_shape_is_wrong,
    a_property_that_is_not_described_is_wrong,
    what_is_put_together_is_closed_as_a_whole,
    an_answer_of_another_status_is_wrong,
    an_answer_of_another_media_type_is_wrong,
    a_body_where_none_is_described_is_wrong,
    no_body_where_one_is_described_is_wrong,
    a_missing_header_is_wrong,
    a_header_of_another_shape_is_wrong,
    a_fixed_path_goes_before_a_variable_one,
];

/// A contract of few words.
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

/// What is wrong with an answer of the sample's, without the request in brackets.
fn wrong(method: &str, path: &str, status: u16, headers: &[(&'static str, &str)], body: &str) -> Vec<String> {
    let headers = headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect();
    let (_, wrong) = judge(&SAMPLE, (method, path), status, &headers, body.as_bytes()).unwrap();
    wrong.iter().map(|wrong| wrong.rsplit_once(" (").unwrap().0.to_owned()).collect()
}

const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
const LOCATION: (&str, &str) = ("location", "/zones/1");
const ZONE: &str = r#"{"name": "Top"}"#;

fn an_answer_that_is_described_passes() {
    assert_eq!(wrong("GET", "/zones/1", 200, &[JSON], ZONE), [""; 0]);
    assert_eq!(wrong("GET", "/v3/zones/1", 200, &[JSON], ZONE), [""; 0]);
    assert_eq!(wrong("POST", "/zones", 201, &[JSON, LOCATION, ("retry-after", "7")], ZONE), [""; 0]);
    assert_eq!(wrong("DELETE", "/zones/1", 204, &[], ""), [""; 0]);
}

fn an_operation_outside_the_contract_is_left_alone() {
    for (method, path) in [("GET", "/nowhere"), ("PATCH", "/zones"), ("GET", "/zones/"), ("GET", "/v4/zones/1")] {
        assert!(judge(&SAMPLE, (method, path), 404, &HeaderMap::new(), b"?").is_none(), "{method} {path}");
    }
}

fn an_answer_of_another_shape_is_wrong() {
    assert_eq!(
        wrong("GET", "/zones/1", 200, &[JSON], r#"{"name": 7}"#),
        [r#"zone_get 200 body/name: 7 is not of type "string" in {"name":7}"#]
    );
    assert_eq!(wrong("GET", "/zones/1", 200, &[JSON], "{}"), [r#"zone_get 200 body: "name" is a required property in {}"#]);
}

fn a_property_that_is_not_described_is_wrong() {
    let zone = |zone: Value| wrong("GET", "/zones/1", 200, &[JSON], &zone.to_string()).join(", ");
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

/// Each part alone would forbid what the others describe.
fn what_is_put_together_is_closed_as_a_whole() {
    let about = |named: Value| wrong("GET", "/zones/named", 200, &[JSON], &named.to_string());
    assert_eq!(about(json!({ "first": "A", "last": "B" })), [""; 0]);
    assert_eq!(
        about(json!({ "first": "A", "last": "B", "extra": 1 })),
        [
            r#"zone_named_get 200 body: Unevaluated properties are not allowed ('extra' was unexpected) in {"first":"A","last":"B","extra":1}"#
        ]
    );
}

fn an_answer_of_another_status_is_wrong() {
    assert_eq!(wrong("GET", "/zones/1", 409, &[JSON], "{}"), ["zone_get 409 may not be answered: {}"]);
}

fn an_answer_of_another_media_type_is_wrong() {
    let text = ("content-type", "text/plain");
    assert_eq!(
        wrong("GET", "/zones/1", 200, &[text], ZONE),
        [r#"zone_get 200 is `text/plain` and not one of ["application/json"]"#]
    );
    assert_eq!(wrong("GET", "/zones/1", 200, &[], ZONE), [r#"zone_get 200 is `` and not one of ["application/json"]"#]);
}

fn a_body_where_none_is_described_is_wrong() {
    assert_eq!(wrong("DELETE", "/zones/1", 204, &[JSON], "{}"), ["zone_delete 204 has a body: {}"]);
}

fn no_body_where_one_is_described_is_wrong() {
    let wrong = wrong("GET", "/zones/1", 200, &[JSON], "");
    assert!(wrong.len() == 1 && wrong[0].starts_with("zone_get 200 body is no JSON"), "{wrong:?}");
}

fn a_missing_header_is_wrong() {
    assert_eq!(wrong("POST", "/zones", 201, &[JSON], ZONE), ["zone_create 201 lacks the header Location"]);
}

fn a_header_of_another_shape_is_wrong() {
    let elsewhere = ("location", "/venues/1");
    assert_eq!(
        wrong("POST", "/zones", 201, &[JSON, elsewhere, ("retry-after", "soon")], ZONE),
        [
            r#"zone_create 201 Location: "/venues/1" does not match "^/zones/""#,
            r#"zone_create 201 Retry-After: null is not of type "integer""#,
        ]
    );
}

fn a_fixed_path_goes_before_a_variable_one() {
    assert_eq!(SAMPLE.find("GET", "/zones/first").unwrap().id, "zone_first_get");
}
