//! The database: its connection pools and its checkpoints.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use boxoffice_http::error::{Error, Result};
use slog::Logger;
use sqlx::{PgConnection, SqliteConnection};

use super::checkpoint::Checkpoints;
use super::database_log::DatabaseLog;
use super::db_version::VersionReader;
use super::metrics::{DatabaseMetrics, PoolStatus};
use super::pool::Pool;
use super::standby::Standby;
use super::transaction::{Reader, Tx};

/// A database of either kind, with its connection pools.
#[derive(Debug, Clone)]
pub enum Db {
    /// The embedded database: several readers and one writer. Transactions of this process wait in the writer's pool and not for
    /// the lock of the file.
    Sqlite {
        /// Read-only connections.
        readers: Pool<SqliteConnection>,
        /// The only connection that writes.
        writer: Pool<SqliteConnection>,
        /// The only connection that reads versions. It is read-only.
        version_pool: Pool<SqliteConnection>,
        /// The checkpoints of the write-ahead log.
        checkpoints: Arc<Checkpoints>,
    },
    /// A server, which several programs can share.
    Postgres {
        /// Connections for everything but preconditions.
        pool: Pool<PgConnection>,
        /// Separate pool for the checks of preconditions, which take no locks. With the main pool, a check could time out: every
        /// connection may belong to a transaction that waits for the locks of the transaction that is being checked.
        precondition_pool: Pool<PgConnection>,
        /// The standby for reads, if there is one.
        standby: Option<Arc<Standby>>,
    },
}

