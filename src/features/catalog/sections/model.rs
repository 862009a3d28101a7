//! API types and database rows of sections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::places::orderable;
use super::price::{ActiveModifier, GroupPrice, Price, group_prices, price};
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{MinuteInput, Minutes, NullableField, Uri, cleared_by_null};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::{AmountInput, Money};

/// A section in API responses.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// Short URI inside its event and in the response that creates it, long URI everywhere else.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Name, unique within the event.
    pub name: String,
    /// Description.
    pub description: String,
    /// Price of a ticket, before fees.
    pub price: Price,
    /// Prices of tickets in orders with several tickets of the section, if they differ.
    pub group_prices: Vec<GroupPrice>,
    /// Start of sales.
    pub sales_start: Minutes,
    /// End of sales.
    pub sales_end: Minutes,
    /// True if it is offered for sale.
    pub active: bool,
    /// Total number of places.
    pub capacity: i64,
    /// Number of places sold.
    pub sold: i64,
    /// Number of places that can still be ordered.
    pub remaining: i64,
    /// Number of places reserved for open orders, and for offers to accounts of the waiting list.
    pub reserved: i64,
    /// Largest number of tickets that one account may buy.
    pub maximum_per_account: NullableField<i64>,
}

// The response that creates a section has its short URI, a GET the long one.
has_location!(Section, SAME_REPRESENTATION = false);

/// Path parameters of a section and its subresources.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SectionPath {
    /// The event.
    pub event: Id,
    /// Its section.
    pub section: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SectionShorthandPath {
    pub section: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SectionCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    pub base_price: AmountInput,
    #[schemars(range(min = 1, max = 1_000_000))]
    pub capacity: i64,
    pub sales_start: MinuteInput,
    pub sales_end: MinuteInput,
    #[schemars(length(max = 5_000))]
    pub description: Option<String>,
    pub active: Option<bool>,
    #[schemars(range(min = 1, max = 1_000_000))]
    pub maximum_per_account: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SectionUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    pub base_price: Option<AmountInput>,
    #[schemars(range(min = 1, max = 1_000_000))]
    pub capacity: Option<i64>,
    pub sales_start: Option<MinuteInput>,
    pub sales_end: Option<MinuteInput>,
    #[schemars(length(max = 5_000))]
    pub description: Option<String>,
    pub active: Option<bool>,
    /// `Some(None)` for a null, which removes the maximum.
    // Schemars would declare a default without the condition.
    #[schemars(range(min = 1, max = 1_000_000), skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "cleared_by_null")]
    pub maximum_per_account: Option<Option<i64>>,
}

/// Database row of a section, without expired reservations.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct SectionRow {
    /// Its identifier.
    pub id: Id,
    /// Its event.
    pub event_id: Id,
    /// Name, unique within the event.
    pub name: String,
    /// Description.
    pub description: String,
    /// Price of a ticket before price modifiers.
    pub base_price: Money,
    /// Total number of places.
    pub capacity: i64,
    /// Number of places sold: tickets issued and not returned.
    pub sold: i64,
    /// Number of places reserved for open orders, and for offers to accounts of the waiting list.
    pub reserved: i64,
    /// Number of entries of the waiting list that wait.
    pub waiting: i64,
    /// Start of sales.
    pub sales_start: Timestamp,
    /// End of sales.
    pub sales_end: Timestamp,
    /// True if it is offered for sale.
    pub active: bool,
    /// Largest number of tickets that one account may buy; `None` for any number.
    pub maximum_per_account: Option<i64>,
    /// Active price modifiers that have not ended, the oldest first.
    #[sqlx(skip)]
    pub modifiers: Vec<ActiveModifier>,
}

impl SectionRow {
    /// Returns the number of places that can be ordered without an offer.
    pub fn remaining(&self) -> i64 {
        orderable(self.left(), self.waiting)
    }

    /// Returns the number of places that are neither sold nor reserved.
    pub fn left(&self) -> i64 {
        self.capacity - self.sold - self.reserved
    }
}

impl SectionCreate {
    /// Returns the row of the new section.
    pub fn row(&self, id: Id, event: Id) -> SectionRow {
        SectionRow {
            id,
            event_id: event,
            name: self.name.clone(),
            description: self.description.clone().unwrap_or_default(),
            base_price: self.base_price.0,
            capacity: self.capacity,
            sold: 0,
            reserved: 0,
            waiting: 0,
            sales_start: self.sales_start.0,
            sales_end: self.sales_end.0,
            active: self.active.unwrap_or(true),
            maximum_per_account: self.maximum_per_account,
            modifiers: Vec::new(),
        }
    }
}

impl SectionUpdate {
    /// Returns the row with these changes.
    pub fn apply(&self, row: SectionRow) -> SectionRow {
        SectionRow {
            name: self.name.clone().unwrap_or(row.name),
            description: self.description.clone().unwrap_or(row.description),
            base_price: self.base_price.map_or(row.base_price, |price| price.0),
            capacity: self.capacity.unwrap_or(row.capacity),
            sales_start: self.sales_start.map_or(row.sales_start, |time| time.0),
            sales_end: self.sales_end.map_or(row.sales_end, |time| time.0),
            active: self.active.unwrap_or(row.active),
            maximum_per_account: self.maximum_per_account.unwrap_or(row.maximum_per_account),
            ..row
        }
    }
}

/// Reference to a section by either of its URIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionUri {
    /// Event in the long URI.
    pub event: Option<Id>,
    /// The section.
    pub section: Id,
}

impl SectionUri {
    /// Parses `/events/{event}/sections/{section}` or `/sections/{section}`, with or without a leading `/v3`.
    pub fn parse(text: &str) -> Option<Self> {
        let path = text.strip_prefix("/v3").unwrap_or(text);
        let (event, section) = match path.strip_prefix("/events/") {
            Some(rest) => rest.split_once("/sections/").map(|(event, section)| (Some(event), section))?,
            None => (None, path.strip_prefix("/sections/")?),
        };
        let event = event.map(|event| Id::parse(event).ok_or(())).transpose().ok()?;
        Some(Self { event, section: Id::parse(section)? })
    }

    /// Returns whether this is a URI of that section. The event in a long URI must match too.
    pub fn names(self, row: &SectionRow) -> bool {
        self.section == row.id && self.event.is_none_or(|event| event == row.event_id)
    }
}

/// Returns the long URI, used outside the section's event.
pub fn uri(event: Id, section: Id) -> Uri {
    Uri(format!("/events/{event}/sections/{section}"))
}

/// Returns the representation with the long URI, used outside the section's event, such as in a ticket.
pub fn view_long(row: &SectionRow, now: Timestamp) -> Section {
    view(row, uri(row.event_id, row.id), now)
}

/// Returns the representation with the short URI, used inside the section's event and in the response that creates it.
pub fn view_short(row: &SectionRow, now: Timestamp) -> Section {
    view(row, Uri(format!("/sections/{}", row.id)), now)
}

fn view(row: &SectionRow, uri: Uri, now: Timestamp) -> Section {
    Section {
        uri,
        name: row.name.clone(),
        description: row.description.clone(),
        price: price(row, now),
        group_prices: group_prices(row, now),
        sales_start: Minutes::from(row.sales_start),
        sales_end: Minutes::from(row.sales_end),
        active: row.active,
        capacity: row.capacity,
        sold: row.sold,
        remaining: row.remaining(),
        reserved: row.reserved,
        maximum_per_account: NullableField(row.maximum_per_account),
    }
}
