//! A pool of database connections.
//!
//! `sqlx::Pool` pings a connection on release, which doubles the round trips of a short statement. The ping has no timeout, so a
//! silently dropped connection would occupy its slot for ever. This pool pings only a connection that was idle for a while or
//! whose last operation has not succeeded, and every ping has a timeout.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use deadpool::managed::{self, Manager, Metrics, Object, PoolError, QueueMode, RecycleError, RecycleResult};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use slog::{info, warn};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, Executor, PgConnection, SqlSafeStr, SqlStr, SqliteConnection};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::connection_permits::ConnectionPermits;
use super::metrics::{DatabaseMetrics, PoolStatus};
use super::open_errors;
use super::statement_span::statement_span;
use super::transient::{
    database_error, is_closed_connection, is_outdated_connection, is_starting, is_too_many_connections, with_timeout,
};

/// Time limit for acquiring a connection, except to a standby. It applies when all connections are in use and when the server is
/// unreachable.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a ping or a rollback. Short, because the pool can open a new connection instead. It is also the idle time after
/// which a connection is pinged.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
const NOT_DROPPED: &str = "a connection is only taken out on drop";

/// A connection of either driver.
pub trait DbConnection: Connection + Send + 'static {
    /// True if the database runs in another process, which may stop responding.
    const IS_REMOTE: bool;

    /// The name of the database in OpenTelemetry's semantic conventions.
    const SYSTEM: &'static str;

    /// The statements that a new connection executes, if there are any.
    const SETTINGS: Option<&'static str>;

    /// Executes a statement that returns no rows.
    fn run(&mut self, sql: &'static str) -> BoxFuture<'_, sqlx::Result<()>>;

    /// Returns the reason why a connection could not be opened, with the name of the server.
    fn connection_problem(options: &Self::Options, error: &sqlx::Error) -> String;
}

impl DbConnection for SqliteConnection {
    const IS_REMOTE: bool = false;
    const SYSTEM: &'static str = "sqlite";
    const SETTINGS: Option<&'static str> = None;

    fn run(&mut self, sql: &'static str) -> BoxFuture<'_, sqlx::Result<()>> {
        async move { self.execute(sql).await.map(drop) }.boxed()
    }

    fn connection_problem(_: &SqliteConnectOptions, error: &sqlx::Error) -> String {
        error.to_string()
    }
}

impl DbConnection for PgConnection {
    const IS_REMOTE: bool = true;
    const SYSTEM: &'static str = "postgresql";
    /// If a server freezes or its machine is lost, nothing ends its connections, and their locks would remain for two hours. PostgreSQL
    /// ends such a transaction before the statements of other servers that wait for its locks reach their time limit. A statement that
    /// this server has given up would go on, and one that waits for a lock would keep the locks of its transaction: PostgreSQL ends it
    /// a little later. Not startup parameters, which poolers reject.
    const SETTINGS: Option<&'static str> = Some(
        "set statement_timeout = '12s'; set idle_in_transaction_session_timeout = '8s'; set tcp_keepalives_idle = 10;
         set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3",
    );

