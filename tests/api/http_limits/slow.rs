//! Slow request bodies.

use std::time::Duration;

use boxoffice_http::log;
use boxoffice_http::{BodyTimeouts, Listener};
use boxoffice_openapi::Scope;
use futures::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::connections::{LONG, await_early};
use super::raw::{Raw, read_response};
use crate::support::{ANY_PORT, Operation, TestApp, operations, section, test_on};
use crate::tokens::{global_token, redeemer_key};

fn listener(body_time: BodyTimeouts) -> Listener {
    Listener { body_timeouts: body_time, ..ANY_PORT.into() }
}

/// Builds the head of a request that announces a body of ten bytes, without `Connection: close`.
fn announce_body(operation: &Operation, key: &str) -> String {
    let (method, path) = (&operation.method, format!("{}?{}", operation.path_with(&[]), operation.required_query()));
    let version = "X-Client-Version: 3.0.0\r\nContent-Type: application/json\r\nContent-Length: 10\r\n";
    format!("{method} {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n{version}\r\n")
}

fn assert_too_slow(response: Option<Raw>, about: &str) {
    let response = response.unwrap_or_else(|| panic!("{about}: no answer"));
    let error = "The request's body did not arrive in time.";
    assert_eq!((response.status, &response.body), (408, &json!({ "error": error, "code": "body.too-slow" })), "{about}");
    assert_eq!(response.header("connection"), "close", "{about}");
}

#[test_on(sqlite, postgres)]
async fn every_operation_with_body_times_out_on_pause(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let redeemer = redeemer_key(&app, &global_token(&event).await).await;
    let impatient = listener(BodyTimeouts { idle: Duration::from_millis(50), total: LONG });
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), impatient).await;
    let with_body: Vec<_> = operations().iter().filter(|operation| operation.body_schema().is_some()).collect();
    let key = |operation: &Operation| match operation.scopes.contains(&Scope::Administrator) {
        true => app.staff.key.clone(),
        false => redeemer.clone(),
    };

    let pause = async |operation: &Operation| {
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        connection.write_all(format!("{}{{", announce_body(operation, &key(operation))).as_bytes()).await.unwrap();
        read_response(connection).await
    };
    let responses = await_early(join_all(with_body.iter().copied().map(pause))).await;

    assert!(with_body.len() > 30, "only {}", with_body.len());
    for (operation, response) in with_body.iter().zip(responses) {
        assert_too_slow(response, &operation.id);
    }
}

#[test_on(sqlite, postgres)]
async fn slow_body_reaches_total_timeout(app: TestApp) {
    let hurried = listener(BodyTimeouts { idle: LONG, total: Duration::from_millis(500) });
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), hurried).await;
    let operation = operations().iter().find(|operation| operation.id == "region_create").unwrap();
    let head = announce_body(operation, &app.staff.key).replace("Content-Length: 10", "Content-Length: 60000");
    let connection = TcpStream::connect(server.server).await.unwrap();
    let (reading, mut writing) = connection.into_split();

    writing.write_all(head.as_bytes()).await.unwrap();
    let drip = tokio::spawn(async move {
        while writing.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let mut response = String::new();
    let mut reading = tokio::io::BufReader::new(reading);
    await_early(tokio::io::AsyncBufReadExt::read_line(&mut reading, &mut response)).await.unwrap();

    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    drip.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mock_times_out_on_pause() {
    let impatient = listener(BodyTimeouts { idle: Duration::from_millis(50), total: LONG });
    let mock = boxoffice_mock::start(
        boxoffice::contract::load().unwrap(),
        boxoffice_mock::MockSettings::default(),
        impatient,
        &log::silent(),
    )
    .unwrap();
    let operation = operations().iter().find(|operation| operation.id == "region_create").unwrap();

    let mut connection = TcpStream::connect(mock.address()).await.unwrap();
    connection.write_all(announce_body(operation, "any").as_bytes()).await.unwrap();

    assert_too_slow(await_early(read_response(connection)).await, "the mock");
}
