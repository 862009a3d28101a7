//! A server of books whose schema has alternatives, which is correct apart from one fault.

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{comparison, findings, json_response, start, unrouted};
use crate::model::{Check, Report};

fn document() -> Value {
    let text = json!({ "type": "string", "minLength": 1, "maxLength": 40 });
    let base = json!({ "type": "object", "required": ["id", "kind", "title"], "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true },
        "kind": { "type": "string", "enum": ["ebook", "paper"] },
        "title": text,
        "notes": text,
    } });
    let variant = |kind: &str, name: &str, property: Value| {
        let own = json!({ "type": "object", "required": [name], "properties": { "kind": { "enum": [kind] }, name: property } });
        json!({ "allOf": [{ "$ref": "#/components/schemas/Base" }, own] })
    };
    let schemas = json!({
        "Base": base,
        "Ebook": variant("ebook", "format", json!({ "type": "string", "enum": ["epub", "pdf"] })),
        "Paper": variant("paper", "weight", json!({ "type": "number", "minimum": 1 })),
        "Book": { "oneOf": [{ "$ref": "#/components/schemas/Ebook" }, { "$ref": "#/components/schemas/Paper" }],
            "discriminator": { "propertyName": "kind", "mapping": { "ebook": "#/components/schemas/Ebook", "paper": "#/components/schemas/Paper" } } },
    });
    let book = json!({ "$ref": "#/components/schemas/Book" });
    let answer = |schema: &Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    let error = answer(&json!({ "type": "object" }));
    let body = |example: Option<Value>| {
        let mut content = json!({ "schema": book });
        content.as_object_mut().unwrap().extend(example.map(|example| ("example".to_owned(), example)));
        json!({ "required": true, "content": { "application/json": content } })
    };
    let example = json!({ "kind": "ebook", "title": "Rust", "notes": "New", "format": "epub" });
    json!({
        "openapi": "3.0.3",
        "info": { "title": "books", "version": "1" },
        "components": { "schemas": schemas },
        "paths": {
            "/books": { "post": { "operationId": "create", "requestBody": body(Some(example)),
                "responses": { "201": answer(&book), "400": error } } },
            "/books/{id}": {
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 } }],
                "get": { "operationId": "read", "responses": { "200": answer(&book), "400": error, "404": error } },
                "put": { "operationId": "replace", "requestBody": body(None),
                    "responses": { "200": answer(&book), "400": error, "404": error } },
            },
        },
    })
}

/// Compares the server with its document.
async fn compare(fault: &'static str) -> Report {
    let contract = Contract::new(document()).unwrap();
    let books: Mutex<Vec<Value>> = Mutex::default();
    let address = start(move |request: &Request<Bytes>| answer(&contract, &mut books.lock(), request, fault)).await;
    comparison(document(), None, &address).await.run(|_| ()).await
}

fn answer(contract: &Contract, books: &mut Vec<Value>, request: &Request<Bytes>, fault: &str) -> Response<String> {
    let path = request.uri().path();
    let operation = match contract.find(request.method().as_str(), path) {
        Ok(operation) => operation,
        Err(error) => return unrouted(error),
    };
    let body = serde_json::from_slice::<Value>(request.body()).unwrap_or_default();
    let is_valid = operation.check(path, request.uri().query(), request.headers(), request.body()).is_ok();
    let is_paper = body["kind"] == "paper" && fault == "validates no paper";
    let is_accepted = is_valid || (fault == "validates nothing" || is_paper) && body.is_object();
    if !is_accepted {
        return json_response(400, &json!({}));
    }
    let index = path.strip_prefix("/books/").and_then(|id| id.parse::<usize>().ok()).map(|id| id.wrapping_sub(1));
    let with_id = |index: usize| {
        let mut book = body.clone();
        book["id"] = json!(index + 1);
        if fault == "loses notes" {
            book.as_object_mut().unwrap().shift_remove("notes");
        }
        book
    };
    match (request.method().as_str(), index) {
        ("POST", _) => {
            books.push(with_id(books.len()));
            json_response(201, books.last().unwrap())
        }
        ("PUT", Some(index)) if index < books.len() => {
            if fault != "replaces nothing" {
                books[index] = with_id(index);
            }
            json_response(200, &with_id(index))
        }
        (_, Some(index)) if index < books.len() => json_response(200, &books[index]),
        _ => json_response(404, &json!({})),
    }
}

#[tokio::test]
async fn alternatives_are_checked() {
    let report = compare("").await;
    assert_eq!(findings(&report), [""; 0]);
    for operation in ["create", "replace"] {
        let checks = &report.operation(operation).unwrap().checks;
        assert!(checks.contains_key(&Check::Persistence) && checks.contains_key(&Check::ArgumentMissing), "{checks:?}");
    }
}

#[tokio::test]
async fn faults_in_alternatives_are_found() {
    for (fault, expected) in [
        ("validates nothing", "create argument.missing: format that is missing is answered with 201"),
        ("validates nothing", "create argument.bounds: title that is out of bounds is answered with 201"),
        // The first example is an e-book.
        ("validates no paper", "create argument.missing: weight that is missing is answered with 201"),
        ("validates no paper", "create argument.bounds: weight that is out of bounds is answered with 201"),
        ("loses notes", "create sent.kept: notes differs from the value that was sent"),
        ("replaces nothing", "replace sent.kept: a changed title is not read back"),
    ] {
        let found = findings(&compare(fault).await);
        assert!(found.iter().any(|finding| finding == expected), "{expected}: {found:?}");
    }
}
