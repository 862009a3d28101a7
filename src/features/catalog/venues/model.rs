//! Venues on the wire and in the database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::api_types::{AbsoluteUri, ResourceCollection, ResourceRef, Uri};
use crate::kernel::http::HasLocation;
use crate::features::catalog::regions::Regions;

/// The collection, for references to a venue.
#[derive(Debug)]
pub struct Venues;

impl ResourceCollection for Venues {
    const PATH: &'static str = "/venues/";
}

/// A venue as it is answered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Venue {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Its unique name.
    pub name: String,
    /// The region that it lies in.
    pub region: Uri,
    /// In degrees, east positive.
    pub longitude: f64,
    /// In degrees, north positive.
    pub latitude: f64,
    /// Where to find it.
    pub address: String,
    /// A map that shows it.
    pub map: AbsoluteUri,
}

impl HasLocation for Venue {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VenuePath {
    pub venue: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VenueFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// Only venues in this region.
    pub region: Option<ResourceRef<Regions>>,
    /// Only venues with this text in their name, without regard to case.
    #[schemars(length(max = 200))]
    pub name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VenueCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    pub region: ResourceRef<Regions>,
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
    pub region: Option<ResourceRef<Regions>>,
    #[schemars(length(min = 1, max = 200))]
    pub address: Option<String>,
    #[schemars(range(min = -180, max = 180))]
    pub longitude: Option<f64>,
    #[schemars(range(min = -90, max = 90))]
    pub latitude: Option<f64>,
}

/// A venue as it is kept.
#[derive(Debug, sqlx::FromRow)]
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

impl VenueRow {
    /// An approved venue is everyone's, one that waits for review its creator's and the staff's.
    pub fn is_for(&self, caller: &Caller) -> bool {
        self.approved || caller.is_administrator() || self.creator_id.is_some_and(|creator| caller.is(creator))
    }
}
