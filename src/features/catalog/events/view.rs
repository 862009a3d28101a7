//! Events as they are shown.

use std::collections::HashMap;

use anyhow::Context;

use super::model::{Event, EventRow};
use crate::state::App;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::api_types::{Minutes, Uri};
use crate::features::catalog::categories::{self, Category};
use crate::kernel::db::Tx;
use boxoffice_http::error::Result;
use crate::kernel::media::{self, ImageKind};
use crate::features::catalog::sections::{self, SectionRow};
use crate::features::catalog::venues::{self, Venue};

/// An event with all that is shown of it.
#[derive(Clone)]
pub struct EventWithRelations {
    /// Its own row.
    pub row: EventRow,
    /// Its sections, the oldest first.
    pub sections: Vec<SectionRow>,
    category: Category,
    venue: Venue,
}

/// These events with all that is shown of them, in their order. What they refer to is loaded for all of them at once.
///
/// # Errors
/// When the database fails.
pub async fn load(tx: &mut Tx, rows: Vec<EventRow>, now: Timestamp) -> Result<Vec<EventWithRelations>> {
    let categories = categories::views(tx, rows.iter().map(|row| row.category_id)).await?;
    let venues = venues::views(tx, rows.iter().map(|row| row.venue_id)).await?;
    let mut sections: HashMap<Id, Vec<SectionRow>> = HashMap::new();
    for section in sections::store::of_events(tx, rows.iter().map(|row| row.id), now).await? {
        sections.entry(section.event_id).or_default().push(section);
    }
    let full = |row: EventRow| {
        let category = categories.get(&row.category_id).cloned().context("a foreign key holds an event's category")?;
        let venue = venues.get(&row.venue_id).cloned().context("a foreign key holds an event's venue")?;
        Ok(EventWithRelations { sections: sections.remove(&row.id).unwrap_or_default(), category, venue, row })
    };
    rows.into_iter().map(full).collect()
}

/// These events as they are shown, in their order.
///
/// # Errors
/// When the database fails.
pub async fn views(app: &App, tx: &mut Tx, rows: Vec<EventRow>) -> Result<Vec<Event>> {
    let now = app.clock.now();
    load(tx, rows, now).await?.into_iter().map(|event| view(app, event, now)).collect()
}

/// One event as it is shown.
///
/// # Errors
/// When the database fails.
pub async fn view_one(app: &App, tx: &mut Tx, row: EventRow) -> Result<Event> {
    let event = views(app, tx, vec![row]).await?.pop();
    Ok(event.context("one event has one view")?)
}

/// An event as it is shown now.
///
/// # Errors
/// When what is kept of it can't be read.
pub fn view(
    app: &App,
    EventWithRelations { row, sections, category, venue }: EventWithRelations,
    now: Timestamp,
) -> Result<Event> {
    let image =
        |id: Option<Id>, kind| id.map(|id| media::image_uri(app, kind, row.id, id, row.status.is_public()).0).unwrap_or_default();
    let (banner, thumbnail) = (image(row.banner_id, ImageKind::Banner), image(row.thumbnail_id, ImageKind::Thumbnail));
    Ok(Event {
        uri: Uri(format!("/events/{}", row.id)),
        status: row.status,
        kind: row.kind,
        public: row.public,
        category,
        subcategory: row.subcategory,
        start: Minutes(row.starts.to_minutes()),
        end: Minutes(row.ends.to_minutes()),
        venue,
        disclaimer: row.disclaimer,
        tags: serde_json::from_str(&row.tags).context("an event's tags are a JSON array")?,
        banner,
        thumbnail,
        popularity: row.popularity,
        sections: sections.iter().map(|section| sections::view_short(section, now)).collect(),
        published: row.published.map(|time| time.format_rfc3339()).unwrap_or_default(),
        host: Uri(format!("/hosts/{}", row.host_id)),
        title: row.title,
        description: row.description,
    })
}
