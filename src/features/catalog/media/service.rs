//! Operations on images, and their names in the object store.

use boxoffice_http::error::{Error, FieldError, Result};
use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::Deserialize;
use slog::warn;

use super::generated::Drawing;
use super::image::{self, Image};
use super::object_store::{self, StoredImage};
use super::{icon, store};
use crate::kernel::auth::Caller;
use crate::kernel::db::Reader;
use crate::kernel::types::api_types::AbsoluteUri;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

/// The role of an image for its event or advertisement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ImageKind {
    /// The wide image above an event.
    Banner,
    /// The small image of an event in lists.
    Thumbnail,
    /// The image of an advertisement.
    Artwork,
}

impl ImageKind {
    /// Returns the width and height of a placeholder in pixels.
    pub fn placeholder_size(self) -> (u32, u32) {
        match self {
            Self::Banner => (960, 320),
            Self::Thumbnail | Self::Artwork => (320, 320),
        }
    }
}

string_newtype!(
    /// An image in base64, with or without a data-URI prefix.
    ImageText, Some("image"), None, None, Some(7_340_032)
);

/// Parses the base64 image in the argument `name`.
///
/// # Errors
/// A field error of `name` when it is not an accepted image.
pub fn parse(name: &str, base64: &str) -> Result<Image, FieldError> {
    image::parse(base64).map_err(|problem| FieldError::invalid(name, problem.to_string()))
}

/// Returns whether a text is the URI of this image. Clients send it back with the event or advertisement that they have read.
pub fn is_uri_of(app: &App, kind: ImageKind, content: Id, text: &ImageText) -> bool {
    text.0.split('?').next() == Some(&image_uri(app, kind, content, None, true).0)
}

/// Parses the argument `name` like [`parse`], on a thread for work with images.
///
/// # Errors
/// Like [`AccountWorkerPool::run`](crate::kernel::worker_pool::AccountWorkerPool::run). Check first that the caller may store the image:
/// decoding is slow.
pub async fn parse_upload(app: &App, caller: &Caller, name: &'static str, text: &ImageText) -> Result<Result<Image, FieldError>> {
    let base64 = text.0.clone();
    app.image_uploads.run(caller.account, move || parse(name, &base64)).await
}

/// Stores an image under a new identifier. It is not served until a row references it.
///
/// # Errors
/// Returns an error if the object store fails.
pub async fn put_image(ctx: &Ctx, kind: ImageKind, id: Id, image: &Image) -> Result<()> {
    ctx.app.media.put(&name(kind, id), image).await.map_err(storage_error)
}

/// Copies a stored image, if there is one, and returns the identifier of the copy. It is not served until a row references it.
///
/// # Errors
/// Returns an error if the object store fails.
pub async fn copy(app: &App, kind: ImageKind, image: Option<Id>) -> Result<Option<Id>> {
    let Some(image) = image else { return Ok(None) };
    let copy = secret::image_id();
    let is_copied = app.media.copy(&name(kind, image), &name(kind, copy)).await.map_err(storage_error)?;
    Ok(is_copied.then_some(copy))
}

/// Returns the names in the object store of all images that rows refer to.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn stored_images(reader: &mut Reader) -> Result<Vec<String>> {
    Ok(store::images(reader).await?.into_iter().map(|(kind, id)| name(kind, id)).collect())
}

/// Deletes images that no row references any more. Failures are only logged, because an unused image does no harm.
pub async fn discard(app: &App, kind: ImageKind, ids: impl IntoIterator<Item = Id>) {
    for id in ids {
        if let Err(error) = app.media.delete(&name(kind, id)).await {
            warn!(app.log, "an unused image could not be deleted"; "image" => %kind, "id" => %id, "cause" => ?error);
        }
    }
}

/// Returns the URI of an image of an event or advertisement. Browsers send no API key, so the URI of an uploaded image that is
/// not public contains a secret: the image's identifier. The URI of an event's image without an upload leads to a placeholder.
pub fn image_uri(app: &App, kind: ImageKind, content: Id, image: Option<Id>, is_public: bool) -> AbsoluteUri {
    let secret = image.filter(|_| !is_public).map(|image| format!("?secret={image}")).unwrap_or_default();
    AbsoluteUri(format!("{}/media/{}{secret}", app.settings.public_url, name(kind, content)))
}

/// Returns the image of an event or advertisement. An uploaded image that is not public needs its secret. Without an uploaded
/// image, returns a placeholder with the event's title, or without it while the event is not public.
///
/// # Errors
/// [`Error::NOT_FOUND`] when there is no such event or advertisement or the secret is wrong.
pub async fn image(ctx: &Ctx, kind: ImageKind, content: Id, secret: Option<&str>) -> Result<StoredImage> {
    // The image may be replaced after its row was read. Then the row already references the new image.
    for _ in 0..2 {
        let row = store::image(&mut ctx.unit.read().await?, kind, content).await?.ok_or(Error::NOT_FOUND)?;
        let Some(id) = row.image_id else {
            let title = if row.is_public { row.title } else { String::new() };
            return ctx.app.generated_images.get(Drawing::Placeholder(kind, content, title)).await;
        };
        if !row.is_public && secret != Some(id.to_string().as_str()) {
            return Err(Error::NOT_FOUND);
        }
        if let Some(image) = ctx.app.media.get(&name(kind, id)).await.map_err(storage_error)? {
            return Ok(image);
        }
    }
    Err(Error::NOT_FOUND)
}

/// Returns the icon with this file name, if a country with regions has it: the operator's own file if there is one, otherwise a
/// drawn icon.
pub async fn icon(ctx: &Ctx, file: &str) -> Result<StoredImage> {
    let countries = store::countries(&mut ctx.unit.read().await?).await?;
    let country = countries.into_iter().find(|country| icon::name(country) == file).ok_or(Error::NOT_FOUND)?;
    if let Some(custom) = ctx.app.media.get(&format!("icons/{file}")).await.map_err(storage_error)? {
        return Ok(custom);
    }
    ctx.app.generated_images.get(Drawing::Icon(country)).await
}

/// Converts an error of the object store. If an operator can correct its cause, the same request then succeeds.
/// [`MediaStore`](super::MediaStore) returns no error for a missing image.
fn storage_error(cause: anyhow::Error) -> Error {
    if cause.downcast_ref().is_some_and(object_store::is_temporary) { Error::Unavailable(cause) } else { Error::Internal(cause) }
}

/// Returns the name of an image in the object store. With the identifier of its event or advertisement as `id`, it is the end of
/// the image's URI.
fn name(kind: ImageKind, id: Id) -> String {
    format!("{kind}/{id}")
}
