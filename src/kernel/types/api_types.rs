//! Types of request and response properties: URIs, times, references to other resources.

use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use boxoffice_http::{inline_schema, string_newtype, text_schema};
use boxoffice_openapi::BIRTH_DATE_DESCRIPTION;
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::clock::Timestamp;
use super::id::Id;

string_newtype!(
    /// A URI relative to the base address, such as `/events/17637000000001`.
    Uri, Some("uri-reference"), None, None, None;
    /// An absolute URI.
    AbsoluteUri, Some("uri"), None, None, None;
    /// An RFC 3339 date and time.
    DateTime, Some("date-time"), None, None, None;
    /// A time with minutes, `YYYY-MM-DDTHH:MM`, in UTC.
    Minutes, None, Some(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$"), None, None;
    /// A time with minutes, `YYYY-MM-DD HH:MM`, in UTC.
    PlainMinutes, None, Some(r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$"), None, None;
    /// A time with seconds and the offset of UTC, `YYYY-MM-DDTHH:MM:SS+00:00`.
    OffsetSeconds, None, Some(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00$"), None, None
);

impl From<Timestamp> for DateTime {
    fn from(time: Timestamp) -> Self {
        Self(time.format_rfc3339())
    }
}

impl From<Timestamp> for Minutes {
    fn from(time: Timestamp) -> Self {
        Self(time.format_minutes())
    }
}

impl From<Timestamp> for PlainMinutes {
    fn from(time: Timestamp) -> Self {
        Self(time.format_plain_minutes())
    }
}

impl From<Timestamp> for OffsetSeconds {
    fn from(time: Timestamp) -> Self {
        Self(time.format_rfc3339())
    }
}

/// A time in a request, with or without seconds, fraction and time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DateTimeInput(pub Timestamp);

impl<'de> Deserialize<'de> for DateTimeInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Timestamp::parse(&text).map(Self).ok_or_else(|| D::Error::custom("is no date and time"))
    }
}

inline_schema!(DateTimeInput, "EventTime", date_time_schema());

fn date_time_schema() -> Schema {
    let pattern = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?([Zz]|[+ -]\d{2}(:?\d{2})?)?$";
    text_schema(Some("event-time"), Some(pattern), None, None)
}

/// A time in a request, in the formats of [`DateTimeInput`] and kept to the minute. Responses show such times with minutes, so a
/// client can send back the time that it has read without changing it.
#[derive(Debug, Clone, Copy)]
pub struct MinuteInput(pub Timestamp);

impl<'de> Deserialize<'de> for MinuteInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DateTimeInput::deserialize(deserializer).map(|time| Self(time.0.start_of_minute()))
    }
}

inline_schema!(MinuteInput, "EventTime", date_time_schema());

/// A required, nullable property of a response. Schemars would declare an `Option` as optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct NullableField<T>(pub Option<T>);

impl<T: JsonSchema> JsonSchema for NullableField<T> {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        format!("Nullable {}", T::schema_name())
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator).into_object();
        schema.extensions.insert("nullable".to_owned(), true.into());
        schema.into()
    }
}

/// Deserializes a property of a PUT that a null or a blank value clears (`x-cleared-by-null`): either is `Some(None)`, and an
/// absent property is `None` if its default is.
///
/// # Errors
/// Returns an error if the value is neither null nor a `T`.
pub fn cleared_by_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A date of birth in a request, in either format; stored as `YYYY-MM-DD`. `None` for an empty text.
#[derive(Debug, Clone)]
pub struct BirthDate(pub Option<String>);

impl BirthDate {
    /// Returns whether the date is after the day of `now`.
    pub fn is_after(&self, now: Timestamp) -> bool {
        self.0.as_ref().is_some_and(|date| *date > now.format_date())
    }
}

impl<'de> Deserialize<'de> for BirthDate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self(None));
        }
        let date = boxoffice_openapi::parse_birth_date(&text);
        date.map(|date| Self(Some(date))).ok_or_else(|| D::Error::custom(format!("must be {BIRTH_DATE_DESCRIPTION}")))
    }
}

inline_schema!(
    BirthDate,
    "BirthDate",
    text_schema(Some("birth-date"), Some(r"^(\d{4}-\d{2}-\d{2}|\d{2}-\d{2}-\d{4})?$"), None, None)
);

/// A resource in a collection of the API, for [`ResourceRef`].
pub trait HasCollection {
    /// The start of the resource's path, such as `/regions/`.
    const PATH: &'static str;
}

/// A reference to a resource in a request: its identifier or its URI. A malformed identifier is parsed as [`Id::NONE`].
#[derive(Debug)]
pub struct ResourceRef<C> {
    /// The identifier.
    pub id: Id,
    collection: PhantomData<C>,
}

// Not derived, because a derived implementation would require `C: Clone`.
impl<C> Clone for ResourceRef<C> {
    fn clone(&self) -> Self {
        Self { id: self.id, collection: PhantomData }
    }
}

impl<C> PartialEq for ResourceRef<C> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<C> Eq for ResourceRef<C> {}

impl<C> Hash for ResourceRef<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl<'de, C: HasCollection> Deserialize<'de> for ResourceRef<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let identifier = text.rsplit('/').next().unwrap_or_default();
        Ok(Self { id: Id::parse(identifier).unwrap_or(Id::NONE), collection: PhantomData })
    }
}

impl<C: HasCollection> JsonSchema for ResourceRef<C> {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        format!("Reference to {}", C::PATH)
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = format!("^(/v3)?({})?[A-Za-z0-9-]+$", C::PATH);
        text_schema(None, Some(&pattern), Some(1), Some(200))
    }
}

/// Returns the text unless it is blank.
pub fn non_blank(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}
