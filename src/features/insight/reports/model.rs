//! Reports on the wire, and the sums that they are made of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::period::Period;
use crate::kernel::types::api_types::Uri;

/// What a host has sold.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HostStatistics {
    #[serde(rename = "self")]
    pub uri: Uri,
    #[schemars(range(min = 0))]
    pub events: i64,
    #[schemars(range(min = 0))]
    pub orders: i64,
    pub revenue: Money,
    #[schemars(range(min = 0))]
    pub tickets: i64,
    #[schemars(range(min = 0))]
    pub customers: i64,
}

/// What an event has sold.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventStatistics {
    #[serde(rename = "self")]
    pub uri: Uri,
    #[schemars(range(min = 0))]
    pub capacity: i64,
    #[schemars(range(min = 0))]
    pub orders: i64,
    pub revenue: Money,
    #[schemars(range(min = 0))]
    pub tickets: i64,
}

/// What an event has sold, in all and by section.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventSales {
    #[schemars(range(min = 0))]
    pub units: i64,
    pub sales: Money,
    pub fees: Money,
    /// By the section's name, which is unique within its event.
    pub breakdown: BTreeMap<String, SectionSales>,
}

/// What a section has sold.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SectionSales {
    #[schemars(range(min = 0))]
    pub units: i64,
    pub sales: Money,
    pub fees: Money,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SalesFilter {
    #[serde(flatten)]
    pub period: Period,
    /// By its identifier, either of its URIs, or its exact name.
    #[schemars(length(min = 1, max = 200))]
    pub section: Option<String>,
}

/// Tickets that were sold, summed up.
#[derive(Debug, sqlx::FromRow)]
pub struct SoldRow {
    pub tickets: i64,
    pub orders: i64,
    pub customers: i64,
    pub revenue: Money,
}

/// What a section has sold, as it is summed up.
#[derive(Debug, sqlx::FromRow)]
pub struct SectionSalesRow {
    pub id: Id,
    pub name: String,
    pub units: i64,
    pub sales: Money,
    pub fees: Money,
}
