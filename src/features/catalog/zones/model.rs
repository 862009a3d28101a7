//! API types and database rows of zones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::http::has_location;
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::id::Id;

/// A zone in API responses.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Zone {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Identifier with which other platforms request its advertisements.
    pub number: String,
    /// Name.
    pub name: String,
    /// Description of its place and of suitable artwork.
    pub description: String,
    /// Width of its artwork in pixels.
    pub width: i64,
    /// Height of its artwork in pixels.
    pub height: i64,
    /// URI of the advertisements that it shows now.
    pub advertisements: Uri,
}

has_location!(Zone, PATH = "/zones/");

/// Path parameters of a zone and its subresources.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ZonePath {
    /// The zone.
    pub zone: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ZoneCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    #[schemars(range(min = 1, max = 10_000))]
    pub width: i64,
    #[schemars(range(min = 1, max = 10_000))]
    pub height: i64,
    #[schemars(length(max = 10_000))]
    pub description: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ZoneUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    #[schemars(range(min = 1, max = 10_000))]
    pub width: Option<i64>,
    #[schemars(range(min = 1, max = 10_000))]
    pub height: Option<i64>,
    #[schemars(length(max = 10_000))]
    pub description: Option<String>,
}

/// Database row of a zone.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct ZoneRow {
    pub id: Id,
    pub name: String,
    pub description: String,
    pub width: i64,
    pub height: i64,
}
