//! Successes with a status that the document declares only by `default`.

use serde_json::{Value, json};

use super::{compare, document, findings, json_answer, json_response, response};

/// Compares a server that answers each valid POST with this status and body. `own` is the only status that the document declares beside
/// `default`. Returns the findings about responses.
async fn found(own: &str, default: Value, status: u16, body: Option<Value>) -> Vec<String> {
    let paths = json!({ "/tasks": { "post": { "operationId": "create", "responses": { own: { "description": "" }, "default": default } } } });
    let document = document("tasks", paths);
    let report = compare(document, move |request| match &body {
        _ if request.method() != "POST" => json_response(405, &json!({})),
        Some(body) => json_response(status, body),
        None => response(status, String::new()),
    });
    let report = report.await;
    let is_of_response = |finding: &String| ["status.declared", "answer."].iter().any(|check| finding.contains(check));
    findings(&report).into_iter().filter(is_of_response).collect()
}

#[tokio::test]
async fn undeclared_success_is_an_undeclared_status() {
    let problem = json!({ "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } } });
    let error = |media_type: &str| json!({ "description": "", "content": { media_type: { "schema": problem } } });
    let undeclared = ["create status.declared: the response 202 is not declared"];
    for body in [None, Some(json!({ "id": 7 }))] {
        for default in [error("application/problem+json"), error("application/json")] {
            assert_eq!(found("201", default, 202, body.clone()).await, undeclared, "{body:?}");
        }
    }
    assert_eq!(found("303", error("application/json"), 202, None).await, undeclared);
}

#[tokio::test]
async fn default_may_declare_a_success() {
    let any = json_answer(&json!({ "type": "object" }));
    assert_eq!(found("201", any.clone(), 202, Some(json!({ "id": 7 }))).await, [""; 0]);
    // Without another success, `default` is the success.
    let expected = ["create answer.media-type: the response 202 has no body"];
    assert_eq!(found("400", any, 202, None).await, expected);
}
