//! Tests with documents that have mistakes: a broken part never stops the whole document, and a warning names it.

use std::fs;

use boxoffice_openapi::{Contract, Direction, Sampler, compile};
use serde_json::{Value, json};

/// Returns the warnings of a document with this operation at `GET /a`, after checking that another operation is still there.
fn warnings_of(operation: Value, components: Value) -> Vec<String> {
    let fine = json!({ "responses": { "200": { "description": "" } } });
    let paths = json!({ "/a": { "get": operation }, "/fine": { "get": fine } });
    let contract = Contract::new(json!({ "openapi": "3.0.3", "paths": paths, "components": components })).unwrap();
    assert!(contract.find("GET", "/fine").is_ok());
    assert!(contract.find("GET", "/a").is_ok());
    contract.warnings
}

#[test]
fn broken_parts_are_left_out_with_a_warning() {
    let done = json!({ "200": { "description": "" } });
    for (operation, components, warning) in [
        (json!({ "responses": {} }), json!({}), "GET /a: it declares no response: the server returns an error"),
        (json!({ "summary": "no responses" }), json!({}), "GET /a: it declares no response: the server returns an error"),
        (json!(null), json!({}), "GET /a: it declares no response: the server returns an error"),
        (
            json!({ "security": [{ "none": [] }], "responses": done }),
            json!({}),
            "GET /a: the security scheme none is not checked: the document has none of this name",
        ),
        (
            json!({ "security": [{ "tls": [] }], "responses": done }),
            json!({ "securitySchemes": { "tls": { "type": "mutualTLS" } } }),
            "GET /a: the security scheme tls is not checked: its type is `mutualTLS`",
        ),
        (
            json!({ "parameters": [{ "in": "query" }], "responses": done }),
            json!({}),
            "GET /a: a parameter is left out: a parameter has no name",
        ),
        (
            json!({ "parameters": [{ "name": "q", "in": "body" }], "responses": done }),
            json!({}),
            "GET /a: a parameter is left out: parameter q: `in` is \"body\", and not path, query, header or cookie",
        ),
        (
            json!({ "parameters": [{ "name": "id", "in": "path", "schema": {} }], "responses": done }),
            json!({}),
            "GET /a: a parameter is left out: the path has no variable {id}",
        ),
        (json!({ "requestBody": {}, "responses": done }), json!({}), "GET /a: the body is not validated: a body has no content"),
        (json!({ "responses": { "ok": {}, "200": {} } }), json!({}), "GET /a: the response ok is left out: ok is not a status"),
        (
            json!({ "parameters": [{ "$ref": "#/components/parameters/None" }], "responses": done }),
            json!({}),
            "/paths/~1a/get/parameters/0: the reference `#/components/parameters/None` is ignored: it leads nowhere",
        ),
        (
            json!({ "responses": done }),
            json!({ "schemas": { "A": { "items": { "$ref": "https://example.com/a.json" } } } }),
            "/components/schemas/A/items: the reference `https://example.com/a.json` is ignored: it leads out of the document",
        ),
        (
            json!({ "responses": done }),
            json!({ "schemas": { "A": { "type": "text", "maxLength": 7 } } }),
            "type at /components/schemas/A is ignored: it can't be \"text\"",
        ),
        (
            json!({ "responses": done }),
            json!({ "schemas": { "A": { "properties": { "a": { "type": "int" } } } } }),
            "type at /components/schemas/A/properties/a is ignored: it can't be \"int\"",
        ),
        (
            json!({ "parameters": [{ "name": "q", "in": "query", "schema": { "type": ["string", "int"] } }], "responses": done }),
            json!({}),
            "type at /paths/~1a/get/parameters/0/schema is ignored: it can't be [\"string\",\"int\"]",
        ),
    ] {
        let warnings = warnings_of(operation.clone(), components);
        assert_eq!(warnings.first().map(String::as_str), Some(warning), "{operation}");
    }
}

#[test]
fn references_within_data_are_not_checked() {
    let schemas = json!({ "B": { "example": { "$ref": "x" }, "enum": [{ "$ref": "y" }] } });
    assert_eq!(warnings_of(json!({ "responses": { "200": {} } }), json!({ "schemas": schemas })), [""; 0]);
}

