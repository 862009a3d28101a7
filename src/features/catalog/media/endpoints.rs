//! HTTP endpoints of media.

use boxoffice_http::error::{Error, Result};
use boxoffice_http::string_newtype;
use dropshot::{ApiEndpointResponse, Body, FreeformBody, HttpError, HttpResponse, HttpResponseHeaders, HttpResponseOk};
use http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::object_store::StoredImage;
use super::service::{self, ImageKind};
use crate::kernel::http::{Path, Query, Routes, get};
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// `Cache-Control` of a country's icon, which rarely changes.
const ICON_CACHE_CONTROL: &str = "public, max-age=86400";
/// `Cache-Control` of other public images. An image can be replaced at any time under the same URI.
const PUBLIC_IMAGE_CACHE_CONTROL: &str = "public, max-age=300";
/// `Cache-Control` of images that are not public. Shared caches must not store them.
const SECRET_IMAGE_CACHE_CONTROL: &str = "private, max-age=300";

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Media",
        [
            get("media_icon_get", "/media/{image}", media_icon_get).without_key(),
            get("media_image_get", "/media/{image}/{content}", media_image_get).without_key(),
        ],
    );
}

string_newtype!(
    /// The file name of an icon.
    IconName, None, Some(r"^[a-z0-9_]+\.png$"), None, Some(200);
    /// The identifier of the event or advertisement in an image's URI.
    ContentNumber, None, Some("^[0-9]{14}$"), None, None;
    /// The secret in the URI of an image that is not public.
    ImageSecret, None, Some("^[0-9]{14,19}$"), None, None
);

#[derive(Deserialize, JsonSchema)]
struct IconPath {
    image: IconName,
}

#[derive(Deserialize, JsonSchema)]
struct ImageQuery {
    secret: Option<ImageSecret>,
}

#[derive(Deserialize, JsonSchema)]
struct ImagePath {
    image: ImageKind,
    content: ContentNumber,
}

async fn media_icon_get(ctx: Ctx, path: Path<IconPath>) -> Result<ImageResponse> {
    let icon = service::icon(&ctx, &path.image.0).await?;
    Ok(ImageResponse { image: icon, cache_control: ICON_CACHE_CONTROL })
}

async fn media_image_get(ctx: Ctx, path: Path<ImagePath>, query: Query<ImageQuery>) -> Result<ImageResponse> {
    let ImagePath { image, content } = path.0;
    let content = Id::parse(&content.0).ok_or(Error::NOT_FOUND)?;
    let secret = query.secret.as_ref().map(|secret| secret.0.as_str());
    let image = service::image(&ctx, image, content, secret).await?;
    let cache_control = if secret.is_some() { SECRET_IMAGE_CACHE_CONTROL } else { PUBLIC_IMAGE_CACHE_CONTROL };
    Ok(ImageResponse { image, cache_control })
}

/// An image in a response. The dispatcher replaces it by 304 if the client's cached copy has the same entity tag.
pub struct ImageResponse {
    /// The image.
    pub image: StoredImage,
    /// The value of `Cache-Control`.
    pub cache_control: &'static str,
}

/// The response headers that the contract declares.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct ImageResponseHeaders {
    etag: String,
    cache_control: String,
}

impl HttpResponse for ImageResponse {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        let Self { image, cache_control } = self;
        let etag = HeaderValue::try_from(image.etag).map_err(|error| HttpError::for_internal_error(error.to_string()))?;
        let mut response = Response::new(Body::from(image.bytes));
        let headers = response.headers_mut();
        headers.insert(header::ETAG, etag);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
        // Browsers must not interpret an uploaded file as anything but an image of this type.
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
