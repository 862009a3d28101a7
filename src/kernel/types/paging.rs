//! Pagination of lists: the parameters of a request, and the page in a response.

use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Default number of entries on a page.
pub const RECORDS_DEFAULT: i64 = 25;
/// Largest number of entries on a page.
pub const RECORDS_MAXIMUM: i64 = 100;

/// The requested page of a list, and the number of entries on a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct PageRequest {
    #[serde(default)]
    records: Records,
    #[serde(default)]
    page: PageNumber,
}

/// The number of entries on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
struct Records(i64);

/// The number of a page, starting at 1.
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
        schema_from_json(json!({
            "type": "integer", "format": "int64", "minimum": 1, "maximum": RECORDS_MAXIMUM, "default": RECORDS_DEFAULT,
        }))
    }
}

impl JsonSchema for PageNumber {
    fn schema_name() -> String {
        "PageNumber".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema_from_json(json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": 1_000_000_000, "default": 1 }))
    }
}

/// Returns the schema of a parameter with a default. Dropshot preserves a default only in a separate schema.
fn schema_from_json(schema: Value) -> Schema {
    serde_json::from_value(schema).unwrap_or(Schema::Bool(false))
}

impl PageRequest {
    /// Returns the number of entries on a page.
    pub fn limit(self) -> i64 {
        self.records.0
    }

    /// Returns the number of entries on the previous pages.
    pub fn offset(self) -> i64 {
        (self.page.0 - 1) * self.records.0
    }

    /// Returns whether this is the first page, which may be empty; another empty page is 404.
    pub fn is_first(self) -> bool {
        self.page.0 == 1
    }
}

/// The direction of a sort. It is ignored in a request without a sort key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SortOrder {
    /// Ascending.
    #[default]
    Asc,
    /// Descending.
    Desc,
}

impl JsonSchema for SortOrder {
    fn schema_name() -> String {
        "SortOrder".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema_from_json(json!({ "type": "string", "enum": ["asc", "desc"], "default": "asc" }))
    }
}

impl SortOrder {
    /// Returns the SQL keyword, with a leading space.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Asc => " asc",
            Self::Desc => " desc",
        }
    }
}

/// One page of a list in a response.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// The number of entries on all pages.
    #[schemars(range(min = 0))]
    pub total: i64,
    /// The number of this page, starting at 1.
    #[schemars(range(min = 1))]
    pub page: i64,
    /// The largest number of entries on a page.
    #[schemars(range(min = 1))]
    pub records: i64,
    /// The entries on this page.
    pub entries: Vec<T>,
}

/// The rows of one page, and the number of rows on all pages.
#[derive(Debug)]
pub struct PagedRows<R> {
    /// The number of rows on all pages.
    pub total: i64,
    /// The rows on this page.
    pub rows: Vec<R>,
}

impl PageRequest {
    /// Returns the page with these entries.
    pub fn page<T>(self, total: i64, entries: Vec<T>) -> Page<T> {
        Page { total, page: self.page.0, records: self.records.0, entries }
    }
}
