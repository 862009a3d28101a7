//! Identifiers of resources: 14 digits in requests and responses, an integer in the database.

use std::fmt;

use boxoffice_http::{inline_schema, text_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::clock::Timestamp;
use sqlx::postgres::{PgHasArrayType, PgTypeInfo};

/// The identifier of a resource: its time of creation in units of 100 microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx_macros::Type)]
#[sqlx(transparent)]
pub struct Id(pub i64);

impl PgHasArrayType for Id {
    fn array_type_info() -> PgTypeInfo {
        i64::array_type_info()
    }
}

impl Id {
    /// The identifier of no resource. Malformed identifiers are parsed as this.
    pub const NONE: Id = Id(0);

    /// Returns the lowest identifier of a resource that is created at a time or later.
    pub fn first_at(time: Timestamp) -> Self {
        Self(time.0 / 100)
    }

    /// Parses exactly 14 digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 14 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok().map(Self)).flatten()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:014}", self.0)
    }
}

impl From<Id> for serde_json::Value {
    fn from(id: Id) -> Self {
        id.0.into()
    }
}

/// For identifiers in a path. A malformed one is deserialized as [`Id::NONE`], so that the response is 404.
impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self::parse(&text).unwrap_or(Self::NONE))
    }
}

/// An identifier that must have 14 digits in a request, such as the number of an order. Other text is invalid there, while an [`Id`]
/// accepts it and names no resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct IdText(pub Id);

impl Serialize for IdText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

inline_schema!(IdText, "IdText", text_schema(None, Some(r"^\d{14}$"), None, None));
inline_schema!(Id, "Id", text_schema(None, Some("^[A-Za-z0-9-]+$"), None, Some(64)));
