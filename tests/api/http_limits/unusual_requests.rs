//! Contradictory and unusual HTTP requests.

use serde_json::json;

use super::raw::{Raw, request, send_raw};
use crate::support::{TestApp, id_of, test_on};

/// Sends a request with the administrator's key.
async fn ask(app: &TestApp, first: &str, lines: &[&str], body: &str) -> Option<Raw> {
    let key = format!("X-API-Key: {}", app.staff.key);
    let usual = [key.as_str(), "X-Client-Version: 3.0.0", "Content-Type: application/json"];
    send_raw(app.server, &request(first, &[&usual, lines].concat(), body)).await
}

async fn regions(app: &TestApp) -> i64 {
    app.request("GET", "/regions").send().await.body["total"].as_i64().unwrap()
}

/// Request smuggling: a proxy and the server could disagree about the length of a body.
#[test_on(sqlite, postgres)]
async fn conflicting_lengths_smuggle_no_request(app: TestApp) {
    let hidden = format!(
        "POST /regions HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nX-Client-Version: 3.0.0\r\nContent-Length: 36\r\n\r\n{}",
        app.staff.key, r#"{"name":"Smuggled","country":"None"}"#,
    );
    let chunked = format!("0\r\n\r\n{hidden}");
    let whole = format!("Content-Length: {}", chunked.len());
    for (lines, body) in [
        ([whole.as_str(), "Transfer-Encoding: chunked"].as_slice(), &chunked),
        (&["Content-Length: 0", "Content-Length: 5"], &hidden),
        (&["Content-Length: 0, 5"], &hidden),
        (&["Content-Length: +0"], &hidden),
        (&["Transfer-Encoding: identity"], &hidden),
        (&["Transfer-Encoding: xchunked"], &chunked),
        (&["Transfer-Encoding: chunked, gzip"], &chunked),
        (&["Transfer-Encoding : chunked"], &chunked),
    ] {
        // Without `Connection: close`, which would prevent a second request.
        let sent = format!(
            "POST /regions HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nX-Client-Version: 3.0.0\r\n{}\r\n\r\n{body}",
            app.staff.key,
            lines.join("\r\n"),
        );
        let response = send_raw(app.server, sent.as_bytes()).await.unwrap();

        assert_eq!(response.status, 400, "{lines:?}");
    }
    assert_eq!(regions(&app).await, 0);
}

#[test_on(sqlite, postgres)]
async fn rejects_compressed_body(app: TestApp) {
    let region = r#"{"name": "Accra", "country": "Ghana"}"#;
    let length = format!("Content-Length: {}", region.len());
    let error = "The request's body must not be compressed: it is taken as it is, without Content-Encoding.";
    for coding in ["gzip", "X-GZIP", "deflate", "compress", "x-compress", "br", "zstd", "identity, gzip"] {
        let coding = format!("Content-Encoding: {coding}");
        let response = ask(&app, "POST /regions", &[&coding, &length], region).await.unwrap();

        assert_eq!(
            (response.status, &response.body),
            (415, &json!({ "error": error, "code": "media-type.unsupported" })),
            "{coding}"
        );
    }
    let chunked = format!("{:x}\r\n{region}\r\n0\r\n\r\n", region.len());
    let transferred = ask(&app, "POST /regions", &["Transfer-Encoding: gzip, chunked"], &chunked).await.unwrap();
    assert_eq!((transferred.status, transferred.code()), (415, "media-type.unsupported"));
    assert_eq!(regions(&app).await, 0);

    let plain = ask(&app, "POST /regions", &["Content-Encoding: identity", "Transfer-Encoding: chunked"], &chunked).await;
    assert_eq!(plain.map(|response| response.status), Some(201));
}

