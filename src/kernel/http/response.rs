//! The successful answers that dropshot has no type for.

use std::marker::PhantomData;

use boxoffice_http::error::Result;
use boxoffice_http::etag::{self, EntityTag};
use boxoffice_http::response_headers;
use bytes::Bytes;
use dropshot::{ApiEndpointResponse, Body, HttpError, HttpResponse, HttpResponseCreated, HttpResponseHeaders, HttpResponseOk};
use http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::types::api_types::Uri;

/// A resource that knows its URI.
pub trait HasLocation {
    /// Whether who has made it reads just what the answer to that was, which then has the tag that it is read with.
    const SAME_REPRESENTATION: bool = true;

    /// Its `self`.
    fn location(&self) -> &str;
}

/// The header, as the contract declares it.
#[derive(Serialize, JsonSchema)]
struct LocationHeader {
    location: Uri,
}

/// The same, with the tag that the front door adds.
#[derive(Serialize, JsonSchema)]
struct LocationAndTagHeaders {
    location: Uri,
    etag: EntityTag,
}

/// 201 with the new resource, its URI in `Location`, and its tag if it is as it is read.
#[derive(Debug)]
pub struct Created<T>(pub T);

impl<T: HasLocation + Serialize + JsonSchema + Send + Sync + 'static> HttpResponse for Created<T> {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        let location = HeaderValue::from_str(self.0.location());
        let location = location.map_err(|error| HttpError::for_internal_error(error.to_string()))?;
        let mut response = HttpResponseCreated(self.0).to_result()?;
        response.headers_mut().insert(header::LOCATION, location);
        Ok(response)
    }

    fn response_metadata() -> ApiEndpointResponse {
        if T::SAME_REPRESENTATION {
            HttpResponseHeaders::<HttpResponseCreated<T>, LocationAndTagHeaders>::response_metadata()
        } else {
            HttpResponseHeaders::<HttpResponseCreated<T>, LocationHeader>::response_metadata()
        }
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::CREATED
    }
}

/// 200 with what has been written down once for all who ask for it at the same time, with its tag.
#[derive(Debug)]
pub struct SerializedJson<T> {
    body: Bytes,
    tag: HeaderValue,
    what: PhantomData<fn() -> T>,
}

impl<T: Serialize> SerializedJson<T> {
    /// Writes this down.
    ///
    /// # Errors
    /// When it is no JSON.
    pub fn new(what: &T) -> Result<Self> {
        let body = serde_json::to_vec(what).map_err(anyhow::Error::from)?;
        let tag = HeaderValue::try_from(etag::etag_of(&body)).map_err(anyhow::Error::from)?;
        Ok(Self { body: body.into(), tag, what: PhantomData })
    }

    /// How large it is, in bytes.
    pub fn size(&self) -> usize {
        self.body.len()
    }
}

impl<T> Clone for SerializedJson<T> {
    fn clone(&self) -> Self {
        Self { body: self.body.clone(), tag: self.tag.clone(), what: PhantomData }
    }
}

impl<T: Serialize + JsonSchema + Send + Sync + 'static> HttpResponse for SerializedJson<T> {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        let mut response = Response::new(Body::from(self.body));
        let headers = response.headers_mut();
        headers.reserve(response_headers::USUAL_COUNT);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ETAG, self.tag);
        Ok(response)
    }

    fn response_metadata() -> ApiEndpointResponse {
        HttpResponseOk::<T>::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::OK
    }
}
