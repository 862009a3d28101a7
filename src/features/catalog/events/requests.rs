//! Request types of events: list filters, creation and update.

use boxoffice_http::error::{FieldError, Result, ensure_no_field_errors};
use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::Deserialize;

use super::images::EventImages;
use super::model::{EventRow, EventStatus};
use super::search::Search;
use crate::features::catalog::categories::Category;
use crate::features::catalog::hosts::Host;
use crate::features::catalog::media::ImageText;
use crate::features::catalog::regions::Region;
use crate::features::catalog::venues::Venue;
use crate::kernel::types::api_types::{MinuteInput, ResourceRef, cleared_by_null};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, SortOrder};
use crate::kernel::types::period::Period;

/// Sort key of a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventSort {
    Alphabetical,
    Published,
    Popularity,
    Start,
}

/// Filters and sort order common to all lists of events.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct EventFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    pub region: Option<ResourceRef<Region>>,
    #[schemars(length(max = 200))]
    pub title: Option<String>,
    pub active: Option<bool>,
    /// Identifier, either of the URIs, or name of a section.
    #[schemars(length(min = 1, max = 200))]
    pub section: Option<String>,
    pub sort: Option<EventSort>,
    #[serde(default)]
    pub order: SortOrder,
}

/// Filters with which customers find events.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct EventFinder {
    pub category: Option<ResourceRef<Category>>,
    /// Name of a subcategory.
    #[schemars(length(min = 1, max = 200))]
    pub subcategory: Option<String>,
    pub venue: Option<ResourceRef<Venue>>,
    /// A whole tag, compared like a name.
    #[schemars(length(min = 1, max = 50))]
    pub tag: Option<String>,
    /// The time of the start.
    #[serde(flatten)]
    pub period: Period,
    /// Words of title, tags and description; see [`Search`].
    #[schemars(length(min = 1, max = 100))]
    pub search: Option<String>,
    /// True if the search includes events that have ended.
    pub past: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct PublishedEventQuery {
    #[serde(flatten)]
    pub filter: EventFilter,
    #[serde(flatten)]
    pub finder: EventFinder,
    pub host: Option<ResourceRef<Host>>,
}

impl PublishedEventQuery {
    /// Returns true for the first page of a list or search without further filters, sorted by start or without a sort key.
    pub fn is_plain(&self) -> bool {
        let EventFilter { paging, region: None, title: None, active: _, section: None, sort, order: _ } = &self.filter else {
            return false;
        };
        let EventFinder { category: None, subcategory: None, venue: None, tag: None, period, search: _, past: _ } = &self.finder
        else {
            return false;
        };
        let is_sorted = matches!(sort, None | Some(EventSort::Start));
        is_sorted && paging.is_first() && period.start().is_none() && period.end().is_none() && self.host.is_none()
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventQuery {
    #[serde(flatten)]
    pub filter: EventFilter,
    #[serde(flatten)]
    pub finder: EventFinder,
    pub host: Option<ResourceRef<Host>>,
    pub status: Option<EventStatus>,
    pub public: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct HostEventQuery {
    #[serde(flatten)]
    pub filter: EventFilter,
    pub status: Option<EventStatus>,
    pub public: Option<bool>,
}

string_newtype!(
    /// Search keyword of an event.
    Tag, None, None, Some(1), Some(50)
);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventCreate {
    pub host: ResourceRef<Host>,
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    #[schemars(length(min = 1, max = 10_000))]
    pub description: String,
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 200))]
    pub kind: String,
    pub public: bool,
    pub category: ResourceRef<Category>,
    #[schemars(length(min = 1, max = 200))]
    pub subcategory: String,
    pub venue: ResourceRef<Venue>,
    pub start: Option<MinuteInput>,
    pub end: Option<MinuteInput>,
    #[serde(rename = "admissionFrom")]
    pub admission_from: Option<MinuteInput>,
    #[schemars(length(max = 10_000))]
    pub disclaimer: Option<String>,
    #[schemars(length(max = 20))]
    pub tags: Option<Vec<Tag>>,
    pub banner: Option<ImageText>,
    pub thumbnail: Option<ImageText>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventUpdate {
    /// Accepted only if it is the event's own host, so that a client can send back the event it has read.
    pub host: Option<ResourceRef<Host>>,
    #[schemars(length(min = 1, max = 200))]
    pub title: Option<String>,
    #[schemars(length(min = 1, max = 10_000))]
    pub description: Option<String>,
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 200))]
    pub kind: Option<String>,
    pub public: Option<bool>,
    pub category: Option<ResourceRef<Category>>,
    #[schemars(length(min = 1, max = 200))]
    pub subcategory: Option<String>,
    pub venue: Option<ResourceRef<Venue>>,
    pub start: Option<MinuteInput>,
    pub end: Option<MinuteInput>,
    // `Some(None)` for a null, which removes it. Schemars would declare a default without the condition.
    #[schemars(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "admissionFrom", default, deserialize_with = "cleared_by_null")]
    pub admission_from: Option<Option<MinuteInput>>,
    #[schemars(length(max = 10_000))]
    pub disclaimer: Option<String>,
    #[schemars(length(max = 20))]
    pub tags: Option<Vec<Tag>>,
    /// New banner; blank removes the current one.
    pub banner: Option<ImageText>,
    /// New thumbnail; blank removes the current one.
    pub thumbnail: Option<ImageText>,
}