    fn run(&mut self, sql: &'static str) -> BoxFuture<'_, sqlx::Result<()>> {
        async move { self.execute(sql).await.map(drop) }.boxed()
    }

    fn connection_problem(options: &PgConnectOptions, error: &sqlx::Error) -> String {
        open_errors::connection_problem(error, options)
    }
}

/// A pool with a maximum number of connections.
#[derive(Debug)]
pub struct Pool<C: DbConnection>(managed::Pool<ConnectionManager<C>>);

impl<C: DbConnection> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The time at which a connection turned out to be outdated or closed by the server, shared by a pool and its connections.
#[derive(Debug, Clone, Default)]
struct OutdatedSince(Arc<Mutex<Option<Instant>>>);

/// Opens and checks the connections of a pool.
#[derive(Debug)]
struct ConnectionManager<C: DbConnection> {
    options: <C as Connection>::Options,
    metrics: Arc<DatabaseMetrics>,
    /// The reason why the last connection could not be opened; `None` after a connection was opened.
    problem: Mutex<Option<String>>,
    permits: Arc<ConnectionPermits>,
    /// The time at which the server refused a connection because it has too many; `None` once it accepts them again.
    refused: Mutex<Option<Instant>>,
    /// Connections that were opened before are closed instead of being used again.
    outdated: OutdatedSince,
    /// True if the connections lead to a pooler that passes each transaction to any connection of its own.
    is_behind_pooler: bool,
    /// Time limit for acquiring a connection.
    acquire_timeout: Duration,
}

impl<C: DbConnection> ConnectionManager<C> {
    /// Counts a connection that the server refuses because it has too many. Logs when the server begins to refuse them, and when it
    /// accepts one that was requested after the last refusal. Meanwhile the pool makes do with those that are open.
    fn record(&self, requested: Instant, opened: &sqlx::Result<C>) {
        let mut refused = self.refused.lock();
        let log = self.metrics.log.get().map(|database| &database.log);
        match opened {
            Ok(_) if refused.is_some_and(|refused| refused < requested) => {
                *refused = None;
                log.inspect(|log| info!(log, "PostgreSQL accepts connections again"));
            }
            Err(error) if is_too_many_connections(error) => {
                self.metrics.refused_connections.inc();
                if let (None, Some(log)) = (refused.replace(Instant::now()), log) {
                    warn!(log, "PostgreSQL refuses more connections; requests wait for those that are open";
                        "cause" => C::connection_problem(&self.options, error));
                }
            }
            _ => {}
        }
    }

    /// Returns the error of a caller that has waited for too long: for one of the open connections, or for a new one.
    fn timeout_error(&self, is_opening: bool) -> sqlx::Error {
        let seconds = self.acquire_timeout.as_secs_f32();
        let problem = match self.problem.lock().clone() {
            Some(problem) => problem,
            None if is_opening && C::IS_REMOTE => {
                let no_answer = io::Error::new(ErrorKind::TimedOut, format!("no answer within {seconds} s"));
                C::connection_problem(&self.options, &sqlx::Error::Io(no_answer))
            }
            None => format!("all connections to the database were in use for {seconds} s"),
        };
        sqlx::Error::Io(io::Error::new(ErrorKind::TimedOut, problem))
    }

    /// Returns the error of a caller that gets no connection. All errors of a remote database are temporary: if it rejects a user or a
    /// password, an operator has changed it, and changes it back.
    fn acquire_error(&self, error: PoolError<sqlx::Error>) -> Error {
        match error {
            PoolError::Backend(error @ sqlx::Error::Io(_)) => database_error(error),
            PoolError::Backend(error) if C::IS_REMOTE => {
                Error::Unavailable(anyhow!(C::connection_problem(&self.options, &error)))
            }
            PoolError::Backend(error) => database_error(error),
            PoolError::Closed => database_error(sqlx::Error::PoolClosed),
            _ => database_error(sqlx::Error::PoolTimedOut),
        }
    }
}

impl<C: DbConnection> Manager for ConnectionManager<C> {
    type Type = C;
    type Error = sqlx::Error;

    async fn create(&self) -> sqlx::Result<C> {
        let requested = Instant::now();
        // Boxed to keep the caller's future small: most callers acquire a connection that is already open.
        let result = C::connect_with(&self.options).boxed().await;
        self.record(requested, &result);
        let refusal = result.as_ref().err().filter(|error| is_refusal::<C>(error));
        *self.problem.lock() = refusal.map(|error| C::connection_problem(&self.options, error));
        let mut connection = result?;
        self.permits.restore(u32::MAX);
        if let Some(settings) = C::SETTINGS.filter(|_| !self.is_behind_pooler) {
            connection.run(settings).await?;
        }
        Ok(connection)
    }

    /// Pings a connection that has not been used for [`PING_TIMEOUT`]. Rejects one that is outdated.
    async fn recycle(&self, connection: &mut C, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if self.outdated.0.lock().is_some_and(|outdated| metrics.created <= outdated) {
            return Err(RecycleError::message("it is outdated"));
        }
        if metrics.last_used() >= PING_TIMEOUT {
            timeout(PING_TIMEOUT, connection.ping()).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
        }
        Ok(())
    }
}

/// Returns whether a later attempt to open a connection may succeed.
fn is_refusal<C: DbConnection>(error: &sqlx::Error) -> bool {
    C::IS_REMOTE && is_starting(error)
}

impl<C: DbConnection> Pool<C> {
    /// Creates a pool of at most `max_size` connections. Each is opened when it is first needed.
    pub(super) fn new(options: C::Options, max_size: usize, metrics: &Arc<DatabaseMetrics>) -> anyhow::Result<Self> {
        Self::with_options(options, max_size, metrics, false, ACQUIRE_TIMEOUT)
    }

