//! API types of preferences.

use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::catalog::regions::Regions;
use crate::kernel::types::api_types::{ResourceRef, Uri};

string_newtype!(
    /// Identifier of a region, for clients to compare with their list of regions.
    RegionId, None, Some(r"^\d{14}$"), None, None
);

/// Preferences in API responses.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Preferences {
    #[serde(rename = "self")]
    pub uri: Uri,
    // Always present, though it may be null: schemars would make an `Option` field optional.
    #[schemars(schema_with = "Option::<RegionId>::json_schema")]
    pub region: Option<RegionId>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct PreferencesUpdate {
    pub region: Option<ResourceRef<Regions>>,
}
