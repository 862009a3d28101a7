//! Which images there are, and under which names they are kept.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use super::image::{self, Image};
use super::store::Stored;
use super::{icon, sql};
use crate::app::App;
use crate::base::id::Id;
use crate::base::wire::AbsoluteUri;
use crate::error::{Error, Problem, Result};

/// Which of an event's images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImageKind {
    /// The wide one, above the event.
    Banner,
    /// The small one, in lists.
    Thumbnail,
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Banner => "banner",
            Self::Thumbnail => "thumbnail",
        })
    }
}

/// Reads the image that an argument carries in base64, or says what is wrong with that argument.
///
/// # Errors
/// The argument's problem, when it is no image that is taken.
pub fn parse(name: &str, base64: &str) -> Result<Image, Problem> {
    image::parse(base64).map_err(|problem| Problem::invalid(name, problem.to_string()))
}

/// Keeps an event's image, in place of the one before. That the event has one is the event's to say: until its row does,
/// the image is not served.
///
/// # Errors
/// When the media store fails.
pub async fn put_image(app: &App, kind: ImageKind, event: Id, image: &Image) -> Result<()> {
    Ok(app.media.put(&name(kind, event), image).await?)
}

/// Removes an event's image; that there is none is no error.
///
/// # Errors
/// When the media store fails.
pub async fn delete_image(app: &App, kind: ImageKind, event: Id) -> Result<()> {
    Ok(app.media.delete(&name(kind, event)).await?)
}

/// Where browsers find an event's image.
pub fn image_uri(app: &App, kind: ImageKind, event: Id) -> AbsoluteUri {
    AbsoluteUri(format!("{}/media/{}", app.settings.public_url, name(kind, event)))
}

/// An event's image, of an event that has one.
pub async fn event_image(app: &App, kind: ImageKind, event: Id) -> Result<Stored> {
    let has_image = sql::has_image(&mut app.db.read().await?, kind, event).await?;
    let stored = if has_image { app.media.get(&name(kind, event)).await? } else { None };
    stored.ok_or(Error::NOT_FOUND)
}

/// The icon of this file name, where a region's country has it: the operator's own file when there is one, a drawn one otherwise.
pub async fn icon(app: &App, file: &str) -> Result<Stored> {
    let countries = sql::countries(&mut app.db.read().await?).await?;
    if !countries.iter().any(|country| icon::name(country) == file) {
        return Err(Error::NOT_FOUND);
    }
    if let Some(own) = app.media.get(&format!("icons/{file}")).await? {
        return Ok(own);
    }
    Ok(Stored::new(icon::render(file)?.into()))
}

/// Under which name an event's image is kept, and the end of its address.
fn name(kind: ImageKind, event: Id) -> String {
    format!("{kind}/{event}")
}
