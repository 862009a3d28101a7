//! Mocks of documents that differ from the platform's contract.

use std::sync::Arc;

use boxoffice_conformance::comparison::Comparison;
use boxoffice_conformance::model::{Check, Report};
use boxoffice_conformance::options::select_operations;
use boxoffice_conformance::target::Target;
use boxoffice_mock::MockSettings;
use serde_json::{Value, json};

use super::builtin_server;
use super::proxy::{self, Call, fault};
use crate::support::MockServer;

/// Builds a document with these paths and additional properties.
fn document(title: &str, paths: Value, added: Value) -> Value {
    let mut document = json!({ "openapi": "3.0.3", "info": { "title": title, "version": "1" }, "paths": paths });
    document.as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
    document
}

fn answer(schema: Value) -> Value {
    json!({ "description": "", "content": { "application/json": { "schema": schema } } })
}

/// Errors with their own examples, which name no argument, a bearer token, no operationIds.
fn books() -> Value {
    let error = |title: &str| {
        json!({ "description": "", "content": { "application/problem+json": {
            "schema": { "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } } },
            "example": { "title": title },
        } } })
    };
    let book = json!({ "type": "object", "required": ["isbn", "title"], "additionalProperties": false, "properties": {
        "isbn": { "type": "string", "pattern": "^[0-9]{13}$" },
        "title": { "type": "string", "minLength": 1, "maxLength": 40 },
        "pages": { "type": "integer", "minimum": 1, "nullable": true },
        "binding": { "type": "string", "enum": ["soft", "hard"] },
        "contact": { "type": "string", "format": "email" },
        "self": { "type": "string", "example": "no link" },
    } });
    let responses = |success: &str, of: Value| {
        let mut declared = json!({ "400": error("Bad request"), "401": error("Who are you?"), "403": error("Not yours") });
        declared[success] = answer(of);
        declared
    };
    let paths = json!({
        "/books": {
            "get": {
                "parameters": [
                    { "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 50 } },
                    { "name": "X-Trace", "in": "header", "required": true, "schema": { "type": "string", "format": "uuid" } },
                ],
                "responses": responses("200", json!({ "type": "array", "items": book })),
            },
            "post": {
                "requestBody": { "required": true, "content": { "application/json": { "schema": book } } },
                "responses": responses("201", book.clone()),
            },
        },
        "/books/{isbn}": {
            "parameters": [{ "name": "isbn", "in": "path", "required": true, "schema": { "type": "string", "pattern": "^[0-9]{13}$" } }],
            "get": { "responses": responses("200", book.clone()) },
            "delete": { "responses": { "204": { "description": "" }, "default": error("Something is wrong") } },
        },
    });
    let schemes = json!({ "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } } });
    document("books", paths, json!({ "security": [{ "token": [] }], "components": schemes }))
}

/// Arrays as bodies, and `default` for every error.
fn points() -> Value {
    let points = json!({ "type": "array", "minItems": 1, "maxItems": 3, "items": {
        "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": "number" },
    } });
    let error = answer(json!({ "type": "object", "required": ["status"], "properties": { "status": { "type": "integer" } } }));
    let paths = json!({
        "/points": {
            "get": {
                "parameters": [{ "name": "near", "in": "query", "schema": { "type": "string", "maxLength": 9000 } }],
                "responses": { "200": answer(points.clone()), "default": error },
            },
            "put": {
                "requestBody": { "required": true, "content": { "application/json": { "schema": points } } },
                "responses": { "200": answer(points.clone()), "default": error },
            },
        },
        "/points/{number}": { "get": {
            "parameters": [{ "name": "number", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 0 } }],
            "responses": { "2XX": answer(json!({ "type": "number" })), "4XX": error },
        } },
    });
    document("points", paths, json!({}))
}

/// A key in the query, a server with a path, recursive schemas, and 422 for invalid arguments.
fn trees() -> Value {
    let paths = json!({ "/trees": { "post": {
        "parameters": [
            { "name": "kind", "in": "query", "required": true, "schema": { "type": "string", "enum": ["oak", "elm"] } },
            { "name": "tag", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } },
        ],
        "requestBody": { "required": true, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Tree" } } } },
        "responses": {
            "201": answer(json!({ "$ref": "#/components/schemas/Tree" })),
            "400": answer(json!({ "type": "string" })),
            "403": answer(json!({ "type": "array", "items": { "type": "string" } })),
        },
    } } });
    let tree = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "minLength": 2 },
        "branches": { "type": "array", "maxItems": 2, "items": { "$ref": "#/components/schemas/Tree" } },
    } });
    let added = json!({
        "servers": [{ "url": "https://trees.example.com/v2" }],
        "security": [{ "key": [] }],
        "components": {
            "schemas": { "Tree": tree },
            "securitySchemes": { "key": { "type": "apiKey", "in": "query", "name": "token" } },
        },
    });
    document("trees", paths, added)
}

