//! Headers common to all responses.

use boxoffice_mock::MockSettings;
use http::HeaderMap;
use serde_json::Value;

use super::raw::{request, send_raw};
use crate::support::{MockServer, TestApp, header, mock_request, operations, test_on};

const ALWAYS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "cross-origin"),
    ("access-control-allow-origin", "*"),
];

fn assert_carried(headers: &HeaderMap, about: &str) {
    for (name, value) in ALWAYS {
        assert_eq!(header(headers, name), value, "{about}: {name}");
    }
    for name in ["strict-transport-security", "server", "x-powered-by"] {
        assert!(!headers.contains_key(name), "{about}: {name}");
    }
}

#[test_on(sqlite, postgres)]
async fn every_error_response_has_common_headers(app: TestApp) {
    // Without a key and an argument, an operation accepts every request.
    for operation in operations().iter().filter(|operation| operation.needs_key || operation.path.contains('{')) {
        let response = operation.send(&app, |request| request.key("?").version(None)).await;

        assert!(response.status >= 400, "{}", operation.id);
        assert_carried(&response.headers, &operation.id);
        assert_eq!(response.header("cache-control"), "no-store", "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_success_response_has_common_headers() {
    let mock = MockServer::start(MockSettings::default());
    for operation in operations() {
        let path = format!("{}?{}", operation.path_with(&[]), operation.required_query());
        let requested = mock_request(&operation.method, path.trim_end_matches(['?', '&']));
        let requested = if operation.body_schema().is_some() { requested.with_json(&operation.body()) } else { requested };

        let reply = mock.send(&requested).await;

        assert!(reply.status < 300, "{}: {}", operation.id, reply.status);
        assert_carried(&reply.headers, &operation.id);
        let kept = match () {
            () if operation.path.starts_with("/media/") => "public, max-age=86400",
            () if operation.id == "ticket_code_image_get" => "private, max-age=300",
            () if reply.headers.contains_key("etag") && !operation.is_secret() => "private, no-cache",
            () => "no-store",
        };
        assert_eq!(header(&reply.headers, "cache-control"), kept, "{}", operation.id);
    }
}

#[test_on(sqlite, postgres)]
async fn every_unrouted_response_has_common_headers(app: TestApp) {
    let long = format!("GET /{}", "x".repeat(33_000));
    for first in [&long, "OPTIONS /regions", "GET /nowhere", "DELETE /regions", "GET /hosts/%ff", "FOO /regions"] {
        let response = send_raw(app.server, &request(first, &[], "")).await.unwrap();

        for (name, value) in ALWAYS {
            assert_eq!(response.header(name), value.to_lowercase(), "{first}: {name}");
        }
        assert_eq!(response.header("cache-control"), "no-store", "{first}");
        assert_eq!(response.header("server"), "", "{first}");
    }
}

#[test_on(sqlite, postgres)]
async fn cache_control_matches_visibility(app: TestApp) {
    let region = app.create_region().await;

    let read = app.request("GET", &region).send().await;
    let created = app.sign_in(&app.staff.username, "wrong password").await;

    let kept = if read.header("etag").is_empty() { "no-store" } else { "private, no-cache" };
    assert_eq!((read.status, read.header("cache-control")), (200, kept));
    assert!(created.is_err());
    let ama = app.sign_up("ama").await;
    let session = app.get(&ama.key, "/sessions/active").await;
    assert_eq!((session.status, session.header("cache-control")), (200, "no-store"), "it contains a key");
    let host = app.create_host(&ama).await;
    let tokens = format!("{}/tokens", app.create_draft(&host).await.uri);
    let read = app.get(&ama.key, &tokens).await;
    let again = app.request("GET", &tokens).key(&ama.key).header("If-None-Match", read.header("etag")).send().await;
    assert_eq!((read.status, read.header("cache-control")), (200, "no-store"), "it contains codes");
    assert_eq!((again.status, again.header("etag")), (304, read.header("etag")), "it has an ETag nevertheless");
}

#[test_on(sqlite, postgres)]
async fn reveals_no_server_internals(app: TestApp) {
    app.allow_server_errors();
    app.state.db.close().await;

    let failed = app.request("GET", "/regions").send().await;

    assert!(failed.status >= 500);
    assert_carried(&failed.headers, "a failure");
    for word in ["sqlx", "pool", "closed", "postgres", "sqlite", "src/"] {
        assert!(!failed.body.to_string().to_lowercase().contains(word), "{}", failed.body);
    }
}

#[test]
fn every_operation_with_secret_is_marked() {
    // A key, an admission token's code, or the destination of a mailed code.
    let gives = |example: &Value| {
        let uri = example["self"].as_str().unwrap_or_default();
        // Error codes in the audit log contain a dot, or are blank.
        // A ticket's code is no secret to those who may see its serial number, which admits too.
        let is_code = example["code"].as_str().is_some_and(|code| !code.is_empty() && !code.contains('.') && code.len() < 100);
        // Key ids in the audit log have digits only.
        let is_key = example["key"].as_str().is_some_and(|key| key.contains(|digit: char| !digit.is_ascii_digit()));
        is_key || is_code || uri.starts_with("/verifications/") || uri.starts_with("/resets/")
    };
    for operation in operations() {
        let entries = |example: &Value| example["entries"].as_array().cloned().unwrap_or_default();
        let gives_secret = operation.examples().iter().any(|example| gives(example) || entries(example).iter().any(gives));
        assert_eq!(operation.is_secret(), gives_secret, "{}", operation.id);
    }
}
