//! Images of an event: parsing of requests, and storage in the object store.

use std::sync::Arc;

use boxoffice_http::error::{FieldError, Result};

use super::model::EventRow;
use crate::features::catalog::media::{self, Image, ImageKind, ImageText};
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::state::Ctx;

/// Change of one image in a request.
pub enum ImageUpdate {
    /// No change.
    Keep,
    /// Removal of the image.
    Remove,
    /// A new image, to be stored under an identifier of its own.
    Put(Id, Image),
}

impl ImageUpdate {
    /// Parses an argument of a request. If it isn't an image, adds an error to `problems`.
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

    /// Returns the identifier of the image after this change.
    pub fn resulting_id(&self, before: Option<Id>) -> Option<Id> {
        match self {
            Self::Keep => before,
            Self::Remove => None,
            Self::Put(id, _) => Some(*id),
        }
    }
}

/// Changes of an event's images in a request.
pub struct EventImages {
    pub banner: ImageUpdate,
    pub thumbnail: ImageUpdate,
    /// Errors of arguments that are not images, to be reported with all other field errors.
    pub problems: Vec<FieldError>,
}

impl EventImages {
    /// Parses the images of a request.
    pub fn parse(banner: Option<&ImageText>, thumbnail: Option<&ImageText>) -> Self {
        let mut problems = Vec::new();
        let banner = ImageUpdate::parse("banner", banner, &mut problems);
        let thumbnail = ImageUpdate::parse("thumbnail", thumbnail, &mut problems);
        Self { banner, thumbnail, problems }
    }

    /// Returns whether there are new images to store.
    pub fn has_new(&self) -> bool {
        self.uploads().next().is_some()
    }

    /// Stores the new images, or none of them.
    ///
    /// # Errors
    /// An error of the object store. The images stored so far are removed again.
    pub async fn store(&self, ctx: &Ctx) -> Result<()> {
        for (kind, id, image) in self.uploads() {
            if let Err(error) = media::put_image(ctx, kind, id, image).await {
                self.discard(ctx).await;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes the new images, if the transaction failed and no row refers to them.
    pub async fn discard(&self, ctx: &Ctx) {
        for (kind, id, _) in self.uploads() {
            media::discard(&ctx.app, kind, [id]).await;
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

/// Removes the images that the event had `before` and no longer has, after the change has been committed.
pub async fn discard_replaced(ctx: &Ctx, before: &EventRow, after: Option<&EventRow>) {
    let replaced = |before: Option<Id>, after: Option<Id>| before.filter(|_| before != after);
    let banner = replaced(before.banner_id, after.and_then(|row| row.banner_id));
    let thumbnail = replaced(before.thumbnail_id, after.and_then(|row| row.thumbnail_id));
    let app = Arc::clone(&ctx.app);
    ctx.unit.after_commit(async move { media::discard(&app, ImageKind::Banner, banner).await }).await;
    let app = Arc::clone(&ctx.app);
    ctx.unit.after_commit(async move { media::discard(&app, ImageKind::Thumbnail, thumbnail).await }).await;
}