/// A list in a property, paged by `limit` and `offset`, with a filter.
fn notes() -> Value {
    let note = json!({ "type": "object", "required": ["text", "color"], "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true },
        "text": { "type": "string", "minLength": 1, "maxLength": 40 },
        "color": { "type": "string", "enum": ["red", "green"] },
    } });
    let example = |id: u64, color: &str| json!({ "id": id, "text": format!("Note {id}"), "color": color });
    let mut list = answer(json!({ "type": "object", "required": ["notes"], "properties": {
        "notes": { "type": "array", "items": note },
    } }));
    list["content"]["application/json"]["example"] =
        json!({ "notes": [example(1, "red"), example(2, "green"), example(3, "red"), example(4, "green"), example(5, "red")] });
    let error = answer(json!({ "type": "object" }));
    let paths = json!({
        "/notes": {
            "get": {
                "operationId": "note_list",
                "parameters": [
                    { "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 2 } },
                    { "name": "offset", "in": "query", "schema": { "type": "integer", "minimum": 0 } },
                    { "name": "color", "in": "query", "schema": { "type": "string", "enum": ["red", "green"] } },
                ],
                "responses": { "200": list, "400": error },
            },
            "post": {
                "requestBody": { "required": true, "content": { "application/json": { "schema": note } } },
                "responses": { "201": answer(note.clone()), "400": error },
            },
        },
        "/notes/{id}": {
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 } }],
            "get": { "responses": { "200": answer(note.clone()), "400": error, "404": error } },
            "delete": { "responses": { "204": { "description": "" }, "400": error, "404": error } },
        },
    });
    document("notes", paths, json!({}))
}

/// Required parameters of every style and location, and headers that are lists and objects.
fn styles() -> Value {
    let numbers = json!({ "type": "array", "items": { "type": "integer" }, "example": [3, 4] });
    let point = json!({ "type": "object", "required": ["x"], "additionalProperties": false, "properties": {
        "x": { "type": "integer" }, "y": { "type": "string" },
    }, "example": { "x": 1, "y": "a b" } });
    let parameter = |name: &str, location: &str, style: &str, explode: bool, schema: &Value| json!({ "name": name, "in": location, "required": true, "style": style, "explode": explode, "schema": schema });
    let mut response = answer(json!({ "type": "object" }));
    response["headers"] = json!({
        "X-Numbers": { "required": true, "schema": numbers },
        "X-Point": { "required": true, "explode": true, "schema": point },
        "X-Json": { "required": true, "content": { "application/json": { "schema": point } } },
    });
    let get = json!({
        "operationId": "styled",
        "parameters": [
            parameter("simple", "path", "simple", false, &numbers),
            parameter("label", "path", "label", true, &numbers),
            parameter("matrix", "path", "matrix", true, &point),
            parameter("form", "query", "form", false, &numbers),
            parameter("space", "query", "spaceDelimited", false, &numbers),
            parameter("pipe", "query", "pipeDelimited", false, &numbers),
            parameter("deep", "query", "deepObject", true, &point),
            { "name": "json", "in": "query", "required": true, "content": { "application/json": { "schema": point } } },
            parameter("X-Many", "header", "simple", false, &numbers),
            parameter("session", "cookie", "form", false, &json!({ "type": "string", "minLength": 2, "example": "abc" })),
            parameter("sizes", "cookie", "form", false, &numbers),
        ],
        "responses": { "200": response, "400": answer(json!({ "type": "object" })) },
    });
    document("styles", json!({ "/styles/{simple}/{label}/{matrix}": { "get": get } }), json!({}))
}

