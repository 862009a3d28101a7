//! Inserts of many rows.

use boxoffice_http::error::Result;

use super::statement::Values;
use super::transaction::Tx;

/// Maximum number of values in a statement. SQLite searches each of them by its name among all others, so ten times as many
/// values take a hundred times as long. PostgreSQL gets each column as one value.
const MAX_VALUES: usize = 1000;

impl Tx {
    /// Inserts rows. `into` is a table with its columns, such as `tickets (id, serial)`. `bind` binds the values of a row, one
    /// for each column. Many rows are split into several statements. Without rows, no statement is executed.
    ///
    /// ```ignore
    /// tx.insert_rows("tickets (id, serial)", rows, |row, values| {
    ///     values.bind(row.id).bind(row.serial.clone());
    /// })
    /// ```
    ///
    /// # Errors
    /// Returns an error if the database rejects a row. The rollback of the transaction then removes the other rows.
    pub async fn insert_rows<R: Send>(
        &mut self,
        into: &str,
        rows: impl IntoIterator<Item = R>,
        bind: impl Fn(R, &mut Values<'_>) + Send,
    ) -> Result<()> {
        let columns = into.matches(',').count() + 1;
        let mut rows: Vec<R> = rows.into_iter().collect();
        while !rows.is_empty() {
            let rest = rows.split_off(rows.len().min(MAX_VALUES / columns));
            self.insert(into).values(rows, &bind).execute().await?;
            rows = rest;
        }
        Ok(())
    }
}
