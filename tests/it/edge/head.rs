//! The head of a request: its size, and what can't be read of it.

use boxoffice::mock::Settings;
use serde_json::json;

use super::raw::{request, say};
use crate::mock::Mock;
use crate::support::{World, operations};
use crate::{on_both_databases, plain_tests};

on_both_databases![
    a_head_has_its_size,
    the_size_is_looked_at_before_all_else,
    a_path_that_cannot_be_read_does_not_exist,
    a_method_that_nobody_knows_is_not_allowed,
];

plain_tests![async the_mock_has_the_same_sizes];

/// A path and query of so many bytes.
fn of_length(path: &str, bytes: usize) -> String {
    let start = format!("{path}?x=");
    format!("{start}{}", "x".repeat(bytes - start.len()))
}

/// Headers of so many bytes together.
fn headers_of_size(bytes: usize) -> String {
    // Three lines of four kilobytes and less each would be taken alike: what counts is the sum.
    let line = |size: usize| format!("x: {}", "y".repeat(size - "x: \r\n".len()));
    let lines: Vec<_> = [8192, 8192, 8192, bytes - 3 * 8192].map(line).into();
    lines.join("\r\n")
}

async fn a_head_has_its_size(world: World) {
    let asked = |uri: &str| request(&format!("GET {uri}"), &[], "");
    let most = say(world.server, &asked(&of_length("/nowhere", 8192))).await.unwrap();
    let long = say(world.server, &asked(&of_length("/nowhere", 8193))).await.unwrap();

    assert_eq!(most.status, 404);
    let error = "The request's path and query are longer than 8192 bytes.";
    assert_eq!((long.status, &long.body), (414, &json!({ "error": error, "code": "uri.too-long" })));

    let usual = "host: boxoffice.example\r\nconnection: close\r\n".len();
    let headers = |bytes| request("GET /nowhere", &[&headers_of_size(bytes - usual)], "");
    let most = say(world.server, &headers(32 * 1024)).await.unwrap();
    let large = say(world.server, &headers(32 * 1024 + 1)).await.unwrap();

    assert_eq!(most.status, 404);
    let error = "The request's headers together are larger than 32768 bytes.";
    assert_eq!((large.status, &large.body), (431, &json!({ "error": error, "code": "headers.too-large" })));
}

async fn the_size_is_looked_at_before_all_else(world: World) {
    let large = headers_of_size(33 * 1024);
    for operation in operations() {
        let path = operation.path_with(&[]);

        let long = say(world.server, &request(&format!("{} {}", operation.method, of_length(&path, 8193)), &[], "")).await;
        let large = say(world.server, &request(&format!("{} {path}", operation.method), &[&large], "")).await;

        assert_eq!(long.map(|answer| answer.status), Some(414), "{}", operation.id);
        assert_eq!(large.map(|answer| answer.status), Some(431), "{}", operation.id);
    }
    let preflight = say(world.server, &request(&format!("OPTIONS {}", of_length("/regions", 8193)), &[], "")).await;
    assert_eq!(preflight.map(|answer| answer.status), Some(414));
}

async fn the_mock_has_the_same_sizes() {
    let mock = Mock::start(Settings::default());

    let long = say(mock.address(), &request(&format!("GET {}", of_length("/regions", 8193)), &[], "")).await.unwrap();
    let large = say(mock.address(), &request("GET /regions", &[&headers_of_size(33 * 1024)], "")).await.unwrap();

    assert_eq!((long.status, long.code()), (414, "uri.too-long"));
    assert_eq!((large.status, large.code()), (431, "headers.too-large"));
}

/// dropshot's router decodes a path before it looks for it, and what refuses this has dropshot's shape.
async fn a_path_that_cannot_be_read_does_not_exist(world: World) {
    for path in ["/hosts/%ff", "/hosts/%c3%28", "/%80/x", "/hosts/../regions", "/./regions", "/v3/hosts/%ff"] {
        for method in ["GET", "DELETE", "PROPFIND", "FOO", "OPTIONS"] {
            let answer = say(world.server, &request(&format!("{method} {path}"), &[], "")).await.unwrap();

            let message = format!("The requested endpoint {path} does not exist on this server.");
            assert_eq!((answer.status, &answer.body["message"]), (404, &json!(message)), "{method}");
            assert_eq!(answer.body["error_code"], "endpoint.unknown");
            assert!(!answer.header("x-request-id").is_empty());
        }
    }
}

async fn a_method_that_nobody_knows_is_not_allowed(world: World) {
    for method in ["PROPFIND", "QUERY", "VERSION-CONTROL", "TRACE"] {
        let known = say(world.server, &request(&format!("{method} /regions"), &[], "")).await.unwrap();
        let nowhere = say(world.server, &request(&format!("{method} /nowhere"), &[], "")).await.unwrap();

        assert_eq!((known.status, known.code(), known.header("allow")), (405, "method.not-allowed", "get, post"), "{method}");
        assert_eq!((nowhere.status, nowhere.code()), (404, "endpoint.unknown"), "{method}");
    }
    for method in ["FOO", "get", "Post"] {
        let known = say(world.server, &request(&format!("{method} /v3/regions"), &[], "")).await.unwrap();
        let nowhere = say(world.server, &request(&format!("{method} /nowhere"), &[], "")).await.unwrap();

        assert_eq!((known.status, known.header("allow")), (405, "get, post"), "{method}");
        assert_eq!(known.body["error_code"], "method.not-allowed", "{method}: in dropshot's shape");
        assert_eq!((nowhere.status, &nowhere.body["error_code"]), (404, &json!("endpoint.unknown")), "{method}");
    }
}