    /// Creates a pool like [`new`](Self::new). Its connections may lead to a pooler in transaction mode.
    pub(super) fn with_options(
        options: C::Options,
        max_size: usize,
        metrics: &Arc<DatabaseMetrics>,
        is_behind_pooler: bool,
        acquire_timeout: Duration,
    ) -> anyhow::Result<Self> {
        let manager = ConnectionManager {
            options,
            metrics: Arc::clone(metrics),
            problem: Mutex::default(),
            permits: Arc::new(ConnectionPermits::new(max_size)),
            refused: Mutex::default(),
            outdated: OutdatedSince::default(),
            is_behind_pooler,
            acquire_timeout,
        };
        // The connection that was released last is the most likely to be alive, and to have the statement prepared.
        let pool = managed::Pool::builder(manager).max_size(max_size).queue_mode(QueueMode::Lifo).build();
        Ok(Self(pool?))
    }

    /// Acquires a connection for reading. Behind a pooler it begins a transaction, so that the steps of a statement use the same
    /// connection of the pooler. Each statement still sees everything that is committed when it begins.
    ///
    /// # Errors
    /// Returns an error if no connection is available in time.
    pub(super) async fn acquire_for_reading(&self) -> Result<PooledConnection<C>> {
        if self.0.manager().is_behind_pooler { self.begin("begin").await } else { self.acquire().await }
    }

    /// Acquires a connection.
    ///
    /// # Errors
    /// Returns an error if no connection is available in time.
    pub(super) async fn acquire(&self) -> Result<PooledConnection<C>> {
        let (start, manager, mut is_opening) = (Instant::now(), self.0.manager(), false);
        let connection = timeout(manager.acquire_timeout, self.get_or_open(&mut is_opening)).await;
        manager.metrics.wait.observe(start.elapsed().as_secs_f64());
        let connection = connection.unwrap_or_else(|_| Err(PoolError::Backend(manager.timeout_error(is_opening))));
        let (connection, permit) = connection.map_err(|error| manager.acquire_error(error))?;
        let (metrics, outdated) = (Arc::clone(&manager.metrics), manager.outdated.clone());
        let statement = "".into_sql_str();
        let is_behind_pooler = manager.is_behind_pooler;
        Ok(PooledConnection {
            connection: Some(connection),
            permit: Some(permit),
            metrics,
            outdated,
            is_behind_pooler,
            statement,
            is_ready: true,
            is_in_transaction: false,
            span: Span::default(),
        })
    }

    /// Returns an idle connection, or opens one. While the server refuses to open one, waits for the first that is free. Sets
    /// `is_opening` while it waits for the server.
    async fn get_or_open(
        &self,
        is_opening: &mut bool,
    ) -> Result<(Object<ConnectionManager<C>>, OwnedSemaphorePermit), PoolError<sqlx::Error>> {
        let permits = &self.0.manager().permits;
        loop {
            *is_opening = false;
            let permit = permits.acquire().await.ok_or(PoolError::Closed)?;
            *is_opening = true;
            match self.0.get().await {
                Err(PoolError::Backend(error)) if is_refusal::<C>(&error) => permits.withdraw(permit),
                connection => return Ok((connection?, permit)),
            }
        }
    }

    /// The metrics that all pools of the database share.
    pub(super) fn metrics(&self) -> &Arc<DatabaseMetrics> {
        &self.0.manager().metrics
    }

    /// Returns the connections at the moment.
    pub(super) fn status(&self, name: &'static str) -> PoolStatus {
        let managed::Status { size, available, .. } = self.0.status();
        let waiting = self.0.manager().permits.waiting();
        PoolStatus { name, used: size.saturating_sub(available), idle: available, waiting }
    }

