//! A server of notes that requires `Idempotency-Key` for a POST and `If-Match` for each change.

use std::collections::BTreeMap;

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Store, comparison, error, findings, id_in, id_variable, json_answer, json_body, json_response, rejection, start};
use crate::model::Check;

fn document() -> Value {
    let note = json!({ "type": "object", "required": ["id", "text"], "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true },
        "text": { "type": "string", "minLength": 1, "maxLength": 40 },
    } });
    let (answer, error) = (json_answer(&note), error());
    let body = json_body(&note, json!({ "text": "Hello" }));
    let list = json_answer(&json!({ "type": "array", "items": note }));
    let header = |name: &str, schema: Value| json!([{ "name": name, "in": "header", "required": true, "schema": schema }]);
    let key = header("Idempotency-Key", json!({ "type": "string", "format": "uuid" }));
    let condition = header("If-Match", json!({ "type": "string" }));
    let paths = json!({
        "/notes": {
            "get": { "operationId": "list", "responses": { "200": list } },
            "post": { "operationId": "create", "parameters": key, "requestBody": body,
                "responses": { "201": answer, "400": error } },
        },
        "/notes/{id}": {
            "parameters": id_variable(),
            "get": { "operationId": "read", "responses": { "200": answer, "400": error, "404": error } },
            "put": { "operationId": "replace", "parameters": condition, "requestBody": body,
                "responses": { "200": answer, "400": error, "404": error, "412": error } },
            "delete": { "operationId": "remove", "parameters": condition,
                "responses": { "204": { "description": "" }, "400": error, "404": error, "412": error } },
        },
    });
    super::document("notes", paths)
}

#[derive(Default)]
struct Notes {
    notes: Store,
    /// The response to the creation with each key.
    created: BTreeMap<String, Response<String>>,
}

fn answer(contract: &Contract, notes: &mut Notes, request: &Request<Bytes>, has_tags: bool) -> Response<String> {
    if let Some(rejection) = rejection(contract, request) {
        return rejection;
    }
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap());
    if let Some(key) = header("idempotency-key") {
        let store = &mut notes.notes;
        return notes.created.entry(key.to_owned()).or_insert_with(|| store.respond(request)).clone();
    }
    let tag = |note: &Value| format!("\"{}\"", note["text"].as_str().unwrap().len());
    let note = id_in(request).and_then(|id| notes.notes.resources.get(&id));
    if note.is_some_and(|note| header("if-match").is_some_and(|sent| sent != "*" && sent != tag(note))) {
        return json_response(412, &json!({}));
    }
    let mut response = notes.notes.respond(request);
    let note = id_in(request).and_then(|id| notes.notes.resources.get(&id));
    if let Some(note) = note.filter(|_| has_tags) {
        response.headers_mut().insert("etag", tag(note).parse().unwrap());
    }
    response
}

#[tokio::test]
async fn required_keys_and_tags_are_valid() {
    for has_tags in [true, false] {
        let contract = Contract::new(document()).unwrap();
        let notes: &'static Mutex<Notes> = Box::leak(Box::default());
        let address = start(move |request: &Request<Bytes>| answer(&contract, &mut notes.lock(), request, has_tags)).await;
        let comparison = comparison(document(), None, &address).await;

        let report = comparison.run(|_| ()).await;
        let remaining = comparison.target.remove_created(&comparison.contract, 1).await;

        assert_eq!((findings(&report), remaining), (Vec::new(), Vec::new()));
        assert!(notes.lock().notes.resources.is_empty());
        let is_checked = |operation: &str, check: Check| report.operation(operation).unwrap().checks.contains_key(&check);
        assert!(is_checked("create", Check::Repeat) && is_checked("create", Check::Listed));
        assert!(is_checked("replace", Check::UpdateResponse) && is_checked("remove", Check::Removed));
    }
}
