//! Successful responses with a file whose content is streamed.

use boxoffice_http::error::Error;
use bytes::Bytes;
use dropshot::{ApiEndpointResponse, Body, FreeformBody, HttpError, HttpResponse, HttpResponseHeaders, HttpResponseOk};
use futures::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::StreamBody;
use schemars::JsonSchema;
use serde::Serialize;
use slog::{Logger, warn};
use tokio::sync::mpsc;

use super::file_response::file_response;

/// Status 200 with a file for download, which is sent in parts.
pub struct StreamedFile {
    media_type: &'static str,
    name: &'static str,
    body: Body,
}

/// The sending side of a streamed file: its parts, and `None` after the last one. If it is dropped before, the response is interrupted,
/// so that the client doesn't take it for whole.
pub struct FileSender(mpsc::Sender<Option<Bytes>>);

/// The response header that the contract declares.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct StreamedFileHeaders {
    content_disposition: String,
}

impl StreamedFile {
    /// Creates a response and its sending side. A part waits until the client has received the one before the last, so that a slow
    /// client takes no memory.
    pub fn new(media_type: &'static str, name: &'static str) -> (FileSender, Self) {
        let (sender, mut receiver) = mpsc::channel::<Option<Bytes>>(1);
        let parts = stream::poll_fn(move |context| {
            receiver.poll_recv(context).map(|received| match received {
                Some(part) => part.map(|part| Ok(Frame::data(part))),
                None => Some(Err(std::io::Error::other("interrupted"))),
            })
        });
        (FileSender(sender), Self { media_type, name, body: Body::wrap(StreamBody::new(parts)) })
    }
}

impl FileSender {
    /// Sends a part. Returns false if the client has gone.
    pub async fn send(&self, part: Bytes) -> bool {
        self.0.send(Some(part)).await.is_ok()
    }

    /// Ends the file after its last part.
    pub async fn finish(self) {
        // The client may have gone.
        let _gone = self.0.send(None).await;
    }

    /// Interrupts the response, and logs the cause.
    pub fn fail(self, log: &Logger, error: Error) {
        warn!(log, "a streamed response was interrupted"; "cause" => error.into_log_text());
    }
}

impl HttpResponse for StreamedFile {
    fn to_result(self) -> std::result::Result<Response<Body>, HttpError> {
        let mut response = file_response(self.body, self.media_type, self.name)?;
        // It has personal data.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    fn response_metadata() -> ApiEndpointResponse {
        HttpResponseHeaders::<HttpResponseOk<FreeformBody>, StreamedFileHeaders>::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::OK
    }
}
