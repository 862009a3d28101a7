//! An event's images: what a request says of them, and their way to the object store.

use slog::warn;

use super::model::EventRow;
use crate::app::App;
use crate::base::id::Id;
use crate::error::{Problem, Result};
use crate::media::{self, Image, ImageKind, ImageText};

/// What a request says of one image.
pub enum Change {
    /// Nothing.
    Keep,
    /// That it goes.
    Remove,
    /// That it is this one from now on.
    Put(Image),
}

impl Change {
    /// Reads a request's argument; what is no image goes to the problems.
    fn parse(name: &str, text: Option<&ImageText>, problems: &mut Vec<Problem>) -> Self {
        match text {
            None => Self::Keep,
            Some(text) if text.0.trim().is_empty() => Self::Remove,
            Some(text) => media::parse(name, &text.0).map_or_else(
                |problem| {
                    problems.push(problem);
                    Self::Keep
                },
                Self::Put,
            ),
        }
    }

    /// Whether there is an image after this change.
    pub fn outcome(&self, before: bool) -> bool {
        match self {
            Self::Keep => before,
            Self::Remove => false,
            Self::Put(_) => true,
        }
    }
}

/// What a request says of an event's images.
pub struct Images {
    pub banner: Change,
    pub thumbnail: Change,
    /// What is wrong with those that are no images, to be told with everything else that is wrong.
    pub problems: Vec<Problem>,
}

impl Images {
    /// Reads the images of a request.
    pub fn parse(banner: Option<&ImageText>, thumbnail: Option<&ImageText>) -> Self {
        let mut problems = Vec::new();
        let banner = Change::parse("banner", banner, &mut problems);
        let thumbnail = Change::parse("thumbnail", thumbnail, &mut problems);
        Self { banner, thumbnail, problems }
    }

    /// Whether there is anything to be stored.
    pub fn has_new(&self) -> bool {
        self.each().iter().any(|(_, change)| matches!(change, Change::Put(_)))
    }

    /// Stores the new ones.
    ///
    /// # Errors
    /// When the object store fails.
    pub async fn store(&self, app: &App, event: Id) -> Result<()> {
        for (kind, change) in self.each() {
            if let Change::Put(image) = change {
                media::put_image(app, kind, event, image).await?;
            }
        }
        Ok(())
    }

    fn each(&self) -> [(ImageKind, &Change); 2] {
        [(ImageKind::Banner, &self.banner), (ImageKind::Thumbnail, &self.thumbnail)]
    }
}

/// Removes the images that the event had `before` and has not any more. It comes after the row has said so: an image too many
/// does no harm, so a failure here is only logged.
pub async fn discard(app: &App, before: &EventRow, after: Option<&EventRow>) {
    let gone = [
        (ImageKind::Banner, before.banner && !after.is_some_and(|row| row.banner)),
        (ImageKind::Thumbnail, before.thumbnail && !after.is_some_and(|row| row.thumbnail)),
    ];
    for (kind, _) in gone.into_iter().filter(|(_, gone)| *gone) {
        if let Err(error) = media::delete_image(app, kind, before.id).await {
            warn!(app.log, "an event's image remains"; "event" => %before.id, "cause" => ?error);
        }
    }
}
