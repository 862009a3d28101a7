//! Tests with documents of OpenAPI 3.1 and 3.2, and with documents of several files.

use std::fs;

use boxoffice_openapi::{Contract, Direction, ExampleUse, RequestError, Sampler};
use http::HeaderMap;
use serde_json::{Value, json};

use super::load_error;

/// Creates a contract of this version, with a schema for the body of `POST /things`.
fn contract_of(version: &str, schema: Value, schemas: Value) -> Contract {
    let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    let operation = json!({ "requestBody": body, "responses": { "204": { "description": "" } } });
    let components = json!({ "schemas": schemas });
    Contract::new(json!({ "openapi": version, "paths": { "/things": { "post": operation } }, "components": components })).unwrap()
}

fn is_valid(contract: &Contract, body: &Value) -> bool {
    let headers: HeaderMap = [(http::header::CONTENT_TYPE, "application/json".parse().unwrap())].into_iter().collect();
    let operation = contract.find("POST", "/things").unwrap();
    match operation.check("/things", None, &headers, body.to_string().as_bytes()) {
        Ok(_) => true,
        Err(RequestError::InvalidFields(_)) => false,
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn rejects_documents_of_other_formats() {
    let swagger = load_error(json!({ "swagger": "2.0", "paths": {} }));
    assert_eq!(
        swagger,
        "it is Swagger 2.0, not OpenAPI 3; convert it first: npx --yes swagger2openapi --patch FILE --outfile openapi.yaml"
    );
    assert_eq!(load_error(json!({ "openapi": "4.0.0", "paths": {} })), "it is OpenAPI 4.0.0, not OpenAPI 3");
    assert_eq!(load_error(json!({ "openapi": "3.0.3" })), "the document has no paths");
    for version in [json!("3.0"), json!("3.0.4"), json!("3.1.1"), json!("3.2.0"), json!(3.0), json!(3.1), json!(3)] {
        let contract = Contract::new(json!({ "openapi": version, "paths": {} })).unwrap();
        assert_eq!(contract.warnings, ["the document has no operations"], "{version}");
    }
}

#[test]
fn validates_keywords_of_json_schema_2020_12() {
    let schemas = json!({
        "Name": { "type": "string", "minLength": 2 },
        "Tree": { "$id": "tree", "type": "object", "properties": { "left": { "anyOf": [{ "$ref": "#/components/schemas/Tree" }, { "type": "null" }] } } },
        "Any": {},
        "Local": { "$defs": { "Code": { "type": "integer" } }, "properties": { "code": { "$ref": "#/$defs/Code" } } },
    });
    let name = json!({ "$ref": "#/components/schemas/Name" });
    let any = |keyword: &str, value: Value| json!({ "$ref": "#/components/schemas/Any", keyword: value });
    let local = json!({ "$ref": "#/components/schemas/Any", "$defs": { "Code": { "type": "integer" } }, "properties": { "code": { "$ref": "#/$defs/Code" } } });
    for (schema, valid, invalid) in [
        (json!({ "type": ["string", "null"] }), json!(["a", null]), json!([1])),
        (json!({ "type": ["string", "integer"] }), json!(["a", 1]), json!([null, 1.5])),
        (
            json!({ "type": ["array", "string", "null"], "items": { "type": "integer" } }),
            json!(["a", [1], null]),
            json!([["a"], 1]),
        ),
        (json!({ "type": ["string", "null"], "enum": ["a"] }), json!(["a"]), json!([null, "b"])),
        (json!({ "type": "null" }), json!([null]), json!([0])),
        (json!({ "anyOf": [name, { "type": "null" }] }), json!(["ab", null]), json!(["a", 1])),
        (json!({ "oneOf": [name, { "type": "integer" }, { "type": "null" }] }), json!(["ab", null, 1]), json!(["a", 1.5])),
        (json!({ "type": "string", "nullable": true }), json!(["a"]), json!([null])),
        (json!({ "const": 7 }), json!([7]), json!([8, null])),
        (json!({ "const": null }), json!([null]), json!([8])),
        (json!({ "type": "null", "enum": ["a", null] }), json!([null]), json!(["a"])),
        (json!({ "type": "null", "enum": ["a"] }), json!([]), json!([null, "a"])),
        (json!({ "type": "null", "const": 5 }), json!([]), json!([null, 5])),
        (json!({ "const": 7, "enum": [8] }), json!([]), json!([7, 8])),
        (json!({ "anyOf": [{ "type": "null", "enum": ["a"] }] }), json!([]), json!([null, "a"])),
        (json!({ "anyOf": [{ "type": "null" }], "enum": ["a"] }), json!([]), json!([null, "a"])),
        (json!({ "$ref": "#/components/schemas/Name", "maxLength": 3 }), json!(["abc"]), json!(["a", "abcd"])),
        (any("type", json!("integer")), json!([1]), json!(["a"])),
        (any("contains", name.clone()), json!([["ab"]]), json!([["a"]])),
        (any("dependentRequired", json!({ "a": ["b"] })), json!([{ "b": 1 }]), json!([{ "a": 1 }])),
        (any("patternProperties", json!({ "^x": { "type": "integer" } })), json!([{ "x": 1 }]), json!([{ "x": "a" }])),
        (any("unevaluatedProperties", json!(false)), json!([{}]), json!([{ "a": 1 }])),
        (any("contentEncoding", json!("base64")), json!(["YQ=="]), json!(["!"])),
        (local, json!([{ "code": 1 }]), json!([{ "code": "a" }])),
        (json!({ "type": ["object", "null"], "allOf": [{ "type": "object" }] }), json!([{}]), json!([null, 1])),
        (json!({ "type": ["object", "null"], "anyOf": [{ "type": "object" }] }), json!([{}]), json!([null, 1])),
        (
            json!({ "type": ["object", "null"], "oneOf": [{ "type": "object" }, { "type": "null" }] }),
            json!([{}, null]),
            json!([1]),
        ),
        (json!({ "type": ["object", "null"], "not": { "type": "null" } }), json!([{}]), json!([null, 1])),
        (json!({ "type": ["object", "null"], "if": { "type": "null" }, "then": false }), json!([{}]), json!([null, 1])),
        (json!({ "type": ["string", "null"], "anyOf": [{ "minLength": 2 }] }), json!(["ab", null]), json!(["a"])),
        (
            json!({ "type": ["object", "null"], "allOf": [{ "anyOf": [{ "type": "object" }, { "type": "null" }] }] }),
            json!([{}, null]),
            json!([1]),
        ),
        (
            json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "type": "null" }] }),
            json!([{ "a": 1 }]),
            json!([null, {}]),
        ),
        (json!({ "allOf": [{ "type": "string" }], "anyOf": [name, { "type": "null" }] }), json!(["ab"]), json!([null, "a"])),
        (json!({ "not": { "type": "null" }, "anyOf": [name, { "type": "null" }] }), json!(["ab"]), json!([null, "a"])),
        (json!({ "anyOf": [name, { "type": "string", "enum": [null] }] }), json!(["ab"]), json!([null, "a"])),
        (json!({ "oneOf": [{ "type": ["string", "null"] }, { "type": "null" }] }), json!(["a"]), json!([null, 1])),
        (json!({ "oneOf": [{ "minLength": 2 }, { "const": null }] }), json!(["ab", 1]), json!([null, "a"])),
        (json!({ "oneOf": [{ "type": "null" }, { "type": "null" }] }), json!([]), json!([null, 1])),
        (json!({ "anyOf": [{}, { "type": "null" }] }), json!([null, 1]), json!([])),
        (
            json!({ "dependentRequired": { "format": ["unit"], "examples": ["unit"], "$ref": ["unit"] } }),
            json!([{ "format": 1, "unit": 1 }]),
            json!([{ "format": 1 }, { "examples": 1 }, { "$ref": 1 }]),
        ),
        (json!({ "exclusiveMinimum": 1, "exclusiveMaximum": 3 }), json!([2]), json!([1, 3])),
        (
            json!({ "prefixItems": [{ "type": "string" }, name], "items": false }),
            json!([["", "ab"]]),
            json!([[1], ["", "a"], ["", "ab", 1]]),
        ),
        (
            json!({ "patternProperties": { "^x": { "type": "integer" } }, "additionalProperties": false }),
            json!([{ "x1": 1 }]),
            json!([{ "x1": "a" }, { "y": 1 }]),
        ),
        (json!({ "propertyNames": name }), json!([{ "ab": 1 }]), json!([{ "a": 1 }])),
        (
            json!({ "if": { "required": ["a"] }, "then": { "required": ["b"] }, "else": { "required": ["c"] } }),
            json!([{ "a": 1, "b": 1 }, { "c": 1 }]),
            json!([{ "a": 1, "c": 1 }, {}]),
        ),
        (json!({ "contains": name, "maxContains": 1 }), json!([["ab"]]), json!([["a"], ["ab", "bc"]])),
        (json!({ "dependentRequired": { "a": ["b"] } }), json!([{ "b": 1 }]), json!([{ "a": 1 }])),
        (
            json!({ "$ref": "#/components/schemas/Tree" }),
            json!([{ "left": { "left": null } }]),
            json!([{ "left": { "left": 1 } }]),
        ),
        (json!({ "$ref": "#/components/schemas/Local" }), json!([{ "code": 1 }]), json!([{ "code": "a" }])),
        (json!(true), json!([1, "a"]), json!([])),
        (json!({ "type": "object", "properties": { "a": true } }), json!([{ "a": 1 }]), json!([1])),
    ] {
        // In an array, so that a null is no missing body.
        let contract = contract_of("3.1.0", json!({ "type": "array", "items": schema }), schemas.clone());
        assert_eq!(contract.warnings, [""; 0], "{schema}");
        for value in valid.as_array().unwrap() {
            assert!(is_valid(&contract, &json!([value])), "{schema} {value}");
        }
        for value in invalid.as_array().unwrap() {
            assert!(!is_valid(&contract, &json!([value])), "{schema} {value}");
        }
    }
}