impl EventFilter {
    /// Returns the length of its texts in bytes.
    pub fn text_size(&self) -> usize {
        [&self.title, &self.section].into_iter().flatten().map(String::len).sum()
    }
}

impl EventFinder {
    /// Returns the words to search for, if there is a search.
    ///
    /// # Errors
    /// A field error for `to` if it is before `from`, and for a search with too many words.
    pub fn check(&self) -> Result<Option<Search>> {
        let mut problems = Vec::from_iter(self.period.problem());
        let search = self.search.as_deref().map(Search::parse).transpose();
        let search = search.unwrap_or_else(|problem| {
            problems.push(FieldError::invalid("search", problem));
            None
        });
        ensure_no_field_errors(problems)?;
        Ok(search)
    }

    /// Returns the filter by the end of an event: a search leaves out events that have ended, unless the request includes them.
    pub fn active(&self, filter: &EventFilter) -> Option<bool> {
        let default = || (self.search.is_some() && self.past != Some(true)).then_some(true);
        filter.active.or_else(default)
    }

    /// Returns the length of its texts in bytes.
    pub fn text_size(&self) -> usize {
        [&self.subcategory, &self.tag, &self.search].into_iter().flatten().map(String::len).sum()
    }
}

impl EventCreate {
    /// Returns the row of the new event: a draft that starts now and never ends, unless the request has a start and an end.
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
            starts: self.start.map_or(now.start_of_minute(), |time| time.0),
            ends: self.end.map_or(Timestamp::NEVER, |time| time.0),
            admission_from: self.admission_from.map(|time| time.0),
            disclaimer: self.disclaimer.clone().unwrap_or_default(),
            tags: json(self.tags.as_deref().unwrap_or_default()),
            banner_id: images.banner.resulting_id(None),
            thumbnail_id: images.thumbnail.resulting_id(None),
            published: None,
            revised: None,
            popularity: 0,
        }
    }
}

impl EventUpdate {
    /// Returns the row with these changes, which are made now.
    pub fn apply(&self, row: &EventRow, now: Timestamp, images: &EventImages) -> EventRow {
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
            admission_from: self.admission_from.map_or(row.admission_from, |time| time.map(|time| time.0)),
            disclaimer: self.disclaimer.clone().unwrap_or(row.disclaimer),
            tags: self.tags.as_deref().map_or(row.tags, json),
            banner_id: images.banner.resulting_id(row.banner_id),
            thumbnail_id: images.thumbnail.resulting_id(row.thumbnail_id),
            revised: Some(now),
            ..row
        }
    }
}

fn json(tags: &[Tag]) -> String {
    tags.iter().map(|tag| serde_json::Value::from(tag.0.as_str())).collect::<serde_json::Value>().to_string()
}
