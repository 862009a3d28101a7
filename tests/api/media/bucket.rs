//! Images in an S3 bucket that rejects requests.

use std::io;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use reqwest::Client;
use serde_json::{Value, json};

use super::PNG;
use crate::support::server_process::{ServerProcess, boxoffice};
use crate::support::{TestApp, fetch_url, serve_http, test_on, wait_until};

/// Starts an S3 server that answers every request with this status and error code. Returns its URL.
async fn start_bucket(status: u16, code: &'static str) -> String {
    let answer = move |_| async move {
        let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
        Response::builder().status(status).body(Full::new(Bytes::from(body))).map_err(io::Error::other)
    };
    serve_http(answer).await
}

/// Starts a server on the database of `app`, with its images in a bucket.
fn serve(app: &TestApp, bucket_url: &str) -> ServerProcess {
    // Without `debug`, one failure per second is logged.
    let arguments = ["serve", "--media", "s3://tickets", "--log-level", "debug"];
    let mut command = boxoffice(app.state.settings.mail.key_file.parent().unwrap(), &arguments);
    command.env("DATABASE_URL", &app.database_url).env("AWS_ENDPOINT_URL", bucket_url).env("AWS_ALLOW_HTTP", "true");
    command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "key").env("AWS_REGION", "eu-west-1");
    tokio::task::block_in_place(|| ServerProcess::start(command))
}

#[test_on(sqlite, postgres)]
async fn image_that_bucket_rejects_is_unavailable(app: TestApp) {
    let (ama, event) = app.sign_up_host("ama", &[]).await;
    let draft = app.create_draft(&event.host).await;
    let draft = app.put(&ama.key, &draft.uri, json!({ "banner": PNG })).await.success();
    let banner = draft["banner"].as_str().unwrap().strip_prefix("https://boxoffice.example").unwrap();
    let (_, secret) = banner.split_once("?secret=").unwrap();
    for (status, code, media) in [
        (403, "AccessDenied", "failed"),
        (401, "Unauthorized", "failed"),
        (404, "NoSuchBucket", "failed"),
        (404, "NoSuchKey", "ok"),
    ] {
        let server = serve(&app, &start_bucket(status, code).await);

        let change = Client::new().put(format!("{}{}", server.address, event.uri)).json(&json!({ "banner": PNG }));
        let change = change.header("X-API-Key", &ama.key).header("X-Client-Version", "3.0.0").send().await.unwrap();
        // The server has also tried to delete what may have been stored.
        let cause = tokio::task::block_in_place(|| server.wait_for_log("cause", "cannot store image"));
        // The log doesn't reveal the secret of an image that isn't public.
        if status != 404 {
            let unavailable = fetch_url(&format!("{}{banner}", server.address)).await;
            assert_eq!(unavailable.status().as_u16(), 503);
            let cause = tokio::task::block_in_place(|| server.wait_for_log("cause", "cannot read"));
            assert!(cause.contains(code) && !cause.contains(secret), "{cause}");
        }
        let check = json!({ "name": "media", "status": media });
        // The check of a slow bucket fails.
        let has_check = async || {
            let ready = fetch_url(&format!("{}/readyz", server.address)).await;
            assert_eq!(ready.status().as_u16(), 200);
            let ready: Value = ready.json().await.unwrap();
            ready["checks"][2] == check
        };
        wait_until(has_check).await;

        let retry_after = change.headers().get("retry-after").is_some();
        assert_eq!((change.status().as_u16(), retry_after), (503, true), "{code}: {}", change.text().await.unwrap());
        assert!(cause.contains("cannot store image banner/") && cause.contains(code), "{cause}");
        tokio::task::block_in_place(|| server.stop());
    }
}

#[test_on(sqlite, postgres)]
async fn log_names_reason_of_unreachable_bucket(app: TestApp) {
    let server = serve(&app, "http://127.0.0.1:1");

    let ready = fetch_url(&format!("{}/readyz", server.address)).await;

    let cause = tokio::task::block_in_place(|| server.wait_for_log("cause", "cannot reach the media store"));
    assert_eq!(ready.status().as_u16(), 200);
    assert!(cause.contains("Connection refused"), "{cause}");
    tokio::task::block_in_place(|| server.stop());
}
