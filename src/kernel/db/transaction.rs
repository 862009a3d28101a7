//! Pools and transactions.

use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{PgConnection, SqliteConnection};

use super::pool::{ACQUIRE_TIMEOUT, Pool, PooledConnection};
use super::query::Query;
use super::snapshot::SnapshotReader;
use super::{precondition, transient, unit_of_work, violation};
use boxoffice_http::error::Result;

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
                let mut writer = writer.acquire().await.with_context(|| format!("cannot open {url}"))?;
                sqlx::migrate!("migrations/sqlite").run(&mut *writer).await
            }
            Self::Postgres { pool, .. } => {
                let mut connection = pool.acquire().await.context("cannot reach PostgreSQL")?;
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

    /// A connection for reading. What the request has done so far is committed first, so that it is seen.
    ///
    /// # Errors
    /// When no connection can be had.
    pub async fn read(&self) -> Result<Tx> {
        unit_of_work::commit_now().await?;
        Ok(match self {
            Self::Sqlite { readers, .. } => Tx::Sqlite(readers.acquire().await?),
            Self::Postgres { precondition_pool: beside, .. } if precondition::is_asking() => Tx::Postgres(beside.acquire().await?),
            Self::Postgres { pool, .. } => Tx::Postgres(pool.acquire().await?),
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

    /// Begins a transaction; on SQLite it holds the write lock from here on. `transaction!` is the way to use it.
    ///
    /// # Errors
    /// When no connection can be had, another process holds SQLite's write lock for longer than is waited, or something that is
    /// to come first in the request's [`Unit`](super::Unit) stands against it.
    pub async fn begin(&self) -> Result<Tx> {
        unit_of_work::commit_now().await?;
        let mut tx = match self {
            Self::Sqlite { writer, .. } => Tx::Sqlite(writer.begin("begin immediate").await?),
            Self::Postgres { pool, .. } => Tx::Postgres(pool.begin("begin").await?),
        };
        unit_of_work::open(&mut tx).await?;
        Ok(tx)
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

/// Runs an expression in one transaction, commits it when it succeeds, and gives its result. In a request's
/// [`Unit`](crate::kernel::db::Unit) the commit comes with the answer.
///
/// When the database says that running it again may succeed (busy, deadlock, an identifier that two servers drew), it is run
/// again from its beginning, so it may have no effect but through the transaction.
///
/// A macro, because the compiler can't yet see that the future of a function taking an async closure may cross threads
/// (rust-lang/rust#110338).
macro_rules! transaction {
    ($db:expr, |$tx:ident| $work:expr) => {{
        let db: &$crate::kernel::db::Db = &$db;
        let mut attempts = $crate::kernel::db::RetryState::first();
        loop {
            let outcome: $boxoffice_http::error::Result<_> = async {
                let mut begun = db.begin().await?;
                let $tx = &mut begun;
                let value = $work?;
                begun.commit().await?;
                Ok(value)
            }
            .await;
            if let std::ops::ControlFlow::Break(outcome) = db.should_retry(outcome, &mut attempts).await {
                break outcome;
            }
        }
    }};
}
pub(crate) use transaction;

impl Tx {
    /// Makes what was done durable; in a request's [`Unit`](super::Unit), once that is answered. A transaction that is dropped instead leaves
    /// nothing behind.
    ///
    /// # Errors
    /// When the database refuses, or the [`Condition`](super::Condition) of the request isn't met: then nothing was done. When the
    /// database is lost meanwhile: then nobody can tell.
    pub async fn commit(self) -> Result<()> {
        precondition::ask().await?;
        if let Some(tx) = unit_of_work::defer_commit(self) {
            tx.commit_immediately().await?;
        }
        precondition::mark_satisfied();
        Ok(())
    }

    /// Makes what was done durable at once.
    pub(super) async fn commit_immediately(self) -> Result<()> {
        let committed = match self {
            Self::Sqlite(lent) => lent.commit().await,
            Self::Postgres(lent) => lent.commit().await,
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
