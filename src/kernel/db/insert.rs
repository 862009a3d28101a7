//! Inserts of many rows.

use boxoffice_http::error::Result;

use super::statement::Columns;
use super::transaction::Tx;

/// Maximum number of values in a statement on SQLite, whose prepared statements take memory for each value. PostgreSQL gets each
/// column as one value.
pub(super) const MAX_VALUES: usize = 1000;

impl Tx {
    /// Inserts rows. `into` is a table with its columns, such as `tickets (id, serial)`. `add_columns` adds the values of each
    /// column. Many rows are split into several statements. Without rows, no statement is executed.
    ///
    /// ```ignore
    /// tx.insert_rows("tickets (id, serial)", rows, |columns| {
    ///     columns.add(|row| row.id).add(|row| row.serial.clone());
    /// })
    /// ```
    ///
    /// # Errors
    /// Returns an error if the database rejects a row. The rollback of the transaction then removes the other rows.
    pub async fn insert_rows<R: Send + Sync>(
        &mut self,
        into: &str,
        rows: impl IntoIterator<Item = R>,
        add_columns: impl Fn(&mut Columns<'_, '_, R>) + Send + Sync,
    ) -> Result<()> {
        let columns = into.matches(',').count() + 1;
        let rows: Vec<R> = rows.into_iter().collect();
        for chunk in rows.chunks(MAX_VALUES / columns) {
            self.insert(into).values(chunk, &add_columns).execute().await?;
        }
        Ok(())
    }
}
