//! A server of users whose addresses must be unique.

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

use super::{Store, compare_stateful, crud_document, error, findings, id_in, json_response, rejection, sent};
use crate::model::{Check, Report};

fn document() -> Value {
    let user = json!({ "type": "object", "required": ["id", "email"], "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true },
        "email": { "type": "string", "format": "email" },
        "motto": { "type": "string", "minLength": 1, "maxLength": 9 },
    } });
    let example = json!({ "email": "ama@example.com", "motto": "Sing" });
    let mut document = crud_document("/users", &["create", "read", "replace", "remove"], &user, example);
    document["paths"]["/users"]["post"]["responses"]["409"] = error();
    document["paths"]["/users/{id}"]["put"]["responses"]["409"] = error();
    document
}

fn answer(contract: &Contract, users: &mut Store, request: &Request<Bytes>, limit: usize) -> Response<String> {
    if let Some(rejection) = rejection(contract, request) {
        return rejection;
    }
    let (id, body) = (id_in(request), sent(request));
    let is_taken = users.resources.iter().any(|(other, user)| Some(*other) != id && user["email"] == body["email"]);
    match request.method().as_str() {
        "POST" if is_taken || users.resources.len() >= limit => json_response(409, &json!({})),
        "PUT" if is_taken && id.is_some_and(|id| users.resources.contains_key(&id)) => json_response(409, &json!({})),
        _ => users.respond(request),
    }
}

/// Compares a server that takes this number of users, after another comparison.
async fn compare(limit: usize) -> Report {
    let mut users = Store::default();
    users.create(json!({ "email": "ama@example.com", "motto": "Sing" }));
    let answer = move |contract: &_, users: &mut _, request: &_| answer(contract, users, request, limit);
    compare_stateful(document(), users, answer).await
}

#[tokio::test]
async fn operations_with_unique_texts_are_checked() {
    let report = compare(usize::MAX).await;
    assert_eq!(findings(&report), [""; 0]);
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
