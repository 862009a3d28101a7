//! The request head: its maximum size, and invalid heads.

use boxoffice_mock::MockSettings;
use serde_json::json;

use super::raw::{request, send_raw};
use crate::review::submission_of;
use crate::support::MockServer;
use crate::support::{TestApp, operations, test_on};

/// One byte more than the maximum length of path and query.
const LONG: usize = 32 * 1024 + 1;

/// Returns a path and query of this length.
fn of_length(path: &str, bytes: usize) -> String {
    let start = format!("{path}?x=");
    format!("{start}{}", "x".repeat(bytes - start.len()))
}

/// Returns header lines of this total size.
fn headers_of_size(bytes: usize) -> String {
    // Several lines, because the limit applies to their sum.
    let line = |size: usize| format!("x: {}", "y".repeat(size - "x: \r\n".len()));
    let lines: Vec<_> = [8192, 8192, 8192, bytes - 3 * 8192].map(line).into();
    lines.join("\r\n")
}

#[test_on(sqlite, postgres)]
async fn limits_request_head(app: TestApp) {
    let requested = |uri: &str| request(&format!("GET {uri}"), &[], "");
    let most = send_raw(app.server, &requested(&of_length("/nowhere", 32 * 1024))).await.unwrap();
    let long = send_raw(app.server, &requested(&of_length("/nowhere", 32 * 1024 + 1))).await.unwrap();

    assert_eq!(most.status, 404);
    let error = "The request's path and query are longer than 32768 bytes.";
    assert_eq!((long.status, &long.body), (414, &json!({ "error": error, "code": "uri.too-long" })));

    let usual = "host: boxoffice.example\r\nconnection: close\r\n".len();
    let headers = |bytes| request("GET /nowhere", &[&headers_of_size(bytes - usual)], "");
    let most = send_raw(app.server, &headers(32 * 1024)).await.unwrap();
    let large = send_raw(app.server, &headers(32 * 1024 + 1)).await.unwrap();

    assert_eq!(most.status, 404);
    let error = "The request's headers together are larger than 32768 bytes.";
    assert_eq!((large.status, &large.body), (431, &json!({ "error": error, "code": "headers.too-large" })));
}

#[test_on(sqlite, postgres)]
async fn rejects_invalid_http_without_body(app: TestApp) {
    // Two more headers are added to every request.
    let most = send_raw(app.server, &request("GET /nowhere", &["x: y"; 98], "")).await.unwrap();
    let many = send_raw(app.server, &request("GET /nowhere", &["x: y"; 99], "")).await.unwrap();

    assert_eq!((most.status, most.code()), (404, "endpoint.unknown"));
    assert_eq!((many.status, many.header("content-length"), many.header("connection")), (431, "0", "close"));
    for line in ["If-Match: \0", "If-Match: \x13", "If-Match: \x7f", "If Match: *", "If-Match"] {
        let response = send_raw(app.server, &request("GET /nowhere", &[line], "")).await.unwrap();

        assert_eq!(
            (response.status, response.header("content-length"), response.header("connection")),
            (400, "0", "close"),
            "{line:?}"
        );
    }
}

#[test_on(sqlite, postgres)]
async fn accepts_longest_query_of_contract(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    for character in ["漢", "𠮷"] {
        let event = app.create_draft(&host).await;
        app.post_empty(&kofi.key, &format!("{}/submissions", event.uri)).await;
        let reason = character.repeat(2000);
        let query = form_urlencoded::Serializer::new("approved=false".to_owned()).append_pair("reason", &reason).finish();

        let uri = format!("{}?{query}", submission_of(&event.uri));
        let decided = app.delete(&app.staff.key, &uri).await;

        assert_eq!((decided.status, &decided.body["reason"]), (200, &json!(reason)));
    }
}

#[test_on(sqlite, postgres)]
async fn checks_size_before_everything_else(app: TestApp) {
    let large = headers_of_size(33 * 1024);
    for operation in operations() {
        let path = operation.path_with(&[]);

        let long = send_raw(app.server, &request(&format!("{} {}", operation.method, of_length(&path, LONG)), &[], "")).await;
        let large = send_raw(app.server, &request(&format!("{} {path}", operation.method), &[&large], "")).await;

        assert_eq!(long.map(|response| response.status), Some(414), "{}", operation.id);
        assert_eq!(large.map(|response| response.status), Some(431), "{}", operation.id);
    }
    let preflight = send_raw(app.server, &request(&format!("OPTIONS {}", of_length("/regions", LONG)), &[], "")).await;
    assert_eq!(preflight.map(|response| response.status), Some(414));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mock_has_same_limits() {
    let mock = MockServer::start(MockSettings::default());

    let long = send_raw(mock.address(), &request(&format!("GET {}", of_length("/regions", LONG)), &[], "")).await.unwrap();
    let large = send_raw(mock.address(), &request("GET /regions", &[&headers_of_size(33 * 1024)], "")).await.unwrap();

    assert_eq!((long.status, long.code()), (414, "uri.too-long"));
    assert_eq!((large.status, large.code()), (431, "headers.too-large"));
}

#[test_on(sqlite, postgres)]
async fn unreadable_path_is_not_found(app: TestApp) {
    for path in ["/hosts/%ff", "/hosts/%c3%28", "/%80/x", "/hosts/../regions", "/./regions", "/v3/hosts/%ff"] {
        for method in ["GET", "DELETE", "PROPFIND", "FOO", "OPTIONS"] {
            let response = send_raw(app.server, &request(&format!("{method} {path}"), &[], "")).await.unwrap();

            let message = format!("The requested endpoint {path} does not exist on this server.");
            assert_eq!((response.status, &response.body["message"]), (404, &json!(message)), "{method}");
            assert_eq!(response.code(), "endpoint.unknown");
            assert!(!response.header("x-request-id").is_empty());
        }
    }
}

#[test_on(sqlite, postgres)]
async fn unknown_method_is_not_allowed(app: TestApp) {
    for method in ["PROPFIND", "QUERY", "VERSION-CONTROL", "TRACE", "FOO", "Delete"] {
        let known = send_raw(app.server, &request(&format!("{method} /v3/regions"), &[], "")).await.unwrap();
        let nowhere = send_raw(app.server, &request(&format!("{method} /nowhere"), &[], "")).await.unwrap();

        assert_eq!(
            (known.status, known.code(), known.header("allow")),
            (405, "method.not-allowed", "get, head, post, options"),
            "{method}"
        );
        assert_eq!((nowhere.status, nowhere.code()), (404, "endpoint.unknown"), "{method}");
    }
}

/// Some clients send lowercase methods.
#[test_on(sqlite, postgres)]
async fn accepts_lowercase_method(app: TestApp) {
    let key = format!("X-API-Key: {}", app.staff.key);
    let region = r#"{"name": "Accra", "country": "Ghana"}"#;
    let length = format!("Content-Length: {}", region.len());
    let usual = [key.as_str(), "X-Client-Version: 3.0.0"];

    let created =
        send_raw(app.server, &request("post /v3/regions", &[&usual, [length.as_str()].as_slice()].concat(), region)).await;
    let read = send_raw(app.server, &request("Get /regions", &usual, "")).await.unwrap();

    assert_eq!(created.map(|response| response.status), Some(201));
    assert_eq!((read.status, &read.body["total"]), (200, &json!(1)));
}
