//! Images of an event: parsing of requests, and storage in the object store.

use std::sync::Arc;

use boxoffice_http::error::{FieldError, Result};

use super::model::EventRow;
use crate::features::catalog::media::{self, Image, ImageKind, ImageText};
use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

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
    /// Parses an argument of a request. The image's own URI changes nothing, so that a client can send back the event it has
    /// read.
    async fn parse(
        app: &App,
        caller: &Caller,
        event: Option<Id>,
        kind: ImageKind,
        name: &'static str,
        text: Option<&ImageText>,
    ) -> Result<Result<Self, FieldError>> {
        let Some(text) = text else { return Ok(Ok(Self::Keep)) };
        if text.0.trim().is_empty() {
            return Ok(Ok(Self::Remove));
        }
        if event.is_some_and(|event| media::is_uri_of(app, kind, event, text)) {
            return Ok(Ok(Self::Keep));
        }
        let image = media::parse_upload(app, caller, name, text).await?;
        Ok(image.map(|image| Self::Put(secret::image_id(), image)))
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
    /// Parses the images of a request. `event` is the event to change; `None` for a new one.
    ///
    /// # Errors
    /// 429 or 503 if too many images wait to be decoded. Arguments that are not images are in `problems` instead.
    pub async fn parse(
        app: &App,
        caller: &Caller,
        event: Option<Id>,
        banner: Option<&ImageText>,
        thumbnail: Option<&ImageText>,
    ) -> Result<Self> {
        let banner = ImageUpdate::parse(app, caller, event, ImageKind::Banner, "banner", banner).await?;
        let thumbnail = ImageUpdate::parse(app, caller, event, ImageKind::Thumbnail, "thumbnail", thumbnail).await?;
        let mut problems = Vec::new();
        let mut or_keep = |image: Result<ImageUpdate, FieldError>| {
            image.unwrap_or_else(|problem| {
                problems.push(problem);
                ImageUpdate::Keep
            })
        };
        let (banner, thumbnail) = (or_keep(banner), or_keep(thumbnail));
        Ok(Self { banner, thumbnail, problems })
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
