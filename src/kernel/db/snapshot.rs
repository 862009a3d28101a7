//! How a database tells that it is as it was.

use std::time::Instant;

use boxoffice_http::error::Result;

use super::query::Scalar;
use super::transaction::Tx;
use super::transient::database_error;

/// What is committed at a moment. Whatever is read of two equal snapshots is the same.
#[derive(Debug, PartialEq, Eq)]
pub struct DbVersion {
    /// SQLite counts the commits that a connection has seen of others. One connection is asked, and this is when it was made.
    connection: Option<Instant>,
    /// That count, or which PostgreSQL lets which transactions be seen.
    told: String,
}

/// A connection that can tell its [`Snapshot`].
pub struct SnapshotReader(pub(super) Tx);

impl SnapshotReader {
    /// A value of a table of one row, and the snapshot that it was read of.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn scalar_in_snapshot<T: Scalar>(&mut self, column: &str, table: &str) -> Result<(T, DbVersion)> {
        let (connection, told) = match &self.0 {
            Tx::Sqlite(lent) => (Some(lent.created_at()), "(select cast(data_version as text) from pragma_data_version)"),
            // A standby that has taken over may give numbers once more to other transactions.
            Tx::Postgres(_) => (None, "concat(pg_postmaster_start_time(), ' ', pg_current_snapshot())"),
        };
        let rows: Vec<(T, String)> = self.0.select(&format!("{column}, {told} from {table}")).all().await?;
        let (value, told) = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound).map_err(database_error)?;
        Ok((value, DbVersion { connection, told }))
    }

    /// The connection, to read anything else.
    pub fn tx(&mut self) -> &mut Tx {
        &mut self.0
    }
}
