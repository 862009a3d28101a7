//! API types of preferences.

use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::api_types::{NullableField, Uri, cleared_by_null};
use crate::kernel::types::id::{Id, IdText};

/// Preferences in API responses.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Preferences {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub region: NullableField<IdText>,
}

string_newtype!(
    /// A reference to a region: its identifier or its URI. An empty one clears the property.
    RegionRef, None, Some("^((/v3)?(/regions/)?[A-Za-z0-9-]+)?$"), None, Some(200)
);

impl RegionRef {
    /// Returns the identifier of the region. A malformed one is [`Id::NONE`].
    pub fn id(&self) -> Id {
        self.0.rsplit('/').next().and_then(Id::parse).unwrap_or(Id::NONE)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct PreferencesUpdate {
    /// `Some(None)` if the account no longer prefers a region.
    // Schemars would declare a default without the condition.
    #[schemars(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "cleared_by_null")]
    pub region: Option<Option<RegionRef>>,
}
