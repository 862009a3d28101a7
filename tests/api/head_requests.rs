//! HEAD, the response to GET without its body, and OPTIONS, the methods of a path.

use std::collections::{BTreeMap, BTreeSet};

use boxoffice_mock::MockSettings;

use crate::http_limits::raw::{request, send_raw};
use crate::support::{MockServer, Response, TestApp, mock_request, operations, test_on};

/// Returns the headers of a response that don't differ between two equal requests.
fn stable_headers(response: &Response) -> BTreeMap<String, Vec<u8>> {
    let changing = ["date", "x-request-id", "ratelimit", "ratelimit-policy"];
    let headers = response.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
    headers.filter(|(name, _)| !changing.contains(&name.as_str())).collect()
}

#[test_on(sqlite, postgres)]
async fn head_of_every_get_has_its_status_and_headers(app: TestApp) {
    let mut statuses = Vec::new();
    for operation in operations().iter().filter(|operation| operation.method == "GET") {
        let path = format!("{}?{}", operation.path_with(&[]), operation.required_query());
        // The server time is in the tag.
        if operation.id == "time_get" {
            continue;
        }
        for key in [&app.staff.key, "?"] {
            let (get, head) = (app.get(key, &path).await, app.request("HEAD", &path).key(key).send().await);

            assert_eq!((head.status, stable_headers(&head)), (get.status, stable_headers(&get)), "{}", operation.id);
            assert!(head.body.is_null() && !head.header("content-length").is_empty(), "{}", operation.id);
            statuses.push(head.status);
        }
    }
    for status in [200, 403, 404] {
        assert!(statuses.contains(&status), "{status}");
    }
}

#[test_on(sqlite, postgres)]
async fn head_of_resource_has_length_and_tag(app: TestApp) {
    let region = app.create_region().await;
    let usual = format!("X-API-Key: {}", app.staff.key);
    let usual = [usual.as_str(), "X-Client-Version: 3.0.0"];
    let get = app.request("GET", &region).send().await;
    let tag = get.header("etag");

    // Read until the end of the connection: there is no body.
    let head = send_raw(app.server, &request(&format!("HEAD {region}"), &usual, "")).await.unwrap();
    let known = app.request("HEAD", &region).header("If-None-Match", tag).send().await;

    assert_eq!((head.status, head.header("content-length")), (200, get.header("content-length")));
    assert!(head.body.is_null() && head.header("etag").eq_ignore_ascii_case(tag));
    assert_eq!((known.status, known.header("etag")), (304, tag));
}

#[test_on(sqlite, postgres)]
async fn head_of_other_paths_is_not_allowed(app: TestApp) {
    for (path, status, allow) in
        [("/lookups", 405, "POST, OPTIONS"), ("/accounts/GH-4K7QW2MZ/toggles", 405, "POST, OPTIONS"), ("/nowhere", 404, "")]
    {
        let head = app.request("HEAD", path).send().await;
        assert_eq!((head.status, head.header("allow"), head.body.is_null()), (status, allow, true), "{path}");
    }
    let deleted = app.request("DELETE", "/hosts").send().await;
    assert_eq!((deleted.status, deleted.header("allow")), (405, "GET, HEAD, POST, OPTIONS"));
}

#[test_on(sqlite, postgres)]
async fn options_lists_the_methods_of_each_path(app: TestApp) {
    let mut declared: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for operation in operations() {
        let (_, methods) = declared.entry(operation.path.clone()).or_insert_with(|| (operation.path_with(&[]), BTreeSet::new()));
        methods.insert(operation.method.clone());
    }
    for (path, mut methods) in declared.into_values() {
        if methods.contains("GET") {
            methods.insert("HEAD".to_owned());
        }
        methods.insert("OPTIONS".to_owned());

        let options = app.request("OPTIONS", &path).anonymous().send().await;

        assert_eq!((options.status, options.body.is_null()), (204, true), "{path}");
        for name in ["allow", "access-control-allow-methods"] {
            let allowed: BTreeSet<_> = options.header(name).split(", ").map(str::to_owned).collect();
            assert_eq!(allowed, methods, "{path}: {name}");
        }
    }
    let unknown = app.request("OPTIONS", "/nowhere").anonymous().send().await;
    let preflight = app.request("OPTIONS", "/nowhere").anonymous().header("Access-Control-Request-Method", "PUT");
    let preflight = preflight.send().await;
    assert_eq!((unknown.status, unknown.header("allow")), (404, ""));
    assert!(preflight.status == 204 && preflight.header("access-control-allow-methods").contains("PUT"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mock_answers_head_like_get() {
    let mock = MockServer::start(MockSettings::default());

    let get = mock.send(&mock_request("GET", "/regions")).await;
    let head = mock.send(&mock_request("HEAD", "/regions")).await;

    assert_eq!((head.status, head.body.is_empty()), (200, true));
    for name in ["etag", "content-type", "content-length"] {
        assert_eq!(head.headers.get(name), get.headers.get(name), "{name}");
    }
}
