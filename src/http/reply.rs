//! The successful answers that dropshot has no type for.

use dropshot::{ApiEndpointResponse, Body, HttpError, HttpResponse, HttpResponseCreated, HttpResponseHeaders};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::wire::Uri;

/// A resource that knows its URI.
pub trait Located {
    /// Its `self`.
    fn location(&self) -> &str;
}

/// The header, as the contract declares it.
#[derive(Serialize, JsonSchema)]
struct LocationHeader {
    location: Uri,
}

/// 201 with the new resource, and its URI in `Location`.
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
        HttpResponseHeaders::<HttpResponseCreated<T>, LocationHeader>::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::CREATED
    }
}
