//! A table and its statement for reading.

use super::value::{ColumnType, Value};

/// Maximum number of rows of a page.
const PAGE_ROWS: usize = 10_000;

/// A table, the same in both databases.
#[derive(Debug, PartialEq)]
pub(super) struct Table {
    pub(super) name: String,
    /// The columns in alphabetical order.
    pub(super) columns: Vec<(String, ColumnType)>,
    /// The indexes of the columns of the primary key. A table without a primary key has few rows.
    pub(super) key: Vec<usize>,
}

impl Table {
    /// Returns the primary key of a row; `None` for a table without one.
    pub(super) fn key_of(&self, row: &[Value]) -> Option<Vec<Value>> {
        (!self.key.is_empty()).then(|| self.key.iter().filter_map(|index| row.get(*index).cloned()).collect())
    }

    /// Returns whether there is a primary key.
    pub(super) fn has_key(&self) -> bool {
        !self.key.is_empty()
    }

    /// Returns the columns for a statement.
    pub(super) fn column_list(&self) -> String {
        self.columns.iter().map(|(column, _)| format!("\"{column}\"")).collect::<Vec<_>>().join(", ")
    }

    /// Returns the statement that reads the rows after a key.
    pub(super) fn select(&self, has_start: bool) -> String {
        let names = self.key.iter().filter_map(|index| self.columns.get(*index));
        let key = names.map(|(column, _)| format!("\"{column}\"")).collect::<Vec<_>>().join(", ");
        let places = (1..=self.key.len()).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
        let start = if has_start { format!(" where ({key}) > ({places})") } else { String::new() };
        let order = if key.is_empty() { String::new() } else { format!(" order by {key}") };
        format!("select {} from \"{}\"{start}{order} limit {PAGE_ROWS}", self.column_list(), self.name)
    }
}
