//! Pools and transactions.

use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use boxoffice_http::error::Result;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{PgConnection, SqliteConnection};

use super::pool::{ACQUIRE_TIMEOUT, Pool, PooledConnection};
use super::query::Query;
use super::snapshot::SnapshotReader;
use super::{transient, violation};

/// How often a transaction is run before the database's refusal is given to the caller.
const ATTEMPTS: u32 = 8;

/// Either database.
#[derive(Debug, Clone)]
pub enum Db {
    /// The embedded one: any number of readers beside one writer, whose turn is waited for here and not in the file.
    Sqlite {
        /// Read-only connections.
        readers: Pool<SqliteConnection>,
        /// The one connection that writes.
        writer: Pool<SqliteConnection>,
        /// The one, read-only too, that is asked for snapshots.
        observer: Pool<SqliteConnection>,
    },
    /// A server that several programs can share.
    Postgres {
        /// The connections of all that goes on.
        pool: Pool<PgConnection>,
        /// Those by which a transaction's condition is asked about. They wait for no lock; one of the others might not be had
        /// before those who wait for this transaction's locks give up.
        precondition_pool: Pool<PgConnection>,
    },
}

/// A transaction: on SQLite it holds the write lock from its beginning, on PostgreSQL its level is the default, read committed. Or a
/// connection for reading, on which each statement sees what is committed when it begins.
#[derive(Debug)]
pub enum Tx {
    /// On the embedded database.
    Sqlite(PooledConnection<SqliteConnection>),
    /// On PostgreSQL.
    Postgres(PooledConnection<PgConnection>),
}

/// How often a transaction has been run, and since when.
#[derive(Debug)]
pub struct RetryState {
    made: u32,
    since: Instant,
}

impl RetryState {
    /// The first.
    pub fn first() -> Self {
        Self { made: 1, since: Instant::now() }
    }

    fn may_go_on(&self) -> bool {
        self.made < ATTEMPTS && self.since.elapsed() < ACQUIRE_TIMEOUT
    }
}

impl Db {
    /// Opens the database at `url` (`sqlite:PATH` or `postgres://…`), makes the embedded one where it is absent,
    /// and brings its tables up to date.
    pub async fn open(url: &str) -> anyhow::Result<Self> {
        let db = match url.split_once(':') {
            Some(("sqlite", path)) => Self::open_sqlite(path.trim_start_matches("//"))?,
            Some(("postgres" | "postgresql", _)) => {
                let options = PgConnectOptions::from_str(url).context("the database's address cannot be read")?;
                Self::Postgres { pool: Pool::of(options.clone(), 16)?, precondition_pool: Pool::of(options, 2)? }
            }
            _ => bail!("a database is sqlite:PATH or postgres://USER@HOST/NAME"),
        };
        match &db {
            Self::Sqlite { writer, .. } => {
                let mut writer = writer.connect().await.with_context(|| format!("cannot open {url}"))?;
                sqlx::migrate!("migrations/sqlite").run(&mut *writer).await
            }
            Self::Postgres { pool, .. } => {
                let mut connection = pool.connect().await.context("cannot reach PostgreSQL")?;
                sqlx::migrate!("migrations/postgres").run(&mut *connection).await
            }
        }
        .context("cannot bring the database's tables up to date")?;
        Ok(db)
    }

