//! Checkpoints of SQLite: copies of its write-ahead log into the database file.
//!
//! The commit after which the log has [`CHECKPOINT_PAGES`] pages copies them all before it returns, and every request of its batch
//! waits. So a job copies them on a connection of its own meanwhile, and leaves little to that commit. The job can't replace it:
//! the log begins again only when all of it has been copied, and under load pages are added all the time.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};

use boxoffice_http::error::Result;
use sqlx::SqliteConnection;

use super::pool::Pool;
use super::transaction::Tx;

/// Number of pages in the write-ahead log, of 4 KiB each, after which a commit copies them. SQLite's default is 1,000. A page that many
/// requests change, such as a section's, is copied once.
pub(super) const CHECKPOINT_PAGES: &str = "16000";
/// Size of a log that is left to the commits.
const SMALL_LOG_BYTES: u64 = 4 << 20;

/// Copies the write-ahead log on a connection of its own.
#[derive(Debug)]
pub struct Checkpoints {
    pub(super) pool: Pool<SqliteConnection>,
    log: PathBuf,
    /// Number of pages of the log that were copied when the last call ended.
    copied: AtomicI64,
}

impl Checkpoints {
    pub(super) fn new(pool: Pool<SqliteConnection>, log: PathBuf) -> Self {
        Self { pool, log, copied: AtomicI64::new(0) }
    }

    /// Copies what has been committed, as far as no reader needs the earlier pages, and returns the number of pages. No request waits
    /// for it.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub(super) async fn copy_log(&self) -> Result<u64> {
        if fs::metadata(&self.log).map_or(0, |log| log.len()) < SMALL_LOG_BYTES {
            return Ok(0);
        }
        let mut connection = Tx::Sqlite(self.pool.acquire().await?);
        // Whether a commit is copying the log just now, the pages of the log, and those that are copied.
        let state = connection.query("pragma wal_checkpoint(passive)").optional::<(i64, i64, i64)>().await?;
        let copied = state.map_or(0, |(_, _, copied)| copied.max(0));
        let before = self.copied.swap(copied, Ordering::Relaxed);
        // The log has begun again if fewer are copied than before.
        let added = if copied < before { copied } else { copied - before };
        Ok(u64::try_from(added).unwrap_or(0))
    }
}
