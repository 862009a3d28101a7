//! A server of notes that requires `Idempotency-Key` for a POST and `If-Match` for each change.

use std::collections::BTreeMap;

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Store, comparison, crud_document, error, findings, id_in, json_response, rejection, start};
use crate::model::Check;

fn document() -> Value {
    let note = json!({ "type": "object", "required": ["id", "text"], "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true },
        "text": { "type": "string", "minLength": 1, "maxLength": 40 },
    } });
    let operations = ["list", "create", "read", "replace", "remove"];
    let mut document = crud_document("/notes", &operations, &note, json!({ "text": "Hello" }));
    let header = |name: &str, schema: Value| json!([{ "name": name, "in": "header", "required": true, "schema": schema }]);
    document["paths"]["/notes"]["post"]["parameters"] = header("Idempotency-Key", json!({ "type": "string", "format": "uuid" }));
    for method in ["put", "delete"] {
        let operation = &mut document["paths"]["/notes/{id}"][method];
        operation["parameters"] = header("If-Match", json!({ "type": "string" }));
        operation["responses"]["412"] = error();
    }
    document
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