/// Pages of things, which can be created and changed, and a list of numbers that can be replaced.
fn things() -> Value {
    let size = json!({ "type": "object", "required": ["width"], "properties": { "width": { "type": "integer", "minimum": 2, "maximum": 99 } } });
    let properties =
        json!({ "name": { "type": "string", "minLength": 1, "maxLength": 40 }, "note": { "type": "string" }, "size": size });
    let new = json!({ "type": "object", "required": ["name"], "additionalProperties": false, "properties": properties });
    let change = json!({ "type": "object", "minProperties": 1, "additionalProperties": false, "properties": properties });
    let mut thing = new.clone();
    thing["required"] = json!(["id", "name"]);
    thing["properties"]["id"] = json!({ "type": "integer", "minimum": 1 });
    let example = |id: u64| json!({ "id": id, "name": format!("Thing {id}"), "size": { "width": 7 } });
    let mut list = answer(json!({ "type": "array", "items": thing }));
    list["content"]["application/json"]["example"] = json!([example(1), example(2), example(3)]);
    let error = answer(json!({ "type": "object" }));
    let number =
        |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 50 } });
    let body = |schema: &Value| json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    let numbers = json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 3 });
    let paths = json!({
        "/things": {
            "get": { "operationId": "list", "parameters": [number("page"), number("size")], "responses": { "200": list, "400": error } },
            "post": { "operationId": "create", "requestBody": body(&new), "responses": { "201": answer(thing.clone()), "400": error } },
        },
        "/things/{id}": {
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 } }],
            "get": { "responses": { "200": answer(thing.clone()), "400": error, "404": error } },
            "patch": {
                "operationId": "change",
                "requestBody": body(&change),
                "responses": { "200": answer(thing.clone()), "400": error, "404": error },
            },
        },
        "/numbers": { "put": { "operationId": "replace", "requestBody": body(&numbers), "responses": { "200": answer(json!({})), "400": error } } },
    });
    document("things", paths, json!({}))
}

/// Changes a request and its JSON body.
type RequestFault = fn(&mut Call, &mut Value);

/// Compares a mock with its document.
async fn compare(mock: &MockServer, address: &str) -> Report {
    let contract = Arc::clone(&mock.contract);
    let target = Target::connect(address, None).await.unwrap();
    let selected = select_operations(&contract, &[], &[]).unwrap();
    let comparison = Comparison::new(contract, target, None, 1, selected, builtin_server());
    comparison.run(|_| ()).await
}

/// Compares a stateful mock, whose requests a fault changes, with its document. The mock can't be recognized, because the proxy removes
/// `Prefer`.
async fn compare_faulty(document: Value, change: RequestFault) -> Report {
    let mock = MockServer::of(document, MockSettings { is_stateful: true, ..MockSettings::default() });
    let fault = fault("foreign", "").request("*", move |call, _| {
        call.headers.remove("prefer");
        let mut body = call.json();
        change(call, &mut body);
        if !body.is_null() {
            call.body = body.to_string().into();
        }
        None
    });
    compare(&mock, &proxy::start(&mock.server.base_url, fault).await).await
}

/// Removes parameters with these values.
fn remove_from(call: &mut Call, name: &str, values: &[&str]) {
    call.query.retain(|(other, value)| other != name || !values.contains(&value.as_str()));
}

