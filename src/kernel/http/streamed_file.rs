//! Successful responses with a file whose content is streamed.

use boxoffice_http::ApiError;
use boxoffice_http::error::{Error, one_line};
use bytes::Bytes;
use dropshot::{ApiEndpointResponse, Body, FreeformBody, HttpError, HttpResponse, HttpResponseOk};
use futures::{StreamExt, stream};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::StreamBody;
use slog::{Logger, warn};
use tokio::sync::mpsc;

use super::file_response::file_response;

/// Status 200 with a file for download, which is sent in parts.
pub struct StreamedFile {
    media_type: &'static str,
    name: &'static str,
    body: Body,
}

/// The sending side of a streamed file.
pub struct FileSender(mpsc::Sender<std::io::Result<Bytes>>);

impl StreamedFile {
    /// Creates a response and its sending side. A part waits until the client has received the one before the last, so that a slow
    /// client takes no memory.
    pub fn new(media_type: &'static str, name: &'static str) -> (FileSender, Self) {
        let (sender, mut receiver) = mpsc::channel(1);
        let parts = stream::poll_fn(move |context| receiver.poll_recv(context));
        let frames = parts.map(|part: std::io::Result<Bytes>| part.map(Frame::data));
        (FileSender(sender), Self { media_type, name, body: Body::wrap(StreamBody::new(frames)) })
    }
}

impl FileSender {
    /// Sends a part. Returns false if the client has gone.
    pub async fn send(&self, part: Bytes) -> bool {
        self.0.send(Ok(part)).await.is_ok()
    }

    /// Ends the response before its end, so that the client doesn't take it for whole, and logs the cause.
    pub async fn fail(self, log: &Logger, error: Error) {
        let error = ApiError::from(error);
        warn!(log, "a streamed response was interrupted"; "cause" => error.cause().map(one_line));
        // The client may have gone.
        let _gone = self.0.send(Err(std::io::Error::other("interrupted"))).await;
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
        HttpResponseOk::<FreeformBody>::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::OK
    }
}
