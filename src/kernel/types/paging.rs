//! Pagination of lists: the parameters of a request, and the page in a response.

use boxoffice_http::error::{Code, Result};
use boxoffice_http::schema_from_json;
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::SemaphorePermit;

/// Default number of entries on a page.
pub const RECORDS_DEFAULT: i64 = 25;
/// Largest number of entries on a page.
pub const MAX_RECORDS: i64 = 100;

/// Maximum size of a page in the database, in bytes, with the constants that estimate the JSON around the texts. In JSON, a byte of
/// text takes at most two bytes, so that a page has at most 4 MiB.
pub const PAGE_BYTES: i64 = 2 << 20;

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

// Dropshot preserves the default of a parameter only in a separate schema.
impl JsonSchema for Records {
    fn schema_name() -> String {
        "Records".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema_from_json(json!({
            "type": "integer", "format": "int64", "minimum": 1, "maximum": MAX_RECORDS, "default": RECORDS_DEFAULT,
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

impl PageRequest {
    /// Returns the request of a page with at most `records` entries.
    pub fn new(page: u32, records: u32) -> Self {
        Self { records: Records(records.into()), page: PageNumber(page.into()) }
    }

    /// Returns the number of entries on a page.
    pub fn limit(self) -> i64 {
        self.records.0
    }

    /// Returns the number of entries on the previous pages.
    pub fn offset(self) -> i64 {
        (self.page.0 - 1) * self.records.0
    }

    /// Returns the number of entries on the previous pages and this one.
    pub fn end(self) -> i64 {
        self.page.0 * self.records.0
    }

    /// Returns whether this is the first page, which may be empty; another empty page is 404.
    pub fn is_first(self) -> bool {
        self.page.0 == 1
    }
}

/// The entries of a page whose size is limited: their number, and the number of entries before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedPage {
    /// The number of entries before the page.
    pub offset: usize,
    /// The number of entries on the page.
    pub count: usize,
    /// Their size in bytes.
    pub bytes: i64,
}

impl PageRequest {
    /// Divides a list into pages of at most [`PAGE_BYTES`] and at most `records` entries, at least one. Returns the requested
    /// page. `sizes` are those of all entries up to the last one that it may contain.
    pub fn divide(self, sizes: &[i64]) -> SizedPage {
        let first = (0, self.fit(sizes));
        let (offset, count) = (1..self.page.0)
            .try_fold(first, |(offset, count), _| {
                let offset = offset + count;
                // The list ends before the page.
                if offset >= sizes.len() { Err((sizes.len(), 0)) } else { Ok((offset, self.fit(&sizes[offset..]))) }
            })
            .unwrap_or_else(|end| end);
        SizedPage { offset, count, bytes: sizes[offset..offset + count].iter().sum() }
    }

    /// Returns the number of entries that fit on a page that begins with these.
    fn fit(self, sizes: &[i64]) -> usize {
        let mut bytes = 0;
        let fitting = sizes.iter().zip(0..self.records.0).take_while(|(size, number)| {
            bytes += **size;
            bytes <= PAGE_BYTES || *number == 0
        });
        fitting.count()
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
    /// The request of the page.
    pub paging: PageRequest,
    /// The size of the page in bytes, if it is limited; otherwise 0.
    pub bytes: i64,
    /// Permission to load the rest of a large page.
    pub permit: Option<SemaphorePermit<'static>>,
}

impl<R> PagedRows<R> {
    /// Returns the page with the view of each row.
    pub fn map<T>(self, view: impl FnMut(R) -> T) -> Page<T> {
        self.paging.page(self.total, self.rows.into_iter().map(view).collect())
    }
}

impl PageRequest {
    /// Checks that this page may be empty.
    ///
    /// # Errors
    /// [`Code::PAGE_PAST_END`] for all but the first page.
    pub fn require_first(self) -> Result<()> {
        if self.is_first() { Ok(()) } else { Err(Code::PAGE_PAST_END.into()) }
    }

    /// Returns the page of a list that has no entries there.
    ///
    /// # Errors
    /// [`Code::PAGE_PAST_END`] for all but the first page.
    pub fn empty_page<T>(self) -> Result<Page<T>> {
        self.require_first()?;
        Ok(self.page(0, Vec::new()))
    }

    /// Returns the page with these entries.
    pub fn page<T>(self, total: i64, entries: Vec<T>) -> Page<T> {
        Page { total, page: self.page.0, records: self.records.0, entries }
    }
}
