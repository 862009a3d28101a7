//! The store of the stateful mock, and its limits.

use boxoffice_conformance::http_client::{ReceivedResponse, Request};
use boxoffice_mock::MockSettings;
use serde_json::{Value, json};

use super::requests;
use crate::support::{MockServer, mock_request as request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ignores_undeclared_properties() {
    let mock = MockServer::start_stateful();
    let with = |id: &str, name: &str, value: &str| {
        let (operation, request) = requests(&mock.contract).into_iter().find(|(operation, _)| operation.id == id).unwrap();
        let content = &operation.body.as_ref().unwrap().contents[0];
        let mut body = content.examples.values().next().unwrap().clone();
        body[name] = value.into();
        request.with_json(&body)
    };
    let event = mock.send(&request("GET", "/events/17637000000051")).await.json();

    let created = mock.send(&with("host_create", "self", "/events/17637000000051")).await;
    assert_eq!(created.status, 201, "{}", created.json());
    assert!(created.json()["self"].as_str().unwrap().starts_with("/hosts/"), "{}", created.json());
    assert_eq!(mock.send(&request("GET", "/events/17637000000051")).await.json(), event);
    let changed = mock.send(&with("event_update", "status", "Cancelled")).await;
    assert_eq!((changed.status, &changed.json()["status"]), (200, &event["status"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn singleton_is_stored_at_its_path() {
    let mock = MockServer::start_stateful();
    let preferences = |account: &str, method: &str| request(method, &format!("/accounts/{account}/preferences"));
    let ama = mock.send(&preferences("GH-4K7QW2MZ", "GET")).await.json();

    let change = preferences("GH-4K7QW2MZ", "PUT").with_json(&json!({ "region": "/regions/17637000000042" }));
    let changed = mock.send(&change).await;

    assert_eq!((changed.status, &changed.json()["region"]), (200, &json!("17637000000042")));
    assert_eq!(mock.send(&preferences("GH-4K7QW2MZ", "GET")).await.json()["region"], "17637000000042");
    assert_ne!(ama["region"], "17637000000042");
    assert_eq!(mock.send(&preferences("GH-8T3NB6XR", "GET")).await.json()["region"], ama["region"], "somebody else's");
}

/// Starts a mock whose responses contain less than an item, or wrap it.
fn notes() -> MockServer {
    let json = |schema: &Value| json!({ "content": { "application/json": { "schema": schema } } });
    let answer = |schema: &Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    let none = json!({ "description": "" });
    let note = json!({ "$ref": "#/components/schemas/Note" });
    let id = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string", "minLength": 6 } } });
    let wrapped = json!({ "type": "object", "required": ["data"], "properties": { "data": note } });
    let variable = json!([{ "name": "note", "in": "path", "required": true, "schema": { "type": "string" } }]);
    let list = json!({ "type": "array", "items": note });
    let collection = |created: &Value| {
        json!({ "get": { "responses": { "200": answer(&list) } },
            "post": { "requestBody": json(&note), "responses": { "201": created } } })
    };
    let item = |read: &Value| {
        json!({ "parameters": variable, "get": { "responses": { "200": answer(read) } },
            "put": { "requestBody": json(&note), "responses": { "204": none } } })
    };
    let document = json!({
        "openapi": "3.0.3",
        "info": { "title": "notes", "version": "1" },
        "paths": {
            "/notes": collection(&answer(&id)),
            "/notes/{note}": item(&note),
            "/whole": collection(&answer(&note)),
            "/whole/{note}": item(&note),
            "/wrapped": collection(&answer(&wrapped)),
            "/wrapped/{note}": item(&wrapped),
            "/silent": collection(&none),
            "/silent/{note}": item(&note),
            "/slashed/": collection(&answer(&note)),
            "/slashed/{note}/": item(&note),
        },
        "components": { "schemas": { "Note": {
            "type": "object", "required": ["text", "code", "secret"],
            "properties": {
                "id": { "type": "string", "minLength": 6, "readOnly": true },
                "text": { "type": "string" },
                "code": { "type": "string", "minLength": 4 },
                "tag": { "type": "string" },
                "secret": { "type": "string", "writeOnly": true },
            },
        } } },
    });
    MockServer::of(document, MockSettings { is_stateful: true, ..MockSettings::default() })
}

async fn send(mock: &MockServer, method: &str, path: &str, body: Option<Value>) -> ReceivedResponse {
    let request = Request::new(method, path);
    mock.server.send(&body.map_or(request.clone(), |body| request.with_json(&body))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ignores_read_only_properties() {
    let mock = notes();
    let body = json!({ "id": "chosen-by-me", "text": "Hello", "code": "abcd", "secret": "s" });
    let created = send(&mock, "POST", "/whole", Some(body)).await.json();
    assert_eq!((&created["text"], &created["code"], &created["secret"]), (&json!("Hello"), &json!("abcd"), &Value::Null));
    assert_ne!(created["id"], "chosen-by-me");
    assert_eq!(send(&mock, "GET", "/whole", None).await.json(), json!([created]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_body_if_response_contains_only_id() {
    let mock = notes();
    let created = send(&mock, "POST", "/notes", Some(json!({ "text": "Hello", "code": "abcd", "secret": "s" }))).await.json();
    let id = created["id"].as_str().unwrap().to_owned();
    let mut stored = json!({ "id": id, "text": "Hello", "code": "abcd" });
    assert_eq!(send(&mock, "GET", &format!("/notes/{id}"), None).await.json(), stored);

    let change = json!({ "text": "Bye", "code": "abcd", "tag": "new", "secret": "t" });
    assert_eq!(send(&mock, "PUT", &format!("/notes/{id}"), Some(change)).await.status, 204);
    (stored["text"], stored["tag"]) = ("Bye".into(), "new".into());
    assert_eq!(send(&mock, "GET", &format!("/notes/{id}"), None).await.json(), stored);
    assert_eq!(send(&mock, "GET", "/notes", None).await.json(), json!([stored]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unidentifiable_resource_is_served_without_state() {
    let mock = notes();
    for (collection, item) in [("/wrapped", "/wrapped/any"), ("/silent", "/silent/any"), ("/slashed/", "/slashed/any/")] {
        let body = json!({ "text": "Hello", "code": "abcd", "secret": "s" });
        assert_eq!(send(&mock, "POST", collection, Some(body)).await.status, 201, "{collection}");
        assert_eq!(send(&mock, "GET", item, None).await.status, 200, "{item}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slash_in_id_is_no_separator() {
    assert_eq!(send(&notes(), "GET", "/notes/a%2Fb", None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_stored_bytes() {
    let mock = notes();
    let text = "x".repeat(60_000);
    let mut created = Vec::new();
    for _ in 0..300 {
        let body = json!({ "text": text, "code": "abcd", "secret": "s" });
        created.push(send(&mock, "POST", "/notes", Some(body)).await.json()["id"].as_str().unwrap().to_owned());
    }
    let status = async |number: usize| send(&mock, "GET", &format!("/notes/{}", created[number]), None).await.status;
    assert_eq!([status(0).await, status(299).await], [404, 200]);
}
