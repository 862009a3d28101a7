//! The successful answers that dropshot has no type for.

use dropshot::{ApiEndpointResponse, Body, HttpError, HttpResponse, HttpResponseCreated, HttpResponseHeaders};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use super::tag::Tag;
use crate::base::wire::Uri;

/// A resource that knows its URI.
pub trait Located {
    /// Whether who has made it reads just what the answer to that was, which then has the tag that it is read with.
    const IS_AS_READ: bool = true;

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
    etag: Tag,
}

/// 201 with the new resource, its URI in `Location`, and its tag if it is as it is read.
#[derive(Debug)]
pub struct Created<T>(pub T);

impl<T: Located + Serialize + JsonSchema + Send + Sync + 'static> HttpResponse for Created<T> {
    fn to_result(self) -> Result<http::Response<Body>, HttpError> {
        let location = HeaderValue::from_str(self.0.location());
        let location = location.map_err(|error| HttpError::for_internal_error(error.to_string()))?;
        let mut response = HttpResponseCreated(self.0).to_result()?;
        response.headers_mut().insert(header::LOCATION, location);
        Ok(response)
    }

    fn response_metadata() -> ApiEndpointResponse {
        if T::IS_AS_READ {
            HttpResponseHeaders::<HttpResponseCreated<T>, LocationAndTagHeaders>::response_metadata()
        } else {
            HttpResponseHeaders::<HttpResponseCreated<T>, LocationHeader>::response_metadata()
        }
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::CREATED
    }
}
