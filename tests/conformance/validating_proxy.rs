//! `boxoffice proxy`: it forwards everything unchanged, finds the faults of clients and servers, and records valid examples.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use boxoffice_mock::MockSettings;
use boxoffice_openapi::Contract;
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::{MockServer, ToolProcess, serve_http};

/// Size of a body that is too large to be validated, in bytes.
const LARGE: usize = 5 * 1024 * 1024;

fn document() -> Value {
    let book = json!({ "type": "object", "required": ["id", "title"], "additionalProperties": false, "properties": {
        "id": { "type": "integer" }, "title": { "type": "string" }, "apiKey": { "type": "string", "pattern": "^[a-z]{3}-[0-9]{3}$" },
    } });
    let error = json!({ "description": "", "content": { "application/json": { "schema": { "type": "object" } } } });
    let answer =
        |headers: Value| json!({ "description": "", "headers": headers, "content": { "application/json": { "schema": book } } });
    let id = json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    json!({
        "openapi": "3.0.3", "info": { "title": "books", "version": "1" }, "security": [{ "key": [] }],
        "paths": {
            "/books/{id}": { "get": { "operationId": "read", "parameters": [id], "responses": {
                "200": answer(json!({ "X-Shelf": { "required": true, "schema": { "type": "integer" } } })), "404": error,
            } } },
            "/books": { "post": { "operationId": "create", "requestBody": { "required": true, "content": { "application/json": {
                "schema": { "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } } },
            } } }, "responses": { "201": { "$ref": "#/components/responses/Created" }, "400": error, "415": error } } },
            "/large": { "put": { "operationId": "large", "requestBody": { "content": { "application/octet-stream": {} } },
                "responses": { "200": { "description": "", "content": { "application/json": {} } } } } },
            "/events": { "get": { "operationId": "events", "responses": { "200": { "description": "", "content": { "text/event-stream": {} } } } } },
        },
        "components": {
            "responses": { "Created": answer(json!({})) },
            "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "X-API-Key" } },
        },
    })
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

fn full(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).boxed_unsync()
}

/// Returns the response of the server to a request. The last segment of the path, or the title, selects a fault.
fn respond(request: Request<Bytes>, continued: Arc<Notify>) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
    let json = |status: u16, body: Value| (status, "application/json", full(body.to_string()));
    let book = |title: &str| json!({ "id": 1, "title": title, "apiKey": "abc-123" });
    let mut has_shelf = true;
    let (status, media_type, body) = match (head.method.as_str(), head.uri.path().rsplit('/').next().unwrap()) {
        ("POST", _) if !sent["title"].is_string() && sent["accept"] != true => json(400, json!({ "message": "no" })),
        ("POST", _) => json(201, book("new")),
        ("PUT", _) => {
            assert_eq!(body.len(), LARGE);
            (200, "application/json", full(format!("{:?}", "x".repeat(LARGE))))
        }
        ("GET", "events") => {
            let parts = futures::stream::once(async { Ok(Frame::data(Bytes::from("data: 1\n\n"))) });
            let last = futures::stream::once(async move {
                continued.notified().await;
                Ok(Frame::data(Bytes::from("data: 2\n\n")))
            });
            (200, "text/event-stream", StreamBody::new(parts.chain(last)).boxed_unsync())
        }
        ("GET", "status") => json(418, json!({})),
        ("GET", "type") => json(200, json!({ "id": "one", "title": "a" })),
        ("GET", "property") => json(200, json!({ "id": 1, "title": "a", "more": 1 })),
        ("GET", "media-type") => (200, "text/plain", full("hello")),
        ("GET", "header") => {
            has_shelf = false;
            json(200, book("a"))
        }
        ("GET", "repeated") => (200, "application/json", full("{\"id\": 1, \"id\": 1, \"title\": \"a\"}")),
        ("GET", "leak") => json(404, json!({ "message": "Traceback (most recent call last)" })),
        ("GET", "failure") => json(503, json!({})),
        ("GET", "closed") => return Err(io::Error::other("closed")),
        _ => json(200, book("a")),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("content-type", media_type.parse().unwrap());
    if has_shelf {
        response.headers_mut().insert("x-shelf", 7.into());
    }
    Ok(response)
}

/// Starts the server. `continued` releases the second event.
async fn start_server(continued: Arc<Notify>) -> String {
    serve_http(move |request| std::future::ready(respond(request, Arc::clone(&continued)))).await
}

/// A proxy in a process of its own.
struct Proxy {
    process: ToolProcess,
    http: reqwest::Client,
}

impl Proxy {
    fn start(target: &str, folder: &Path) -> Self {
        let spec = folder.join("openapi.json");
        fs::write(&spec, document().to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice"));
        command.args(["proxy", "--target", target, "--listen", "127.0.0.1:0"]).arg("--spec").arg(spec);
        command.arg("--report").arg(folder.join("report")).arg("--record").arg(folder.join("recorded.yaml"));
        Self { process: ToolProcess::start(&mut command), http: reqwest::Client::new() }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.process.address)).header("X-API-Key", "kept-secret-1")
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    async fn post(&self, body: &Value) -> u16 {
        self.request(Method::POST, "/books").json(body).send().await.unwrap().status().as_u16()
    }

    /// Stops the proxy. Returns its exit code and the report.
    fn stop(self, folder: &Path) -> (i32, Value) {
        let code = self.process.stop().code().unwrap();
        (code, serde_json::from_str(&fs::read_to_string(folder.join("report/report.json")).unwrap()).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_clients_and_servers_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(&start_server(Arc::default()).await, folder.path());

    let mut statuses = Vec::new();
    for fault in ["status", "type", "property", "media-type", "header", "repeated", "leak", "failure", "closed"] {
        statuses.push(proxy.get(&format!("/books/{fault}?token=kept-secret-2")).await.status().as_u16());
    }
    assert_eq!(statuses, [418, 200, 200, 200, 200, 200, 404, 503, 502], "they are forwarded as they are");
    assert_eq!(proxy.post(&json!({ "name": 1 })).await, 400);
    assert_eq!(proxy.post(&json!({ "title": 1, "accept": true, "password": "kept-secret-3" })).await, 201);
    for (media_type, body) in [("application/json", "{\"title\": "), ("text/plain", "a title")] {
        let sent = proxy.request(Method::POST, "/books").header("Content-Type", media_type).body(body).send().await.unwrap();
        assert_eq!(sent.status(), 400);
    }
    assert_eq!(proxy.get("/nowhere").await.status(), 200);
    for (method, path) in [(Method::DELETE, "/books"), (Method::PATCH, "/books/7"), (Method::PATCH, "/books/8")] {
        assert_eq!(proxy.request(method, path).send().await.unwrap().status(), 200);
    }
    assert_eq!(proxy.get("/nowhere").await.status(), 200);
    let (code, report) = proxy.stop(folder.path());

    let findings = report["findings"].as_array().unwrap();
    let found: BTreeSet<_> = findings
        .iter()
        .map(|finding| ["operation", "check", "summary"].map(|name| finding[name].as_str().unwrap()))
        .map(|[operation, check, summary]| format!("{operation} {check}: {summary}"))
        .collect();
    let expected = [
        " client.operation: the document has no operation DELETE /books",
        " client.operation: the document has no operation PATCH /books/{id}",
        " client.operation: the document has no path /nowhere",
        "create client.rejected: the server accepts a request that does not match the document",
        "create client.request: a request has a body of another media type",
        "create client.request: a request has a malformed body",
        "create client.request: a request has the invalid argument title",
        "create client.request: a request has the missing argument title",
        "read response.body: the response 200 has a body that at /id must be an integer",
        "read response.complete: the response is missing or incomplete",
        "read response.header: the response 200 lacks the header X-Shelf",
        "read response.json: the JSON body repeats the key id",
        "read response.leak: the error 404 contains a stack trace",
        "read response.media-type: the response 200 is `text/plain`",
        "read response.undeclared: the response 200 has a body that has the undeclared more",
        "read status.declared: the response 418 is not declared",
        "read status.declared: the response 503 is not declared",
        "read status.failure: the server failed with 503",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{findings:#?}");
    assert_eq!((code, &report["requests"], findings[1]["occurrences"].as_u64()), (1, &json!(18), Some(2)));
    for name in ["report.json", "report.html", "junit.xml"] {
        assert!(!fs::read_to_string(folder.path().join("report").join(name)).unwrap().contains("kept-secret"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn path_is_validated_as_it_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(&start_server(Arc::default()).await, folder.path());
    // Most clients resolve these themselves.
    for path in ["/nowhere/../books/type", "/books/../nowhere"] {
        let mut client = TcpStream::connect(proxy.process.address.trim_start_matches("http://")).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        client.read_to_end(&mut Vec::new()).await.unwrap();
    }
    let (_, report) = proxy.stop(folder.path());
    let summaries: Vec<_> =
        report["findings"].as_array().unwrap().iter().map(|finding| finding["summary"].as_str().unwrap()).collect();
    assert_eq!(summaries, ["the document has no path /nowhere", "the response 200 has a body that at /id must be an integer"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valid_exchanges_pass_and_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let continued = Arc::new(Notify::new());
    let proxy = Proxy::start(&start_server(Arc::clone(&continued)).await, folder.path());

    let read = proxy.get("/books/1").await;
    assert_eq!((read.status().as_u16(), &read.headers()["x-shelf"]), (200, &"7".parse().unwrap()));
    assert_eq!(read.json::<Value>().await.unwrap()["apiKey"], "abc-123", "the client receives what the server sent");
    assert_eq!(proxy.post(&json!({ "title": "Anansi", "password": "kept-secret" })).await, 201);
    let head = proxy.request(Method::HEAD, "/books/1").send().await.unwrap();
    assert_eq!((head.status().as_u16(), &head.headers()["content-length"]), (200, &"39".parse().unwrap()));
    let large = proxy.request(Method::PUT, "/large").header("Content-Type", "application/octet-stream").body(vec![7; LARGE]);
    assert_eq!(large.send().await.unwrap().bytes().await.unwrap().len(), LARGE + 2);
    let mut events = proxy.get("/events").await;
    assert_eq!(events.chunk().await.unwrap().unwrap(), "data: 1\n\n", "the first event arrives before the second is sent");
    continued.notify_one();
    assert_eq!(events.chunk().await.unwrap().unwrap(), "data: 2\n\n");
    drop(events);
    let (code, report) = proxy.stop(folder.path());

    assert_eq!((code, &report["findings"], &report["requests"]), (0, &json!([]), &json!(5)), "{:#}", report["findings"]);
    assert!(report["notes"].to_string().contains("3 bodies were not validated"), "{}", report["notes"]);
    for name in ["recorded.yaml", "report/report.json", "report/report.html", "report/junit.xml"] {
        assert_eq!(fs::metadata(folder.path().join(name)).unwrap().mode() & 0o777, 0o600, "{name}");
    }
    let text = fs::read_to_string(folder.path().join("recorded.yaml")).unwrap();
    assert!(!text.contains("kept-secret") && !text.contains("abc-123"), "{text}");
    let recorded = Contract::read(&folder.path().join("recorded.yaml")).unwrap();
    assert!(recorded.warnings.is_empty(), "{:?}", recorded.warnings);
    let mock = MockServer::of(recorded.document.clone(), MockSettings::default());
    let request =
        |method: &str, path: &str| boxoffice_conformance::http_client::Request::new(method, path).with_header("X-API-Key", "k");
    assert_eq!(mock.send(&request("GET", "/books/2")).await.json(), json!({ "id": 1, "title": "a", "apiKey": "xxx-000" }));
    let created = mock.send(&request("POST", "/books").with_json(&json!({ "title": "b" }))).await;
    assert_eq!(created.json()["title"], "new");
    let examples = recorded.operations().find(|operation| operation.id == "create").unwrap().request_examples("application/json");
    assert_eq!(examples["recorded-1"], json!({ "title": "Anansi", "password": "xxxx-xxxxxx" }));
}