#[test]
fn unevaluated_properties_of_the_document_apply_to_responses() {
    let is_valid = |unevaluated: Value, body: Value| {
        let schema =
            json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "unevaluatedProperties": unevaluated });
        let response = json!({ "200": { "description": "", "content": { "application/json": { "schema": schema } } } });
        let document = json!({ "openapi": "3.1.0", "paths": { "/things": { "get": { "responses": response } } } });
        let contract = Contract::new(document).unwrap();
        let schema = contract.operations().next().unwrap().responses[0].contents[0].schema.as_ref().unwrap().clone();
        schema.errors(&body).unwrap().is_empty()
    };
    let text = json!({ "type": "string" });
    assert!(is_valid(json!(true), json!({ "id": 1, "x": 2 })));
    assert!(is_valid(text.clone(), json!({ "id": 1, "x": "y" })));
    assert!(!is_valid(text, json!({ "id": 1, "x": 2 })));
    assert!(!is_valid(json!(false), json!({ "id": 1, "x": 2 })));
}

#[test]
fn keywords_beside_a_reference_apply_from_openapi_3_1() {
    let schema = json!({ "$ref": "#/components/schemas/Name", "maxLength": 3 });
    let schemas = json!({ "Name": { "type": "string" } });
    for (version, expected) in [("3.0.3", true), ("3.1.0", false), ("3.2.0", false)] {
        let contract = contract_of(version, schema.clone(), schemas.clone());
        assert_eq!(is_valid(&contract, &json!("abcd")), expected, "{version}");
    }
}

