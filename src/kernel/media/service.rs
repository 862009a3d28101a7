//! Which images there are, and under which names they are kept.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use slog::warn;

use super::image::{self, Image};
use super::object_store::StoredImage;
use super::{icon, store};
use crate::state::App;
use crate::kernel::types::id::Id;
use crate::kernel::types::api_types::{AbsoluteUri, string_newtype};
use boxoffice_http::error::{Error, FieldError, Result};

/// What an image is to its event or advertisement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImageKind {
    /// The wide one, above an event.
    Banner,
    /// The small one of an event, in lists.
    Thumbnail,
    /// What an advertisement shows.
    Artwork,
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Banner => "banner",
            Self::Thumbnail => "thumbnail",
            Self::Artwork => "artwork",
        })
    }
}

string_newtype!(
    /// An image in base64, with or without a data-URI prefix.
    ImageText, Some("image"), None, None, Some(7_340_032)
);

/// Reads the image that an argument carries in base64, or says what is wrong with that argument.
///
/// # Errors
/// The argument's problem, when it is no image that is taken.
pub fn parse(name: &str, base64: &str) -> Result<Image, FieldError> {
    image::parse(base64).map_err(|problem| FieldError::invalid(name, problem.to_string()))
}

/// Keeps an image under an identifier of its own. Until a row names it, it is not served.
///
/// # Errors
/// When the media store fails.
pub async fn put_image(app: &App, kind: ImageKind, id: Id, image: &Image) -> Result<()> {
    app.media.put(&name(kind, id), image).await.map_err(failed)
}

/// Removes images that no row names any more. One too many does no harm, so a failure here is only logged.
pub async fn discard(app: &App, kind: ImageKind, ids: impl IntoIterator<Item = Id>) {
    for id in ids {
        if let Err(error) = app.media.delete(&name(kind, id)).await {
            warn!(app.log, "an image remains that nothing shows"; "image" => %kind, "id" => %id, "cause" => ?error);
        }
    }
}

/// Where browsers find the image of an event or advertisement that is kept under this identifier. They send no key, so as long as
/// not everyone may see it, whoever may is told an address that nobody guesses.
pub fn image_uri(app: &App, kind: ImageKind, content: Id, image: Id, is_public: bool) -> AbsoluteUri {
    let secret = if is_public { String::new() } else { format!("?secret={image}") };
    AbsoluteUri(format!("{}/media/{}{secret}", app.settings.public_url, name(kind, content)))
}

/// The image of an event or advertisement that has one, and that everyone may see or whose secret this is.
pub async fn image(app: &App, kind: ImageKind, content: Id, secret: Option<&str>) -> Result<StoredImage> {
    // An image may be replaced after its row is read; by then the row names the other one.
    for _ in 0..2 {
        let (id, is_public) = sql::image(&mut app.db.read().await?, kind, content).await?.ok_or(Error::NOT_FOUND)?;
        if !is_public && secret != Some(id.to_string().as_str()) {
            return Err(Error::NOT_FOUND);
        }
        if let Some(image) = app.media.get(&name(kind, id)).await.map_err(failed)? {
            return Ok(image);
        }
    }
    Err(Error::NOT_FOUND)
}

/// The icon of this file name, where a region's country has it: the operator's own file when there is one, a drawn one otherwise.
pub async fn icon(app: &App, file: &str) -> Result<StoredImage> {
    let countries = sql::countries(&mut app.db.read().await?).await?;
    if !countries.iter().any(|country| icon::name(country) == file) {
        return Err(Error::NOT_FOUND);
    }
    if let Some(own) = app.media.get(&format!("icons/{file}")).await.map_err(failed)? {
        return Ok(own);
    }
    Ok(StoredImage::new(icon::render(file)?.into()))
}

/// What the media store tells of itself may pass: its disk is full, its bucket can't be reached. What it tells of a request, such
/// as that its key is refused, stays until somebody sees to it.
fn failed(cause: anyhow::Error) -> Error {
    let passes = matches!(cause.downcast_ref(), Some(object_store::Error::Generic { .. }));
    if passes { Error::Unavailable(cause) } else { Error::Internal(cause) }
}

/// Under which name an image is kept. With the identifier of its event or advertisement instead, it is the end of its address.
fn name(kind: ImageKind, id: Id) -> String {
    format!("{kind}/{id}")
}
