//! API types and database rows of price modifiers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::catalog::sections;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{MinuteInput, Minutes, NullableField, Uri, cleared_by_null};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::{Money, PriceDelta};

/// A price modifier in API responses.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Modifier {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Name, unique within the section.
    pub name: String,
    /// Amount added to the price of a ticket.
    pub price_delta: Money,
    /// Start of the period in which it applies.
    pub available_from: NullableField<Minutes>,
    /// End of that period, exclusive.
    pub available_to: NullableField<Minutes>,
    /// Minimum number of tickets of the section in one order.
    pub min_order: NullableField<i64>,
    /// Maximum number of tickets of the section in one order.
    pub max_order: NullableField<i64>,
    /// False if it never applies.
    pub active: bool,
}

has_location!(Modifier);

/// Path parameters of a price modifier.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub struct ModifierPath {
    /// The event.
    pub event: Id,
    /// Its section.
    pub section: Id,
    /// The section's modifier.
    pub modifier: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModifierCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    pub price_delta: PriceDelta,
    pub available_from: Option<MinuteInput>,
    pub available_to: Option<MinuteInput>,
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_order: Option<i64>,
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_order: Option<i64>,
    pub active: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModifierUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    pub price_delta: Option<PriceDelta>,
    // A bound is `Some(None)` for a null, which removes it. Schemars would declare a default without the condition.
    #[schemars(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "cleared_by_null")]
    pub available_from: Option<Option<MinuteInput>>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "cleared_by_null")]
    pub available_to: Option<Option<MinuteInput>>,
    #[schemars(range(min = 1, max = 1_000_000), skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "cleared_by_null")]
    pub min_order: Option<Option<i64>>,
    #[schemars(range(min = 1, max = 1_000_000), skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "cleared_by_null")]
    pub max_order: Option<Option<i64>>,
    pub active: Option<bool>,
}

/// Database row of a price modifier.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct ModifierRow {
    /// Its identifier.
    pub id: Id,
    /// The section whose tickets it prices.
    pub section_id: Id,
    /// Name, unique within the section.
    pub name: String,
    /// Amount added to the price of a ticket.
    pub price_delta: Money,
    /// Start of the period in which it applies.
    pub available_from: Option<Timestamp>,
    /// End of that period, exclusive.
    pub available_to: Option<Timestamp>,
    /// Minimum number of tickets of the section in one order.
    pub min_order: Option<i64>,
    /// Maximum number of tickets of the section in one order.
    pub max_order: Option<i64>,
    /// False if it never applies.
    pub active: bool,
}

impl ModifierCreate {
    /// Returns the row of the new modifier.
    pub fn row(&self, id: Id, section: Id) -> ModifierRow {
        ModifierRow {
            id,
            section_id: section,
            name: self.name.clone(),
            price_delta: self.price_delta.0,
            available_from: self.available_from.map(|time| time.0),
            available_to: self.available_to.map(|time| time.0),
            min_order: self.min_order,
            max_order: self.max_order,
            active: self.active.unwrap_or(true),
        }
    }
}

impl ModifierUpdate {
    /// Returns the row with these changes.
    pub fn apply(&self, row: ModifierRow) -> ModifierRow {
        ModifierRow {
            name: self.name.clone().unwrap_or(row.name),
            price_delta: self.price_delta.map_or(row.price_delta, |delta| delta.0),
            available_from: self.available_from.map_or(row.available_from, |time| time.map(|time| time.0)),
            available_to: self.available_to.map_or(row.available_to, |time| time.map(|time| time.0)),
            min_order: self.min_order.unwrap_or(row.min_order),
            max_order: self.max_order.unwrap_or(row.max_order),
            active: self.active.unwrap_or(row.active),
            ..row
        }
    }
}

/// Returns the URI of a price modifier.
pub fn uri(event: Id, section: Id, modifier: Id) -> Uri {
    Uri(format!("{}/modifiers/{modifier}", sections::uri(event, section).0))
}

/// Returns the representation of a price modifier of this event.
pub fn view(event: Id, row: ModifierRow) -> Modifier {
    let minutes = |time: Option<Timestamp>| NullableField(time.map(Minutes::from));
    Modifier {
        uri: uri(event, row.section_id, row.id),
        name: row.name,
        price_delta: row.price_delta,
        available_from: minutes(row.available_from),
        available_to: minutes(row.available_to),
        min_order: NullableField(row.min_order),
        max_order: NullableField(row.max_order),
        active: row.active,
    }
}
