//! Tests of the crate through its public API, mostly with documents of other APIs, which use all features of OpenAPI.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod callback;
mod charset_policy;
mod diff;
mod formats;
mod invalid_values;
mod json;
mod paging;
mod requests;
mod samples;
mod source;
mod subtypes;
mod versions;

use std::path::Path;
use std::sync::Arc;

use boxoffice_openapi::{
    Contract, FieldErrorKind, ParameterLocation, RequestError, RouteError, SecurityScheme, compile, resolve,
};
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
fn strips_base_paths_of_all_servers() {
    let operation = json!({ "responses": { "204": { "description": "" } } });
    let mut own = operation.clone();
    own["servers"] = json!([{ "url": "https://example.com/v3/" }]);
    let contract = Contract::new(json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "/v1" }],
        "paths": {
            "/a": { "servers": [{ "url": "/v2" }, { "url": "/b" }], "get": operation, "post": own },
            "/b/{id}": { "get": operation },
        },
    }));
    let contract = contract.unwrap();
    for (path, expected) in
        [("/v1/a", "/a"), ("/v2/a", "/a"), ("/v3/a", "/a"), ("/a", "/a"), ("/v20/a", "/v20/a"), ("/b/7", "/b/7")]
    {
        assert_eq!(contract.without_prefix(path), expected, "{path}");
    }
}

#[test]
fn validates_recursive_schemas_at_every_depth() {
    let tree =
        |leaf: Value| json!({ "name": "a", "children": [{ "name": "b", "children": [{ "name": "c", "children": [leaf] }] }] });
    let location = "at 0/children/0/children/0";
    assert_eq!(body_errors(ref_to("Tree"), recursive_schemas(), &tree(json!({ "name": "d" }))), [""; 0]);
    assert_eq!(
        body_errors(ref_to("Tree"), recursive_schemas(), &tree(json!({ "name": 7 }))),
        [format!("children must be a string ({location}/name)")]
    );
    assert_eq!(body_errors(ref_to("Tree"), recursive_schemas(), &tree(json!({}))), [format!("children lacks name ({location})")]);
}

