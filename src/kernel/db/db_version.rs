//! Versions of the database: if two reads see the same version, nothing was committed in between.

use std::time::Instant;

use boxoffice_http::error::Result;
use boxoffice_http::traces::Span;

use super::transaction::Reader;

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
    /// Returns the number of changes of API keys, with the version that it was read from.
    pub async fn key_changes_with_version(&mut self) -> Result<(i64, DbVersion)> {
        let (connection, statement) = match &self.0 {
            Reader::Sqlite(pooled) => (
                Some(pooled.created_at()),
                "select count, (select cast(data_version as text) from pragma_data_version) from key_changes",
            ),
            // The start time distinguishes servers: a promoted standby may assign the same numbers to other transactions.
            Reader::Postgres(_) => {
                (None, "select count, concat(pg_postmaster_start_time(), ' ', pg_current_snapshot()) from key_changes")
            }
        };
        let (changes, token) = self.0.query(statement).one().await?;
        Ok((changes, DbVersion { connection, token }))
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
