//! A server of collections inside of resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;

use super::{Store, compare_stateful, crud_document, error, findings, json_answer, json_response, rejection};

#[tokio::test]
async fn concurrent_operations_share_one_parent() {
    let shelf = json!({ "type": "object", "required": ["name"], "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true }, "name": { "type": "string", "minLength": 1 },
    } });
    let mut document = crud_document("/shelves", &["create", "read"], &shelf, json!({ "name": "Top" }));
    let id = document["paths"]["/shelves/{id}"]["parameters"].clone();
    for name in ["books", "films", "songs", "games"] {
        let list = json_answer(&json!({ "type": "array", "items": shelf }));
        document["paths"][format!("/shelves/{{id}}/{name}")] = json!({
            "parameters": id,
            "get": { "operationId": name, "responses": { "200": list, "400": error(), "404": error() } },
        });
    }
    let parents: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
    let seen = Arc::clone(&parents);
    let report = compare_stateful(document, Store::default(), move |contract, shelves, request| {
        if let Some(rejection) = rejection(contract, request) {
            return rejection;
        }
        let parts: Vec<_> = request.uri().path().split('/').collect();
        let Some(parent) = parts.get(2).and_then(|id| id.parse().ok()).filter(|_| parts.len() > 3) else {
            return shelves.respond(request);
        };
        if !shelves.resources.contains_key(&parent) {
            return json_response(404, &json!({}));
        }
        seen.lock().insert(parent);
        json_response(200, &json!([]))
    });
    assert_eq!(findings(&report.await), [""; 0]);
    assert_eq!(parents.lock().len(), 1);
}
