//! Contents of reports: what they must not contain.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::{comparison, json_response, start};
use crate::model::Check;

/// Builds a document with the operations `first` and `second`.
fn document() -> Value {
    let answer = json!({ "description": "", "content": { "application/json": { "schema": { "type": "object" } } } });
    let operation = |id: &str| json!({ "get": { "operationId": id, "responses": { "200": answer } } });
    json!({
        "openapi": "3.0.3",
        "info": { "title": "other", "version": "1" },
        "paths": { "/first": operation("first"), "/second": operation("second") },
    })
}

#[tokio::test]
async fn report_has_no_cookie_of_the_server() {
    let address = start(|request: &Request<Bytes>| {
        let mut response = json_response(if request.method() == "HEAD" { 403 } else { 200 }, &json!({}));
        for (name, value) in [
            ("set-cookie", "session=hunter2"),
            ("access-control-allow-credentials", "true"),
            ("access-control-allow-origin", "*"),
        ] {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        response
    });
    let report = comparison(document(), None, &address.await).await.run(|_| ()).await;
    let checks: Vec<_> = report.findings.iter().map(|finding| finding.check).collect();
    assert!(checks.contains(&Check::Head) && checks.contains(&Check::Cors), "{checks:?}");
    let text = serde_json::to_string(&report).unwrap();
    assert!(!text.contains("hunter2") && text.contains("set-cookie"), "{text}");
}
