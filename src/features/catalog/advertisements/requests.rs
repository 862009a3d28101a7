//! What requests say of advertisements: filters of lists, a new one, changes to one.

use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::{InstanceType, Schema, SchemaObject};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::api_types::{DateTimeInput, ResourceRef, string_newtype};
use crate::features::catalog::events::EventStatus;
use crate::kernel::media::ImageText;
use crate::features::catalog::zones::Zones;

string_newtype!(
    /// The identifier of an event or a host, which here is always 14 digits (requirement).
    Digits, None, Some(r"^\d{14}$"), None, None
);

impl Digits {
    /// What it identifies.
    pub fn id(&self) -> Id {
        Id::parse(&self.0).unwrap_or(Id::NONE)
    }
}

/// What every list of advertisements can be narrowed by.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdvertisementFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    pub event: Option<Digits>,
    pub status: Option<EventStatus>,
    pub active: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdvertisementQuery {
    #[serde(flatten)]
    pub filter: AdvertisementFilter,
    pub host: Option<Digits>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ZoneAdvertisementQuery {
    #[serde(flatten)]
    pub paging: PageRequest,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdvertisementCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    #[schemars(length(min = 1, max = 10_000))]
    pub description: String,
    pub event: Digits,
    pub artwork: ImageText,
    #[schemars(length(min = 1, max = 100))]
    pub zones: Vec<ResourceRef<Zones>>,
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
    pub event: Option<Digits>,
    pub artwork: Option<ImageText>,
    #[schemars(length(min = 1, max = 100))]
    pub zones: Option<Vec<ResourceRef<Zones>>>,
    #[schemars(length(min = 1, max = 100))]
    pub schedule: Option<Vec<AdvertisementSlotCreate>>,
    #[serde(rename = "x-parsed-md-description")]
    #[expect(dead_code, reason = "it follows the description; its schema declares that it may be there")]
    parsed: Option<IgnoredObject>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub struct AdvertisementSlotCreate {
    pub start: DateTimeInput,
    pub end: DateTimeInput,
}

/// An object that is taken, whatever is in it.
#[derive(Debug)]
pub struct IgnoredObject;

impl<'de> Deserialize<'de> for IgnoredObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl JsonSchema for IgnoredObject {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        "Ignored".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        SchemaObject { instance_type: Some(InstanceType::Object.into()), ..SchemaObject::default() }.into()
    }
}
