//! API types and database rows of events.

use std::sync::Arc;

use boxoffice_http::error::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::catalog::categories::Category;
use crate::features::catalog::sections::Section;
use crate::features::catalog::venues::EventVenue;
use crate::features::codes;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{AbsoluteUri, Minutes, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::stored_text::stored_as_text;

/// Status of an event or an advertisement.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::EnumString, strum::IntoStaticStr,
)]
pub enum EventStatus {
    /// In preparation.
    Draft,
    /// Waiting for a decision by a platform administrator.
    #[serde(rename = "Under Review")]
    #[strum(serialize = "Under Review")]
    UnderReview,
    /// Public.
    Listed,
    /// Public, but it will not take place.
    Cancelled,
}

stored_as_text!(EventStatus);

impl EventStatus {
    /// Returns whether every caller may see an event or an advertisement with this status.
    pub fn is_public(self) -> bool {
        matches!(self, Self::Listed | Self::Cancelled)
    }
}

/// Returns the URI of an event.
pub fn uri(event: Id) -> Uri {
    Uri(format!("/events/{event}"))
}

/// An event in API responses.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Event {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Its unique title.
    pub title: String,
    /// Description.
    pub description: String,
    /// Status.
    pub status: EventStatus,
    /// Kind of event, as free text by the host.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if it is open to the public.
    pub public: bool,
    /// Its category.
    pub category: Arc<Category>,
    /// One of the category's subcategories.
    pub subcategory: String,
    /// Start.
    pub start: Minutes,
    /// End.
    pub end: Minutes,
    /// Time from which tickets are admitted.
    #[serde(rename = "admissionFrom")]
    pub admission_from: NullableField<Minutes>,
    /// Venue.
    pub venue: Arc<EventVenue>,
    /// Disclaimer by the host.
    pub disclaimer: String,
    /// Search keywords.
    pub tags: Vec<String>,
    /// URI of the wide image, or of a placeholder.
    pub banner: AbsoluteUri,
    /// URI of the small image, or of a placeholder.
    pub thumbnail: AbsoluteUri,
    /// Number of tickets sold.
    #[schemars(range(min = 0))]
    pub popularity: i64,
    /// Its sections, with their short URIs.
    pub sections: Vec<Section>,
    /// Time of its last publication, or empty.
    pub published: String,
    /// URI of its host.
    pub host: Uri,
}

has_location!(Event, PATH = "/events/");

/// Path parameters of an event and its subresources.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventPath {
    /// The event.
    pub event: Id,
}

/// Database row of an event.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct EventRow {
    /// Its identifier.
    pub id: Id,
    /// Its host.
    pub host_id: Id,
    /// Its unique title.
    pub title: String,
    /// Description.
    pub description: String,
    /// Status.
    pub status: EventStatus,
    /// Kind of event, as free text by the host.
    #[sqlx(rename = "type")]
    pub kind: String,
    /// True if it is open to the public.
    pub public: bool,
    /// Its category.
    pub category_id: Id,
    /// One of the category's subcategories.
    pub subcategory: String,
    /// Venue.
    pub venue_id: Id,
    /// Start.
    pub starts: Timestamp,
    /// End; [`Timestamp::NEVER`] if none was set.
    pub ends: Timestamp,
    /// Time from which tickets are admitted.
    pub admission_from: Option<Timestamp>,
    /// Disclaimer by the host.
    pub disclaimer: String,
    /// Search keywords, as a JSON array of strings.
    pub tags: String,
    /// Identifier of the wide image in the object store.
    pub banner_id: Option<Id>,
    /// Identifier of the small image in the object store.
    pub thumbnail_id: Option<Id>,
    /// Time of its last publication.
    pub published: Option<Timestamp>,
    /// Time of the last change of its properties or its status.
    pub revised: Option<Timestamp>,
    /// Number of tickets sold and not returned.
    pub popularity: i64,
}

impl EventRow {
    /// Rejects an event that can no longer be changed or booked.
    ///
    /// # Errors
    /// [`codes::EVENT_CANCELLED`] if the event is cancelled.
    pub fn check_changeable(&self) -> Result<()> {
        if self.status == EventStatus::Cancelled { Err(codes::EVENT_CANCELLED.into()) } else { Ok(()) }
    }
}
