//! Memory for request bodies, and access checks before large ones.

use std::net::SocketAddr;
use std::time::Duration;

use boxoffice_http::{BodyMemoryLimits, BodyTimeouts, Listener, log};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::raw::{request, send_raw};
use crate::support::{ANY_PORT, TestApp, User, test_on, wait_until};

/// Size of an announced body: more than half of the memory of a key.
const LARGE: usize = 7_000_000;

fn host() -> Value {
    json!({ "name": "Accra Live", "contact": "Ama Mensah", "email": "hello@accralive.example" })
}

/// Sends the head of a request with a large body and a part of the body.
async fn begin_upload(server: SocketAddr, target: &str, key: &str) -> TcpStream {
    begin_body(server, target, key, LARGE).await
}

/// Sends the head of a request with a body of this many bytes and the first of them.
async fn begin_body(server: SocketAddr, target: &str, key: &str, length: usize) -> TcpStream {
    let mut connection = TcpStream::connect(server).await.unwrap();
    let head = format!("{target} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nX-Client-Version: 3.0.0\r\n");
    let head = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{");
    connection.write_all(head.as_bytes()).await.unwrap();
    connection
}

/// Returns the head of a response and the beginning of its body; `None` if there is no response for some time.
async fn read(connection: &mut TcpStream, wait: Duration) -> Option<String> {
    let mut response = vec![0; 4096];
    let length = timeout(wait, connection.read(&mut response)).await.ok()?.unwrap();
    Some(String::from_utf8_lossy(&response[..length]).into_owned())
}

/// Sends uploads until one is rejected. The server may not have read the heads of earlier ones yet. Returns the response and the
/// earlier uploads, one of which has the memory.
async fn rejection(server: SocketAddr, key: &str) -> (String, Vec<TcpStream>) {
    let mut uploads = Vec::new();
    for _ in 0..20 {
        let mut upload = begin_upload(server, "POST /events", key).await;
        if let Some(response) = read(&mut upload, Duration::from_millis(500)).await {
            return (response, uploads);
        }
        uploads.push(upload);
    }
    panic!("no upload was rejected");
}

#[test_on(sqlite, postgres)]
async fn limits_memory_of_bodies(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let body_memory = BodyMemoryLimits { total: 3 * LARGE / 2, per_key: LARGE };
    const LONG: Duration = Duration::from_secs(600);
    let body_timeouts = BodyTimeouts { total: LONG, idle: LONG };
    let listener = Listener { body_memory, body_timeouts, ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await;
    let first = begin_upload(server.server, "POST /events", &kofi.key).await;
    wait_until(async || server.in_flight() == 1).await;

    let (of_key, uploads) = rejection(server.server, &kofi.key).await;
    let (of_all, _) = rejection(server.server, &ama.key).await;

    assert!(of_key.starts_with("HTTP/1.1 429 ") && of_key.contains("requests.too-many"), "{of_key}");
    assert!(of_all.starts_with("HTTP/1.1 503 ") && of_all.contains("server.unavailable"), "{of_all}");
    for response in [&of_key, &of_all] {
        assert!(response.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{response}");
    }
    let small = app.request("POST", "/events").at(server.address).key(&ama.key).send().await;
    assert_eq!(small.status, 400, "a small body still has room");
    drop((first, uploads));
    // The memory of a closed connection becomes free.
    let length = format!("Content-Length: {LARGE}");
    let lines = [&*format!("X-API-Key: {}", ama.key), "X-Client-Version: 3.0.0", "Content-Type: application/json", &length];
    let large = request("POST /events", &lines, &"x".repeat(LARGE));
    wait_until(async || send_raw(server.server, &large).await.is_some_and(|response| response.status == 400)).await;
}

#[test_on(sqlite, postgres)]
async fn limits_number_of_bodies(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let body_memory = BodyMemoryLimits { per_key: 100_000, ..BodyMemoryLimits::default() };
    let listener = Listener { body_memory, ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await;
    let update = |user: &User| {
        let account = app.request("PUT", &format!("/accounts/{}", user.number)).at(server.address);
        account.key(&user.key).json(&json!({ "firstName": "Ama" })).send()
    };

    let (mut pending, mut response) = (Vec::new(), update(&kofi).await);
    while response.status == 200 {
        pending.push(begin_body(server.server, "POST /hosts", &kofi.key, 100).await);
        response = update(&kofi).await;
    }

    assert_eq!((response.status, response.code()), (429, "requests.too-many"));
    assert_eq!(response.header("ratelimit-policy"), "\"bodies\";q=100000;qu=\"content-bytes\"");
    assert_eq!(update(&ama).await.status, 200);
    drop(pending);
    wait_until(async || update(&kofi).await.status == 200).await;
}

#[test_on(sqlite, postgres)]
async fn large_bodies_leave_room_for_small_ones(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let body_memory = BodyMemoryLimits { total: LARGE, per_key: 2 * LARGE };
    let listener = Listener { body_memory, ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await;
    let _first = begin_upload(server.server, "POST /events", &ama.key).await;

    let (second, _) = rejection(server.server, &ama.key).await;
    let small = app.request("POST", "/hosts").at(server.address).key(&ama.key).json(&host()).send().await;

    assert!(second.starts_with("HTTP/1.1 503 "), "{second}");
    assert_eq!(small.status, 201, "{}", small.body);
}

#[test_on(sqlite, postgres)]
async fn clients_can_read_response_after_unused_body(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let key = format!("X-API-Key: {}", ama.key);
    let valid: &[&str] = &[&key, "X-Client-Version: 3.0.0", "Content-Type: application/json"];
    let cases: [(&str, &[&str], u16); 9] = [
        ("PUT /events/17637000000051", &["X-API-Key: unknown", "X-Client-Version: 3.0.0"], 403),
        ("PUT /events/17637000000051", &["X-Client-Version: 3.0.0"], 401),
        ("PUT /events/17637000000051", &[&key, "X-Client-Version: 1.0.0"], 412),
        ("PUT /events/17637000000051", valid, 404),
        ("POST /hosts", valid, 413),
        ("POST /regions", valid, 403),
        ("POST /unknown", valid, 404),
        ("DELETE /time", valid, 405),
        ("GET /time", valid, 200),
    ];
    let bytes = " ".repeat(LARGE);
    let bodies = [
        (format!("Content-Length: {LARGE}"), bytes.clone()),
        ("Transfer-Encoding: chunked".to_owned(), format!("{LARGE:x}\r\n{bytes}\r\n0\r\n\r\n")),
    ];
    let time = request("GET /time", valid, "");
    for (target, lines, status) in cases {
        for (framing, body) in &bodies {
            let mut connection = TcpStream::connect(app.server).await.unwrap();
            let head = format!("{target} HTTP/1.1\r\nHost: x\r\n{framing}\r\n{}\r\n\r\n", lines.join("\r\n"));

            // The client reads only after it has sent the body, as most do.
            connection.write_all(head.as_bytes()).await.unwrap();
            connection.write_all(body.as_bytes()).await.unwrap_or_else(|error| panic!("{target} {lines:?} {framing}: {error}"));
            connection.write_all(&time).await.unwrap();
            let mut responses = String::new();
            connection.read_to_string(&mut responses).await.unwrap();

            let statuses: Vec<&str> = responses.split("HTTP/1.1 ").skip(1).map(|response| &response[..3]).collect();
            assert_eq!(statuses, [&status.to_string(), "200"], "{target} {lines:?} {framing}");
        }
    }
}

#[test_on(sqlite, postgres)]
async fn revoked_key_changes_nothing_after_body(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let body = host().to_string();
    let mut connection = begin_body(app.server, "POST /hosts", &ama.key, body.len()).await;
    // Longer than the server relies on what it has looked up.
    sleep(Duration::from_millis(1500)).await;

    let session = ama.client.session_active_get().send().await.unwrap().self_.clone();
    assert_eq!(app.delete(&ama.key, &session).await.status, 204);
    connection.write_all(&body.as_bytes()[1..]).await.unwrap();
    let response = read(&mut connection, Duration::from_secs(20)).await.unwrap();

    assert!(response.starts_with("HTTP/1.1 403 ") && response.contains("key.refused"), "{response}");
    assert_eq!(app.scalar::<i64>("select count(*) from hosts").await, 0);
}

#[test_on(sqlite, postgres)]
async fn checks_access_before_large_body(app: TestApp) {
    let (kofi, draft) = app.sign_up_host_with_draft("kofi").await;
    let ama = app.sign_up("ama").await;
    let respond = async |target: &str, key: &str| {
        let mut upload = begin_upload(app.server, target, key).await;
        read(&mut upload, Duration::from_secs(20)).await.unwrap_or_default()
    };

    let foreign = respond(&format!("PUT {}", draft.uri), &ama.key).await;
    let unknown = respond("PUT /events/17000000000000", &ama.key).await;
    let malformed = respond("PUT /events/first", &ama.key).await;
    let unknown_advertisement = respond("PUT /advertisements/17000000000000", &ama.key).await;

    assert!(foreign.starts_with("HTTP/1.1 403 ") && foreign.contains("resource.not-yours"), "{foreign}");
    assert!(unknown.starts_with("HTTP/1.1 404 ") && unknown.contains("resource.not-found"), "{unknown}");
    assert!(malformed.starts_with("HTTP/1.1 404 ") && malformed.contains("resource.not-found"), "{malformed}");
    assert!(unknown_advertisement.starts_with("HTTP/1.1 404 "), "{unknown_advertisement}");
    let mut own = begin_upload(app.server, &format!("PUT {}", draft.uri), &kofi.key).await;
    assert_eq!(read(&mut own, Duration::from_millis(500)).await, None, "the body is awaited");
}
