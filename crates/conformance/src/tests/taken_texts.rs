//! A server of users whose addresses must be unique.

use std::collections::BTreeMap;

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{comparison, findings, json_response, response, start};
use crate::model::{Check, Report};

fn document() -> Value {
    let user = json!({ "type": "object", "required": ["id", "email"], "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true },
        "email": { "type": "string", "format": "email" },
        "motto": { "type": "string", "minLength": 1, "maxLength": 9 },
    } });
    let answer = |schema: &Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    let error = answer(&json!({ "type": "object" }));
    let example = json!({ "email": "ama@example.com", "motto": "Sing" });
    let body = json!({ "required": true, "content": { "application/json": { "schema": user, "example": example } } });
    json!({
        "openapi": "3.0.3",
        "info": { "title": "users", "version": "1" },
        "paths": {
            "/users": { "post": { "operationId": "create", "requestBody": body,
                "responses": { "201": answer(&user), "400": error, "409": error } } },
            "/users/{id}": {
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 } }],
                "get": { "operationId": "read", "responses": { "200": answer(&user), "400": error, "404": error } },
                "put": { "operationId": "replace", "requestBody": body,
                    "responses": { "200": answer(&user), "400": error, "404": error, "409": error } },
                "delete": { "operationId": "remove", "responses": { "204": { "description": "" }, "400": error, "404": error } },
            },
        },
    })
}

fn answer(contract: &Contract, users: &mut BTreeMap<usize, Value>, request: &Request<Bytes>, limit: usize) -> Response<String> {
    let path = request.uri().path();
    let Ok(operation) = contract.find(request.method().as_str(), path) else { return json_response(404, &json!({})) };
    if operation.check(path, request.uri().query(), request.headers(), request.body()).is_err() {
        return json_response(400, &json!({}));
    }
    let id = path.strip_prefix("/users/").map(|id| id.parse::<usize>().unwrap());
    let mut body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let is_taken = users.iter().any(|(other, user)| Some(*other) != id && user["email"] == body["email"]);
    match (request.method().as_str(), id) {
        ("POST", _) if is_taken || users.len() >= limit => json_response(409, &json!({})),
        ("POST", _) => {
            let id = users.last_key_value().map_or(1, |(id, _)| id + 1);
            body["id"] = json!(id);
            users.insert(id, body.clone());
            json_response(201, &body)
        }
        (_, Some(id)) if !users.contains_key(&id) => json_response(404, &json!({})),
        ("PUT", _) if is_taken => json_response(409, &json!({})),
        ("PUT", Some(id)) => {
            body["id"] = json!(id);
            users.insert(id, body.clone());
            json_response(200, &body)
        }
        ("DELETE", Some(id)) => {
            users.remove(&id);
            response(204, String::new())
        }
        (_, id) => json_response(200, &users[&id.unwrap()]),
    }
}

/// Compares a server that takes this number of users, after another comparison.
async fn compare(limit: usize) -> Report {
    let contract = Contract::new(document()).unwrap();
    let users = Mutex::new(BTreeMap::from([(1, json!({ "id": 1, "email": "ama@example.com", "motto": "Sing" }))]));
    let address = start(move |request: &Request<Bytes>| answer(&contract, &mut users.lock(), request, limit)).await;
    comparison(document(), None, &address).await.run(|_| ()).await
}

#[tokio::test]
async fn operations_with_unique_texts_are_checked() {
    let report = compare(usize::MAX).await;
    let found: Vec<_> = findings(&report).into_iter().filter(|finding| !finding.contains("method.other")).collect();
    assert_eq!(found, [""; 0]);
    for (operation, check) in [("create", Check::Created), ("replace", Check::UpdateResponse), ("remove", Check::Removed)] {
        let operation = report.operation(operation).unwrap();
        assert!(operation.checks.contains_key(&check), "{operation:?}");
    }
}

#[tokio::test]
async fn refused_creation_is_the_reason_of_what_is_left_out() {
    let report = compare(1).await;
    let reason = "no valid request can be built: POST /users created no resource of its own: it was answered with 409";
    assert_eq!(report.operation("remove").unwrap().left_out.as_deref(), Some(reason));
}
