//! API representation of events.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::Context;
use boxoffice_http::error::Result;

use super::model::{Event, EventRow, uri};
use crate::features::catalog::categories::{self, Category};
use crate::features::catalog::media::{self, ImageKind};
use crate::features::catalog::sections::{self, SectionRow};
use crate::features::catalog::venues::{self, EventVenue};
use crate::kernel::db::Reader;
use crate::kernel::types::api_types::{Minutes, NullableField, Uri};
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
    category: Arc<Category>,
    venue: Arc<EventVenue>,
}

/// Categories and venues of events.
#[derive(Clone, Default)]
pub struct EventRelations {
    categories: HashMap<Id, Arc<Category>>,
    venues: HashMap<Id, Arc<EventVenue>>,
}

impl EventRelations {
    /// Returns those of these events.
    pub fn of(&self, rows: &[EventRow]) -> Self {
        let category = |row: &EventRow| self.categories.get(&row.category_id).map(|category| (row.category_id, category.clone()));
        let venue = |row: &EventRow| self.venues.get(&row.venue_id).map(|venue| (row.venue_id, venue.clone()));
        Self { categories: rows.iter().filter_map(category).collect(), venues: rows.iter().filter_map(venue).collect() }
    }

    /// Loads those of these events that are missing.
    pub async fn load_missing(&self, app: &App, reader: &mut Reader, rows: &[EventRow]) -> Result<Self> {
        let categories: BTreeSet<Id> = rows.iter().map(|row| row.category_id).collect();
        let venues: BTreeSet<Id> = rows.iter().map(|row| row.venue_id).collect();
        let categories: Vec<Id> = categories.into_iter().filter(|id| !self.categories.contains_key(id)).collect();
        let venues: Vec<Id> = venues.into_iter().filter(|id| !self.venues.contains_key(id)).collect();
        let mut missing = Self::default();
        if !categories.is_empty() {
            missing.categories = shared(categories::views(reader, categories).await?);
        }
        if !venues.is_empty() {
            missing.venues = shared(venues::event_venues(app, reader, venues).await?);
        }
        Ok(missing)
    }

    /// Adds others.
    pub fn merge(&mut self, others: Self) {
        self.categories.extend(others.categories);
        self.venues.extend(others.venues);
    }

    /// Returns the approximate memory use in bytes.
    pub fn weight(&self) -> usize {
        // The texts of a venue are short.
        const VENUE_BYTES: usize = 1000;
        let subcategories =
            |category: &Arc<Category>| category.subcategories.iter().map(|name| size_of_val(name) + name.len()).sum::<usize>();
        self.categories.values().map(|category| size_of::<Category>() + subcategories(category)).sum::<usize>()
            + self.venues.len() * VENUE_BYTES
    }
}

/// Returns entries that several events share.
fn shared<T>(entries: HashMap<Id, T>) -> HashMap<Id, Arc<T>> {
    entries.into_iter().map(|(id, entry)| (id, Arc::new(entry))).collect()
}

/// Adds the related data to these events, for all of them at once. Returns them in their order. `relations` has their categories and
/// venues.
pub async fn complete(
    reader: &mut Reader,
    rows: Vec<EventRow>,
    relations: &EventRelations,
    now: Timestamp,
) -> Result<Vec<EventWithRelations>> {
    let mut sections: HashMap<Id, Vec<SectionRow>> = HashMap::new();
    for section in sections::store::of_events(reader, rows.iter().map(|row| row.id), now).await? {
        sections.entry(section.event_id).or_default().push(section);
    }
    let with_relations = |row: EventRow| {
        let category = relations.categories.get(&row.category_id).cloned().context("a foreign key holds an event's category")?;
        let venue = relations.venues.get(&row.venue_id).cloned().context("a foreign key holds an event's venue")?;
        Ok(EventWithRelations { sections: sections.remove(&row.id).unwrap_or_default(), category, venue, row })
    };
    rows.into_iter().map(with_relations).collect()
}

/// Returns the representation of these events, in their order.
pub async fn views(app: &App, reader: &mut Reader, rows: Vec<EventRow>) -> Result<Vec<Event>> {
    let now = app.clock.now();
    let relations = EventRelations::default().load_missing(app, reader, &rows).await?;
    complete(reader, rows, &relations, now).await?.into_iter().map(|event| view(app, event, now)).collect()
}

/// Returns the representation of one event.
pub async fn view_one(app: &App, reader: &mut Reader, row: EventRow) -> Result<Event> {
    let event = views(app, reader, vec![row]).await?.pop();
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
        uri: uri(row.id),
        status: row.status,
        kind: row.kind,
        public: row.public,
        category,
        subcategory: row.subcategory,
        start: Minutes::from(row.starts),
        end: Minutes::from(row.ends),
        admission_from: NullableField(row.admission_from.map(Minutes::from)),
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