/// Replaces the second page.
fn replace_second_page(call: &mut Call, page: &str) {
    for (_, value) in call.query.iter_mut().filter(|(name, value)| name == "page" && value == "2") {
        page.clone_into(value);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_other_servers_are_found() {
    let lose: RequestFault = |call, body| {
        if call.method == "POST" && body["note"].is_string() {
            body.as_object_mut().unwrap().remove("note");
        }
    };
    let cut: RequestFault = |call, body| {
        if call.method == "PATCH" && body["size"]["width"].is_i64() {
            body["size"]["width"] = json!(2);
        }
    };
    let demand: RequestFault = |call, body| {
        if call.method == "POST" && body["note"].is_null() {
            *body = json!({});
        }
    };
    let accept_nothing: RequestFault = |call, body| {
        if call.method == "PATCH" && *body == json!({}) {
            body["name"] = json!("x");
        }
    };
    let accept_texts: RequestFault = |call, body| {
        if call.method == "PUT" && body.as_array().is_some_and(|items| items.iter().any(|item| !item.is_i64())) {
            *body = json!([1]);
        }
    };
    let accept_many: RequestFault = |call, body| {
        if call.method == "PUT" && body.as_array().is_some_and(|items| items.len() > 3) {
            *body = json!([1]);
        }
    };
    let repeat_page: RequestFault = |call, _| replace_second_page(call, "1");
    let ignore_page: RequestFault = |call, _| remove_from(call, "page", &["2", "3"]);
    let skip_page: RequestFault = |call, _| {
        if call.query("size") != Some("50") {
            replace_second_page(call, "3");
        }
    };
    for (fault, expected) in [
        ((|_, _| ()) as RequestFault, None),
        (lose, Some(("create", Check::Persistence, "note differs from the value that was sent"))),
        (cut, Some(("change", Check::Persistence, "a changed size is not read back"))),
        (demand, Some(("create", Check::Valid, "a body with nothing but required properties is answered with 400"))),
        (accept_nothing, Some(("change", Check::ArgumentBounds, "a body that is out of bounds is answered with 200"))),
        (accept_texts, Some(("replace", Check::ArgumentType, "a body that has a wrong type is answered with 200"))),
        (accept_many, Some(("replace", Check::ArgumentBounds, "a body that is out of bounds is answered with 200"))),
        (repeat_page, Some(("list", Check::ListTotals, "the list contains an entry twice"))),
        (ignore_page, Some(("list", Check::ListTotals, "the list contains an entry twice"))),
        (skip_page, Some(("list", Check::ListTotals, "the list has other entries in smaller pages"))),
    ] {
        let report = compare_faulty(things(), fault).await;

        let findings = report.findings.iter();
        let found: Vec<_> =
            findings.map(|finding| (finding.operation.as_str(), finding.check, finding.summary.as_str())).collect();
        match expected {
            Some(expected) => assert!(found.contains(&expected), "{expected:?}: {found:?}"),
            None => assert_eq!(found, []),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ignored_filter_of_paged_list_is_found() {
    let ignore_filters: RequestFault = |call, _| remove_from(call, "color", &["red", "green"]);
    for (fault, expected) in [((|_, _| ()) as RequestFault, None), (ignore_filters, Some(Check::Filter))] {
        let report = compare_faulty(notes(), fault).await;

        let list = report.operations.iter().find(|operation| operation.operation == "note_list").unwrap();
        assert!(list.checks.contains_key(&Check::Filter), "{list:?}");
        let checks: Vec<_> = report.findings.iter().map(|finding| (finding.operation.as_str(), finding.check)).collect();
        assert_eq!(checks, Vec::from_iter(expected.map(|check| ("note_list", check))), "{:#?}", report.findings);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mock_of_other_document_conforms() {
    for document in [books(), points(), trees(), notes(), styles()] {
        let mock = MockServer::of(document, MockSettings::default());

        let report = compare(&mock, &mock.server.base_url).await;

        assert_eq!(report.findings, [], "{}", report.document);
        for operation in &report.operations {
            assert!(operation.left_out.is_none() && operation.seen.iter().any(|status| *status < 300), "{operation:?}");
        }
    }
}
