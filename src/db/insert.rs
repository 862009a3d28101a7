//! An `INSERT` of many rows in one statement.

use sqlx::query_builder::Separated;
use sqlx::{Postgres, Sqlite};

use super::outage::in_time;
use super::pool::Tx;
use super::query::Param;
use super::statement::Statement;
use crate::error::Result;

/// Values that one statement may bind: SQLite allows 32766, PostgreSQL 65535.
const BINDS: usize = 30_000;

/// The values of one row, bound in the order of the columns.
pub enum Values<'a> {
    /// On the embedded database.
    Sqlite(Separated<'a, Sqlite, &'static str>),
    /// On PostgreSQL.
    Postgres(Separated<'a, Postgres, &'static str>),
}

impl Values<'_> {
    /// Binds the next column's value.
    pub fn bind<T: for<'q> Param<'q>>(&mut self, value: T) -> &mut Self {
        match self {
            Self::Sqlite(row) => {
                row.push_bind(value);
            }
            Self::Postgres(row) => {
                row.push_bind(value);
            }
        }
        self
    }
}

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
            match self.build("insert into ", &format!("{into} ")) {
                Statement::Sqlite(connection, mut query) => {
                    query.push_values(rows, |values, row| bind(row, &mut Values::Sqlite(values)));
                    query.build().execute(connection).await?;
                }
                Statement::Postgres(connection, mut query) => {
                    query.push_values(rows, |values, row| bind(row, &mut Values::Postgres(values)));
                    in_time(query.build().execute(connection)).await?;
                }
            }
            rows = rest;
        }
        Ok(())
    }
}
