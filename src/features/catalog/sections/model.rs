//! Sections on the wire and in the database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::price::{ActiveModifier, Price, price};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::{AmountInput, Money};
use crate::kernel::types::api_types::{DateTimeInput, Minutes, Uri};
use crate::kernel::http::HasLocation;

/// A section as it is answered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// Short inside its event and where it has just been added, long everywhere else (wire facts).
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Unique within the event.
    pub name: String,
    /// What it offers.
    pub description: String,
    /// What a ticket costs, before fees.
    pub price: Price,
    /// When sales begin.
    pub sales_start: Minutes,
    /// When sales end.
    pub sales_end: Minutes,
    /// Whether it is offered for sale.
    pub active: bool,
    /// Places in all.
    pub capacity: i64,
    /// Places sold.
    pub sold: i64,
    /// Places that can still be ordered.
    pub remaining: i64,
    /// Places held for open orders.
    pub reserved: i64,
}

impl HasLocation for Section {
    /// A new one has its short URI.
    const SAME_REPRESENTATION: bool = false;

    fn location(&self) -> &str {
        &self.uri.0
    }
}

/// The path of a section and of what lies below it.
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
    pub sales_start: DateTimeInput,
    pub sales_end: DateTimeInput,
    #[schemars(length(max = 10_000))]
    pub description: Option<String>,
    pub active: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SectionUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    pub base_price: Option<AmountInput>,
    #[schemars(range(min = 1, max = 1_000_000))]
    pub capacity: Option<i64>,
    pub sales_start: Option<DateTimeInput>,
    pub sales_end: Option<DateTimeInput>,
    #[schemars(length(max = 10_000))]
    pub description: Option<String>,
    pub active: Option<bool>,
}

/// A section as it is kept, without the reservations that are over.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct SectionRow {
    /// Its identifier.
    pub id: Id,
    /// The event that it is a part of.
    pub event_id: Id,
    /// Unique within the event.
    pub name: String,
    /// What it offers.
    pub description: String,
    /// Price of a ticket before any price modifier.
    pub base_price: Money,
    /// Places in all.
    pub capacity: i64,
    /// Places sold, which are the tickets issued and not given back.
    pub sold: i64,
    /// Places held for open orders.
    pub reserved: i64,
    /// When sales begin.
    pub sales_start: Timestamp,
    /// When sales end.
    pub sales_end: Timestamp,
    /// Whether it is offered for sale.
    pub active: bool,
    /// The active price modifiers, the oldest first.
    #[sqlx(skip)]
    pub adjustments: Vec<ActiveModifier>,
}

impl SectionCreate {
    /// The section as it begins.
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
            sales_start: self.sales_start.0,
            sales_end: self.sales_end.0,
            active: self.active.unwrap_or(true),
            adjustments: Vec::new(),
        }
    }
}

impl SectionUpdate {
    /// The section with these changes.
    pub fn apply(&self, row: SectionRow) -> SectionRow {
        SectionRow {
            name: self.name.clone().unwrap_or(row.name),
            description: self.description.clone().unwrap_or(row.description),
            base_price: self.base_price.map_or(row.base_price, |price| price.0),
            capacity: self.capacity.unwrap_or(row.capacity),
            sales_start: self.sales_start.map_or(row.sales_start, |time| time.0),
            sales_end: self.sales_end.map_or(row.sales_end, |time| time.0),
            active: self.active.unwrap_or(row.active),
            ..row
        }
    }
}

/// A section named by either of its URIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionUri {
    /// The event that the long form names.
    pub event: Option<Id>,
    /// The section.
    pub section: Id,
}

impl SectionUri {
    /// Reads `/events/{event}/sections/{section}` or `/sections/{section}`, with or without `/v3` before it.
    pub fn parse(text: &str) -> Option<Self> {
        let path = text.strip_prefix("/v3").unwrap_or(text);
        let (event, section) = match path.strip_prefix("/events/") {
            Some(rest) => rest.split_once("/sections/").map(|(event, section)| (Some(event), section))?,
            None => (None, path.strip_prefix("/sections/")?),
        };
        let event = event.map(|event| Id::parse(event).ok_or(())).transpose().ok()?;
        Some(Self { event, section: Id::parse(section)? })
    }

    /// Whether this can be the URI of that section: the long form names its event too.
    pub fn names(self, row: &SectionRow) -> bool {
        self.section == row.id && self.event.is_none_or(|event| event == row.event_id)
    }
}

/// The long URI, by which a section is known outside its event.
pub fn uri(event: Id, section: Id) -> Uri {
    Uri(format!("/events/{event}/sections/{section}"))
}

/// A section as it is shown outside its event, such as in a ticket.
pub fn view_long(row: &SectionRow, now: Timestamp) -> Section {
    view(row, uri(row.event_id, row.id), now)
}

/// A section as it is shown inside its event, and when it has just been added to it (wire facts).
pub fn view_short(row: &SectionRow, now: Timestamp) -> Section {
    view(row, Uri(format!("/sections/{}", row.id)), now)
}

fn view(row: &SectionRow, uri: Uri, now: Timestamp) -> Section {
    Section {
        uri,
        name: row.name.clone(),
        description: row.description.clone(),
        price: price(row, now),
        sales_start: Minutes(row.sales_start.to_minutes()),
        sales_end: Minutes(row.sales_end.to_minutes()),
        active: row.active,
        capacity: row.capacity,
        sold: row.sold,
        remaining: row.capacity - row.sold - row.reserved,
        reserved: row.reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_named_by_either_uri() {
        let (event, section) = (Id(17_637_000_000_051), Id(17_637_000_000_061));
        let long = Some(SectionUri { event: Some(event), section });
        let short = Some(SectionUri { event: None, section });
        for (text, expected) in [
            ("/events/17637000000051/sections/17637000000061", long),
            ("/v3/events/17637000000051/sections/17637000000061", long),
            ("/sections/17637000000061", short),
            ("/v3/sections/17637000000061", short),
            ("17637000000061", None),
            ("/sections/1763700000006", None),
            ("/events/17637000000051/sections/", None),
            ("/events/x/sections/17637000000061", None),
            ("/venues/17637000000051/sections/17637000000061", None),
        ] {
            assert_eq!(SectionUri::parse(text), expected, "{text}");
        }
        assert_eq!(SectionUri::parse(&uri(event, section).0), long);
    }
}
