//! Lists in pages: the envelope of the requirement, and what a caller asks for.

use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Entries on a page when the caller doesn't say (requirement).
pub const RECORDS_DEFAULT: i64 = 25;
/// Entries on a page at the most.
pub const RECORDS_MAXIMUM: i64 = 100;

/// Which page of a list, and how many entries a page has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct PageRequest {
    #[serde(default)]
    records: Records,
    #[serde(default)]
    page: PageNumber,
}

/// Entries on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
struct Records(i64);

/// A page's number, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
struct PageNumber(i64);

impl Default for Records {
    fn default() -> Self {
        Self(RECORDS_DEFAULT)
    }
}

impl Default for PageNumber {
    fn default() -> Self {
        Self(1)
    }
}

impl JsonSchema for Records {
    fn schema_name() -> String {
        "Records".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        defaulted(json!({
            "type": "integer", "format": "int64", "minimum": 1, "maximum": RECORDS_MAXIMUM, "default": RECORDS_DEFAULT,
        }))
    }
}

impl JsonSchema for PageNumber {
    fn schema_name() -> String {
        "PageNumber".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        defaulted(json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": 1_000_000_000, "default": 1 }))
    }
}

/// The schema of a parameter with a default, which dropshot keeps only in a schema of its own.
fn defaulted(schema: Value) -> Schema {
    serde_json::from_value(schema).unwrap_or(Schema::Bool(false))
}

impl PageRequest {
    /// Entries a page.
    pub fn limit(self) -> i64 {
        self.records.0
    }

    /// Entries on the pages before.
    pub fn offset(self) -> i64 {
        (self.page.0 - 1) * self.records.0
    }

    /// Whether this page may be answered though it is empty.
    pub fn is_first(self) -> bool {
        self.page.0 == 1
    }
}

/// The direction of a sort, which only counts when a sort is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SortOrder {
    /// The smallest first.
    #[default]
    Asc,
    /// The greatest first.
    Desc,
}

impl JsonSchema for SortOrder {
    fn schema_name() -> String {
        "SortOrder".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        defaulted(json!({ "type": "string", "enum": ["asc", "desc"], "default": "asc" }))
    }
}

impl SortOrder {
    /// The word of SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Asc => " asc",
            Self::Desc => " desc",
        }
    }
}

/// One page of a list, as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// How many results there are in all.
    #[schemars(range(min = 0))]
    pub total: i64,
    /// The number of this page, from 1.
    #[schemars(range(min = 1))]
    pub page: i64,
    /// How many results a page has at the most.
    #[schemars(range(min = 1))]
    pub records: i64,
    /// The results of this page.
    pub entries: Vec<T>,
}

/// The rows of one page and the number of rows on all of them, as a store gives it.
#[derive(Debug)]
pub struct PagedRows<R> {
    /// How many rows there are in all.
    pub total: i64,
    /// The rows of this page.
    pub rows: Vec<R>,
}

impl PageRequest {
    /// The envelope around a page's entries.
    pub fn page<T>(self, total: i64, entries: Vec<T>) -> Page<T> {
        Page { total, page: self.page.0, records: self.records.0, entries }
    }
}
