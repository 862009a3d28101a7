//! API types and database rows of venues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::catalog::regions::Region;
use crate::kernel::auth::Caller;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{AbsoluteUri, ResourceRef, Uri};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;

/// A venue in API responses.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the contract describes the fields")]
pub struct Venue {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub name: String,
    pub region: Uri,
    pub longitude: f64,
    pub latitude: f64,
    pub address: String,
    pub map: AbsoluteUri,
}

/// The venue in an event. Like `Venue`, but with the region instead of its URI, as existing clients expect.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EventVenue {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Its unique name.
    pub name: String,
    /// Its region.
    pub region: Region,
    /// Longitude in degrees, east positive.
    pub longitude: f64,
    /// Latitude in degrees, north positive.
    pub latitude: f64,
    /// Address.
    pub address: String,
    /// URI of a map that shows it.
    pub map: AbsoluteUri,
}

has_location!(Venue, PATH = "/venues/");

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VenuePath {
    pub venue: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VenueFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// Region of the venues.
    pub region: Option<ResourceRef<Region>>,
    /// Text that their names contain, ignoring case.
    #[schemars(length(max = 200))]
    pub name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VenueCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    pub region: ResourceRef<Region>,
    #[schemars(length(min = 1, max = 200))]
    pub address: String,
    #[schemars(range(min = -180, max = 180))]
    pub longitude: f64,
    #[schemars(range(min = -90, max = 90))]
    pub latitude: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VenueUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    pub region: Option<ResourceRef<Region>>,
    #[schemars(length(min = 1, max = 200))]
    pub address: Option<String>,
    #[schemars(range(min = -180, max = 180))]
    pub longitude: Option<f64>,
    #[schemars(range(min = -90, max = 90))]
    pub latitude: Option<f64>,
}

/// Database row of a venue.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct VenueRow {
    pub id: Id,
    pub name: String,
    pub region_id: Id,
    pub address: String,
    pub longitude: f64,
    pub latitude: f64,
    pub approved: bool,
    pub creator_id: Option<Id>,
}

/// A row of `venue_changes`.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct VenueChangeRow {
    /// The venue.
    pub venue_id: Id,
    /// The name that the holders of tickets know.
    pub name: String,
    /// The address that the holders of tickets know.
    pub address: String,
    /// The events up to this one have their notice.
    pub last_event_id: Id,
}

impl VenueRow {
    /// Returns whether the caller may use the venue: every caller if it is approved, otherwise only its creator and platform
    /// administrators.
    pub fn is_for(&self, caller: &Caller) -> bool {
        self.approved || caller.is_administrator() || self.creator_id.is_some_and(|creator| caller.is(creator))
    }
}