#[test]
fn rejects_undeclared_properties_in_recursive_responses() {
    let host = |event: Value| json!({ "name": "a", "events": [{ "title": "b", "host": { "events": [event] } }] });
    let errors = |event: Value| response_violations(ref_to("Host"), recursive_schemas(), &host(event));
    assert_eq!(errors(json!({ "title": "c", "host": null })), [""; 0]);
    assert_eq!(errors(json!({ "title": "c", "host": { "name": "d" } })), [""; 0]);
    assert_eq!(errors(json!({ "title": 7 })), [r#"body/events/0/host/events/0/title: 7 is not of type "string""#]);
    let event = |event: Value| response_violations(ref_to("Event"), recursive_schemas(), &event);
    assert_eq!(
        event(json!({ "title": "c", "extra": 1 })),
        ["body: Unevaluated properties are not allowed ('extra' was unexpected)"]
    );
    let tree =
        |leaf: Value| response_violations(ref_to("Tree"), recursive_schemas(), &json!({ "name": "a", "children": [leaf] }));
    assert_eq!(tree(json!({ "name": "b" })), [""; 0]);
    assert_eq!(
        tree(json!({ "name": "b", "extra": 1 })),
        ["body/children/0: Additional properties are not allowed ('extra' was unexpected)"]
    );
}

#[test]
fn declared_properties_are_declared_in_every_branch() {
    let node = |name: &str, other: &str| json!({ "type": "object", "required": [name], "properties": { name: { "type": "integer" }, other: ref_to(other) } });
    let schemas = || json!({ "Node": node("v", "Node"), "Leaf": node("w", "Leaf") });
    let violations = |schema: Value, body: Value| response_violations(schema, schemas(), &body);
    let id = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
    let either = json!({ "oneOf": [ref_to("Node"), ref_to("Leaf")] });
    let with = |keyword: &str, branches: Value| json!({ "properties": { "id": { "type": "integer" } }, keyword: branches });
    for schema in [
        with("oneOf", either["oneOf"].clone()),
        with("anyOf", either["oneOf"].clone()),
        json!({ "allOf": [id, either] }),
        json!({ "allOf": [id, { "allOf": [either] }] }),
        json!({ "properties": { "id": {} }, "if": { "required": ["v"] }, "then": ref_to("Node") }),
        json!({ "properties": { "id": {} }, "dependentSchemas": { "id": ref_to("Node") } }),
        json!({ "allOf": [id], "if": { "required": ["v"] }, "then": ref_to("Node") }),
    ] {
        assert_eq!(violations(schema.clone(), json!({ "id": 1, "v": 2 })), [""; 0], "{schema}");
        assert_eq!(
            violations(schema.clone(), json!({ "id": 1, "v": 2, "extra": 3 })),
            ["body: Unevaluated properties are not allowed ('extra' was unexpected)"],
            "{schema}"
        );
    }
    let both = json!({ "allOf": [
        { "properties": { "a": { "type": "integer" }, "c": { "properties": { "d": {} } } } },
        { "properties": { "b": { "type": "integer" } } },
    ] });
    assert_eq!(violations(both.clone(), json!({ "a": "x", "b": 1 })), [r#"body/a: "x" is not of type "integer""#]);
    assert_eq!(violations(both, json!({ "b": "x", "extra": 1 })), [r#"body/b: "x" is not of type "integer""#]);
    let required = json!({ "properties": { "a": {} }, "required": ["b"] });
    assert_eq!(
        violations(required, json!({ "a": 1, "b": 2 })),
        ["body: Additional properties are not allowed ('b' was unexpected)"]
    );
}

#[test]
fn branch_of_free_form_allows_any_property() {
    let closed = json!({ "type": "object", "properties": { "a": {} } });
    for keyword in ["anyOf", "oneOf"] {
        let violations = |branches: Value, body: Value| response_violations(json!({ keyword: branches }), json!({}), &body);
        let free = json!([{ "type": "object" }, { "type": "string" }]);
        assert_eq!(violations(free.clone(), json!({ "a": 1 })), [""; 0]);
        assert_eq!(violations(free, json!("text")), [""; 0]);
        assert_eq!(
            violations(json!([closed, { "type": "string" }]), json!({ "a": 1, "b": 2 })),
            ["body: Unevaluated properties are not allowed ('b' was unexpected)"]
        );
    }
    let extended = json!({ "allOf": [closed, { "type": "object" }] });
    assert_eq!(
        response_violations(extended, json!({}), &json!({ "b": 2 })),
        ["body: Unevaluated properties are not allowed ('b' was unexpected)"]
    );
}

#[test]
fn branch_of_free_form_declares_nothing_beside_declared_properties() {
    let declared = json!({ "properties": { "a": {} } });
    let free = json!({ "anyOf": [{ "type": "object" }, { "type": "string" }] });
    let nested = json!({ "properties": { "a": {} }, "allOf": [free] });
    let closed = json!({ "unevaluatedProperties": false, "anyOf": free["anyOf"] });
    for schema in [json!({ "allOf": [declared, free] }), nested, closed.clone()] {
        assert_eq!(
            response_violations(schema.clone(), json!({}), &json!({ "b": 2 })),
            ["body: Unevaluated properties are not allowed ('b' was unexpected)"],
            "{schema}"
        );
    }
    assert_eq!(body_errors(closed, json!({}), &json!({ "b": 2 })), ["b is not among the properties of the body"]);
}

#[test]
fn names_the_wrong_property_of_a_branch() {
    let pet = |kind: &str, property: &str| {
        let properties = json!({ "kind": { "enum": [kind] }, property: { "type": "integer" }, "friend": ref_to("Pet") });
        json!({ "type": "object", "required": ["kind", property], "properties": properties })
    };
    let schemas =
        || json!({ "Pet": { "oneOf": [ref_to("Cat"), ref_to("Dog")] }, "Cat": pet("cat", "lives"), "Dog": pet("dog", "barks") });
    let violations = |schema: Value, body: Value| response_violations(schema, schemas(), &body);
    let inline = json!({ "oneOf": [pet("cat", "lives"), pet("dog", "barks")] });
    for schema in [ref_to("Pet"), inline.clone(), json!({ "nullable": true, "anyOf": inline["oneOf"] })] {
        assert_eq!(
            violations(schema.clone(), json!({ "kind": "cat", "lives": "nine" })),
            [r#"body/lives: "nine" is not of type "integer""#],
            "{schema}"
        );
        assert!(violations(schema, json!({ "kind": "cow" }))[0].starts_with("body: "), "both branches are equally close");
    }
    let friend = json!({ "kind": "cat", "lives": 9, "friend": { "kind": "dog", "barks": "x" } });
    assert_eq!(violations(ref_to("Pet"), friend), [r#"body/friend/barks: "x" is not of type "integer""#]);
    let nullable = json!({ "type": "object", "nullable": true, "properties": { "a": { "type": "string", "enum": ["x"], "nullable": true } } });
    assert_eq!(violations(nullable.clone(), json!(null)), [""; 0]);
    assert_eq!(violations(nullable.clone(), json!({ "a": null })), [""; 0]);
    assert_eq!(violations(nullable.clone(), json!({ "a": "y" })), [r#"body/a: "y" is not one of "x" or null"#]);
    assert_eq!(
        body_errors(json!({ "properties": { "a": nullable } }), json!({}), &json!({ "a": { "a": 7 } })),
        ["a must be a string (at a)"]
    );
    assert!(violations(json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }), json!(true))[0].starts_with("body: "));
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
fn nodes_with_the_same_reference_share_a_schema() {
    let response = |schema: Value| json!({ "description": "-", "content": { "application/json": { "schema": schema } } });
    let nullable = json!({ "$ref": "#/components/schemas/Error", "nullable": true });
    let responses = json!({ "400": response(ref_to("Error")), "404": response(ref_to("Error")), "410": response(nullable) });
    let contract = contract(
        json!({ "/a": { "get": { "responses": responses } } }),
        json!({ "schemas": { "Error": { "type": "object", "required": ["code"] } } }),
    );
    let operation = contract.find("GET", "/a").unwrap();
    let schema = |status| operation.response_for(status).unwrap().contents[0].schema.as_ref().unwrap();
    assert!(Arc::ptr_eq(schema(400), schema(404)));
    assert!(!Arc::ptr_eq(schema(400), schema(410)), "one of them allows null");
    assert!(schema(410).errors(&Value::Null).unwrap().is_empty());
    assert!(!schema(404).errors(&Value::Null).unwrap().is_empty());
}

#[test]
fn compiles_many_interdependent_schemas_in_time() {
    let schema = |number: usize| {
        let other =
            |step: usize| json!({ "anyOf": [{ "type": "string" }, ref_to(&format!("S{}", (number * 7 + step * 31) % 300))] });
        let properties: serde_json::Map<_, _> = (0..20).map(|step| (format!("p{step}"), other(step))).collect();
        (format!("S{number}"), json!({ "type": "object", "properties": properties }))
    };
    let schemas: serde_json::Map<_, _> = (0..300).map(schema).collect();
    assert_eq!(response_violations(ref_to("S1"), schemas.clone().into(), &json!({ "p0": { "p1": { "p2": "x" } } })), [""; 0]);
    assert!(!response_violations(ref_to("S1"), schemas.into(), &json!({ "p0": { "p1": { "p2": 7 } } })).is_empty());
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

/// `Cat` is all of `Pet`, which is one of `Cat` and `Dog`.
#[test]
fn validates_schemas_that_contain_themselves_directly() {
    let kind = |kind: &str| json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string", "enum": [kind] } } });
    let pets = json!({
        "Pet": { "oneOf": [ref_to("Cat"), ref_to("Dog")], "discriminator": { "propertyName": "kind" } },
        "Cat": { "allOf": [ref_to("Pet"), kind("cat")] },
        "Dog": { "allOf": [ref_to("Pet"), kind("dog")] },
        "Self": { "allOf": [ref_to("Self"), { "type": "string" }] },
        "Either": { "anyOf": [ref_to("Either"), { "type": "string" }] },
    });
    let errors = |name: &str, value: Value| body_errors(ref_to(name), pets.clone(), &value).len();
    assert_eq!((errors("Pet", json!({ "kind": "cat" })), errors("Cat", json!({ "kind": "cat" }))), (0, 0));
    assert_eq!((errors("Pet", json!({ "kind": "cow" })), errors("Cat", json!({ "kind": "dog" }))), (1, 1));
    assert_eq!((errors("Self", json!("x")), errors("Self", json!(7)), errors("Either", json!("x"))), (0, 1, 0));
    assert_eq!(response_violations(ref_to("Pet"), pets.clone(), &json!({ "kind": "cat" })), [""; 0]);
    assert_eq!(response_violations(ref_to("Pet"), pets.clone(), &json!({ "kind": "cow" })).len(), 1);
}

#[test]
fn matches_paths_by_shape() {
    let named = |id: &str| json!({ "operationId": id, "responses": { "204": {} } });
    let contract = contract(
        json!({
            "/a/{id}": { "get": named("by id") },
            "/a/{name}": { "post": named("by name") },
            "/{any}/c": { "get": named("any") },
            "/{other}/{part}": { "get": named("part") },
            "/a/b": { "get": named("literal") },
        }),
        json!({}),
    );
    let found = |method: &str, path: &str| contract.find(method, path).map(|operation| operation.id.clone());
    assert_eq!(found("GET", "/a/1").as_deref(), Ok("by id"));
    assert_eq!(found("POST", "/a/1").as_deref(), Ok("by name"));
    assert_eq!(found("GET", "/a/b").as_deref(), Ok("literal"));
    assert_eq!(found("GET", "/x/c").as_deref(), Ok("any"));
    assert_eq!(found("GET", "/x/y").as_deref(), Ok("part"));
    assert_eq!(found("PUT", "/a/1"), Err(RouteError::MethodNotAllowed(vec!["GET".to_owned(), "POST".to_owned()])));
    assert_eq!(["/", "/a", "/a/b/c", "/a%2Fb", "/b%"].map(|path| found("GET", path)), [const { Err(RouteError::NotFound) }; 5]);
}

#[test]
fn matches_equivalent_spellings_of_a_path() {
    let contract = contract(json!({ "/a-b/{id}/c": { "get": { "responses": { "204": {} } } } }), json!({}));
    for path in ["/a-b/1/c", "/a%2Db/1/c", "/%61%2d%62/%31/%63"] {
        assert!(["GET", "get"].iter().all(|method| contract.find(method, path).is_ok()), "{path}");
    }
    for path in ["/A-B/1/c", "/a-b/1/c/", "//a-b/1/c", "/a-b//1/c"] {
        assert_eq!(contract.find("GET", path).err(), Some(RouteError::NotFound), "{path}");
    }
}

#[test]
fn path_with_a_slash_at_its_end_is_another_path() {
    let named = |id: &str| json!({ "get": { "operationId": id, "responses": { "204": {} } } });
    let paths = json!({ "/": named("root"), "/a/": named("slash"), "/a": named("none"), "/{id}/": named("variable") });
    let contract = contract(paths, json!({}));
    let found = ["/", "/a", "/a/", "/b/", "/b"].map(|path| contract.find("GET", path).map(|operation| operation.id.as_str()));
    assert_eq!(found, [Ok("root"), Ok("none"), Ok("slash"), Ok("variable"), Err(RouteError::NotFound)]);
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

/// Each `Shape` is all of `Base`, which is one of the shapes.
#[test]
fn validates_many_schemas_that_contain_themselves_directly() {
    let shape = |number: usize| {
        let properties = json!({ format!("p{number}"): { "type": "integer" }, "next": ref_to("Base") });
        let own = json!({ "properties": properties, "required": [format!("p{number}")] });
        (format!("Shape{number}"), json!({ "allOf": [ref_to("Base"), own] }))
    };
    let mut schemas: serde_json::Map<_, _> = (0..30).map(shape).collect();
    let shapes: Vec<Value> = (0..30).map(|number| ref_to(&format!("Shape{number}"))).collect();
    schemas.insert("Base".to_owned(), json!({ "properties": { "id": { "type": "integer" } }, "oneOf": shapes }));
    for name in ["Base", "Shape7"] {
        let violations = |body: Value| response_violations(ref_to(name), schemas.clone().into(), &body);
        assert_eq!(violations(json!({ "id": 1, "p7": 2, "next": { "p3": 1 } })), [""; 0], "{name}");
        assert_eq!(
            violations(json!({ "id": 1, "p7": 2, "extra": 3 })),
            ["body: Unevaluated properties are not allowed ('extra' was unexpected)"],
            "{name}"
        );
    }
}