    /// Acquires a connection and begins a transaction on it with the statement `begin`.
    ///
    /// # Errors
    /// Returns an error if no connection is available in time, or the database rejects the statement.
    pub(super) async fn begin(&self, begin: &'static str) -> Result<PooledConnection<C>> {
        let mut pooled = self.acquire().await?;
        pooled.statement = begin.into_sql_str();
        // Set before the response, because the caller may be cancelled while it waits.
        pooled.is_in_transaction = true;
        pooled.run(|connection| connection.run(begin)).await?;
        Ok(pooled)
    }

    /// Closes the idle connections gracefully. All later attempts to acquire a connection fail.
    pub(super) async fn close(&self) {
        for connection in self.0.retain(|_, _| false).removed {
            // The server may be gone already.
            let _closed = timeout(PING_TIMEOUT, connection.close()).await;
        }
        self.0.manager().permits.close();
        self.0.close();
    }
}

/// A pooled connection. Dropping it returns it to the pool.
#[derive(Debug)]
pub struct PooledConnection<C: DbConnection> {
    connection: Option<Object<ConnectionManager<C>>>,
    /// Released after the connection.
    permit: Option<OwnedSemaphorePermit>,
    metrics: Arc<DatabaseMetrics>,
    outdated: OutdatedSince,
    /// The text of the statement that runs or will run.
    pub(super) statement: SqlStr,
    is_behind_pooler: bool,
    /// True if no operation is running and the last one has succeeded.
    is_ready: bool,
    is_in_transaction: bool,
    /// The span of the request or the batch.
    span: Span,
}

impl<C: DbConnection> PooledConnection<C> {
    /// Runs an operation on the connection. On a remote database it has a timeout.
    pub(super) async fn run<'c, T, F>(&'c mut self, operation: impl FnOnce(&'c mut C) -> F) -> Result<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        let Self { connection, is_ready, outdated, metrics, statement, span, .. } = self;
        *is_ready = false;
        let traced = statement_span(span, C::SYSTEM, statement.as_str());
        let start = Instant::now();
        let running = operation(connection.as_mut().expect(NOT_DROPPED));
        let output = if C::IS_REMOTE { with_timeout(running).await } else { running.await.map_err(database_error) };
        if output.as_ref().is_err_and(|error| is_outdated_connection(error) || (C::IS_REMOTE && is_closed_connection(error))) {
            *outdated.0.lock() = Some(Instant::now());
        }
        *is_ready = output.is_ok();
        if let Some(log) = metrics.log.get() {
            log.record_statement(statement.as_str(), start.elapsed(), span.request_id());
        }
        if output.is_err() {
            traced.fail();
        }
        output
    }

    /// Sets the span below which statements have their spans.
    pub(super) fn set_span(&mut self, span: &Span) {
        self.span.clone_from(span);
    }

    /// Returns whether the connection leads to a pooler in transaction mode, which keeps no prepared statements.
    pub(super) fn is_behind_pooler(&self) -> bool {
        self.is_behind_pooler
    }

    /// Returns whether a transaction was begun.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.is_in_transaction
    }

    /// Returns the time at which the connection was opened.
    pub(super) fn created_at(&self) -> Instant {
        Object::metrics(self.connection.as_ref().expect(NOT_DROPPED)).created
    }

    /// Commits the transaction, if one was begun.
    ///
    /// # Errors
    /// Returns an error if the database rejects the commit. If the connection is lost, the outcome is unknown.
    pub(super) async fn commit(mut self) -> Result<()> {
        if self.is_in_transaction {
            let start = Instant::now();
            self.statement = "commit".into_sql_str();
            self.run(|connection| connection.run("commit")).await?;
            self.is_in_transaction = false;
            self.metrics.commit.observe(start.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

impl<C: DbConnection> Drop for PooledConnection<C> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.is_ready && !self.is_in_transaction {
            return;
        }
        let (is_in_transaction, permit) = (self.is_in_transaction, self.permit.take());
        tokio::spawn(async move {
            let _permit = permit;
            // If SQLite has rolled back by itself, because the disk is full or fails, this rollback fails.
            let reset = async { if is_in_transaction { connection.run("rollback").await } else { connection.ping().await } };
            if !matches!(timeout(PING_TIMEOUT, reset).await, Ok(Ok(()))) {
                // Closes the connection, which ends its transaction. The pool may open another one in its place.
                drop(Object::take(connection));
            }
        });
    }
}
