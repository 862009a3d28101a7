//! A server of tasks that can be completed, which is correct apart from one fault.

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::{compare_stateful, crud_document, error, findings, json_answer, json_response, variable};

fn document() -> Value {
    let task = json!({ "type": "object", "required": ["title"], "properties": {
        "id": { "type": "string", "format": "uuid", "readOnly": true },
        "title": { "type": "string", "minLength": 1 },
        "labels": { "type": "array", "minItems": 1, "items": { "type": "string", "minLength": 1 } },
        "state": { "type": "string", "enum": ["open", "done"], "readOnly": true },
        "owner": { "type": "object", "required": ["id", "name"], "example": { "name": "Ama" }, "properties": {
            "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" },
        } },
    } });
    let reference = json!({ "$ref": "#/components/schemas/Task" });
    let example = json!({ "title": "Sweep", "labels": ["home"], "owner": { "name": "Ama" } });
    let mut document = crud_document("/tasks", &["create", "read"], &reference, example);
    let identifier = variable("id", json!({ "type": "string", "format": "uuid" }));
    document["paths"]["/tasks/{id}"]["parameters"] = identifier.clone();
    document["paths"]["/tasks/{id}/completion"] = json!({
        "parameters": identifier,
        "post": { "operationId": "complete", "responses": { "200": json_answer(&reference), "404": error() } },
    });
    document["components"] = json!({ "schemas": { "Task": task } });
    document
}

/// Compares the server with its document. Returns the findings of these checks.
async fn found(fault: &'static str, checks: &[&str]) -> Vec<String> {
    let answer = move |_: &Contract, tasks: &mut Vec<Value>, request: &Request<Bytes>| {
        let mut path = request.uri().path().split('/').skip(2);
        let index = path.next().and_then(|id| tasks.iter().position(|task| task["id"] == id));
        let (status, body) = match (request.method().as_str(), index, path.next()) {
            ("POST", None, None) if request.uri().path() == "/tasks" => match serde_json::from_slice::<Value>(request.body()) {
                Ok(mut task) if task["title"].is_string() => {
                    task["id"] = json!(format!("8e03978e-40d5-43dd-bc93-{:012}", tasks.len()));
                    task["state"] = json!("open");
                    if task["owner"].is_object() {
                        task["owner"]["id"] = json!(1);
                    }
                    if fault == "loses labels" {
                        task["labels"] = json!([]);
                    }
                    tasks.push(task.clone());
                    (201, task)
                }
                _ => (400, json!({})),
            },
            ("GET", Some(index), None) => (200, tasks[index].clone()),
            ("POST", Some(index), Some("completion")) => {
                let mut task = tasks[index].clone();
                task["state"] = json!("done");
                if fault != "completes nothing" {
                    tasks[index] = task.clone();
                }
                (200, task)
            }
            _ => (404, json!({})),
        };
        json_response(status, &body)
    };
    let report = compare_stateful(document(), Vec::new(), answer).await;
    findings(&report).into_iter().filter(|finding| checks.iter().any(|check| finding.contains(check))).collect()
}

#[tokio::test]
async fn faults_of_lists_and_actions_are_found() {
    let checks = ["sent.kept", "action.kept", "document.example"];
    assert_eq!(found("", &checks).await, [""; 0]);
    let expected = ["create sent.kept: labels differs from the value that was sent"];
    assert_eq!(found("loses labels", &checks).await, expected);
    let expected = ["complete action.kept: a read after the action differs from its result: /state"];
    assert_eq!(found("completes nothing", &checks).await, expected);
}

#[tokio::test]
async fn invalid_identifier_may_be_an_unknown_resource() {
    assert_eq!(found("", &["read argument.", "complete argument."]).await, [""; 0]);
}
