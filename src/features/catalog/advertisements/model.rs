//! Advertisements as they are answered and kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::markdown::ParsedMarkdown;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::api_types::{AbsoluteUri, Minutes, PlainMinutes, ResourceCollection, Uri};
use crate::features::catalog::events::{Event, EventStatus};
use crate::kernel::http::HasLocation;
use crate::features::catalog::sections::Section;
use crate::features::catalog::venues::Venue;
use crate::features::catalog::zones::Zone;

/// The collection, for references to an advertisement.
#[derive(Debug)]
pub struct Advertisements;

impl ResourceCollection for Advertisements {
    const PATH: &'static str = "/advertisements/";
}

/// An advertisement as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Advertisement {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Its unique name.
    pub name: String,
    /// What it aims at, in Markdown.
    pub description: String,
    /// Where it stands.
    pub status: EventStatus,
    /// Its image.
    pub artwork: AbsoluteUri,
    /// The zones that show it, in the order given.
    pub zones: Vec<Zone>,
    /// When it is shown, in the order given.
    pub schedule: Vec<AdvertisementSlot>,
    /// What it promotes.
    pub event: AdvertisedEvent,
    /// Its description, parsed.
    #[serde(rename = "x-parsed-md-description")]
    pub parsed: ParsedMarkdown,
}

impl HasLocation for Advertisement {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

/// A time in which an advertisement is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AdvertisementSlot {
    /// When it begins.
    pub start: PlainMinutes,
    /// When it is over.
    pub end: PlainMinutes,
}

/// The event within an advertisement: as events are answered, but with the category by name (requirement).
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
    pub venue: Venue,
    pub disclaimer: String,
    pub tags: Vec<String>,
    pub banner: String,
    pub thumbnail: String,
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
            category: event.category.name,
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

/// The path of an advertisement and of what lies below it. It is a number there (requirement).
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdvertisementPath {
    advertisement: i64,
}

impl AdvertisementPath {
    /// The advertisement.
    pub fn id(&self) -> Id {
        Id(self.advertisement)
    }
}

/// An advertisement as it is kept.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct AdvertisementRow {
    /// Its identifier.
    pub id: Id,
    /// What it promotes.
    pub event_id: Id,
    /// Its unique name.
    pub name: String,
    /// What it aims at, in Markdown.
    pub description: String,
    /// Where it stands.
    pub status: EventStatus,
    /// Under which identifier the object store keeps its artwork.
    pub artwork_id: Id,
    /// The artwork's width in pixels.
    pub width: i64,
    /// The artwork's height in pixels.
    pub height: i64,
}

/// A slot of an advertisement's schedule as it is kept: from `starts` until before `ends`.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct SlotRow {
    /// The advertisement.
    pub advertisement_id: Id,
    /// When it begins.
    pub starts: Timestamp,
    /// When it is over.
    pub ends: Timestamp,
}
