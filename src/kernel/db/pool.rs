//! Connections, each lent to one at a time and given back as the next one needs it.
//!
//! sqlx's own pools ask a connection whether it is alive whenever it is given back, which costs as much as the statement that it was
//! lent for, and wait for the answer without end: the place of one that was cut off without a word would never be free again.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use boxoffice_http::error::Result;
use deadpool::managed::{self, Manager, Metrics, Object, PoolError, QueueMode, RecycleResult};
use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::{Connection, Executor, PgConnection, SqliteConnection};
use tokio::time::{sleep, timeout};

use super::transient::{database_error, is_starting, with_timeout};

/// How long a request waits for a connection, whether all are lent or the server is away.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may take to say that it is alive, or to roll back what was done on it. Short, because whoever waits for
/// it can have a new one.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
const LENT: &str = "the connection is here until this is dropped";

/// A connection to either database.
pub trait DbConnection: Connection + Send + 'static {
    /// Whether its database is another machine's or at least another process: it may answer nothing at all.
    const IS_REMOTE: bool;

    /// Runs a statement that gives nothing.
    fn run(&mut self, sql: &'static str) -> BoxFuture<'_, sqlx::Result<()>>;
}

impl DbConnection for SqliteConnection {
    const IS_REMOTE: bool = false;

    fn run(&mut self, sql: &'static str) -> BoxFuture<'_, sqlx::Result<()>> {
        async move { self.execute(sql).await.map(drop) }.boxed()
    }
}

impl DbConnection for PgConnection {
    const IS_REMOTE: bool = true;

    fn run(&mut self, sql: &'static str) -> BoxFuture<'_, sqlx::Result<()>> {
        async move { self.execute(sql).await.map(drop) }.boxed()
    }
}

/// Connections to a database, at most so many.
#[derive(Debug)]
pub struct Pool<C: DbConnection>(managed::Pool<ConnectionManager<C>>);

impl<C: DbConnection> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// How they are made.
#[derive(Debug)]
struct ConnectionManager<C: DbConnection>(<C as Connection>::Options);

impl<C: DbConnection> Manager for ConnectionManager<C> {
    type Type = C;
    type Error = sqlx::Error;

    /// A server that is starting is asked again until whoever waits gives up.
    async fn create(&self) -> sqlx::Result<C> {
        let mut pause = Duration::from_millis(10);
        loop {
            // Boxed, so that whoever is lent one that is there already does not carry the room to make one.
            match C::connect_with(&self.0).boxed().await {
                Err(error) if C::IS_REMOTE && is_starting(&error) => sleep(pause).await,
                made => return made,
            }
            pause = (pause * 2).min(PING_TIMEOUT);
        }
    }

    /// Asks whether it is alive, unless it has been lent just before.
    async fn recycle(&self, connection: &mut C, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if metrics.last_used() >= PING_TIMEOUT {
            timeout(PING_TIMEOUT, connection.ping()).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
        }
        Ok(())
    }
}

impl<C: DbConnection> Pool<C> {
    /// Lends no more than so many at the same time, each made when it is first needed.
    pub(super) fn of(options: C::Options, most: usize) -> anyhow::Result<Self> {
        // The last one that was given back is the likeliest to be alive, and to know the statement.
        let pool = managed::Pool::builder(ConnectionManager(options)).max_size(most).queue_mode(QueueMode::Lifo).build();
        Ok(Self(pool?))
    }

    /// A connection.
    ///
    /// # Errors
    /// When none can be had.
    pub(super) async fn acquire(&self) -> Result<PooledConnection<C>> {
        self.connect().await.map_err(database_error)
    }

    /// The same with the error of sqlx.
    pub(super) async fn connect(&self) -> sqlx::Result<PooledConnection<C>> {
        let connection = timeout(ACQUIRE_TIMEOUT, self.0.get()).await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let connection = connection.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Closed => sqlx::Error::PoolClosed,
            _ => sqlx::Error::PoolTimedOut,
        })?;
        Ok(PooledConnection { connection: Some(connection), is_answered: true, is_in_transaction: false })
    }

    /// A connection on which a transaction was begun.
    ///
    /// # Errors
    /// When none can be had, or the database doesn't begin one.
    pub(super) async fn begin(&self, begin: &'static str) -> Result<PooledConnection<C>> {
        let mut lent = self.acquire().await?;
        // Before there is an answer, which may be given up.
        lent.is_in_transaction = true;
        lent.run(|connection| connection.run(begin)).await?;
        Ok(lent)
    }

    /// Closes those that are not lent in good order, and lends no more.
    pub(super) async fn close(&self) {
        for connection in self.0.retain(|_, _| false).removed {
            // The other end may be gone already.
            let _closed = timeout(PING_TIMEOUT, connection.close()).await;
        }
        self.0.close();
    }
}

/// A connection that is lent until this is dropped.
#[derive(Debug)]
pub struct PooledConnection<C: DbConnection> {
    connection: Option<Object<ConnectionManager<C>>>,
    is_answered: bool,
    is_in_transaction: bool,
}

impl<C: DbConnection> PooledConnection<C> {
    /// Asks it something. Whoever asks a remote database waits for the answer, and not for ever.
    pub(super) async fn run<'c, T, F>(&'c mut self, ask: impl FnOnce(&'c mut C) -> F) -> Result<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        let Self { connection, is_answered, .. } = self;
        *is_answered = false;
        let answer = ask(connection.as_mut().expect(LENT));
        let answer = if C::IS_REMOTE { with_timeout(answer).await? } else { answer.await.map_err(database_error)? };
        *is_answered = true;
        Ok(answer)
    }

    /// When the connection was made.
    pub(super) fn created_at(&self) -> Instant {
        Object::metrics(self.connection.as_ref().expect(LENT)).created
    }

    /// Commits what was done.
    ///
    /// # Errors
    /// When the database refuses. It may have committed where its answer is lost.
    pub(super) async fn commit(mut self) -> Result<()> {
        if self.is_in_transaction {
            self.run(|connection| connection.run("commit")).await?;
            self.is_in_transaction = false;
        }
        Ok(())
    }
}

impl<C: DbConnection> Deref for PooledConnection<C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.connection.as_ref().expect(LENT)
    }
}

impl<C: DbConnection> DerefMut for PooledConnection<C> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect(LENT)
    }
}

impl<C: DbConnection> Drop for PooledConnection<C> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.is_answered && !self.is_in_transaction {
            return;
        }
        let is_in_transaction = self.is_in_transaction;
        tokio::spawn(async move {
            // Where SQLite itself has rolled back, because the disk is full or fails, this fails too.
            let ready = async { if is_in_transaction { connection.run("rollback").await } else { connection.ping().await } };
            if !matches!(timeout(PING_TIMEOUT, ready).await, Ok(Ok(()))) {
                // It is closed, which ends its transaction, and another one can be made in its place.
                drop(Object::take(connection));
            }
        });
    }
}
