//! Responses that are files to download.

use boxoffice_http::etag::etag_of;
use dropshot::{ApiEndpointResponse, Body, FreeformBody, HttpError, HttpResponse, HttpResponseHeaders, HttpResponseOk};
use http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

/// Status 200 with a file.
#[derive(Debug)]
pub struct FileResponse {
    /// The content.
    pub content: Vec<u8>,
    /// The media type.
    pub media_type: &'static str,
    /// The name under which a browser saves it.
    pub name: &'static str,
    /// True if no cache may store it.
    pub is_secret: bool,
}

/// The response header that the contract declares.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct FileResponseHeaders {
    etag: String,
}

impl HttpResponse for FileResponse {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        let value = |text: String| HeaderValue::try_from(text).map_err(|error| HttpError::for_internal_error(error.to_string()));
        let etag = value(etag_of(&self.content))?;
        let disposition = value(format!("attachment; filename=\"{}\"", self.name))?;
        let mut response = Response::new(Body::from(self.content));
        let headers = response.headers_mut();
        headers.insert(header::ETAG, etag);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(header::CONTENT_DISPOSITION, disposition);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self.is_secret {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        Ok(response)
    }

    fn response_metadata() -> ApiEndpointResponse {
        HttpResponseHeaders::<HttpResponseOk<FreeformBody>, FileResponseHeaders>::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::OK
    }
}
