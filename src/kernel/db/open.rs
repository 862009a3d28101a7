//! Opening a database: its connections and its migrations.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use boxoffice_http::error::Result;
use log::LevelFilter;
use slog::Logger;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, Row, SqliteConnection};
use tokio::time::{sleep, timeout};

use super::checkpoint::{CHECKPOINT_PAGES, Checkpoints};
use super::copy;
use super::database::Db;
use super::location::{DatabaseLocation, PostgresLocation};
use super::open_errors::{migration_error, reason, server_name};
use super::pool::{ACQUIRE_TIMEOUT, Pool};
use super::standby::Standby;
use super::transient::{POOLER, is_starting};
use crate::kernel::private_files::{self, FolderLock};

pub(super) static SQLITE_MIGRATIONS: Migrator = sqlx_macros::migrate!("migrations/sqlite");
pub(super) static POSTGRES_MIGRATIONS: Migrator = sqlx_macros::migrate!("migrations/postgres");

/// The oldest version of PostgreSQL that the server supports.
const OLDEST_POSTGRES: u32 = 13;
const UNFINISHED_COPY: &str = "it is the target of an unfinished copy: run the same `boxoffice copy` again to complete it";
/// Number of times that a start looks for a pooler.
const POOLER_CHECKS: usize = 5;
/// Returns the process of PostgreSQL that serves a connection.
const BACKEND: &str = "select pg_backend_pid()::text";
/// The advisory lock of migrations through a pooler.
const MIGRATION_LOCK: i64 = 0x626f_786f_6666_6963;
/// Time for which a start waits for another one that brings the tables of the same SQLite database up to date.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// The level at which sqlx reports the server's statements to a subscriber of `tracing`, if the program has one. The tests recognize
/// the server's statements by it.
pub(super) const STATEMENT_LEVEL: LevelFilter = LevelFilter::Trace;
/// Pause between two attempts to connect or to lock.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

impl Db {
    /// Opens the database at `url` (`sqlite:PATH` or `postgres://…`) and runs its migrations. Creates the embedded database if it
    /// doesn't exist.
    ///
    /// # Errors
    /// Returns an error that names the database and the reason, without the password.
    pub async fn open(url: &str) -> anyhow::Result<Self> {
        match url.parse()? {
            DatabaseLocation::Sqlite(path) => {
                open_sqlite(&path).await.with_context(|| format!("cannot open the SQLite database {}", path.display()))
            }
            DatabaseLocation::Postgres(location) => {
                let name = server_name(&location.options);
                open_postgres(*location).await.with_context(|| format!("cannot open the PostgreSQL {name}"))
            }
        }
    }

    /// Adds the standby at `url` for reads. They don't use it until [`watch_standby`](Self::watch_standby) was called.
    ///
    /// # Errors
    /// Returns an error if the URL or the database is not of PostgreSQL.
    pub fn with_standby(self, url: &str, log: Logger) -> anyhow::Result<Self> {
        let Self::Postgres { pool, precondition_pool, .. } = self else { bail!("only PostgreSQL has standbys") };
        let standby = Some(Arc::new(Standby::new(url, pool.metrics(), log)?));
        Ok(Self::Postgres { pool, precondition_pool, standby })
    }

    /// Returns whether every migration of this program has been applied.
    ///
    /// # Errors
    /// Returns an error if the database can't be read.
    pub async fn is_migrated(&self) -> Result<bool> {
        let applied = "select exists (select 1 from _sqlx_migrations where version = $1 and success)";
        self.read().await?.query(applied).bind(self.newest_schema()).scalar().await
    }

    /// Returns the number of this program's last migration.
    pub fn newest_schema(&self) -> i64 {
        let migrations = match self {
            Self::Sqlite { .. } => &SQLITE_MIGRATIONS,
            Self::Postgres { .. } => &POSTGRES_MIGRATIONS,
        };
        migrations.iter().map(|migration| migration.version).max().unwrap_or(0)
    }

