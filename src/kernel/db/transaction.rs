//! The database: its connection pools, its transactions and their retries.

use std::ops::{ControlFlow, Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use sqlx::{PgConnection, SqlSafeStr, SqliteConnection};

use super::checkpoint::Checkpoints;
use super::db_version::VersionReader;
use super::metrics::{DatabaseMetrics, PoolStatus};
use super::pool::{ACQUIRE_TIMEOUT, Pool, PooledConnection};
use super::query::Query;
use super::standby::Standby;
use super::{transient, violation};

/// Number of attempts to run a transaction. The error of the last one is returned to the caller.
const MAX_ATTEMPTS: u32 = 8;

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

/// A connection for reading. Each statement on it sees everything that is committed when it begins.
///
/// A function that only reads takes one. Its callers can give it their [`Tx`] instead. It must not lock rows: on a connection without
/// a transaction, the locks end with the statement.
#[derive(Debug)]
pub enum Reader {
    /// On the embedded database.
    Sqlite(PooledConnection<SqliteConnection>),
    /// On PostgreSQL.
    Postgres(PooledConnection<PgConnection>),
}

/// A transaction.
///
/// On SQLite it holds the write lock from its beginning. On PostgreSQL its isolation level is the default, read committed. What a
/// [`Reader`] can do, it can do, too.
#[derive(Debug)]
pub struct Tx(Reader);

/// The number of attempts to run a transaction, and the start of the first one.
#[derive(Debug)]
pub struct RetryState {
    attempts: u32,
    started: Instant,
}

impl RetryState {
    /// Returns the state of the first attempt.
    pub fn first() -> Self {
        Self { attempts: 1, started: Instant::now() }
    }

    /// Returns whether a transaction with this outcome is to be run again, after a short pause; otherwise returns the outcome.
    pub async fn should_retry<T>(&mut self, outcome: Result<T>) -> ControlFlow<Result<T>> {
        match outcome {
            Err(error) if self.can_retry() && violation::is_transient(&error) => {
                let jitter = u64::from(rand::random::<u8>() % 8);
                tokio::time::sleep(Duration::from_millis((1 << self.attempts) + jitter)).await;
                self.attempts += 1;
                ControlFlow::Continue(())
            }
            outcome => ControlFlow::Break(outcome),
        }
    }

    fn can_retry(&self) -> bool {
        self.attempts < MAX_ATTEMPTS && self.started.elapsed() < ACQUIRE_TIMEOUT
    }
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
        Ok(Tx(match self {
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

/// Runs an expression in one transaction, commits it if it succeeds, and returns its result.
///
/// The first argument is the [`UnitOfWork`](crate::kernel::unit_of_work::UnitOfWork) of a [`Context`](crate::kernel::context::Context),
/// in which the commit follows with the response, its [`DryRun`](crate::kernel::unit_of_work::DryRun), which rolls back, or a [`Db`], in which
/// the commit is immediate.
///
/// If another attempt may succeed (busy, deadlock, [`StaleRead`](crate::kernel::db::StaleRead), the same new identifier on two
/// servers), the expression is run again from its beginning. So it must not have effects outside the transaction.
///
/// This is a macro because the compiler does not accept the future of a function that takes an async closure as `Send`
/// (rust-lang/rust#110338).
macro_rules! transaction {
    ($unit:expr, |$tx:ident| $work:expr) => {{
        let unit = &$unit;
        let mut retries = $crate::kernel::db::RetryState::first();
        loop {
            let outcome: boxoffice_http::error::Result<_> = async {
                let mut begun = unit.begin().await?;
                let $tx = &mut begun;
                let value = $work?;
                unit.commit(begun).await?;
                Ok(value)
            }
            .await;
            if let std::ops::ControlFlow::Break(outcome) = retries.should_retry(outcome).await {
                break outcome;
            }
        }
    }};
}
pub(crate) use transaction;

/// Runs an expression that only reads on the standby, if the database has one that shows everything that was acknowledged before, and
/// otherwise on the primary. If the standby fails, the expression is run again on the primary.
///
/// The first argument is a [`UnitOfWork`](crate::kernel::unit_of_work::UnitOfWork). For large reads, such as reports and lists. Reads that decide
/// about a write belong to its transaction.
///
/// This is a macro for the same reason as `transaction!`.
macro_rules! read_from_standby {
    ($unit:expr, |$tx:ident| $work:expr) => {{
        let unit = &$unit;
        let mut standby = unit.standby().await?;
        loop {
            let is_standby = standby.is_some();
            let outcome: boxoffice_http::error::Result<_> = async {
                let mut reader = match standby.take() {
                    Some(reader) => reader,
                    None => unit.read().await?,
                };
                let $tx = &mut reader;
                $work
            }
            .await;
            match outcome {
                Err(error) if is_standby && unit.db().should_leave_standby(&error) => {}
                outcome => break outcome,
            }
        }
    }};
}
pub(crate) use read_from_standby;

impl Tx {
    /// Makes the changes durable. A transaction that is dropped instead is rolled back.
    ///
    /// # Errors
    /// Returns an error if the database rejects the commit; then nothing was changed. If the connection is lost meanwhile, the
    /// outcome is unknown.
    pub async fn commit(self) -> Result<()> {
        self.0.end().await
    }

    /// Returns it with a span below which its statements have their spans.
    #[must_use]
    pub fn traced(self, span: &Span) -> Self {
        Self(self.0.traced(span))
    }
}

impl Deref for Tx {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.0
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Reader {
        &mut self.0
    }
}

impl Reader {
    /// Ends what [`Db::read_snapshot`] or [`Db::begin`] has begun on this connection.
    ///
    /// # Errors
    /// Returns an error if the database rejects it, or the connection is lost.
    pub async fn end(self) -> Result<()> {
        let committed = match self {
            Self::Sqlite(connection) => connection.commit().await,
            Self::Postgres(connection) => connection.commit().await,
        };
        committed.map_err(transient::commit_error)
    }

    /// Begins a statement. Its text is the same on both databases, with `$1`, `$2` … as placeholders.
    pub fn query(&mut self, sql: &'static str) -> Query<'_> {
        match self {
            Self::Sqlite(pooled) => {
                pooled.statement = sql.into_sql_str();
                Query::Sqlite(pooled, sqlx::query(sql))
            }
            Self::Postgres(pooled) => {
                pooled.statement = sql.into_sql_str();
                Query::postgres(pooled, sqlx::query(sql))
            }
        }
    }

    /// Returns it with a span below which its statements have their spans.
    #[must_use]
    pub fn traced(mut self, span: &Span) -> Self {
        match &mut self {
            Self::Sqlite(pooled) => pooled.set_span(span),
            Self::Postgres(pooled) => pooled.set_span(span),
        }
        self
    }

    /// Returns whether the database is PostgreSQL, for the few statements whose text must differ.
    pub fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}