#[test_on(sqlite, postgres)]
async fn ignores_identity_encoding(app: TestApp) {
    for (number, coding) in ["", "utf-8", "identity", "none", "x"].into_iter().enumerate() {
        let region = format!(r#"{{"name": "Region {number}", "country": "Ghana"}}"#);
        let lines = [format!("Content-Encoding: {coding}"), format!("Content-Length: {}", region.len())];

        let created = ask(&app, "POST /regions", &[&lines[0], &lines[1]], &region).await.unwrap();

        assert_eq!(created.status, 201, "{coding}: {}", created.body);
    }
}

#[test_on(sqlite, postgres)]
async fn tab_separates_etags(app: TestApp) {
    let region = app.create_region().await;
    let read = ask(&app, &format!("GET {region}"), &[], "").await.unwrap();
    let tag = app.request("GET", &region).send().await.header("etag").to_owned();

    let known = ask(&app, &format!("GET {region}"), &[&format!("If-None-Match: \"x\",\t{tag}")], "").await;
    let deleted = ask(&app, &format!("DELETE {region}"), &[&format!("If-Match: \"x\",\t{tag}")], "").await;

    assert_eq!(read.status, 200);
    assert_eq!(known.map(|response| response.status), Some(304));
    assert!(deleted.is_some_and(|response| response.status < 300));
}

#[test_on(sqlite, postgres)]
async fn rejects_without_continue(app: TestApp) {
    let rejected =
        send_raw(app.server, &request("POST /regions", &["Expect: 100-continue", "Content-Length: 9"], "")).await.unwrap();

    assert_eq!((rejected.status, rejected.code()), (412, "client.outdated"));
    for length in ["Content-Length: 9000000", "Content-Length: 99999999999"] {
        let large = ask(&app, "POST /regions", &["Expect: 100-continue", length], "").await.unwrap();
        assert_eq!((large.status, large.code()), (413, "body.too-large"), "{length}");
    }
}

#[test_on(sqlite, postgres)]
async fn rejects_disguised_path(app: TestApp) {
    let region = app.create_region().await;
    let id = id_of(&region);
    for (path, status) in [
        (format!("/regions%2F{id}"), 404),
        (format!("/regions/{id}%2F"), 404),
        (format!("/regions/{id}%00"), 404),
        (format!("/regions/%2e%2e%2Fregions%2F{id}"), 404),
        (format!("/hosts/%2e%2e/regions/{id}"), 404),
        (format!("/hosts/../regions/{id}"), 404),
        (format!("/regions;a=b/{id}"), 404),
        (format!("/regions\\{id}"), 404),
        ("/media/..%2f..%2f..%2fetc%2fpasswd".to_owned(), 404),
        ("/media/banner/..%2f..%2fboxoffice.db".to_owned(), 404),
    ] {
        let response = ask(&app, &format!("GET {path}"), &[], "").await.unwrap();
        assert_eq!(response.status, status, "{path}: {}", response.body);
    }
}

/// HTTP/1.1 requires exactly one `Host` (RFC 9112, section 3.2).
#[test_on(sqlite, postgres)]
async fn requires_exactly_one_host(app: TestApp) {
    let get = async |protocol: &str, hosts: &str| {
        let lines = format!("X-API-Key: {}\r\nX-Client-Version: 3.0.0\r\nConnection: close\r\n", app.staff.key);
        send_raw(app.server, format!("GET /time {protocol}\r\n{hosts}{lines}\r\n").as_bytes()).await.unwrap()
    };
    let error = "The request must have exactly one Host header, with the name of the server.";
    for hosts in [
        "",
        "Host: a.example\r\nHost: a.example\r\n",
        "Host: a\r\nhost: b\r\n",
        "Host: a b\r\n",
        "Host: a/b\r\n",
        "Host: x@a\r\n",
    ] {
        let response = get("HTTP/1.1", hosts).await;
        let expected = json!({ "error": error, "code": "host.invalid", "fields": [] });
        assert_eq!((response.status, &response.body), (400, &expected), "{hosts:?}");
        assert!(!response.header("x-request-id").is_empty());
    }
    for (protocol, hosts) in [
        ("HTTP/1.1", "Host: a.example\r\n"),
        ("HTTP/1.1", "Host: a.example:8080\r\n"),
        ("HTTP/1.1", "Host: [::1]:8080\r\n"),
        ("HTTP/1.1", "Host:\r\n"),
        ("HTTP/1.0", ""),
    ] {
        assert_eq!(get(protocol, hosts).await.status, 200, "{protocol} {hosts:?}");
    }
}

#[test_on(sqlite, postgres)]
async fn ignores_upgrade(app: TestApp) {
    for upgrade in ["h2c", "websocket", "TLS/1.2"] {
        let upgrade = format!("Upgrade: {upgrade}");
        let response = ask(&app, "GET /time", &[&upgrade, "Connection: Upgrade, close"], "").await.unwrap();
        assert_eq!(response.status, 200, "{upgrade}");
    }
}