    /// Returns a database with these options, whose connections are opened when they are needed.
    pub(super) fn sqlite_pools(options: SqliteConnectOptions) -> anyhow::Result<Self> {
        let options = options.log_statements(STATEMENT_LEVEL);
        let metrics = Arc::default();
        let writer_options = options
            .clone()
            // Undoes one request of a batch without a temporary file.
            .pragma("temp_store", "memory")
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES);
        let writer = Pool::new(writer_options, 1, &metrics)?;
        let [_, wal, ..] = private_files::sqlite_files(options.get_filename());
        let checkpoints = Arc::new(Checkpoints::new(Pool::new(options.clone(), 1, &metrics)?, wal));
        let read_only = options.read_only(true);
        let (readers, version_pool) = (Pool::new(read_only.clone(), 8, &metrics)?, Pool::new(read_only, 1, &metrics)?);
        Ok(Self::Sqlite { writer, readers, version_pool, checkpoints })
    }

    fn postgres_pools(location: PostgresLocation) -> anyhow::Result<Self> {
        let options = location.options.log_statements(STATEMENT_LEVEL);
        let metrics = Arc::default();
        let new_pool =
            |max_size| Pool::with_options(options.clone(), max_size, &metrics, location.is_behind_pooler, ACQUIRE_TIMEOUT);
        Ok(Self::Postgres { pool: new_pool(16)?, precondition_pool: new_pool(2)?, standby: None })
    }
}

async fn open_sqlite(path: &Path) -> anyhow::Result<Db> {
    let folder = private_files::folder_of(path);
    private_files::create_folder(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    // SQLite gives the WAL the mode of the database. If the file exists or can't be created, SQLite opens it or reports why.
    let _created = private_files::create_file(path);
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        // Deleted rows are overwritten, so that the file keeps no data of an erased account.
        .pragma("secure_delete", "on")
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(5));
    {
        let _lock = lock(folder).await?;
        let mut connection = SqliteConnection::connect_with(&options).await?;
        ensure!(!has_unfinished_copy_sqlite(&mut connection).await?, UNFINISHED_COPY);
        SQLITE_MIGRATIONS.run(&mut connection).await.map_err(migration_error)?;
        drop_statistics(&mut connection).await?;
        connection.close().await?;
    }
    Db::sqlite_pools(options)
}

/// Removes the statistics that a program has collected with `analyze`. Without them, SQLite plans each statement for large tables.
/// With those of a table that has grown since, it would read all rows where an index leads to a few.
async fn drop_statistics(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("drop table if exists sqlite_stat1").execute(connection).await?;
    Ok(())
}

/// Locks a folder, so that programs that start at the same time run the migrations of a SQLite database one after the other.
/// PostgreSQL has a lock for this; SQLite has none. Nothing is locked on a file system without locks, or in a folder that can't be
/// opened.
async fn lock(folder: &Path) -> anyhow::Result<Option<FolderLock>> {
    let start = Instant::now();
    loop {
        match private_files::try_lock_folder(folder) {
            Ok(None) if start.elapsed() < LOCK_TIMEOUT => sleep(RETRY_PAUSE).await,
            Ok(None) => bail!("another program has brought the tables up to date for {} seconds", LOCK_TIMEOUT.as_secs()),
            locked => return Ok(locked.ok().flatten()),
        }
    }
}

/// Returns whether a SQLite database is the target of a copy that is not complete.
pub(super) async fn has_unfinished_copy_sqlite(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    let exists = "select exists (select 1 from sqlite_master where name = $1)";
    sqlx::query_scalar(exists).bind(copy::PROGRESS).fetch_one(connection).await
}

/// Returns whether a database of PostgreSQL is the target of a copy that is not complete.
pub(super) async fn has_unfinished_copy_postgres(connection: &mut PgConnection) -> sqlx::Result<bool> {
    let exists = sqlx::query_scalar("select to_regclass($1) is not null").persistent(false);
    exists.bind(copy::PROGRESS).fetch_one(connection).await
}

async fn open_postgres(location: PostgresLocation) -> anyhow::Result<Db> {
    let mut connection = connect_to_primary(&location.options).await?;
    require_supported(&mut connection).await?;
    reject_undeclared_pooler(&mut connection, &location).await?;
    if location.is_behind_pooler {
        migrate_behind_pooler(&mut connection).await?;
    } else {
        ensure!(!has_unfinished_copy_postgres(&mut connection).await?, UNFINISHED_COPY);
        POSTGRES_MIGRATIONS.run(&mut connection).await.map_err(migration_error)?;
    }
    connection.close().await?;
    Db::postgres_pools(location)
}

/// Runs all migrations in one transaction, because a pooler would pass their lock and their prepared statements to other programs.
async fn migrate_behind_pooler(connection: &mut PgConnection) -> anyhow::Result<()> {
    let mut tx = connection.begin().await?;
    ensure!(!has_unfinished_copy_postgres(&mut tx).await?, UNFINISHED_COPY);
    sqlx::query("select pg_advisory_xact_lock($1)").persistent(false).bind(MIGRATION_LOCK).execute(&mut *tx).await?;
    let mut migrations = Migrator::with_migrations(POSTGRES_MIGRATIONS.iter().cloned().collect());
    migrations.set_locking(false).run(&mut *tx).await.map_err(migration_error)?;
    sqlx::raw_sql("deallocate all").execute(&mut *tx).await?;
    Ok(tx.commit().await?)
}

