//! The media operations of the contract.

use dropshot::{ApiEndpointResponse, Body, FreeformBody, HttpError, HttpResponse, HttpResponseOk, Path, endpoint};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Deserialize;

use super::service::{self, ImageKind};
use super::store::Stored;
use crate::base::id::Id;
use crate::base::wire::wire_text;
use crate::error::Error;
use crate::http::{Api, Failure, Query, Rq, tag};

/// A country's icon hardly ever changes.
const KEEP_ICON: &str = "public, max-age=86400";
/// Any other image may be replaced at any time, under the same address.
const KEEP_IMAGE: &str = "public, max-age=300";

/// Adds these operations to the server.
pub fn register(api: &mut Api) {
    api.add_open(media_icon_get, &[]);
    api.add_open(media_image_get, &[]);
}

wire_text!(
    /// The file name of an icon.
    IconName, None, Some(r"^[a-z0-9_]+\.png$"), None, Some(200)
);
wire_text!(
    /// The identifier of an event or advertisement in an image's address.
    ContentNumber, None, Some("^[0-9]{14}$"), None, None
);

#[derive(Deserialize, JsonSchema)]
struct IconPath {
    image: IconName,
}

wire_text!(
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
async fn media_icon_get(rq: Rq, path: Path<IconPath>) -> Result<Picture, Failure> {
    let icon = service::icon(rq.context(), &path.into_inner().image.0).await?;
    Ok(Picture::new(icon, KEEP_ICON, rq.request.headers()))
}

#[endpoint { method = GET, path = "/media/{image}/{content}", tags = ["Media"] }]
async fn media_image_get(rq: Rq, path: Path<ImagePath>, query: Query<ImageQuery>) -> Result<Picture, Failure> {
    let ImagePath { image, content } = path.into_inner();
    let content = Id::parse(&content.0).ok_or(Error::NOT_FOUND)?;
    let secret = query.0.secret.as_ref().map(|secret| secret.0.as_str());
    let image = service::image(rq.context(), image, content, secret).await?;
    Ok(Picture::new(image, KEEP_IMAGE, rq.request.headers()))
}

/// An image, or 304 to whoever has it already.
struct Picture {
    image: Stored,
    keep: &'static str,
    is_known: bool,
}

impl Picture {
    fn new(image: Stored, keep: &'static str, request: &HeaderMap) -> Self {
        Self { is_known: tag::is_known(request.get_all(header::IF_NONE_MATCH), &image.etag), image, keep }
    }
}

impl HttpResponse for Picture {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        let status = self.status_code();
        let Self { image, keep, is_known } = self;
        let etag = HeaderValue::try_from(image.etag).map_err(|error| HttpError::for_internal_error(error.to_string()))?;
        let mut response = Response::new(if is_known { Body::empty() } else { Body::from(image.bytes) });
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::ETAG, etag);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
        // What people have sent is shown as the image that it was found to be, and never guessed to be a page.
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if !is_known {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(image.media_type));
        }
        Ok(response)
    }

    /// An endpoint declares one status; 304 stands in the contract alone.
    fn response_metadata() -> ApiEndpointResponse {
        HttpResponseOk::<FreeformBody>::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        if self.is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK }
    }
}
