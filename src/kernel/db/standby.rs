//! Reads from a standby of PostgreSQL, which relieve the primary.
//!
//! A standby is behind the primary for a moment. Before each read, the server asks the primary up to which position its log is
//! flushed, and reads from the standby only if it has replayed the log up to there. A commit is acknowledged after it was flushed, so
//! the read sees everything that was acknowledged before it began, whichever server wrote it.

use std::fmt::{self, Formatter};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use boxoffice_http::error::{Error, Result, one_line};
use parking_lot::Mutex;
use slog::{Discard, Logger, info, o, warn};
use sqlx::{ConnectOptions, PgConnection};
use tokio::time::{sleep, timeout};

use super::batcher::Batcher;
use super::database::Db;
use super::location::DatabaseLocation;
use super::metrics::DatabaseMetrics;
use super::open::{STATEMENT_LEVEL, connect_postgres};
use super::open_errors::server_name;
use super::pool::Pool;
use super::transaction::Reader;
use super::{transaction, transient};

const MAX_CONNECTIONS: usize = 8;
/// Time for which a read waits until the standby has replayed the log.
const MAX_WAIT: Duration = Duration::from_millis(100);
/// Pause between two looks at the standby's position.
const PAUSE: Duration = Duration::from_millis(5);
/// Time limit for a connection to the standby, and again for its position. Then the primary is read.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Reads that share one look at the primary's position.
const MAX_BATCH: usize = 1000;

/// Returns the position of the server, on either side. Any user may execute the functions.
///
/// A standby's own timeline is not visible. The one in its control file is that of a part of the log that it has replayed, so the standby
/// belongs to this timeline if it is the primary's.
const POSITION: &str = "select s.system_identifier as system, \
    (select d.oid::bigint from pg_database d where d.datname = current_database()) as database, \
    pg_is_in_recovery() as is_standby, \
    case when pg_is_in_recovery() then lpad(upper(to_hex(greatest(c.timeline_id, r.min_recovery_end_timeline))), 8, '0') \
    else left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) end as timeline, \
    (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end - '0/0')::bigint as location, \
    current_setting('synchronous_commit') = 'off' as is_asynchronous \
    from pg_control_system() s, pg_control_checkpoint() c, pg_control_recovery() r";

/// The standby of a database, and whether reads use it.
pub struct Standby {
    pool: Pool<PgConnection>,
    /// Concurrent reads share a look at the primary's position that begins after all of them.
    primary_positions: Arc<Batcher<(), (), Position>>,
    /// `None` until the first attempt to use it.
    is_used: Mutex<Option<bool>>,
    log: Logger,
}

/// The end of the log that a primary has flushed, or that a standby has replayed.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
struct Position {
    /// The identifier that a primary and its standbys have in common.
    system: i64,
    /// The identifier of the database in the system.
    database: i64,
    is_standby: bool,
    /// In hexadecimal digits. A promotion begins a new one.
    timeline: String,
    /// Bytes since the beginning of the log.
    location: i64,
    /// True if commits are acknowledged before they are flushed.
    is_asynchronous: bool,
}

impl Position {
    async fn read(reader: &mut Reader) -> Result<Self> {
        reader.query(POSITION).one().await
    }

    /// Returns whether a standby at this position shows everything that was acknowledged by the primary at its position.
    ///
    /// # Errors
    /// Returns the reason if waiting doesn't help.
    fn includes(&self, primary: &Self) -> anyhow::Result<bool> {
        ensure!(!primary.is_standby, "the server of --database is a standby");
        ensure!(!primary.is_asynchronous, "synchronous_commit is off, so commits are acknowledged before they are in the log");
        ensure!(self.is_standby, "the server is not a standby");
        ensure!(self.system == primary.system, "the server is a standby of another system");
        ensure!(self.database == primary.database, "it is another database of the same system");
        ensure!(
            self.timeline == primary.timeline,
            "the standby has no restart point on the primary's timeline {} yet",
            primary.timeline
        );
        Ok(self.location >= primary.location)
    }
}

impl Standby {
    /// Creates the pool of a standby. Nothing is connected until the first attempt to use it.
    pub(super) fn new(url: &str, metrics: &Arc<DatabaseMetrics>, log: Logger) -> anyhow::Result<Self> {
        let DatabaseLocation::Postgres(location) = url.parse()? else { bail!("it is no database of PostgreSQL") };
        let options = location.options.log_statements(STATEMENT_LEVEL);
        Ok(Self {
            pool: Pool::with_options(options, MAX_CONNECTIONS, metrics, location.is_behind_pooler, TIMEOUT)?,
            primary_positions: Batcher::of(MAX_BATCH),
            is_used: Mutex::default(),
            log,
        })
    }