#[test]
fn keywords_beside_a_reference_to_a_parameter_have_no_meaning() {
    let reference = |to: &str| json!({ "$ref": format!("#/components/{to}"), "required": true, "example": 5 });
    let response = json!({ "description": "", "headers": { "X-Size": reference("headers/Size") } });
    let operation = json!({ "parameters": [reference("parameters/Limit")], "responses": { "200": response } });
    let size = json!({ "schema": { "type": "integer" } });
    let limit = json!({ "name": "limit", "in": "query", "schema": { "type": "integer" } });
    let contract = Contract::new(json!({
        "openapi": "3.1.0",
        "paths": { "/things": { "get": operation } },
        "components": { "parameters": { "Limit": limit }, "headers": { "Size": size } },
    }));

    let contract = contract.unwrap();
    let operation = contract.operations().next().unwrap();
    assert_eq!((contract.warnings.len(), operation.parameters.len()), (0, 1), "{:?}", contract.warnings);
    assert_eq!((operation.parameters[0].name.as_str(), operation.parameters[0].required), ("limit", false));
    assert_eq!(operation.responses[0].headers[0].schema.resolved["type"], "integer");
}

#[test]
fn generates_values_for_keywords_of_json_schema_2020_12() {
    for schema in [
        json!({ "type": ["string", "integer"], "maxLength": 5, "maximum": 5 }),
        json!({ "type": ["string", "null"], "enum": ["a"] }),
        json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }], "items": false, "minItems": 2 }),
        json!({ "type": "array", "prefixItems": [{ "const": 1 }], "items": { "const": 2 }, "minItems": 4 }),
        json!({ "type": "object", "propertyNames": { "enum": ["a", "b"] }, "additionalProperties": { "type": "integer" }, "minProperties": 2 }),
        json!({ "type": "object", "propertyNames": { "pattern": "^[a-f]{3}$" }, "additionalProperties": { "const": 1 }, "minProperties": 3 }),
        json!({
            "type": "object", "properties": { "kind": { "enum": ["a", "b"] }, "size": { "type": "integer" } }, "required": ["kind"],
            "if": { "properties": { "kind": { "const": "a" } } }, "then": { "required": ["size"] }, "else": { "maxProperties": 1 },
        }),
    ] {
        let contract = contract_of("3.1.0", schema.clone(), json!({}));
        let raw = &contract.operations().next().unwrap().body.as_ref().unwrap().contents[0].schema.as_ref().unwrap().raw;
        let sampler = Sampler::new(&contract.document, raw, Direction::Response).unwrap();
        for seed in 0..20 {
            for examples in [ExampleUse::Always, ExampleUse::Sometimes, ExampleUse::Never] {
                let value = sampler.sample_with(seed, examples).unwrap();
                assert!(is_valid(&contract, &value), "{schema} {value}");
            }
        }
    }
}

