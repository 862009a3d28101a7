//! API types and database rows of regions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{AbsoluteUri, Uri};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;

/// A region in API responses.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Region {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Its unique name.
    pub name: String,
    /// Its country.
    pub country: String,
    /// Its district, or empty.
    pub district: String,
    /// Its city, or empty.
    pub city: String,
    /// Absolute URI of its country's icon.
    pub icon: AbsoluteUri,
}

has_location!(Region, PATH = "/regions/");

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RegionPath {
    pub region: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RegionFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// True for regions with a listed event that is not over, false for all others.
    pub active: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RegionCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    #[schemars(length(min = 1, max = 200))]
    pub country: String,
    #[schemars(length(max = 200))]
    pub district: Option<String>,
    #[schemars(length(max = 200))]
    pub city: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RegionUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    #[schemars(length(min = 1, max = 200))]
    pub country: Option<String>,
    #[schemars(length(max = 200))]
    pub district: Option<String>,
    #[schemars(length(max = 200))]
    pub city: Option<String>,
}

/// Database row of a region.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct RegionRow {
    pub id: Id,
    pub name: String,
    pub country: String,
    pub district: String,
    pub city: String,
}
