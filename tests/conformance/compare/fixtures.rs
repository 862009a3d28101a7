//! The fixtures of `boxoffice compare`: with them every operation succeeds, and they are removed afterwards.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use boxoffice_conformance::fixtures::{ExpectedOutcome, Fixtures};
use boxoffice_conformance::http_client::{HttpClient, KEY_VARIABLE};
use boxoffice_openapi::{Contract, Operation};
use futures::future::join_all;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{TestApp, test_on};

/// Lists that a comparison must not change.
const LISTS: [&str; 7] = ["regions", "categories", "venues", "hosts", "zones", "integrations", "published-events"];

/// Returns every operationId.
fn all(contract: &Contract) -> BTreeSet<String> {
    contract.operations().map(|operation| operation.id.clone()).collect()
}

/// Returns the URIs in these lists.
async fn lists(app: &TestApp) -> Vec<String> {
    let mut found = Vec::new();
    for list in LISTS {
        let page = app.read(&format!("/{list}?records=100")).await;
        found.extend(page["entries"].as_array().unwrap().iter().map(|entry| entry["self"].as_str().unwrap().to_owned()));
    }
    found
}

/// Sends a valid request for each example of an operation, and the first one twice. Returns what failed.
async fn send_all(fixtures: &Fixtures, server: &HttpClient, contract: &Contract, operation: &Operation) -> Vec<String> {
    let bodies = format!("{}/requestBody/content/application~1json/examples", operation.pointer);
    let bodies = contract.document.pointer(&bodies).and_then(Value::as_object);
    let success = operation.statuses.iter().find(|status| (200..300).contains(*status));
    let mut wrong = Vec::new();
    for body in [None, None].into_iter().chain(bodies.into_iter().flat_map(|bodies| bodies.keys().map(Some)).skip(1)) {
        let valid = match fixtures.valid_request(server, operation, body.map(String::as_str)).await {
            Ok(valid) => valid,
            Err(error) => {
                wrong.push(format!("{} {body:?}: {error:#}", operation.id));
                continue;
            }
        };
        let reply = server.send(&valid.request).await.unwrap();
        let fine = match valid.outcome {
            ExpectedOutcome::Success => Some(&reply.status) == success,
            ExpectedOutcome::Declared => operation.statuses.contains(&reply.status),
        };
        if !fine {
            let curl = valid.request.to_curl(&server.base_url, KEY_VARIABLE);
            wrong.push(format!("{} {body:?}: {} {}\n{curl}", operation.id, reply.status, String::from_utf8_lossy(&reply.body)));
        }
    }
    wrong
}

#[test_on(sqlite, postgres)]
async fn every_operation_succeeds_and_fixtures_are_removed(app: TestApp) {
    let contract = boxoffice::contract::load().unwrap();
    let server = HttpClient::new(&app.address).unwrap();
    let before = lists(&app).await;

    let fixtures = Fixtures::create(&server, &contract, &app.staff.key, 7, &all(&contract)).await.unwrap();
    let operations: Vec<_> = contract.operations().collect();
    let mut wrong = Vec::new();
    for four in operations.chunks(4) {
        wrong.extend(join_all(four.iter().map(|operation| send_all(&fixtures, &server, &contract, operation))).await.concat());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let left = fixtures.clean_up(&server).await;
    let after = lists(&app).await;
    assert!(before.iter().all(|uri| after.contains(uri)), "{before:?} {after:?}");
    let stays: Vec<&String> = after.iter().filter(|uri| !before.contains(uri)).collect();
    let unreported: Vec<_> = stays.iter().filter(|uri| !left.iter().any(|note| note.starts_with(uri.as_str()))).collect();
    assert!(unreported.is_empty(), "{unreported:?} in {left:#?}");
    // The event with sold tickets can't be deleted, nor can its venue, region and category.
    let kinds: Vec<&str> = stays.iter().filter_map(|uri| uri.split('/').nth(1)).collect();
    assert_eq!(kinds, ["regions", "categories", "venues"], "{left:#?}");
    assert_eq!(left.len(), 5, "{left:#?}");
}

#[test_on(sqlite, postgres)]
async fn key_without_administrator_scope_creates_nothing(app: TestApp) {
    let contract = boxoffice::contract::load().unwrap();
    let server = HttpClient::new(&app.address).unwrap();
    let before = lists(&app).await;

    let fixtures = Fixtures::create(&server, &contract, &app.public_key, 7, &all(&contract)).await.unwrap();

    let [failure] = fixtures.failures() else { panic!("{:?}", fixtures.failures()) };
    let failure = failure.to_string();
    assert!(failure.contains("403") && failure.contains("Use the key of a platform administrator"), "{failure}");
    assert_eq!(lists(&app).await, before);
    assert_eq!(app.read("/accounts").await["total"], 1);
}

#[test_on(sqlite, postgres)]
async fn stopped_comparison_removes_fixtures(app: TestApp) {
    let before = lists(&app).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice"));
    command.args(["compare", "--target", &app.address, "--key", &app.staff.key]).env_clear();
    command.stdout(Stdio::null()).stderr(Stdio::piped());

    // The server that it calls runs in this process.
    let running = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let first = lines.next().unwrap();
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        let output: Vec<String> = lines.collect();
        (first, output.join("\n"), child.wait().unwrap().code())
    });
    let (first, output, status) = running.await.unwrap();

    assert!(first.contains("/164 "), "{first}");
    assert_eq!(status, Some(2), "{output}");
    assert!(output.contains("Stopping") && output.contains("compare could not run: it was stopped"), "{output}");
    let after = lists(&app).await;
    assert!(before.iter().all(|uri| after.contains(uri)), "{before:?} {after:?}");
    let unreported: Vec<_> =
        after.iter().filter(|uri| !before.contains(uri) && !output.contains(&format!("{uri} stays"))).collect();
    assert!(unreported.is_empty(), "{unreported:?} in {output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rate_limited_request_is_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = HttpClient::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let answers = async {
        for status in ["429 Too Many Requests\r\nRetry-After: 1", "403 Forbidden"] {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                assert!(client.read_buf(&mut request).await.unwrap() > 0, "the request ends too early");
            }
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            client.write_all(answer.as_bytes()).await.unwrap();
        }
    };
    let (contract, selected) = (boxoffice::contract::load().unwrap(), ["region_get".to_owned()].into());

    let (fixtures, ()) = tokio::join!(Fixtures::create(&server, &contract, "a key", 7, &selected), answers);

    assert!(fixtures.unwrap().failures()[0].to_string().contains("region_create returned 403"));
    assert_eq!(server.request_count(), 2);
}
