//! Versions of the database: if two reads see the same version, nothing was committed in between.

use std::time::Instant;

use boxoffice_http::error::Result;
use boxoffice_http::traces::Span;

use super::query::Scalar;
use super::transaction::Reader;
use super::transient::database_error;

/// A version of the committed data. Reads of equal versions return the same data.
#[derive(Debug, PartialEq, Eq)]
pub struct DbVersion {
    /// On SQLite, the time at which the connection was opened. Each connection counts the commits of all others by itself.
    connection: Option<Instant>,
    /// SQLite's count of commits, or PostgreSQL's snapshot: the transactions whose changes are visible.
    token: String,
}

/// A connection that reads data together with their [`DbVersion`].
pub struct VersionReader(pub(super) Reader);

impl VersionReader {
    /// Reads a value from a table with one row. Returns it with the version that it was read from.
    pub async fn scalar_with_version<T: Scalar>(&mut self, column: &str, table: &str) -> Result<(T, DbVersion)> {
        let (connection, token) = match &self.0 {
            Reader::Sqlite(pooled) => (Some(pooled.created_at()), "(select cast(data_version as text) from pragma_data_version)"),
            // The start time distinguishes servers: a promoted standby may assign the same numbers to other transactions.
            Reader::Postgres(_) => (None, "concat(pg_postmaster_start_time(), ' ', pg_current_snapshot())"),
        };
        let rows: Vec<(T, String)> = self.0.select(&format!("{column}, {token} from {table}")).all().await?;
        let (value, token) = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound).map_err(database_error)?;
        Ok((value, DbVersion { connection, token }))
    }

    /// Returns it with a span below which its statements have their spans.
    #[must_use]
    pub fn traced(self, span: &Span) -> Self {
        Self(self.0.traced(span))
    }

    /// Returns the connection for other reads.
    pub fn reader(&mut self) -> &mut Reader {
        &mut self.0
    }
}