    /// Returns a connection to the standby, which shows everything that was acknowledged before the call. Returns `None` if the
    /// standby is not used or has not caught up in time; then it is not used until [`watch`](Self::watch) has found that it has.
    ///
    /// # Errors
    /// Returns an error if the primary fails.
    pub(super) async fn read(&self, primary: &Pool<PgConnection>) -> Result<Option<Reader>> {
        let reader = if *self.is_used.lock() == Some(true) {
            self.open(primary).await?.map_err(|cause| self.set_used(Err(&cause))).ok()
        } else {
            None
        };
        self.pool.metrics().record_standby_read(if reader.is_some() { "standby" } else { "primary" });
        Ok(reader)
    }

    /// Lets reads use the standby again, if it has caught up.
    ///
    /// # Errors
    /// Returns an error if the primary fails.
    pub(super) async fn watch(&self, primary: &Pool<PgConnection>) -> Result<()> {
        if *self.is_used.lock() != Some(true) {
            let opened = self.open(primary).await?;
            self.set_used(opened.as_ref().map(|_| ()));
        }
        Ok(())
    }

    /// Returns whether a read that failed with this error on the standby is to be run on the primary. If the standby is unavailable, reads
    /// don't use it until it has recovered. A conflict with the recovery, or a cancelled statement, only ends the read.
    pub(super) fn should_leave(&self, error: &Error) -> bool {
        match error {
            Error::Unavailable(cause) if !transaction::is_retryable(error) && !transient::is_cancelled_statement(error) => {
                self.set_used(Err(cause));
            }
            Error::Unavailable(_) | Error::Database(_) => {}
            _ => return false,
        }
        self.pool.metrics().record_standby_read("repeated");
        true
    }

    /// The connections.
    pub(super) fn pool(&self) -> &Pool<PgConnection> {
        &self.pool
    }

    /// Returns a connection that shows everything that was acknowledged before the call, or the reason why there is none.
    async fn open(&self, primary: &Pool<PgConnection>) -> Result<anyhow::Result<Reader>> {
        let primary = primary.clone();
        let read = move |(), _| {
            let primary = primary.clone();
            async move { Position::read(&mut Reader::Postgres(primary.acquire_for_reading().await?)).await }
        };
        let position = self.primary_positions.submit_shared((), (), read).await?;
        Ok(self.catch_up(&position).await)
    }

    async fn catch_up(&self, primary: &Position) -> anyhow::Result<Reader> {
        let mut reader = Reader::Postgres(self.pool.acquire_for_reading().await.map_err(cause)?);
        let start = Instant::now();
        loop {
            let position = timeout(TIMEOUT, Position::read(&mut reader)).await;
            let position = position.with_context(|| format!("the standby has not answered within {} s", TIMEOUT.as_secs()))?;
            if position.map_err(cause)?.includes(primary)? {
                return Ok(reader);
            }
            ensure!(start.elapsed() < MAX_WAIT, "the standby is behind by more than {} ms", MAX_WAIT.as_millis());
            sleep(PAUSE).await;
        }
    }

    /// Sets whether reads use the standby, and logs a change.
    fn set_used(&self, opened: Result<(), &anyhow::Error>) {
        if self.is_used.lock().replace(opened.is_ok()) == Some(opened.is_ok()) {
            return;
        }
        match opened {
            Ok(()) => info!(self.log, "reads use the standby"),
            Err(cause) => warn!(self.log, "reads use the primary instead of the standby"; "cause" => one_line(cause)),
        }
    }
}

fn cause(error: Error) -> anyhow::Error {
    match error {
        Error::Database(cause) => anyhow!(cause),
        Error::Unavailable(cause) | Error::Internal(cause) => cause,
        error => anyhow!("{error:?}"),
    }
}

impl fmt::Debug for Standby {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standby").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// Checks that reads can use the standby at `url` of the database at `database_url`. Returns its name, without the password.
///
/// # Errors
/// Returns an error that says why reads would use the primary.
pub async fn check_standby(database_url: &str, url: &str) -> anyhow::Result<String> {
    let (DatabaseLocation::Postgres(primary), DatabaseLocation::Postgres(standby)) = (database_url.parse()?, url.parse()?) else {
        bail!("only PostgreSQL has standbys");
    };
    let name = server_name(&standby.options);
    let Db::Postgres { pool, .. } = connect_postgres(*primary).await? else { bail!("only PostgreSQL has standbys") };
    let standby = Standby::new(url, pool.metrics(), Logger::root(Discard, o!()))?;
    let opened = standby.open(&pool).await.map_err(cause)?;
    opened.with_context(|| format!("cannot use the PostgreSQL {name}"))?;
    Ok(name)
}