#[test]
fn follows_examples_of_schemas_always_or_never() {
    let schemas = json!({
        "Name": { "type": "string", "examples": ["Ama", "Kofi"] },
        "Address": { "type": "object", "properties": { "city": { "type": "string", "default": "Accra" } } },
        "Whole": { "type": "object", "properties": { "a": { "type": "integer" } }, "example": { "a": 7 } },
        "Base": { "type": "object", "properties": { "id": { "type": "integer", "example": 3 } } },
    });
    let schema = json!({ "type": "object", "properties": {
        "name": { "$ref": "#/components/schemas/Name" },
        "other": { "$ref": "#/components/schemas/Name", "example": "Esi" },
        "address": { "$ref": "#/components/schemas/Address" },
        "whole": { "anyOf": [{ "$ref": "#/components/schemas/Whole" }, { "type": "null" }] },
        "wrong": { "type": "integer", "example": "no integer" },
        "combined": { "allOf": [{ "$ref": "#/components/schemas/Base" }, { "properties": { "size": { "type": "integer", "example": 4 } } }] },
        "list": { "type": "array", "items": { "$ref": "#/components/schemas/Name" }, "maxItems": 1 },
    } });
    let contract = contract_of("3.1.0", schema, schemas);
    let raw = &contract.operations().next().unwrap().body.as_ref().unwrap().contents[0].schema.as_ref().unwrap().raw;
    let sampler = Sampler::new(&contract.document, raw, Direction::Response).unwrap();
    for seed in 0..20 {
        let mut value = sampler.sample_with(seed, ExampleUse::Always).unwrap();
        assert!(value.as_object_mut().unwrap().shift_remove("wrong").unwrap().is_i64());
        let expected = json!({
            "name": "Ama", "other": "Esi", "address": { "city": "Accra" }, "whole": { "a": 7 }, "combined": { "id": 3, "size": 4 },
            "list": ["Ama"],
        });
        assert_eq!(value, expected);
        let text = sampler.sample_with(seed, ExampleUse::Never).unwrap().to_string();
        assert!(!["Ama", "Kofi", "Esi", "Accra"].iter().any(|example| text.contains(example)), "{text}");
    }
}

#[test]
fn skips_parts_that_are_not_served() {
    let operation = json!({ "responses": { "200": { "description": "" } } });
    let contract = Contract::new(json!({
        "openapi": "3.2.0",
        "paths": { "/a": { "get": operation, "query": operation, "additionalOperations": { "COPY": operation } } },
        "webhooks": { "added": { "post": operation } },
    }));
    let contract = contract.unwrap();
    assert_eq!(
        contract.warnings,
        [
            "QUERY /a is left out: the method isn't served",
            "COPY /a is left out: the method isn't served",
            "the webhooks are left out: the server doesn't send requests",
        ]
    );
    let only_webhooks = Contract::new(json!({ "openapi": "3.1.0", "webhooks": { "added": { "post": operation } } })).unwrap();
    assert_eq!(only_webhooks.warnings[1], "the document has no operations");
}

