//! The client version that every operation requires, and the operations that require neither version nor key.

use serde_json::json;

use crate::support::{Operation, TestApp, operations, rejection, test_on};

/// Returns the operations that require a key.
fn operations_with_key() -> impl Iterator<Item = &'static Operation> {
    operations().iter().filter(|operation| operation.needs_key)
}

#[test_on(sqlite, postgres)]
async fn every_operation_requires_current_client_version(app: TestApp) {
    let error = "Please upgrade your client to complete this request";
    let expected = json!({ "error": error, "code": "client.outdated" });
    for operation in operations_with_key() {
        for version in [None, Some(""), Some("three"), Some("2.9.9")] {
            let response = operation.send(&app, |request| request.version(version).key("?")).await;

            assert_eq!((response.status, &response.body), (412, &expected), "{} for {version:?}", operation.id);
        }
    }
}

#[test_on(sqlite, postgres)]
async fn version_has_one_to_eight_numbers(app: TestApp) {
    let status = async |version: &str| app.request("GET", "/time").version(Some(version)).send().await.status;

    for version in [
        "3",
        "3.0",
        "3.0.0",
        "3.0.0.0",
        "3.0.0.1",
        "3.1",
        "12.0.7",
        "3.2.1.20251120",
        "4.0.0.0.0",
        "3.0.0.0.0.0.0.1",
        " 3.0.0.1",
        "3.0.20261127143000",
        "3.0.99999999999999999999",
    ] {
        assert_eq!(status(version).await, 200, "{version}");
    }
    for version in ["2", "-3", "2.9.9.9", "2.999.0.0.0", "3.0.0.0.0.0.0.0.0", "3.0.0.", "3..0", "3.0.0-beta", "v3.0.0"] {
        assert_eq!(status(version).await, 412, "{version}");
    }
}

#[test_on(sqlite, postgres)]
async fn open_operations_need_no_key_or_version(app: TestApp) {
    let open: Vec<_> = operations().iter().filter(|operation| !operation.needs_key).collect();
    for operation in &open {
        let response = operation.send(&app, |request| request.anonymous()).await;

        assert!(operation.method == "GET" && operation.scopes.is_empty(), "{}", operation.id);
        // Nothing but the resource that the path names can be missing.
        let expected = if operation.path.contains('{') { (404, "resource.not-found") } else { (200, "") };
        assert_eq!(rejection(&response), expected, "{}", operation.id);
    }
    assert!(!open.is_empty());
}
