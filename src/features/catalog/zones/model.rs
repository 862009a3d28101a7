//! Zones on the wire and in the database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::api_types::{ResourceCollection, Uri};
use crate::kernel::http::HasLocation;

/// The collection, for references to a zone.
#[derive(Debug)]
pub struct Zones;

impl ResourceCollection for Zones {
    const PATH: &'static str = "/zones/";
}

/// A zone as it is answered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Zone {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Its identifier, by which other platforms are told what to show.
    pub number: String,
    /// What it is called.
    pub name: String,
    /// Where it is and what suits it.
    pub description: String,
    /// The width of its artwork in pixels.
    pub width: i64,
    /// The height of its artwork in pixels.
    pub height: i64,
    /// URI of the advertisements that it shows now.
    pub advertisements: Uri,
}

impl HasLocation for Zone {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

/// The path of a zone and of what lies below it.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ZonePath {
    /// The zone.
    pub zone: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ZoneQuery {
    #[serde(flatten)]
    pub paging: PageRequest,
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

/// A zone as it is kept.
#[derive(Debug, sqlx::FromRow)]
pub struct ZoneRow {
    pub id: Id,
    pub name: String,
    pub description: String,
    pub width: i64,
    pub height: i64,
}
