//! API types and database rows of advertisements.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::markdown::ParsedMarkdown;
use crate::features::catalog::events::{Event, EventStatus};
use crate::features::catalog::sections::Section;
use crate::features::catalog::venues::EventVenue;
use crate::features::catalog::zones::Zone;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{AbsoluteUri, Minutes, PlainMinutes, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

/// An advertisement in API responses.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Advertisement {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Its unique name.
    pub name: String,
    /// Description in Markdown.
    pub description: String,
    /// Status.
    pub status: EventStatus,
    /// URI of its artwork.
    pub artwork: AbsoluteUri,
    /// Zones that show it, in the order of the request.
    pub zones: Vec<Zone>,
    /// Slots in which it is shown, in the order of the request.
    pub schedule: Vec<AdvertisementSlot>,
    /// Event that it promotes.
    pub event: AdvertisedEvent,
    /// Its description, parsed.
    #[serde(rename = "x-parsed-md-description")]
    pub parsed: ParsedMarkdown,
}

has_location!(Advertisement, PATH = "/advertisements/");

/// Time slot in which an advertisement is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AdvertisementSlot {
    /// Start of the slot.
    pub start: PlainMinutes,
    /// End of the slot, exclusive.
    pub end: PlainMinutes,
}

/// The event in an advertisement. Like [`Event`], but with the category's name instead of the category, as the API requires.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AdvertisedEvent {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub title: String,
    pub description: String,
    pub status: EventStatus,
    #[serde(rename = "type")]
    pub kind: String,
    pub public: bool,
    pub category: String,
    pub subcategory: String,
    pub start: Minutes,
    pub end: Minutes,
    pub venue: Arc<EventVenue>,
    pub disclaimer: String,
    pub tags: Vec<String>,
    pub banner: AbsoluteUri,
    pub thumbnail: AbsoluteUri,
    #[schemars(range(min = 0))]
    pub popularity: i64,
    pub sections: Vec<Section>,
    pub published: String,
    pub host: Uri,
}

impl From<Event> for AdvertisedEvent {
    fn from(event: Event) -> Self {
        Self {
            uri: event.uri,
            title: event.title,
            description: event.description,
            status: event.status,
            kind: event.kind,
            public: event.public,
            category: event.category.name.clone(),
            subcategory: event.subcategory,
            start: event.start,
            end: event.end,
            venue: event.venue,
            disclaimer: event.disclaimer,
            tags: event.tags,
            banner: event.banner,
            thumbnail: event.thumbnail,
            popularity: event.popularity,
            sections: event.sections,
            published: event.published,
            host: event.host,
        }
    }
}

/// Path parameters of an advertisement and its subresources. The API requires its identifier to be a number here.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdvertisementPath {
    advertisement: i64,
}

impl AdvertisementPath {
    /// Identifier of the advertisement.
    pub fn id(&self) -> Id {
        Id(self.advertisement)
    }
}

/// Database row of an advertisement.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct AdvertisementRow {
    /// Its identifier.
    pub id: Id,
    /// Event that it promotes.
    pub event_id: Id,
    /// Its unique name.
    pub name: String,
    /// Description in Markdown.
    pub description: String,
    /// Status.
    pub status: EventStatus,
    /// Identifier of its artwork in the object store.
    pub artwork_id: Id,
    /// The artwork's width in pixels.
    pub width: i64,
    /// The artwork's height in pixels.
    pub height: i64,
}

/// Database row of a slot in an advertisement's schedule: from `starts` until before `ends`.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct SlotRow {
    /// Identifier of the advertisement.
    pub advertisement_id: Id,
    /// Start of the slot.
    pub starts: Timestamp,
    /// End of the slot, exclusive.
    pub ends: Timestamp,
}
