//! Tests of the crate through its public API, mostly with documents of other APIs, which use all features of OpenAPI.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod branches;
mod broken;
mod callback;
mod charset_policy;
mod diff;
mod formats;
mod invalid_values;
mod json;
mod paging;
mod paths;
mod recursion;
mod requests;
mod responses;
mod samples;
mod source;
mod subtypes;
mod versions;

use std::path::Path;

use boxoffice_openapi::{Contract, FieldErrorKind, ParameterLocation, RequestError, SecurityScheme, compile, resolve};
use http::{HeaderMap, HeaderName};
use serde_json::{Value, json};

/// Creates a contract with these paths and components.
fn contract(paths: Value, components: Value) -> Contract {
    Contract::new(json!({ "openapi": "3.0.3", "paths": paths, "components": components })).unwrap()
}

/// Creates a contract with one operation, `POST /things/{thing}`.
fn operation(parameters: Value, content: Value) -> Contract {
    let body = json!({ "required": true, "content": content });
    let mut operation = json!({ "parameters": parameters, "requestBody": body, "responses": { "204": {} } });
    if content.is_null() {
        operation.as_object_mut().unwrap().remove("requestBody");
    }
    contract(json!({ "/things/{thing}": { "post": operation } }), json!({}))
}

/// Returns the errors of a request, as `-name` for a missing argument and `name detail` for an invalid one.
fn errors_of(contract: &Contract, target: &str, headers: &[(&'static str, &str)], body: &str) -> Vec<String> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let headers: HeaderMap =
        headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect();
    match contract.find("POST", path).unwrap().check(path, query, &headers, body.as_bytes()) {
        Ok(_) => Vec::new(),
        Err(RequestError::InvalidFields(errors)) => errors
            .into_iter()
            .map(|error| match error.problem {
                FieldErrorKind::Missing => format!("-{}", error.name),
                FieldErrorKind::Invalid => format!("{} {}", error.name, error.detail),
            })
            .collect(),
        Err(RequestError::MalformedBody(text) | RequestError::UnsupportedMediaType(text)) => vec![text],
        Err(error) => vec![format!("{error:?}")],
    }
}

/// Returns the errors of a JSON body with this schema.
fn body_errors(schema: Value, components: Value, body: &Value) -> Vec<String> {
    let content = json!({ "application/json": { "schema": schema } });
    let operation = json!({ "requestBody": { "content": content }, "responses": { "204": {} } });
    let contract = contract(json!({ "/things": { "post": operation } }), json!({ "schemas": components }));
    errors_of(&contract, "/things", &[("content-type", "application/json")], &body.to_string())
}

/// Returns the violations of a JSON response with this schema, without the values.
fn response_violations(schema: Value, components: Value, body: &Value) -> Vec<String> {
    let content = json!({ "application/json": { "schema": schema } });
    let operation = json!({ "responses": { "200": { "content": content } } });
    let contract = contract(json!({ "/things": { "get": operation } }), json!({ "schemas": components }));
    let headers = [(http::header::CONTENT_TYPE, "application/json".parse().unwrap())].into_iter().collect();
    let (_, violations) = contract.validate_response("GET", "/things", 200, &headers, body.to_string().as_bytes()).unwrap();
    violations.into_iter().map(|violation| violation.text.split(" in {").next().unwrap().to_owned()).collect()
}

fn load_error(document: Value) -> String {
    format!("{:#}", Contract::new(document).unwrap_err())
}

fn ref_to(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns a recursive schema `Tree`, and the schemas `Host` and `Event`, which refer to each other.
fn recursive_schemas() -> Value {
    json!({
        "Tree": {
            "type": "object",
            "required": ["name"],
            "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": ref_to("Tree") } },
        },
        "Host": {
            "type": "object",
            "properties": { "name": { "type": "string" }, "events": { "type": "array", "items": ref_to("Event") } },
        },
        "Event": {
            "allOf": [ref_to("Titled"), { "type": "object", "properties": { "host": { "nullable": true, "allOf": [ref_to("Host")] } } }],
        },
        "Titled": { "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } } },
    })
}

#[test]
fn resolved_schemas_are_self_contained() {
    let document = json!({ "components": { "schemas": recursive_schemas() } });
    for name in ["Tree", "Host", "Event"] {
        compile(&resolve(&document, &ref_to(name))).unwrap();
    }
    let tree = compile(&resolve(&document, &ref_to("Tree"))).unwrap();
    assert!(tree.is_valid(&json!({ "name": "a", "children": [{ "name": "b" }] })));
    assert!(!tree.is_valid(&json!({ "name": "a", "children": [{ "name": "b", "children": [{}] }] })));
    assert_eq!(resolve(&document, &ref_to("Titled")), recursive_schemas()["Titled"]);
}

#[test]
fn inlines_all_references_of_builtin_document() {
    let contract = Contract::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/openapi.yaml"))).unwrap();
    assert_eq!(contract.warnings, [""; 0]);
    let all = contract.operations().flat_map(|operation| {
        let responses = operation.responses.iter().flat_map(|response| &response.contents);
        responses.chain(operation.body.iter().flat_map(|body| &body.contents))
    });
    for content in all {
        let schema = content.schema.as_deref().unwrap();
        assert!(!schema.resolved.to_string().contains("\"$ref\""), "{}", schema.resolved);
        schema.errors(&json!(null)).unwrap();
    }
}

#[test]
fn follows_references_to_any_location() {
    let part = json!({ "$ref": "#/components/schemas/Tree/properties/name" });
    assert_eq!(
        body_errors(json!({ "type": "object", "properties": { "a": part } }), recursive_schemas(), &json!({ "a": 7 })),
        ["a must be a string"]
    );
    let item = json!({ "get": { "responses": { "204": {} } } });
    let paths = json!({ "/a": { "$ref": "#/paths/~1b%7Bc%7D" }, "/b{c}": item });
    assert_eq!(contract(paths, json!({})).operations().count(), 2);
}

#[test]
fn applies_openapi_keywords() {
    let errors = |schema: Value, value: Value| {
        body_errors(json!({ "properties": { "a": schema } }), recursive_schemas(), &json!({ "a": value }))
    };
    for (schema, value, message) in [
        (json!({ "minimum": 1, "exclusiveMinimum": true }), json!(1), "a must be more than 1"),
        (json!({ "maximum": 1, "exclusiveMaximum": false }), json!(2), "a must be at most 1"),
        (json!({ "type": "integer", "format": "int32" }), json!(2_147_483_648_i64), "a must be at most 2147483647"),
        (json!({ "type": "string", "format": "byte" }), json!("?"), "a must be Base64"),
        (
            json!({ "type": "object", "properties": { "nullable": { "type": "string" } } }),
            json!({ "nullable": 1 }),
            "a must be a string (at nullable)",
        ),
    ] {
        assert_eq!(errors(schema, value), [message]);
    }
    for (schema, value) in [
        (json!({ "type": "string", "nullable": true }), json!(null)),
        (json!({ "$ref": "#/components/schemas/Titled", "nullable": true }), json!(null)),
        (json!({ "$ref": "#/components/schemas/Tree", "nullable": true }), json!(null)),
        (json!({ "allOf": [ref_to("Tree")], "nullable": true }), json!(null)),
        (
            json!({ "type": "string", "format": "colour", "xml": {}, "externalDocs": { "url": "" }, "required": true }),
            json!("red"),
        ),
        (json!({ "type": "string", "format": "byte" }), json!("YQ==")),
    ] {
        assert_eq!(errors(schema, value), [""; 0]);
    }
}

#[test]
fn accepts_unknown_values_of_an_extensible_list() {
    let list = json!({ "type": "string", "x-extensible-enum": ["open"] });
    assert_eq!(response_violations(list.clone(), json!({}), &json!("open")), [""; 0]);
    assert_eq!(response_violations(list.clone(), json!({}), &json!("later")), [""; 0]);
    assert_eq!(response_violations(list, json!({}), &json!(7)), [r#"body: 7 is not of type "string" in 7"#]);
}

#[test]
fn ignores_invalid_patterns_with_a_warning() {
    let content = json!({ "application/json": { "schema": { "properties": { "a": { "type": "string", "pattern": "(" } } } } });
    let contract = operation(json!([]), content);
    assert!(contract.warnings[0].contains("/properties/a/pattern is not checked"), "{:?}", contract.warnings);
    assert_eq!(errors_of(&contract, "/things/1", &[], r#"{"a": "x"}"#), [""; 0]);
    assert_eq!(errors_of(&contract, "/things/1", &[], r#"{"a": 1}"#), ["a must be a string"]);
}

#[test]
fn ignores_properties_of_the_other_direction() {
    let account = json!({
        "type": "object",
        "required": ["number", "password", "name"],
        "properties": {
            "number": { "type": "string", "readOnly": true },
            "password": { "type": "string", "writeOnly": true },
            "name": { "type": "string" },
        },
    });
    let both = json!(["number", "password"]);
    let combined = json!({ "allOf": [account, { "type": "object", "required": both }], "required": both });
    let nested =
        json!({ "type": "object", "required": ["number"], "properties": { "number": { "readOnly": true }, "in": account } });
    assert_eq!(body_errors(account.clone(), json!({}), &json!({ "password": "x", "name": "y", "number": 7 })), [""; 0]);
    assert_eq!(body_errors(account.clone(), json!({}), &json!({})), ["-password", "-name"]);
    assert_eq!(body_errors(nested, json!({}), &json!({ "in": { "password": "x", "name": "y" } })), [""; 0]);
    assert_eq!(response_violations(account.clone(), json!({}), &json!({ "number": "1", "name": "y" })), [""; 0]);
    assert_eq!(response_violations(account, json!({}), &json!({ "name": "y" })), ["body: \"number\" is a required property"]);
    assert_eq!(body_errors(combined.clone(), json!({}), &json!({ "password": "x", "name": "y" })), [""; 0]);
    assert_eq!(response_violations(combined, json!({}), &json!({ "number": "1", "name": "y" })), [""; 0]);
}

#[test]
fn parses_security_requirements() {
    let schemes = json!({
        "key": { "type": "apiKey", "in": "query", "name": "api_key" },
        "basic": { "type": "http", "scheme": "basic" },
        "login": { "type": "oauth2", "flows": {} },
    });
    let operation = |security: Value| json!({ "get": { "security": security, "responses": { "204": {} } } });
    let paths = json!({
        "/all": operation(json!([{ "key": [], "basic": [] }, { "login": ["read"] }])),
        "/open": operation(json!([])),
        "/either": operation(json!([{ "key": [] }, {}])),
    });
    let contract = contract(paths, json!({ "securitySchemes": schemes }));
    let found = |path: &str| contract.find("GET", path).unwrap();
    let key = SecurityScheme::Key(ParameterLocation::Query, "api_key".to_owned());
    let [basic, bearer] = ["basic", "Bearer"].map(|scheme| SecurityScheme::Authorization(scheme.to_owned()));
    assert_eq!(found("/all").security, [vec![key.clone(), basic.clone()], vec![bearer.clone()]]);
    assert_eq!(["/all", "/open", "/either"].map(|path| found(path).needs_key), [true, false, false]);

    let headers: HeaderMap = [(http::header::AUTHORIZATION, "Basic YTpi".parse().unwrap())].into_iter().collect();
    assert_eq!(key.credential(&headers, Some("a=b&api_key=7")), Some("7".to_owned()));
    assert_eq!(key.credential(&headers, Some("api_key=+")), None);
    assert_eq!(basic.credential(&headers, None), Some("YTpi".to_owned()));
    assert_eq!(bearer.credential(&headers, None), None);
}

#[test]
fn follows_references_to_examples() {
    let node = json!({ "examples": { "one": { "$ref": "#/components/examples/One" }, "two": { "value": 2 } } });
    let components = json!({ "examples": { "One": { "value": { "$ref": "not followed" } } } });
    let body = json!({ "content": { "application/json": node } });
    let parameter = json!({ "name": "a", "in": "query", "schema": {}, "example": 7 });
    let operation =
        json!({ "requestBody": body, "parameters": [parameter], "responses": { "204": {} }, "tags": ["x"], "summary": "y" });
    let contract = contract(json!({ "/things": { "post": operation } }), components);
    let operation = contract.find("POST", "/things").unwrap();
    let expected = json!({ "one": { "$ref": "not followed" }, "two": 2 });
    assert_eq!(Value::Object(operation.request_examples("application/json")), expected);
    assert_eq!(operation.request_examples("text/plain").len(), 0);
    assert_eq!(operation.parameters[0].examples["example"], 7);
    assert_eq!((operation.tags.as_slice(), operation.summary.as_str()), (&["x".to_owned()][..], "y"));
}

#[test]
fn warns_about_ignored_parts_of_a_document() {
    let operation = json!({ "x-scopes": ["owner"], "responses": { "2XX": {}, "x-note": 1 } });
    let paths = json!({ "/a": { "get": operation, "head": operation }, "/b": { "get": { "responses": {} } }, "x-b": {}, "x-a?b": {}, "c": {}, "/a#d": {}, "/a?e=f": {} });
    let components = json!({ "examples": { "far": { "externalValue": "far.json" } } });
    let contract = contract(paths, components);
    let warnings = [
        "the example at /components/examples/far is not served: put its externalValue into the document, as `value`",
        "GET /a: the scope \"owner\" is not known",
        "HEAD /a is left out: HEAD is served like GET",
        "GET /b: it declares no response: the server returns an error",
        "the path c is left out: it must begin with /",
        "the path /a#d is left out: a path has no query or fragment",
        "the path /a?e=f is left out: a path has no query or fragment",
    ];
    assert_eq!(contract.warnings, warnings);
    assert_eq!(contract.operations().count(), 2);
}

#[test]
fn validates_a_body_by_the_most_specific_media_type() {
    let names = ["*/*", "Image/*", "image/*+xml", "image/png", "image/png;version=1", "image/png; version=2"];
    let contents = |name: &&str| ((*name).to_owned(), json!({ "example": name }));
    let body = json!({ "content": names.iter().map(contents).collect::<serde_json::Map<_, _>>() });
    let contract = contract(json!({ "/things": { "post": { "requestBody": body, "responses": { "204": {} } } } }), json!({}));
    let operation = contract.find("POST", "/things").unwrap();
    for (media_type, expected) in [
        ("text/plain", "*/*"),
        ("image/gif", "Image/*"),
        ("IMAGE/SVG+XML; charset=utf-8", "image/*+xml"),
        ("image/png", "image/png"),
        ("image/PNG; charset=utf-8", "image/png"),
        ("image/png; charset=utf-8; Version=\"2\"", "image/png; version=2"),
        ("image/png;version=3", "image/png"),
    ] {
        assert_eq!(operation.request_examples(media_type)["example"], expected, "{media_type}");
    }
}