/// Connects to a server that can be written. Waits like [`connect`], also for a standby that is promoted in a failover.
async fn connect_to_primary(options: &PgConnectOptions) -> anyhow::Result<PgConnection> {
    let start = Instant::now();
    loop {
        let mut connection = connect(options).await?;
        if value(&mut connection, "show transaction_read_only").await? == "off" {
            return Ok(connection);
        }
        connection.close().await?;
        ensure!(
            start.elapsed() < ACQUIRE_TIMEOUT,
            "it is read-only: give the primary, and set default_transaction_read_only to off"
        );
        sleep(RETRY_PAUSE).await;
    }
}

/// Returns the text that a statement without parameters returns. The statement is not prepared, so it also works behind a pooler.
async fn value(connection: &mut PgConnection, statement: &'static str) -> sqlx::Result<String> {
    connection.fetch_one(sqlx::raw_sql(statement)).await?.try_get(0)
}

/// Rejects a server or a database that the program can't use.
///
/// # Errors
/// Returns an error that says what to do.
pub(super) async fn require_supported(connection: &mut PgConnection) -> anyhow::Result<()> {
    check_version(connection.server_version_num())?;
    check_encoding(&value(connection, "show server_encoding").await?)
}

/// Rejects a pooler in transaction mode that the URL doesn't declare: it would pass a statement to a connection that has not prepared it.
/// Two connections then lead to one connection of the pooler while neither is in a transaction, unless others use the pooler at this
/// moment.
///
/// # Errors
/// Returns an error that says what to do.
pub(super) async fn reject_undeclared_pooler(connection: &mut PgConnection, location: &PostgresLocation) -> anyhow::Result<()> {
    if location.is_behind_pooler {
        return Ok(());
    }
    let shares_connection = async {
        let mut second = PgConnection::connect_with(&location.options).await?;
        let mut is_same = false;
        for _ in 0..POOLER_CHECKS {
            is_same |= value(connection, BACKEND).await? == value(&mut second, BACKEND).await?;
        }
        second.close().await?;
        sqlx::Result::<bool>::Ok(is_same)
    };
    let shares_connection = timeout(ACQUIRE_TIMEOUT, shares_connection).await;
    // A server starts even if it gets no second connection.
    ensure!(!matches!(shares_connection, Ok(Ok(true))), POOLER);
    Ok(())
}

/// Rejects a database that can't store all characters.
fn check_encoding(encoding: &str) -> anyhow::Result<()> {
    ensure!(
        encoding == "UTF8",
        "its encoding is {encoding}, which can't store all names: create a database with `createdb --encoding=UTF8 \
         --template=template0`, and copy this one to it with `boxoffice copy`"
    );
    Ok(())
}

/// Rejects versions of PostgreSQL without the functions that the server uses.
///
/// # Errors
/// Returns an error that names the version.
pub fn check_version(number: Option<u32>) -> anyhow::Result<()> {
    match number {
        Some(number) if number < OLDEST_POSTGRES * 10_000 => {
            bail!("the server is PostgreSQL {}; boxoffice needs version {OLDEST_POSTGRES} or newer", number / 10_000)
        }
        _ => Ok(()),
    }
}

/// Opens a database without migrations.
///
/// # Errors
/// Returns an error that names the database and the reason, without the password.
pub(super) async fn connect_postgres(location: PostgresLocation) -> anyhow::Result<Db> {
    let connected = connect(&location.options).await;
    let connection = connected.with_context(|| format!("cannot open the PostgreSQL {}", server_name(&location.options)))?;
    connection.close().await?;
    Db::postgres_pools(location)
}

/// Connects to a server. Waits for one that is starting, for [`ACQUIRE_TIMEOUT`] at most.
pub(super) async fn connect(options: &PgConnectOptions) -> anyhow::Result<PgConnection> {
    let mut last_error = None;
    let attempts = async {
        loop {
            match PgConnection::connect_with(options).await {
                Err(error) if is_starting(&error) => last_error = Some(error),
                result => return result,
            }
            sleep(RETRY_PAUSE).await;
        }
    };
    let result = timeout(ACQUIRE_TIMEOUT, attempts).await;
    let error = match (result, last_error) {
        (Ok(Ok(connection)), _) => return Ok(connection),
        (Ok(Err(error)), _) | (Err(_), Some(error)) => error,
        (Err(_), None) => bail!("the server has not answered within {} seconds", ACQUIRE_TIMEOUT.as_secs()),
    };
    bail!(reason(&error, options))
}
