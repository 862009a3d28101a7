//! An event's images: what a request says of them, and their way to the object store.

use futures::FutureExt;

use super::model::EventRow;
use crate::state::App;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::kernel::db;
use boxoffice_http::error::{FieldError, Result};
use crate::kernel::media::{self, Image, ImageKind, ImageText};

/// What a request says of one image.
pub enum ImageUpdate {
    /// Nothing.
    Keep,
    /// That it goes.
    Remove,
    /// That it is this one from now on, to be kept under an identifier of its own.
    Put(Id, Image),
}

impl ImageUpdate {
    /// Reads a request's argument; what is no image goes to the problems.
    fn parse(name: &str, text: Option<&ImageText>, problems: &mut Vec<FieldError>) -> Self {
        match text {
            None => Self::Keep,
            Some(text) if text.0.trim().is_empty() => Self::Remove,
            Some(text) => media::parse(name, &text.0).map_or_else(
                |problem| {
                    problems.push(problem);
                    Self::Keep
                },
                |image| Self::Put(secret::image_id(), image),
            ),
        }
    }

    /// Under which identifier there is an image after this change.
    pub fn resulting_id(&self, before: Option<Id>) -> Option<Id> {
        match self {
            Self::Keep => before,
            Self::Remove => None,
            Self::Put(id, _) => Some(*id),
        }
    }
}

/// What a request says of an event's images.
pub struct EventImages {
    pub banner: ImageUpdate,
    pub thumbnail: ImageUpdate,
    /// What is wrong with those that are no images, to be told with everything else that is wrong.
    pub problems: Vec<FieldError>,
}

impl EventImages {
    /// Reads the images of a request.
    pub fn parse(banner: Option<&ImageText>, thumbnail: Option<&ImageText>) -> Self {
        let mut problems = Vec::new();
        let banner = ImageUpdate::parse("banner", banner, &mut problems);
        let thumbnail = ImageUpdate::parse("thumbnail", thumbnail, &mut problems);
        Self { banner, thumbnail, problems }
    }

    /// Whether there is anything to be stored.
    pub fn has_new(&self) -> bool {
        self.uploads().next().is_some()
    }

    /// Stores the new ones, or none of them.
    ///
    /// # Errors
    /// When the object store fails.
    pub async fn store(&self, app: &App) -> Result<()> {
        for (kind, id, image) in self.uploads() {
            if let Err(error) = media::put_image(app, kind, id, image).await {
                self.discard(app).await;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes the new ones, which no row came to name.
    pub async fn discard(&self, app: &App) {
        for (kind, id, _) in self.uploads() {
            media::discard(app, kind, [id]).await;
        }
    }

    fn uploads(&self) -> impl Iterator<Item = (ImageKind, Id, &Image)> {
        let each = [(ImageKind::Banner, &self.banner), (ImageKind::Thumbnail, &self.thumbnail)];
        each.into_iter().filter_map(|(kind, change)| match change {
            ImageUpdate::Put(id, image) => Some((kind, *id, image)),
            ImageUpdate::Keep | ImageUpdate::Remove => None,
        })
    }
}

/// Removes the images that the event had `before` and has not any more, once its row says so.
pub async fn discard_replaced(app: &App, before: &EventRow, after: Option<&EventRow>) {
    let gone = |before: Option<Id>, after: Option<Id>| before.filter(|_| before != after);
    let banner = gone(before.banner_id, after.and_then(|row| row.banner_id));
    let thumbnail = gone(before.thumbnail_id, after.and_then(|row| row.thumbnail_id));
    db::after_commit(app, move |app| media::discard(app, ImageKind::Banner, banner).boxed()).await;
    db::after_commit(app, move |app| media::discard(app, ImageKind::Thumbnail, thumbnail).boxed()).await;
}
