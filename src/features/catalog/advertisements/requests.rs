//! Request types of advertisements: list filters, creation and update.

use boxoffice_http::{inline_schema, schema_from_json};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::features::catalog::events::EventStatus;
use crate::features::catalog::media::ImageText;
use crate::features::catalog::zones::Zone;
use crate::kernel::types::api_types::{MinuteInput, ResourceRef};
use crate::kernel::types::id::IdText;
use crate::kernel::types::paging::PageRequest;

/// Filters common to all lists of advertisements.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdvertisementFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    pub event: Option<IdText>,
    pub status: Option<EventStatus>,
    pub active: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdvertisementQuery {
    #[serde(flatten)]
    pub filter: AdvertisementFilter,
    pub host: Option<IdText>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdvertisementCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    #[schemars(length(min = 1, max = 10_000))]
    pub description: String,
    pub event: IdText,
    pub artwork: ImageText,
    #[schemars(length(min = 1, max = 100))]
    pub zones: Vec<ResourceRef<Zone>>,
    #[schemars(length(min = 1, max = 100))]
    pub schedule: Vec<AdvertisementSlotCreate>,
    #[serde(rename = "x-parsed-md-description")]
    #[expect(dead_code, reason = "it follows the description; its schema declares that it may be there")]
    parsed: Option<IgnoredObject>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdvertisementUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    #[schemars(length(min = 1, max = 10_000))]
    pub description: Option<String>,
    pub event: Option<IdText>,
    pub artwork: Option<ImageText>,
    #[schemars(length(min = 1, max = 100))]
    pub zones: Option<Vec<ResourceRef<Zone>>>,
    #[schemars(length(min = 1, max = 100))]
    pub schedule: Option<Vec<AdvertisementSlotCreate>>,
    #[serde(rename = "x-parsed-md-description")]
    #[expect(dead_code, reason = "it follows the description; its schema declares that it may be there")]
    parsed: Option<IgnoredObject>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub struct AdvertisementSlotCreate {
    pub start: MinuteInput,
    pub end: MinuteInput,
}

/// An object that is accepted and whose content is ignored.
#[derive(Debug)]
pub struct IgnoredObject;

impl<'de> Deserialize<'de> for IgnoredObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

inline_schema!(IgnoredObject, "Ignored", schema_from_json(json!({ "type": "object" })));
