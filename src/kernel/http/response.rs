//! Successful responses: what an endpoint may return, and the types that dropshot lacks.

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

/// A value that an endpoint returns if it succeeds. `Kind` is [`JsonBody`] or [`WholeResponse`], and is inferred.
pub trait Success<Kind> {
    /// The response in which it is sent.
    type Response: HttpResponse + Send + Sync + 'static;

    /// Converts it into that response.
    fn into_response(self) -> Self::Response;
}

/// Kind of the values that are the body of a 200, as JSON.
pub enum JsonBody {}

impl<T: Serialize + JsonSchema + Send + Sync + 'static> Success<JsonBody> for T {
    type Response = HttpResponseOk<T>;

    fn into_response(self) -> HttpResponseOk<T> {
        HttpResponseOk(self)
    }
}

/// Kind of the values that are a response.
pub enum WholeResponse {}

impl<R: HttpResponse + Send + Sync + 'static> Success<WholeResponse> for R {
    type Response = R;

    fn into_response(self) -> R {
        self
    }
}

/// A resource with a URI.
pub trait HasLocation {
    /// True if the body of the 201 response equals the body of a later GET, so that both have the same entity tag.
    const SAME_REPRESENTATION: bool = true;

    /// Returns the URI, which is also the resource's `self`.
    fn location(&self) -> &str;
}

/// Implements [`HasLocation`] for a resource whose URI is in its field `uri`. With a `PATH`, also implements
/// [`HasCollection`](crate::kernel::types::api_types::HasCollection).
macro_rules! has_location {
    ($resource:ty, PATH = $path:literal) => {
        $crate::kernel::http::has_location!($resource);

        impl $crate::kernel::types::api_types::HasCollection for $resource {
            const PATH: &'static str = $path;
        }
    };
    ($resource:ty $(, $constant:ident = $value:literal)?) => {
        impl $crate::kernel::http::HasLocation for $resource {
            $(const $constant: bool = $value;)?

            fn location(&self) -> &str {
                &self.uri.0
            }
        }
    };
}
pub(crate) use has_location;

/// The response headers that the contract declares.
#[derive(Serialize, JsonSchema)]
struct LocationHeader {
    location: Uri,
}

/// The response headers with the entity tag that the handler adds.
#[derive(Serialize, JsonSchema)]
struct LocationAndTagHeaders {
    location: Uri,
    etag: EntityTag,
}

/// Status 201 with the new resource, its URI in `Location`, and its entity tag if a GET returns the same representation.
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

/// Status 200 with JSON that is serialized once for many concurrent requests, and its entity tag.
#[derive(Debug)]
pub struct SerializedJson<T> {
    body: Bytes,
    tag: HeaderValue,
    content: PhantomData<fn() -> T>,
}

impl<T: Serialize> SerializedJson<T> {
    /// Serializes a value.
    ///
    /// # Errors
    /// Returns an error if the value can't be serialized as JSON.
    pub fn new(value: &T) -> Result<Self> {
        let body = serde_json::to_vec(value).map_err(anyhow::Error::from)?;
        let tag = HeaderValue::try_from(etag::etag_of(&body)).map_err(anyhow::Error::from)?;
        Ok(Self { body: body.into(), tag, content: PhantomData })
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.body.len()
    }
}

impl<T> Clone for SerializedJson<T> {
    fn clone(&self) -> Self {
        Self { body: self.body.clone(), tag: self.tag.clone(), content: PhantomData }
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
