//! Events as they are shown.

use std::collections::HashMap;

use anyhow::Context;

use super::model::{Event, EventRow};
use crate::app::App;
use crate::base::id::Id;
use crate::base::wire::{Minutes, Uri};
use crate::categories::{self, Category};
use crate::db::Tx;
use crate::error::Result;
use crate::media::{self, ImageKind};
use crate::sections::{self, Section};
use crate::venues::{self, Venue};

/// What the events of a page show beside their own rows, each by its identifier; the sections by their event's.
struct Parts {
    categories: HashMap<Id, Category>,
    venues: HashMap<Id, Venue>,
    sections: HashMap<Id, Vec<Section>>,
}

/// These events as they are shown, in their order. What they refer to is loaded for all of them at once.
///
/// # Errors
/// When the database fails.
pub async fn views(app: &App, tx: &mut Tx, rows: Vec<EventRow>) -> Result<Vec<Event>> {
    let mut parts = Parts {
        categories: categories::views(tx, rows.iter().map(|row| row.category_id)).await?,
        venues: venues::views(tx, rows.iter().map(|row| row.venue_id)).await?,
        sections: HashMap::new(),
    };
    let now = app.clock.now();
    for section in sections::store::of_events(tx, rows.iter().map(|row| row.id), now).await? {
        parts.sections.entry(section.event_id).or_default().push(sections::view_short(&section, now));
    }
    rows.into_iter().map(|row| view(app, row, &mut parts)).collect()
}

/// One event as it is shown.
///
/// # Errors
/// When the database fails.
pub async fn view_one(app: &App, tx: &mut Tx, row: EventRow) -> Result<Event> {
    let event = views(app, tx, vec![row]).await?.pop();
    Ok(event.context("one event has one view")?)
}

fn view(app: &App, row: EventRow, parts: &mut Parts) -> Result<Event> {
    let image =
        |id: Option<Id>, kind| id.map(|id| media::image_uri(app, kind, row.id, id, row.status.is_public()).0).unwrap_or_default();
    let (banner, thumbnail) = (image(row.banner_id, ImageKind::Banner), image(row.thumbnail_id, ImageKind::Thumbnail));
    Ok(Event {
        uri: Uri(format!("/events/{}", row.id)),
        status: row.status,
        kind: row.kind,
        public: row.public,
        category: parts.categories.get(&row.category_id).cloned().context("a foreign key holds an event's category")?,
        subcategory: row.subcategory,
        start: Minutes(row.starts.to_minutes()),
        end: Minutes(row.ends.to_minutes()),
        venue: parts.venues.get(&row.venue_id).cloned().context("a foreign key holds an event's venue")?,
        disclaimer: row.disclaimer,
        tags: serde_json::from_str(&row.tags).context("an event's tags are a JSON array")?,
        banner,
        thumbnail,
        popularity: row.popularity,
        sections: parts.sections.remove(&row.id).unwrap_or_default(),
        published: row.published.map(|time| time.to_offset_seconds()).unwrap_or_default(),
        host: Uri(format!("/hosts/{}", row.host_id)),
        title: row.title,
        description: row.description,
    })
}
