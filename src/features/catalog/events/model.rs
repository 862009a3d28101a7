//! Events as they are answered and kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::api_types::{Minutes, ResourceCollection, Uri};
use crate::features::catalog::categories::Category;
use boxoffice_http::error::{Code, Result};
use crate::kernel::http::HasLocation;
use crate::features::catalog::sections::Section;
use crate::features::catalog::venues::Venue;

/// The collection, for references to an event.
#[derive(Debug)]
pub struct Events;

impl ResourceCollection for Events {
    const PATH: &'static str = "/events/";
}

/// Where an event or advertisement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[sqlx(type_name = "text")]
pub enum EventStatus {
    /// It is being prepared.
    Draft,
    /// It waits for the platform's staff.
    #[serde(rename = "Under Review")]
    #[sqlx(rename = "Under Review")]
    UnderReview,
    /// It is public.
    Listed,
    /// It will not take place.
    Cancelled,
}

impl EventStatus {
    /// Whether everyone may see what stands there.
    pub fn is_public(self) -> bool {
        matches!(self, Self::Listed | Self::Cancelled)
    }
}

/// An event as it is answered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Event {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Its unique title.
    pub title: String,
    /// What to expect of it.
    pub description: String,
    /// Where it stands.
    pub status: EventStatus,
    /// What kind of event it is, in the host's words.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it is open to the public.
    pub public: bool,
    /// Its category.
    pub category: Category,
    /// One of the category's subcategories.
    pub subcategory: String,
    /// When it starts.
    pub start: Minutes,
    /// When it ends.
    pub end: Minutes,
    /// Where it is staged.
    pub venue: Venue,
    /// What the host declines to answer for.
    pub disclaimer: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Absolute URI of the wide image, or empty.
    pub banner: String,
    /// Absolute URI of the small image, or empty.
    pub thumbnail: String,
    /// How many tickets it has sold.
    #[schemars(range(min = 0))]
    pub popularity: i64,
    /// Its sections, with their short URIs.
    pub sections: Vec<Section>,
    /// When it was last published, or empty before.
    pub published: String,
    /// URI of the host that stages it.
    pub host: Uri,
}

impl HasLocation for Event {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

/// The path of an event and of what lies below it.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventPath {
    /// The event.
    pub event: Id,
}

/// An event as it is kept.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct EventRow {
    /// Its identifier.
    pub id: Id,
    /// The host that stages it.
    pub host_id: Id,
    /// Its unique title.
    pub title: String,
    /// What to expect of it.
    pub description: String,
    /// Where it stands.
    pub status: EventStatus,
    /// What kind of event it is, in the host's words.
    #[sqlx(rename = "type")]
    pub kind: String,
    /// Whether it is open to the public.
    pub public: bool,
    /// Its category.
    pub category_id: Id,
    /// One of the category's subcategories.
    pub subcategory: String,
    /// Where it is staged.
    pub venue_id: Id,
    /// When it starts.
    pub starts: Timestamp,
    /// When it ends; [`Timestamp::NEVER`] where no end was given.
    pub ends: Timestamp,
    /// What the host declines to answer for.
    pub disclaimer: String,
    /// Words to find it by: a JSON array of strings.
    pub tags: String,
    /// Under which identifier the object store keeps its wide image.
    pub banner_id: Option<Id>,
    /// Under which identifier the object store keeps its small image.
    pub thumbnail_id: Option<Id>,
    /// When it was last published.
    pub published: Option<Timestamp>,
    /// Tickets sold and not given back.
    pub popularity: i64,
}

impl EventRow {
    /// Succeeds for an event of which something may still be changed or booked.
    ///
    /// # Errors
    /// [`Code::EventCancelled`] for one that will not take place.
    pub fn check_changeable(&self) -> Result<()> {
        if self.status == EventStatus::Cancelled { Err(Code::EventCancelled.into()) } else { Ok(()) }
    }
}
