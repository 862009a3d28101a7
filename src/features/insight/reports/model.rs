//! Requests and responses of reports, and rows with sums.

use std::collections::BTreeMap;

use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::api_types::Uri;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::period::Period;

/// The sales of a host.
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

/// The sales of an event.
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

/// The sales of an event, in total and by section.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventSales {
    #[schemars(range(min = 0))]
    pub units: i64,
    pub sales: Money,
    pub fees: Money,
    /// The sales by section name, which is unique within the event.
    pub breakdown: BTreeMap<String, SectionSales>,
}

/// The sales of a section.
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
    /// A section: its identifier, one of its URIs or its name.
    #[schemars(length(min = 1, max = 200))]
    pub section: Option<String>,
}

string_newtype!(
    /// A day in UTC, `YYYY-MM-DD`.
    Day, Some("date"), None, None, None
);

/// The sales of an event on one day.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SalesDay {
    pub date: Day,
    #[schemars(range(min = 0))]
    pub orders: i64,
    #[schemars(range(min = 0))]
    pub units: i64,
    pub sales: Money,
    pub fees: Money,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SalesDayFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    #[serde(flatten)]
    pub period: Period,
}

/// Sums over the tickets that were sold on one day.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct SalesDayRow {
    /// The number of days since 1970.
    pub day: i64,
    pub orders: i64,
    pub units: i64,
    pub sales: Money,
    pub fees: Money,
}

/// Sums over the sold tickets of a host.
#[derive(Debug, Default, sqlx_macros::FromRow)]
pub struct HostSalesRow {
    pub tickets: i64,
    pub orders: i64,
    pub customers: i64,
    pub revenue: Money,
}

/// Sums over the sold tickets of an event.
#[derive(Debug, Default, sqlx_macros::FromRow)]
pub struct EventSalesRow {
    pub tickets: i64,
    pub orders: i64,
    pub revenue: Money,
}

/// Sums over the sold tickets of a section.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct SectionSalesRow {
    pub id: Id,
    pub name: String,
    pub units: i64,
    pub sales: Money,
    pub fees: Money,
}
