//! API representation of events.

use std::collections::HashMap;

use anyhow::Context;
use boxoffice_http::error::Result;

use super::model::{Event, EventRow};
use crate::features::catalog::categories::{self, Category};
use crate::features::catalog::media::{self, ImageKind};
use crate::features::catalog::sections::{self, SectionRow};
use crate::features::catalog::venues::{self, EventVenue};
use crate::kernel::db::Tx;
use crate::kernel::types::api_types::{Minutes, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::App;

/// An event with all data of its representation.
#[derive(Clone)]
pub struct EventWithRelations {
    /// Row of the event.
    pub row: EventRow,
    /// Its sections, the oldest first.
    pub sections: Vec<SectionRow>,
    category: Category,
    venue: EventVenue,
}

/// Loads the related data of these events, for all of them at once. Returns them in their order.
pub async fn load(app: &App, tx: &mut Tx, rows: Vec<EventRow>, now: Timestamp) -> Result<Vec<EventWithRelations>> {
    let categories = categories::views(tx, rows.iter().map(|row| row.category_id)).await?;
    let venues = venues::event_venues(app, tx, rows.iter().map(|row| row.venue_id)).await?;
    let mut sections: HashMap<Id, Vec<SectionRow>> = HashMap::new();
    for section in sections::store::of_events(tx, rows.iter().map(|row| row.id), now).await? {
        sections.entry(section.event_id).or_default().push(section);
    }
    let with_relations = |row: EventRow| {
        let category = categories.get(&row.category_id).cloned().context("a foreign key holds an event's category")?;
        let venue = venues.get(&row.venue_id).cloned().context("a foreign key holds an event's venue")?;
        Ok(EventWithRelations { sections: sections.remove(&row.id).unwrap_or_default(), category, venue, row })
    };
    rows.into_iter().map(with_relations).collect()
}

/// Returns the representation of these events, in their order.
pub async fn views(app: &App, tx: &mut Tx, rows: Vec<EventRow>) -> Result<Vec<Event>> {
    let now = app.clock.now();
    load(app, tx, rows, now).await?.into_iter().map(|event| view(app, event, now)).collect()
}

/// Returns the representation of one event.
pub async fn view_one(app: &App, tx: &mut Tx, row: EventRow) -> Result<Event> {
    let event = views(app, tx, vec![row]).await?.pop();
    Ok(event.context("one event has one view")?)
}

/// Returns the representation of an event at this time.
///
/// # Errors
/// An internal error if the stored tags can't be parsed.
pub fn view(
    app: &App,
    EventWithRelations { row, sections, category, venue }: EventWithRelations,
    now: Timestamp,
) -> Result<Event> {
    let image = |kind, id| media::image_uri(app, kind, row.id, id, row.status.is_public());
    let (banner, thumbnail) = (image(ImageKind::Banner, row.banner_id), image(ImageKind::Thumbnail, row.thumbnail_id));
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
