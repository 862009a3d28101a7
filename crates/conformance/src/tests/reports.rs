//! Contents of reports: what they must not contain, and what a stopped comparison reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::{compare, comparison, json_answer, json_response, start};
use crate::model::Check;

/// Builds a document with eight operations.
fn document() -> Value {
    let answer = json_answer(&json!({ "type": "object" }));
    let path = |number: u8| (format!("/{number}"), json!({ "get": { "responses": { "200": answer } } }));
    super::document("other", (1..=8).map(path).collect())
}

#[tokio::test]
async fn report_has_no_cookie_of_the_server() {
    let report = compare(document(), |request| {
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
    let report = report.await;
    let checks: Vec<_> = report.findings.iter().map(|finding| finding.check).collect();
    assert!(checks.contains(&Check::Head) && checks.contains(&Check::Cors), "{checks:?}");
    let text = serde_json::to_string(&report).unwrap();
    assert!(!text.contains("hunter2") && text.contains("set-cookie"), "{text}");
}

#[tokio::test]
async fn stopped_comparison_has_no_findings() {
    let stopped = Arc::new(AtomicBool::new(false));
    let (stop, count) = (Arc::clone(&stopped), AtomicUsize::new(0));
    let address = start(move |_: &Request<Bytes>| {
        // The first request connects, and six detect the kind of the server.
        stop.store(count.fetch_add(1, Ordering::Relaxed) >= 7, Ordering::Relaxed);
        json_response(200, &json!({}))
    });
    let mut comparison = comparison(document(), None, &address.await).await;
    comparison.target.client.stopped = stopped;
    let report = comparison.run(|_| ()).await;
    assert_eq!(report.findings, []);
    let (stopped, checked): (Vec<_>, Vec<_>) = report.operations.iter().partition(|operation| operation.seen.is_empty());
    assert!(
        stopped.len() >= 4 && stopped.iter().all(|operation| operation.left_out.as_deref() == Some("stopped")),
        "{stopped:?}"
    );
    assert!(!checked.is_empty() && checked.iter().all(|operation| operation.left_out.is_none()), "{checked:?}");
}