impl Db {
    /// Returns a connection for reading.
    ///
    /// # Errors
    /// Returns an error if no connection is free in time.
    pub async fn read(&self) -> Result<Reader> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Reader::Sqlite(readers.acquire().await?),
            Self::Postgres { pool, .. } => Reader::Postgres(pool.acquire_for_reading().await?),
        })
    }

    /// Returns a connection for reading on which all statements see what is committed when the first one begins. [`Reader::end`] ends it.
    ///
    /// # Errors
    /// Returns an error if no connection is free in time.
    pub async fn read_snapshot(&self) -> Result<Reader> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Reader::Sqlite(readers.begin("begin").await?),
            Self::Postgres { pool, .. } => Reader::Postgres(pool.begin("begin isolation level repeatable read read only").await?),
        })
    }

    /// Returns a connection to the standby that shows everything that was acknowledged before the call, if there is one. Use
    /// `read_from_standby!`, which reads from the primary otherwise.
    ///
    /// # Errors
    /// Returns an error if the primary fails.
    pub async fn read_standby(&self) -> Result<Option<Reader>> {
        match self {
            Self::Postgres { pool, standby: Some(standby), .. } => standby.read(pool).await,
            _ => Ok(None),
        }
    }

    /// Returns whether a read that failed with this error on the standby is to be run on the primary.
    pub fn should_leave_standby(&self, error: &Error) -> bool {
        matches!(self, Self::Postgres { standby: Some(standby), .. } if standby.should_leave(error))
    }

    /// Returns the folder of an embedded database.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Sqlite { checkpoints, .. } => Some(checkpoints.folder()),
            Self::Postgres { .. } => None,
        }
    }

    /// Lets reads use the standby, if there is one and it has caught up.
    ///
    /// # Errors
    /// Returns an error if the primary fails.
    pub async fn watch_standby(&self) -> Result<()> {
        match self {
            Self::Postgres { pool, standby: Some(standby), .. } => standby.watch(pool).await,
            _ => Ok(()),
        }
    }

    /// Returns a connection for the reads of a precondition. On PostgreSQL they have a pool of their own: with the main pool,
    /// requests could wait for each other when every connection holds a transaction whose precondition is being checked.
    pub async fn read_for_precondition(&self) -> Result<Reader> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Reader::Sqlite(readers.acquire().await?),
            Self::Postgres { precondition_pool, .. } => Reader::Postgres(precondition_pool.acquire_for_reading().await?),
        })
    }

    /// Returns a connection for reading data together with its version. It belongs to no unit of work.
    ///
    /// # Errors
    /// Returns an error if no connection is free in time.
    pub async fn version_reader(&self) -> Result<VersionReader> {
        Ok(VersionReader(match self {
            Self::Sqlite { version_pool, .. } => Reader::Sqlite(version_pool.acquire().await?),
            Self::Postgres { pool, .. } => Reader::Postgres(pool.acquire_for_reading().await?),
        }))
    }

    /// Begins a transaction; on SQLite it holds the write lock from here on. Use `transaction!`, which also retries.
    ///
    /// # Errors
    /// Returns an error if no connection is free in time, or another process holds SQLite's write lock for too long.
    pub async fn begin(&self) -> Result<Tx> {
        Ok(Tx::new(match self {
            Self::Sqlite { writer, .. } => Reader::Sqlite(writer.begin("begin immediate").await?),
            Self::Postgres { pool, .. } => Reader::Postgres(pool.begin("begin").await?),
        }))
    }

    /// Commits a transaction; see [`Tx::commit`].
    ///
    /// # Errors
    /// Returns an error if the database rejects the commit, or the connection is lost.
    pub async fn commit(&self, tx: Tx) -> Result<()> {
        tx.commit().await
    }

    /// Copies SQLite's write-ahead log (WAL) into the database file while transactions are committed, and returns the number of pages
    /// that were copied. Does nothing on PostgreSQL.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub async fn checkpoint(&self) -> Result<u64> {
        match self {
            Self::Sqlite { checkpoints, .. } => checkpoints.checkpoint().await,
            Self::Postgres { .. } => Ok(0),
        }
    }

    /// Copies SQLite's WAL into the database file and empties it: the WAL keeps the earlier content of changed rows.
    /// Returns false if a reader prevented it; it doesn't wait for any. Does nothing on PostgreSQL.
    ///
    /// # Errors
    /// Returns an error if no connection is free in time.
    pub async fn truncate_wal(&self) -> Result<bool> {
        let Self::Sqlite { writer, .. } = self else { return Ok(true) };
        let mut connection = Reader::Sqlite(writer.acquire().await?);
        let _set: Option<(i64,)> = connection.query("pragma busy_timeout = 0").optional().await?;
        let truncated = connection.query("pragma wal_checkpoint(truncate)").optional::<(i64, i64, i64)>().await;
        let _reset: Option<(i64,)> = connection.query("pragma busy_timeout = 5000").optional().await?;
        Ok(truncated?.is_some_and(|(is_busy, _, _)| is_busy == 0))
    }

    /// Sets the log of the pools, and the time from which a statement is logged as slow.
    pub fn set_log(&self, log: Logger, slow_statement: Option<Duration>) {
        // Only the first log is used: the kernel sets it once, when it opens the database.
        let _first = self.metrics().log.set(DatabaseLog::new(log, slow_statement));
    }

    /// The metrics of the database.
    pub fn metrics(&self) -> &Arc<DatabaseMetrics> {
        match self {
            Self::Sqlite { writer, .. } => writer.metrics(),
            Self::Postgres { pool, .. } => pool.metrics(),
        }
    }

    /// Returns the connections of each pool at the moment.
    pub fn pools(&self) -> Vec<PoolStatus> {
        match self {
            Self::Sqlite { readers, writer, version_pool, checkpoints } => vec![
                readers.status("readers"),
                writer.status("writer"),
                version_pool.status("versions"),
                checkpoints.pool.status("checkpoints"),
            ],
            Self::Postgres { pool, precondition_pool, standby } => {
                [pool.status("main"), precondition_pool.status("preconditions")]
                    .into_iter()
                    .chain(standby.iter().map(|standby| standby.pool().status("standby")))
                    .collect()
            }
        }
    }

    /// Closes all connections. SQLite then copies its WAL into the database file.
    pub async fn close(&self) {
        match self {
            Self::Sqlite { readers, writer, version_pool, checkpoints } => {
                readers.close().await;
                version_pool.close().await;
                checkpoints.pool.close().await;
                writer.close().await;
            }
            Self::Postgres { pool, precondition_pool, standby } => {
                pool.close().await;
                precondition_pool.close().await;
                if let Some(standby) = standby {
                    standby.pool().close().await;
                }
            }
        }
    }
}
