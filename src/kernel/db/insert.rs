//! An `INSERT` of many rows.

use boxoffice_http::error::Result;

use super::statement::Values;
use super::transaction::Tx;

/// Values that one statement binds at the most. SQLite looks for each by its name among all others: of ten times as many, all take
/// a hundred times as long. PostgreSQL takes a column as one value.
const BINDS: usize = 1000;

impl Tx {
    /// Inserts rows; `into` is a table and its columns, such as `tickets (id, serial)`, and `bind` gives a row's values, one
    /// for each column. No rows: no statement. More rows than one statement can bind become several.
    ///
    /// ```ignore
    /// tx.insert_rows("tickets (id, serial)", rows, |row, values| {
    ///     values.bind(row.id).bind(row.serial.clone());
    /// })
    /// ```
    ///
    /// # Errors
    /// When the database refuses one of them; a transaction then inserts none.
    pub async fn insert_rows<R: Send>(
        &mut self,
        into: &str,
        rows: impl IntoIterator<Item = R>,
        bind: impl Fn(R, &mut Values<'_>) + Send,
    ) -> Result<()> {
        let columns = into.matches(',').count() + 1;
        let mut rows: Vec<R> = rows.into_iter().collect();
        while !rows.is_empty() {
            let rest = rows.split_off(rows.len().min(BINDS / columns));
            self.insert(into).values(rows, &bind).execute().await?;
            rows = rest;
        }
        Ok(())
    }
}