#[test]
fn values_are_generated_for_schemas_with_mistakes() {
    for (schema, expected) in [
        (json!({ "type": "string", "required": true }), json!({ "type": "string" })),
        (json!({ "type": "string", "maxLength": "5" }), json!({ "type": "string", "maxLength": 5 })),
        (json!({ "type": "any" }), json!({})),
        (json!({ "type": "strin" }), json!({})),
        (json!({ "type": null, "minLength": 3 }), json!({ "minLength": 3 })),
        (json!({ "type": ["integer", null] }), json!({ "type": ["integer", "null"] })),
        (json!({ "oneOf": [{ "type": null }, { "type": "integer" }] }), json!({ "type": ["integer", "null"] })),
        (json!({ "type": "file" }), json!({ "type": "string" })),
        (json!({ "type": "array", "items": null }), json!({ "type": "array" })),
        (
            json!({ "type": "array", "items": [{ "type": "integer" }] }),
            json!({ "type": "array", "items": { "type": "integer" } }),
        ),
        (json!({ "type": "object", "properties": { "a": null } }), json!({ "type": "object" })),
        (json!({ "type": "object", "required": ["a", "a"] }), json!({ "type": "object", "required": ["a"] })),
        (json!({ "type": "object", "properties": [] }), json!({ "type": "object" })),
        (json!({ "type": "string", "enum": "a" }), json!({ "type": "string" })),
        (json!({ "allOf": [] }), json!({})),
        (json!({ "type": "string", "description": null, "title": 7 }), json!({ "type": "string" })),
        (json!({ "type": "string", "nullable": "false" }), json!({ "type": "string" })),
        (json!({ "type": "integer", "minimum": "one" }), json!({ "type": "integer" })),
        (json!({ "type": "string", "pattern": 7 }), json!({ "type": "string" })),
    ] {
        let schemas = json!({ "A": schema });
        let contract = Contract::new(json!({ "openapi": "3.0.0", "paths": {}, "components": { "schemas": schemas } })).unwrap();
        let reference = json!({ "$ref": "#/components/schemas/A" });
        let sampler = Sampler::new(&contract.document, &reference, Direction::Response).unwrap();
        let validator = compile(&expected).unwrap();
        for seed in 0..20 {
            let value = sampler.sample(seed).unwrap();
            assert!(validator.is_valid(&value), "{schema}: {value}");
        }
    }
}

#[test]
fn yaml_with_numbers_beyond_64_bits_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("big.yaml");
    let text = "openapi: 3.0\ninfo: {title: big, version: 1}\npaths:\n  /a:\n    get:\n      responses:\n        200:\n          content:\n\
        \x20           application/json:\n              schema: {type: integer, maximum: 18446744073709551616000, example: 99999999999999999999}\n";
    fs::write(&file, text).unwrap();
    let contract = Contract::read(&file).unwrap();
    assert_eq!((contract.warnings.as_slice(), contract.operations().count()), (&[][..], 1));
}

#[test]
fn unreadable_file_of_a_reference_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.yaml");
    fs::write(&file, "openapi: 3.0.0\npaths: {/a: {$ref: none.yaml}, /b: {get: {responses: {200: {}}}}}\n").unwrap();
    let contract = Contract::read(&file).unwrap();
    assert!(contract.warnings[0].starts_with("none.yaml is left out: cannot read "), "{:?}", contract.warnings);
    assert_eq!(contract.warnings[1], "/paths/~1a: the reference `none.yaml` is ignored: it leads nowhere");
    assert_eq!(contract.operations().count(), 1);
}

#[test]
fn warnings_name_the_places_in_other_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("schemas")).unwrap();
    let pet = "Pet: {type: object, properties: {name: {type: strin}, owner: {$ref: '#/Owner'}, friend: {$ref: '#/Owner'}}}\n";
    fs::write(folder.path().join("schemas/pet.yaml"), pet).unwrap();
    let file = folder.path().join("openapi.yaml");
    let text = "openapi: 3.0.0\npaths: {/a: {get: {responses: {200: {content: {application/json: {schema: {$ref: 'schemas/pet.yaml#/Pet'}}}}}}}}\n";
    fs::write(&file, text).unwrap();
    let expected = [
        "type at schemas/pet.yaml#/Pet/properties/name is ignored: it can't be \"strin\"",
        "schemas/pet.yaml#/Pet/properties/owner (1 more): the reference `schemas/pet.yaml#/Owner` is ignored: it leads nowhere",
    ];
    assert_eq!(Contract::read(&file).unwrap().warnings, expected);
}

#[test]
fn unparsable_files_have_an_error_with_the_line_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, expected) in [
        (
            "tab.yaml",
            &b"openapi: 3.0.0\npaths:\n\t/a: {}\n"[..],
            "line 3 column 1, while scanning for the next token: the line is indented by a tab, and YAML allows only spaces",
        ),
        (
            "latin.yaml",
            b"openapi: 3.0.0\ninfo: {title: Caf\xe9}\n",
            "latin.yaml is not UTF-8 at line 2: save it in this encoding",
        ),
        ("comment.json", b"// Pets\n{\"openapi\": \"3.0.0\"}\n", "expected value at line 1 column 1"),
        ("comma.json", b"{\"openapi\": \"3.0.0\",, \"paths\": {}}\n", "key must be a string at line 1 column 21"),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        let error = format!("{:#}", Contract::read(&file).unwrap_err());
        assert!(error.ends_with(expected) && error.contains(name), "{error}");
    }
}

#[test]
fn operations_with_the_same_identifier_or_path_have_a_warning() {
    let operation = |id: &str| json!({ "operationId": id, "responses": { "200": { "description": "" } } });
    let both = json!({ "get": operation("other"), "post": operation("read") });
    let paths = json!({ "/a/{id}": { "get": operation("read") }, "/a/{name}": both });
    let contract = Contract::new(json!({ "openapi": "3.0.3", "paths": paths })).unwrap();
    let expected = [
        "GET /a/{name} is left out: its path is the same as /a/{id}, apart from the names of variables",
        "POST /a/{name}: another operation has the operationId read: `post /a/{name}` is used instead",
    ];
    assert_eq!(contract.warnings, expected);
    let found = ["get", "post"].map(|method| contract.find(method, "/a/7").unwrap().id.as_str());
    assert_eq!(found, ["read", "post /a/{name}"]);
    assert_eq!(contract.operation("post /a/{name}").unwrap().method, "POST");
    assert_eq!(contract.operation("read").unwrap().method, "GET");
}
