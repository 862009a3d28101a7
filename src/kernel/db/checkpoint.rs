//! Checkpoints of SQLite: they copy its write-ahead log (WAL) into the database file.
//!
//! The commit after which the WAL has [`CHECKPOINT_PAGES`] pages copies them all before it returns, and every request of its batch
//! waits. So a job copies them on a connection of its own meanwhile, and leaves little to that commit. The job can't replace it:
//! SQLite writes from the start of the WAL again only when all of it has been copied, and under load pages are added all the time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use boxoffice_http::error::Result;
use sqlx::SqliteConnection;

use super::pool::Pool;
use super::transaction::Reader;
use crate::kernel::private_files;

/// Number of pages in the WAL, of 4 KiB each, after which a commit copies them. SQLite's default is 1,000. A page that many
/// requests change, such as a section's, is copied once.
pub(super) const CHECKPOINT_PAGES: &str = "16000";
/// Size of a WAL that is left to the commits.
const SMALL_WAL_BYTES: u64 = 4 << 20;

/// Runs checkpoints on a connection of its own.
#[derive(Debug)]
pub struct Checkpoints {
    pub(super) pool: Pool<SqliteConnection>,
    /// The file of the WAL.
    wal: PathBuf,
    /// Number of pages of the WAL that were copied when the last checkpoint ended.
    copied: AtomicI64,
}

impl Checkpoints {
    pub(super) fn new(pool: Pool<SqliteConnection>, wal: PathBuf) -> Self {
        Self { pool, wal, copied: AtomicI64::new(0) }
    }

    /// Returns the folder of the database.
    pub(super) fn folder(&self) -> &Path {
        private_files::folder_of(&self.wal)
    }

    /// Copies what has been committed, as far as no reader needs the earlier pages, and returns the number of pages. No request waits
    /// for it.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub(super) async fn checkpoint(&self) -> Result<u64> {
        if fs::metadata(&self.wal).map_or(0, |wal| wal.len()) < SMALL_WAL_BYTES {
            return Ok(0);
        }
        let mut connection = Reader::Sqlite(self.pool.acquire().await?);
        // The columns: 1 if a commit is running a checkpoint just now, the pages of the WAL, and those that are copied.
        let state = connection.query("pragma wal_checkpoint(passive)").optional::<(i64, i64, i64)>().await?;
        let copied = state.map_or(0, |(_, _, copied)| copied.max(0));
        let before = self.copied.swap(copied, Ordering::Relaxed);
        // SQLite writes from the start of the WAL again if fewer are copied than before.
        let added = if copied < before { copied } else { copied - before };
        Ok(u64::try_from(added).unwrap_or(0))
    }
}
