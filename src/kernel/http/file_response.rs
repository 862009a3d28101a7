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

/// The response headers that the contract declares.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct FileResponseHeaders {
    content_disposition: String,
    etag: String,
}

impl HttpResponse for FileResponse {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        let etag = to_header(etag_of(&self.content))?;
        let mut response = file_response(Body::from(self.content), self.media_type, self.name)?;
        let headers = response.headers_mut();
        headers.insert(header::ETAG, etag);
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

/// Returns a response with a file of this media type, which a browser saves under this name.
pub(super) fn file_response(body: Body, media_type: &'static str, name: &str) -> Result<Response<Body>, HttpError> {
    let disposition = to_header(format!("attachment; filename=\"{name}\""))?;
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    Ok(response)
}

fn to_header(text: String) -> Result<HeaderValue, HttpError> {
    HeaderValue::try_from(text).map_err(|error| HttpError::for_internal_error(error.to_string()))
}
