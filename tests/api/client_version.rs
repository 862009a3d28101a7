//! Every operation and every client: which version it has, and what needs neither that nor a key. `access` has who may do what.

use serde_json::json;

use crate::on_both_databases;
use crate::support::{Operation, TestApp, operations};

on_both_databases![every_operation_requires_current_client_version, media_operations_need_no_key_or_version];

/// What isn't fetched by browsers alone.
fn guarded_operations() -> impl Iterator<Item = Operation> {
    operations().into_iter().filter(|operation| operation.needs_key)
}

async fn every_operation_requires_current_client_version(app: TestApp) {
    let error = "Please upgrade your client to complete this request";
    let expected = json!({ "error": error, "code": "client.outdated" });
    for operation in guarded_operations() {
        for version in [None, Some(""), Some("three"), Some("2.9.9")] {
            let answer = operation.send(&app, |request| request.version(version).key("?")).await;

            assert_eq!((answer.status, &answer.body), (412, &expected), "{} for {version:?}", operation.id);
        }
    }
}

async fn media_operations_need_no_key_or_version(app: TestApp) {
    let open: Vec<_> = operations().into_iter().filter(|operation| !operation.needs_key).collect();
    for operation in &open {
        let answer = operation.send(&app, |request| request.no_key().version(None)).await;

        assert!(operation.method == "GET" && operation.scopes.is_empty(), "{}", operation.id);
        assert_eq!((answer.status, answer.code()), (404, "resource.not-found"), "{}", operation.id);
    }
    assert!(!open.is_empty());
}