#[test]
fn reads_documents_of_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "openapi.yaml",
        "openapi: 3.0\npaths:\n  /trees/{id}:\n    $ref: paths/tree.yaml\n  /all: {$ref: 'paths/'}\n\
         components:\n  schemas: {$ref: 'schemas/index.yaml'}\n  responses: {Gone: {description: '', content: {application/json: \
         {schema: {$ref: '#/components/schemas/Error'}}}}}\n",
    );
    write(
        "paths/tree.yaml",
        "get:\n  parameters: [{$ref: '../parameters.json#/id'}]\n  responses:\n    200:\n      description: ''\n      content:\n\
         \x20       application/json:\n          schema: {$ref: '../schemas/my tree.yaml'}\n    410: {$ref: '../openapi.yaml#/components/responses/Gone'}\n",
    );
    write("paths/index.yml", "get: {$ref: 'all.yaml'}\n");
    write("paths/all.yaml", "responses: {204: {description: ''}}\n");
    write("parameters.json", r#"{ "id": { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } } }"#);
    write("schemas/my tree.yaml", "required: [size]\nproperties: {$ref: 'properties.yaml#/tree'}\n");
    write("schemas/properties.yaml", "tree:\n  size: {type: integer}\n  left: {$ref: 'my%20tree.yaml'}\n");
    write("schemas/index.yaml", "Error: {$ref: 'error.yaml#/definitions/Error'}\n");
    write(
        "schemas/error.yaml",
        "definitions: {Error: {required: [message], properties: {message: {$ref: '#/definitions/Text'}}}, Text: {type: string}}\n",
    );

    for path in [folder.path().to_owned(), folder.path().join("openapi.yaml")] {
        let contract = Contract::read(&path).unwrap();
        assert_eq!(contract.warnings, [""; 0]);
        assert_eq!(contract.files.len(), 9, "{:?}", contract.files);
        let tree = contract.find("GET", "/trees/7").unwrap();
        assert_eq!(tree.parameters[0].name, "id");
        assert_eq!(contract.find("GET", "/all").unwrap().statuses, [204].into());
        let headers: HeaderMap = [(http::header::CONTENT_TYPE, "application/json".parse().unwrap())].into_iter().collect();
        let is_valid = |status: u16, body: Value| tree.violations(status, &headers, body.to_string().as_bytes()).is_empty();
        assert!(is_valid(200, json!({ "size": 1, "left": { "size": 2 } })));
        assert!(!is_valid(200, json!({ "size": 1, "left": { "size": "2" } })));
        assert!(is_valid(410, json!({ "message": "gone" })));
        assert!(!is_valid(410, json!({ "message": 7 })));
    }
}

#[test]
fn follows_references_to_identifiers() {
    let folder = tempfile::tempdir().unwrap();
    let id = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" } } });
    let with = |keyword: &str, name: &str, mut schema: Value| {
        schema[keyword] = name.into();
        schema
    };
    let tree = |data: &str| {
        let children = json!({ "type": "array", "items": { "$dynamicRef": "#node" } });
        let properties = json!({ "data": { "type": data }, "children": children });
        with("$dynamicAnchor", "node", json!({ "required": ["data"], "properties": properties }))
    };
    let schemas = json!({
        "Anchored": with("$anchor", "pet", id.clone()),
        "Ided": with("$id", "https://example.com/schemas/ided", json!({ "$defs": { "Inner": with("$anchor", "inner", id.clone()) } })),
        "Relative": with("$id", "relative", id.clone()),
        "Recursive": { "$recursiveAnchor": true, "allOf": [id] },
        "Tree": tree("integer"),
        "Texts": tree("string"),
    });
    let other = json!({ "definitions": { "value": with("$anchor", "kind", id), "default": { "$ref": "#kind" } } });
    fs::write(folder.path().join("pet.json"), other.to_string()).unwrap();
    let leaf = |data: Value| json!({ "data": data });
    let parent = |data: Value, child: Value| json!({ "data": data, "children": [leaf(child)] });
    let (valid_id, invalid_id) = (json!({ "id": 1 }), json!({ "id": "x" }));
    for (reference, valid, invalid) in [
        ("#pet", &valid_id, &invalid_id),
        ("https://example.com/schemas/ided#inner", &valid_id, &invalid_id),
        ("https://example.com/schemas/ided#/$defs/Inner", &valid_id, &invalid_id),
        ("relative", &valid_id, &invalid_id),
        ("#/components/schemas/Recursive", &valid_id, &invalid_id),
        ("pet.json#kind", &valid_id, &invalid_id),
        ("pet.json#/definitions/value", &valid_id, &invalid_id),
        ("pet.json#/definitions/default", &valid_id, &invalid_id),
        ("#/components/schemas/Tree", &parent(json!(1), json!(2)), &parent(json!(1), json!("x"))),
        ("#/components/schemas/Texts", &parent(json!("x"), json!("y")), &parent(json!("x"), json!(1))),
    ] {
        let body = json!({ "content": { "application/json": { "schema": { "$ref": reference } } } });
        let paths = json!({ "/things": { "post": { "requestBody": body, "responses": { "204": { "description": "" } } } } });
        let document = json!({ "openapi": "3.1.0", "paths": paths, "components": { "schemas": schemas } });
        let file = folder.path().join("openapi.json");
        fs::write(&file, document.to_string()).unwrap();
        let contract = Contract::read(&file).unwrap();
        assert_eq!(contract.warnings, [""; 0], "{reference}");
        assert!(is_valid(&contract, valid), "{reference}");
        assert!(!is_valid(&contract, invalid), "{reference}");
    }
}
