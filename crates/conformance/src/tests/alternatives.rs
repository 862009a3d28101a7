//! A server of books whose schema has alternatives, which is correct apart from one fault.

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

use super::{Store, compare_stateful, crud_document, findings, id_in, is_valid, json_response, sent, unrouted};
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
    let example = json!({ "kind": "ebook", "title": "Rust", "notes": "New", "format": "epub" });
    let mut document = crud_document("/books", &["create", "read", "replace"], &book, example);
    let replacement = &mut document["paths"]["/books/{id}"]["put"]["requestBody"]["content"]["application/json"];
    replacement.as_object_mut().unwrap().shift_remove("example");
    document["components"] = json!({ "schemas": schemas });
    document
}

/// Compares the server with its document.
async fn compare(fault: &'static str) -> Report {
    let answer = move |contract: &_, books: &mut _, request: &_| answer(contract, books, request, fault);
    compare_stateful(document(), Store::default(), answer).await
}

fn answer(contract: &Contract, books: &mut Store, request: &Request<Bytes>, fault: &str) -> Response<String> {
    let operation = match contract.find(request.method().as_str(), request.uri().path()) {
        Ok(operation) => operation,
        Err(error) => return unrouted(error),
    };
    let mut body = sent(request);
    let is_paper = body["kind"] == "paper" && fault == "validates no paper";
    let is_accepted = is_valid(operation, request) || (fault == "validates nothing" || is_paper) && body.is_object();
    if !is_accepted {
        return json_response(400, &json!({}));
    }
    if fault == "loses notes" && body.is_object() {
        body.as_object_mut().unwrap().shift_remove("notes");
    }
    let existing = id_in(request).filter(|id| books.resources.contains_key(id));
    match (operation.id.as_str(), existing) {
        ("create", _) => books.create(body),
        ("replace", Some(id)) if fault == "replaces nothing" => {
            body["id"] = json!(id);
            json_response(200, &body)
        }
        ("replace", Some(id)) => books.replace(id, body),
        _ => books.respond(request),
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
