//! Preferences on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::api_types::{ResourceRef, Uri, string_newtype};
use crate::features::catalog::regions::Regions;

string_newtype!(
    /// A region's identifier, as a client compares it with its list of regions.
    RegionId, None, Some(r"^\d{14}$"), None, None
);

/// Preferences as they are answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Preferences {
    #[serde(rename = "self")]
    pub uri: Uri,
    // Always there, though it may be null: schemars would not require an Option.
    #[schemars(schema_with = "Option::<RegionId>::json_schema")]
    pub region: Option<RegionId>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct PreferencesUpdate {
    pub region: Option<ResourceRef<Regions>>,
}
