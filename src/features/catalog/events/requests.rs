//! What requests say of events: filters of lists, a new event, changes to one.

use schemars::JsonSchema;
use serde::Deserialize;

use super::images::EventImages;
use super::model::{EventRow, EventStatus};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, SortOrder};
use crate::kernel::types::api_types::{DateTimeInput, ResourceRef, string_newtype};
use crate::features::catalog::categories::Categories;
use crate::features::catalog::hosts::Hosts;
use crate::kernel::media::ImageText;
use crate::features::catalog::regions::Regions;
use crate::features::catalog::venues::Venues;

/// By what a list of events can be sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventSort {
    Alphabetical,
    Published,
    Popularity,
    Start,
}

/// What every list of events can be narrowed and sorted by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct EventFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    pub region: Option<ResourceRef<Regions>>,
    #[schemars(length(max = 200))]
    pub title: Option<String>,
    pub active: Option<bool>,
    /// By its identifier, either of its URIs, or its exact name.
    #[schemars(length(min = 1, max = 200))]
    pub section: Option<String>,
    pub sort: Option<EventSort>,
    #[serde(default)]
    pub order: SortOrder,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct PublishedEventQuery {
    #[serde(flatten)]
    pub filter: EventFilter,
    pub host: Option<ResourceRef<Hosts>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventQuery {
    #[serde(flatten)]
    pub filter: EventFilter,
    pub host: Option<ResourceRef<Hosts>>,
    pub status: Option<EventStatus>,
    pub public: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostEventQuery {
    #[serde(flatten)]
    pub filter: EventFilter,
    pub status: Option<EventStatus>,
    pub public: Option<bool>,
}

string_newtype!(
    /// One of the words to find an event by.
    Tag, None, None, Some(1), Some(50)
);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventCreate {
    pub host: ResourceRef<Hosts>,
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    #[schemars(length(min = 1, max = 10_000))]
    pub description: String,
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 200))]
    pub kind: String,
    pub public: bool,
    pub category: ResourceRef<Categories>,
    #[schemars(length(min = 1, max = 200))]
    pub subcategory: String,
    pub venue: ResourceRef<Venues>,
    pub start: Option<DateTimeInput>,
    pub end: Option<DateTimeInput>,
    #[schemars(length(max = 10_000))]
    pub disclaimer: Option<String>,
    #[schemars(length(max = 20))]
    pub tags: Option<Vec<Tag>>,
    pub banner: Option<ImageText>,
    pub thumbnail: Option<ImageText>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventUpdate {
    /// Only the event's own, for what was read to be sent back.
    pub host: Option<ResourceRef<Hosts>>,
    #[schemars(length(min = 1, max = 200))]
    pub title: Option<String>,
    #[schemars(length(min = 1, max = 10_000))]
    pub description: Option<String>,
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 200))]
    pub kind: Option<String>,
    pub public: Option<bool>,
    pub category: Option<ResourceRef<Categories>>,
    #[schemars(length(min = 1, max = 200))]
    pub subcategory: Option<String>,
    pub venue: Option<ResourceRef<Venues>>,
    pub start: Option<DateTimeInput>,
    pub end: Option<DateTimeInput>,
    #[schemars(length(max = 10_000))]
    pub disclaimer: Option<String>,
    #[schemars(length(max = 20))]
    pub tags: Option<Vec<Tag>>,
    /// Blank removes the present one.
    pub banner: Option<ImageText>,
    /// Blank removes the present one.
    pub thumbnail: Option<ImageText>,
}

impl EventCreate {
    /// The event as it begins: a Draft that starts now and never ends where no times are given (wire facts).
    pub fn row(&self, id: Id, now: Timestamp, images: &EventImages) -> EventRow {
        EventRow {
            id,
            host_id: self.host.id,
            title: self.title.clone(),
            description: self.description.clone(),
            status: EventStatus::Draft,
            kind: self.kind.clone(),
            public: self.public,
            category_id: self.category.id,
            subcategory: self.subcategory.clone(),
            venue_id: self.venue.id,
            starts: self.start.map_or(now, |time| time.0),
            ends: self.end.map_or(Timestamp::NEVER, |time| time.0),
            disclaimer: self.disclaimer.clone().unwrap_or_default(),
            tags: json(self.tags.as_deref().unwrap_or_default()),
            banner_id: images.banner.resulting_id(None),
            thumbnail_id: images.thumbnail.resulting_id(None),
            published: None,
            popularity: 0,
        }
    }
}

impl EventUpdate {
    /// The event with these changes.
    pub fn apply(&self, row: &EventRow, images: &EventImages) -> EventRow {
        let row = row.clone();
        EventRow {
            title: self.title.clone().unwrap_or(row.title),
            description: self.description.clone().unwrap_or(row.description),
            kind: self.kind.clone().unwrap_or(row.kind),
            public: self.public.unwrap_or(row.public),
            category_id: self.category.as_ref().map_or(row.category_id, |category| category.id),
            subcategory: self.subcategory.clone().unwrap_or(row.subcategory),
            venue_id: self.venue.as_ref().map_or(row.venue_id, |venue| venue.id),
            starts: self.start.map_or(row.starts, |time| time.0),
            ends: self.end.map_or(row.ends, |time| time.0),
            disclaimer: self.disclaimer.clone().unwrap_or(row.disclaimer),
            tags: self.tags.as_deref().map_or(row.tags, json),
            banner_id: images.banner.resulting_id(row.banner_id),
            thumbnail_id: images.thumbnail.resulting_id(row.thumbnail_id),
            ..row
        }
    }
}

fn json(tags: &[Tag]) -> String {
    tags.iter().map(|tag| serde_json::Value::from(tag.0.as_str())).collect::<serde_json::Value>().to_string()
}
