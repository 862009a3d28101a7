//! Callbacks of the mock.

use boxoffice_conformance::http_client::Request;
use boxoffice_mock::{CallbackTargets, MockSettings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::MockServer;

/// Starts a mock whose operation has a callback for each kind of expression.
fn subscribing(targets: Option<CallbackTargets>) -> MockServer {
    let body =
        |example: Value| json!({ "content": { "application/json": { "schema": { "type": "object" }, "example": example } } });
    let callback =
        |example: Value| json!({ "post": { "requestBody": body(example), "responses": { "204": { "description": "" } } } });
    let string = json!({ "type": "string" });
    let document = json!({ "openapi": "3.0.3", "info": { "title": "subscriptions", "version": "1" }, "paths": { "/streams/{stream}": { "post": {
        "parameters": [
            { "name": "stream", "in": "path", "required": true, "schema": string },
            { "name": "X-Tenant", "in": "header", "schema": string },
        ],
        "requestBody": body(json!({})),
        "responses": { "201": { "description": "", "content": { "application/json": { "example": { "id": 7 } } } } },
        "callbacks": {
            "whole": { "{$request.body#/hooks/0}": callback(json!({ "event": "whole" })) },
            "parts": { "{$request.body#/base}/{$request.path.stream}/{$response.body#/id}?m={$method}&s={$statusCode}&t={$request.header.X-Tenant}":
                { "$ref": "#/components/pathItems/Parts" } },
            "absent": { "{$request.body#/nothing}": callback(json!({ "event": "absent" })) },
        },
    } } }, "components": { "pathItems": { "Parts": callback(json!({ "event": "parts" })) } } });
    MockServer::of(document, MockSettings { callbacks: targets, ..MockSettings::default() })
}

/// Receives requests, and returns the request line and the body of each, sorted.
async fn receive(listener: &TcpListener, count: usize) -> Vec<(String, Value)> {
    let mut received = Vec::new();
    for _ in 0..count {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut text = String::new();
        while !text.ends_with('}') {
            let mut part = [0; 1024];
            let length = connection.read(&mut part).await.unwrap();
            assert!(length > 0, "the request ends early: {text}");
            text += std::str::from_utf8(&part[..length]).unwrap();
        }
        connection.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        received.push((head.lines().next().unwrap().to_owned(), serde_json::from_str(body).unwrap()));
    }
    received.sort_by_key(|(line, _)| line.clone());
    received
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callbacks_are_sent_to_the_urls_of_the_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let subscription = Request::new("POST", "/streams/news")
        .with_header("X-Tenant", "5")
        .with_json(&json!({ "hooks": [format!("{address}/hook")], "base": address }));

    let mock = subscribing(Some(CallbackTargets::Loopback));
    // A rejected request has no callbacks.
    let rejected = mock.server.send(&subscription.clone().with_header("Content-Type", "text/plain")).await.unwrap();
    assert_eq!(rejected.status, 415);
    assert_eq!(mock.send(&subscription).await.status, 201);

    let expected = [
        ("POST /hook HTTP/1.1".to_owned(), json!({ "event": "whole" })),
        ("POST /news/7?m=POST&s=201&t=5 HTTP/1.1".to_owned(), json!({ "event": "parts" })),
    ];
    assert_eq!(receive(&listener, 2).await, expected);
    // The next mock sends none: what arrives next is from the third.
    assert_eq!(subscribing(None).send(&subscription).await.status, 201);
    let third = subscribing(Some(CallbackTargets::Any));
    assert_eq!(third.send(&subscription.with_header("X-Tenant", "6")).await.status, 201);
    let received = receive(&listener, 2).await;
    assert!(received[1].0.ends_with("t=6 HTTP/1.1"), "{received:?}");
}
