//! Delays and faults of the mock by rule.

use std::time::{Duration, Instant};

use boxoffice_conformance::http_client::Request;
use boxoffice_mock::MockSettings;
use serde_json::{Value, json};

use super::header;
use crate::support::{MockServer, mock_request};

fn with_faults(faults: &[&str]) -> MockSettings {
    MockSettings { faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(), ..MockSettings::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_fail_by_rule() {
    let mock = MockServer::start(with_faults(&["100% 409 POST /orders", "100% 503 GET /regions"]));
    let order = mock_request("POST", "/orders").with_json(&json!({ "items": { "/sections/17637000000061": 2 } }));

    let conflict = mock.send(&order).await;
    let unavailable = mock.send(&mock_request("GET", "/regions")).await;
    let invalid = mock.send(&mock_request("GET", "/regions?page=x")).await;
    let other = mock.send(&mock_request("GET", "/time")).await;

    assert_eq!([conflict.status, unavailable.status, invalid.status, other.status], [409, 503, 400, 200]);
    assert!(header(&unavailable, "retry-after").parse::<u32>().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_as_frequent_as_stated_and_repeat_with_the_seed() {
    let statuses = async |seed: u64| {
        let mock = MockServer::start(MockSettings { seed, ..with_faults(&["20% 500", "50% 429"]) });
        let mut statuses = Vec::new();
        for _ in 0..200 {
            statuses.push(mock.send(&mock_request("GET", "/time")).await.status);
        }
        statuses
    };
    let first = statuses(1).await;
    let count = |status: u16| first.iter().filter(|other| **other == status).count();
    // The second rule applies to the 80 % of requests that the first one leaves.
    assert!((20..=60).contains(&count(500)) && (55..=105).contains(&count(429)), "{} {}", count(500), count(429));
    assert_eq!(count(200) + count(500) + count(429), 200);
    assert_eq!(statuses(1).await, first);
    assert_ne!(statuses(2).await, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undeclared_fault_has_plain_error() {
    let document: Value = json!({
        "openapi": "3.1.0",
        "paths": { "/a": { "get": { "responses": { "200": { "description": "" } } } } },
    });
    let mock = MockServer::of(document, with_faults(&["100% 418"]));
    let reply = mock.server.send(&Request::new("GET", "/a")).await.unwrap();
    assert_eq!(
        (reply.status, reply.json()),
        (418, json!({ "message": "The request fails by a rule of the mock.", "code": "mock.fault" }))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_is_delayed() {
    let mock = MockServer::start(MockSettings { delay: Some("80..90".parse().unwrap()), ..MockSettings::default() });
    for (prefer, least) in [("wait=1", 80), ("delay=120", 120), ("delay=0", 0)] {
        let started = Instant::now();
        assert_eq!(mock.send(&mock_request("GET", "/time").with_header("Prefer", prefer)).await.status, 200);
        assert!(started.elapsed() >= Duration::from_millis(least), "{prefer}");
    }
    for (rejected, status) in [(mock_request("GET", "/regions?page=x"), 400), (Request::new("GET", "/time"), 412)] {
        let started = Instant::now();
        assert_eq!(mock.send(&rejected).await.status, status);
        assert!(started.elapsed() >= Duration::from_millis(80), "{status}");
    }
}
