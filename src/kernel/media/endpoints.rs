//! The media operations of the contract.

use dropshot::{ApiEndpointResponse, Body, FreeformBody, HttpError, HttpResponse, HttpResponseHeaders, HttpResponseOk, endpoint};
use http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::{self, ImageKind};
use super::object_store::StoredImage;
use crate::kernel::types::id::Id;
use crate::kernel::types::api_types::string_newtype;
use boxoffice_http::error::Error;
use crate::kernel::http::{ApiError, Path, Query, Routes, Rq};

/// A country's icon hardly ever changes.
const KEEP_ICON: &str = "public, max-age=86400";
/// Any other image may be replaced at any time, under the same address.
const KEEP_IMAGE: &str = "public, max-age=300";
/// So may one that not everyone may see, which only whoever asked for it may keep.
const KEEP_SECRET_IMAGE: &str = "private, max-age=300";

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add_open(media_icon_get, &[]);
    api.add_open(media_image_get, &[]);
}

string_newtype!(
    /// The file name of an icon.
    IconName, None, Some(r"^[a-z0-9_]+\.png$"), None, Some(200)
);
string_newtype!(
    /// The identifier of an event or advertisement in an image's address.
    ContentNumber, None, Some("^[0-9]{14}$"), None, None
);

#[derive(Deserialize, JsonSchema)]
struct IconPath {
    image: IconName,
}

string_newtype!(
    /// What the address of an image that not everyone may see ends in.
    ImageSecret, None, Some("^[0-9]{14,19}$"), None, None
);

#[derive(Deserialize, JsonSchema)]
struct ImageQuery {
    secret: Option<ImageSecret>,
}

#[derive(Deserialize, JsonSchema)]
struct ImagePath {
    image: ImageKind,
    content: ContentNumber,
}

#[endpoint { method = GET, path = "/media/{image}", tags = ["Media"] }]
async fn media_icon_get(rq: Rq, path: Path<IconPath>) -> Result<ImageResponse, ApiError> {
    let icon = service::icon(rq.context(), &path.0.image.0).await?;
    Ok(ImageResponse { image: icon, keep: KEEP_ICON })
}

#[endpoint { method = GET, path = "/media/{image}/{content}", tags = ["Media"] }]
async fn media_image_get(rq: Rq, path: Path<ImagePath>, query: Query<ImageQuery>) -> Result<ImageResponse, ApiError> {
    let ImagePath { image, content } = path.0;
    let content = Id::parse(&content.0).ok_or(Error::NOT_FOUND)?;
    let secret = query.0.secret.as_ref().map(|secret| secret.0.as_str());
    let image = service::image(rq.context(), image, content, secret).await?;
    Ok(ImageResponse { image, keep: if secret.is_some() { KEEP_SECRET_IMAGE } else { KEEP_IMAGE } })
}

/// An image. To whoever has it already, by its tag, the front door answers 304 in its place.
struct ImageResponse {
    image: StoredImage,
    keep: &'static str,
}

/// The headers that it has, as the contract declares them.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct ImageResponseHeaders {
    etag: String,
    cache_control: String,
}

impl HttpResponse for ImageResponse {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        let Self { image, keep } = self;
        let etag = HeaderValue::try_from(image.etag).map_err(|error| HttpError::for_internal_error(error.to_string()))?;
        let mut response = Response::new(Body::from(image.bytes));
        let headers = response.headers_mut();
        headers.insert(header::ETAG, etag);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
        // What people have sent is shown as the image that it was found to be, and never guessed to be a page.
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(image.media_type));
        Ok(response)
    }

    fn response_metadata() -> ApiEndpointResponse {
        HttpResponseHeaders::<HttpResponseOk<FreeformBody>, ImageResponseHeaders>::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::OK
    }
}
