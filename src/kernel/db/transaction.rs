//! Connections for reading, transactions and their retries.

use std::fmt;
use std::ops::{ControlFlow, Deref, DerefMut};
use std::time::{Duration, Instant};

use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use sqlx::{PgConnection, SqlSafeStr, SqliteConnection};

use super::pool::{ACQUIRE_TIMEOUT, PooledConnection};
use super::query::SqlQuery;
use super::transient;

/// Number of attempts to run a transaction. The error of the last one is returned to the caller.
const MAX_ATTEMPTS: u32 = 8;

/// Runs an expression in one transaction, commits it if it succeeds, and returns its result.
///
/// The first argument is the [`UnitOfWork`](crate::kernel::unit_of_work::UnitOfWork) of a [`Context`](crate::kernel::context::Context),
/// in which the commit follows with the response, its [`DryRun`](crate::kernel::unit_of_work::DryRun), which rolls back, or a
/// [`Db`](crate::kernel::db::Db), in which the commit is immediate.
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
/// The first argument is a [`UnitOfWork`](crate::kernel::unit_of_work::UnitOfWork). For large reads, such as reports and lists. Reads
/// that decide about a write belong to its transaction.
///
/// This is a macro for the same reason as `transaction!`.
macro_rules! read_from_standby {
    ($unit:expr, |$reader:ident| $work:expr) => {{
        let unit = &$unit;
        let mut may_use_standby = true;
        loop {
            let mut is_standby = false;
            let outcome: boxoffice_http::error::Result<_> = async {
                let standby = if may_use_standby { unit.standby().await? } else { None };
                is_standby = standby.is_some();
                let mut reader = match standby {
                    Some(reader) => reader,
                    None => unit.read().await?,
                };
                let $reader = &mut reader;
                $work
            }
            .await;
            match outcome {
                Err(error) if is_standby && unit.db().should_leave_standby(&error) => may_use_standby = false,
                outcome => break outcome,
            }
        }
    }};
}
pub(crate) use read_from_standby;

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

impl Reader {
    /// Ends what [`Db::read_snapshot`](super::Db::read_snapshot) or [`Db::begin`](super::Db::begin) has begun on this connection.
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
    pub fn query(&mut self, sql: &'static str) -> SqlQuery<'_> {
        match self {
            Self::Sqlite(pooled) => {
                pooled.statement = sql.into_sql_str();
                SqlQuery::Sqlite(pooled, sqlx::query(sql))
            }
            Self::Postgres(pooled) => {
                pooled.statement = sql.into_sql_str();
                SqlQuery::postgres(pooled, sqlx::query(sql))
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

/// A transaction.
///
/// On SQLite it holds the write lock from its beginning. On PostgreSQL its isolation level is the default, read committed. What a
/// [`Reader`] can do, it can do, too.
#[derive(Debug)]
pub struct Tx(Reader);

impl Tx {
    /// Wraps a connection on which a transaction was begun.
    pub(super) fn new(reader: Reader) -> Self {
        Self(reader)
    }

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

/// The reason to run a transaction again: another transaction has changed a row between a read without a lock and its lock, so that
/// the transaction has locked the wrong rows. It can't lock the right ones in addition, because that would break the lock order.
#[derive(Debug)]
pub struct StaleRead;

impl fmt::Display for StaleRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row was changed again and again before it could be locked")
    }
}

impl From<StaleRead> for Error {
    fn from(reason: StaleRead) -> Self {
        Self::Unavailable(anyhow::Error::msg(reason))
    }
}

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
            Err(error) if self.can_retry() && is_retryable(&error) => {
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

/// Returns whether the transaction may succeed if it is run again.
pub(super) fn is_retryable(error: &Error) -> bool {
    if matches!(error, Error::Unavailable(cause) if cause.is::<StaleRead>()) {
        return true;
    }
    if transient::is_outdated_connection(error) {
        return true;
    }
    let Some(sqlx::Error::Database(error)) = transient::cause(error) else { return false };
    match error.code().as_deref() {
        // PostgreSQL: serialization failure, deadlock; SQLite: busy and its extended forms.
        Some("40001" | "40P01" | "5" | "261" | "517") => true,
        // SQLite: a primary key. A command and the server generated the same identifier; the next attempt has another one.
        Some("1555") => true,
        // Two servers generated the same identifier; the next attempt has another one.
        Some("23505") => error.constraint().is_some_and(|name| name.ends_with("_pkey")),
        _ => false,
    }
}
