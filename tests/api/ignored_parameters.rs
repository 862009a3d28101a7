//! `X-Ignored-Parameters`: the names of query parameters that an operation doesn't define.

use boxoffice_mock::MockSettings;

use crate::support::{MockServer, TestApp, mock_request, operations, test_on};

#[test_on(sqlite, postgres)]
async fn names_ignored_parameters(app: TestApp) {
    let long = "x".repeat(2000);
    let many: Vec<_> = (0..1000).map(|number| format!("name{number}=1")).collect();
    for (query, expected) in [
        ("", ""),
        ("active=true&records=5", ""),
        ("active=&records=", ""),
        ("staus=Listed", "staus"),
        ("b=1&records=5&a=2&b=3", "b, a"),
        ("Records=5", "Records"),
        ("records[]=5", "records%5B%5D"),
        ("a%0d%0ab=1&%C3%A9=1&c%2Cd=2&%00=3", "a%0D%0Ab, %C3%A9, c%2Cd, %00"),
        ("%ff=1", "%EF%BF%BD"),
        ("=1&&?=2", "%3F"),
        (&long, "..."),
        (&format!("a=1&{long}=1&b=1"), "a, ..."),
    ] {
        let response = app.request("GET", &format!("/regions?{query}")).send().await;
        assert_eq!((response.status, response.header("x-ignored-parameters")), (200, expected), "{query}");
    }
    let listed = app.request("GET", &format!("/regions?{}", many.join("&"))).send().await;
    let names = listed.header("x-ignored-parameters");
    assert!(names.starts_with("name0, name1, ") && names.ends_with(", ...") && names.len() <= 1024, "{names}");
    let rejected = app.request("GET", "/regions?recrods=5&records=x").send().await;
    assert_eq!((rejected.status, rejected.header("x-ignored-parameters")), (400, "recrods"));
    assert!(rejected.header("access-control-expose-headers").contains("x-ignored-parameters"));
}

#[test_on(sqlite, postgres)]
async fn every_operation_names_ignored_parameter(app: TestApp) {
    for operation in operations() {
        let path = format!("{}?{}undefined=1", operation.path_with(&[]), operation.required_query());
        let response = app.request(&operation.method, &path).key("?").send().await;
        assert_eq!(response.header("x-ignored-parameters"), "undefined", "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mock_names_ignored_parameters() {
    let mock = MockServer::start(MockSettings::default());
    let response = mock.send(&mock_request("GET", "/regions?staus=Listed")).await;
    assert_eq!(response.headers["x-ignored-parameters"], "staus");
}
