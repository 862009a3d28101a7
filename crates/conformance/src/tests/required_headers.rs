//! A server of notes that requires `Idempotency-Key` for a POST and `If-Match` for each change.

use std::collections::BTreeMap;

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{comparison, findings, json_response, response, start};
use crate::model::Check;

fn document() -> Value {
    let note = json!({ "type": "object", "required": ["id", "text"], "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true },
        "text": { "type": "string", "minLength": 1, "maxLength": 40 },
    } });
    let answer = |schema: &Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    let error = answer(&json!({ "type": "object" }));
    let body = json!({ "required": true, "content": { "application/json": { "schema": note, "example": { "text": "Hello" } } } });
    let header = |name: &str, schema: Value| json!([{ "name": name, "in": "header", "required": true, "schema": schema }]);
    let key = header("Idempotency-Key", json!({ "type": "string", "format": "uuid" }));
    let condition = header("If-Match", json!({ "type": "string" }));
    json!({
        "openapi": "3.0.3",
        "info": { "title": "notes", "version": "1" },
        "paths": {
            "/notes": {
                "get": { "operationId": "list", "responses": { "200": answer(&json!({ "type": "array", "items": note })) } },
                "post": { "operationId": "create", "parameters": key, "requestBody": body,
                    "responses": { "201": answer(&note), "400": error } },
            },
            "/notes/{id}": {
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 } }],
                "get": { "operationId": "read", "responses": { "200": answer(&note), "400": error, "404": error } },
                "put": { "operationId": "replace", "parameters": condition, "requestBody": body,
                    "responses": { "200": answer(&note), "400": error, "404": error, "412": error } },
                "delete": { "operationId": "remove", "parameters": condition,
                    "responses": { "204": { "description": "" }, "400": error, "404": error, "412": error } },
            },
        },
    })
}

#[derive(Default)]
struct Notes {
    notes: BTreeMap<u64, Value>,
    /// The note that each key created.
    keys: BTreeMap<String, Value>,
    count: u64,
}

fn answer(contract: &Contract, notes: &mut Notes, request: &Request<Bytes>, has_tags: bool) -> Response<String> {
    let path = request.uri().path();
    let Ok(operation) = contract.find(request.method().as_str(), path) else { return json_response(404, &json!({})) };
    if operation.check(path, request.uri().query(), request.headers(), request.body()).is_err() {
        return json_response(400, &json!({}));
    }
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap());
    let mut body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let Some(id) = path.strip_prefix("/notes/").map(|id| id.parse::<u64>().unwrap()) else {
        if request.method() == "GET" {
            return json_response(200, &notes.notes.values().cloned().collect());
        }
        let key = header("idempotency-key").unwrap().to_owned();
        if let Some(created) = notes.keys.get(&key) {
            return json_response(201, created);
        }
        notes.count += 1;
        body["id"] = json!(notes.count);
        notes.keys.insert(key, body.clone());
        notes.notes.insert(notes.count, body.clone());
        return json_response(201, &body);
    };
    let Some(note) = notes.notes.get(&id) else { return json_response(404, &json!({})) };
    let tag = |note: &Value| format!("\"{}\"", note["text"].as_str().unwrap().len());
    if header("if-match").is_some_and(|sent| sent != "*" && sent != tag(note)) {
        return json_response(412, &json!({}));
    }
    let mut response = match request.method().as_str() {
        "DELETE" => {
            notes.notes.remove(&id);
            return response(204, String::new());
        }
        "PUT" => {
            body["id"] = json!(id);
            notes.notes.insert(id, body.clone());
            json_response(200, &body)
        }
        _ => json_response(200, note),
    };
    if has_tags {
        let note = &notes.notes[&id];
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

        // The server doesn't send 405.
        let found: Vec<_> = findings(&report).into_iter().filter(|finding| !finding.contains("method.other")).collect();
        assert_eq!((found, remaining), (Vec::new(), Vec::new()));
        assert!(notes.lock().notes.is_empty());
        let is_checked = |operation: &str, check: Check| report.operation(operation).unwrap().checks.contains_key(&check);
        assert!(is_checked("create", Check::Repeat) && is_checked("create", Check::Listed));
        assert!(is_checked("replace", Check::UpdateResponse) && is_checked("remove", Check::Removed));
    }
}