    fn open_sqlite(path: &str) -> anyhow::Result<Self> {
        if let Some(folder) = Path::new(path).parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5));
        let writer = Pool::of(options.clone(), 1)?;
        let reading = options.read_only(true);
        Ok(Self::Sqlite { writer, readers: Pool::of(reading.clone(), 8)?, observer: Pool::of(reading, 1)? })
    }

    /// Returns a connection for reading.
    ///
    /// # Errors
    /// When none is free in time.
    pub async fn read(&self) -> Result<Tx> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Tx::Sqlite(readers.acquire().await?),
            Self::Postgres { pool, .. } => Tx::Postgres(pool.acquire().await?),
        })
    }

    /// Returns a connection for the reads of a precondition. On PostgreSQL they have a pool of their own: with the main pool,
    /// requests could wait for each other when every connection holds a transaction whose precondition is being checked.
    pub(super) async fn read_for_precondition(&self) -> Result<Tx> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Tx::Sqlite(readers.acquire().await?),
            Self::Postgres { precondition_pool, .. } => Tx::Postgres(precondition_pool.acquire().await?),
        })
    }

    /// A connection for reading, outside of all requests.
    ///
    /// # Errors
    /// When no connection can be had.
    pub async fn snapshot_reader(&self) -> Result<SnapshotReader> {
        Ok(SnapshotReader(match self {
            Self::Sqlite { observer, .. } => Tx::Sqlite(observer.acquire().await?),
            Self::Postgres { pool, .. } => Tx::Postgres(pool.acquire().await?),
        }))
    }

    /// Begins a transaction; on SQLite it holds the write lock from here on. Use `transaction!`, which also retries.
    ///
    /// # Errors
    /// When no connection is free in time, or another process holds SQLite's write lock for too long.
    pub async fn begin(&self) -> Result<Tx> {
        Ok(match self {
            Self::Sqlite { writer, .. } => Tx::Sqlite(writer.begin("begin immediate").await?),
            Self::Postgres { pool, .. } => Tx::Postgres(pool.begin("begin").await?),
        })
    }

    /// Commits a transaction; see [`Tx::commit`].
    ///
    /// # Errors
    /// When the database rejects it, or the connection is lost.
    pub async fn commit(&self, tx: Tx) -> Result<()> {
        tx.commit().await
    }

    /// Whether a transaction that ended like this is to be run again: waits a moment and says so, or gives the outcome back.
    pub async fn should_retry<T>(&self, outcome: Result<T>, attempts: &mut RetryState) -> ControlFlow<Result<T>> {
        match outcome {
            Err(error) if attempts.may_go_on() && violation::is_transient(&error) => {
                let jitter = u64::from(rand::random::<u8>() % 8);
                tokio::time::sleep(Duration::from_millis((1 << attempts.made) + jitter)).await;
                attempts.made += 1;
                ControlFlow::Continue(())
            }
            outcome => ControlFlow::Break(outcome),
        }
    }

    /// Closes every connection; a write-ahead log is folded into the embedded database's file.
    pub async fn close(&self) {
        match self {
            Self::Sqlite { readers, writer, observer } => {
                readers.close().await;
                observer.close().await;
                writer.close().await;
            }
            Self::Postgres { pool, precondition_pool: beside } => {
                pool.close().await;
                beside.close().await;
            }
        }
    }
}

/// Runs an expression in one transaction, commits it if it succeeds, and returns its result.
///
/// The first argument is the [`UnitOfWork`](crate::kernel::db::UnitOfWork) of a [`Context`](crate::kernel::context::Context),
/// in which the commit follows with the response, or a [`Db`], in which it is immediate.
///
/// If the database reports that another attempt may succeed (busy, deadlock, an identifier that two servers drew), the expression
/// is run again from its beginning, so it may have no effect but through the transaction.
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
            if let std::ops::ControlFlow::Break(outcome) = unit.should_retry(outcome, &mut retries).await {
                break outcome;
            }
        }
    }};
}
pub(crate) use transaction;

impl Tx {
    /// Makes the changes durable. A transaction that is dropped instead is rolled back.
    ///
    /// # Errors
    /// When the database rejects the commit; then nothing was changed. When the connection is lost meanwhile, the outcome is
    /// unknown.
    pub async fn commit(self) -> Result<()> {
        let committed = match self {
            Self::Sqlite(connection) => connection.commit().await,
            Self::Postgres(connection) => connection.commit().await,
        };
        committed.map_err(transient::commit_error)
    }

    /// Begins a statement; its text is the same on both databases, with `$1`, `$2` … for what is bound.
    pub fn query(&mut self, sql: &'static str) -> Query<'_> {
        match self {
            Self::Sqlite(lent) => Query::Sqlite(lent, sqlx::query(sql)),
            Self::Postgres(lent) => Query::Postgres(lent, sqlx::query(sql)),
        }
    }

    /// Whether this is PostgreSQL, for the few statements whose text must differ.
    pub fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}
