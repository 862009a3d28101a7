//! Opening a database: its location, the migrations, and the reasons why it can't be opened.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use boxoffice_http::error::{Result, one_line};
use log::LevelFilter;
use slog::Logger;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, Row, SqliteConnection};
use tokio::time::{sleep, timeout};

use super::checkpoint::{CHECKPOINT_PAGES, Checkpoints};
use super::copy;
use super::pool::{ACQUIRE_TIMEOUT, Pool};
use super::standby::Standby;
use super::transaction::Db;
use super::transient::{is_starting, is_unknown_host};
use crate::kernel::private_files::{self, FolderLock};

pub(super) static SQLITE_MIGRATIONS: Migrator = sqlx_macros::migrate!("migrations/sqlite");
pub(super) static POSTGRES_MIGRATIONS: Migrator = sqlx_macros::migrate!("migrations/postgres");

/// Number of statements that each connection to PostgreSQL keeps prepared. All operations together have several hundred.
const PREPARED_STATEMENTS: usize = 500;

/// The parameters of a PostgreSQL URL that take a file, with their other names.
const FILE_PARAMETERS: [&str; 7] = ["sslrootcert", "ssl-root-cert", "ssl-ca", "sslcert", "ssl-cert", "sslkey", "ssl-key"];
/// The other parameters of a PostgreSQL URL.
const PARAMETERS: [&str; 11] = [
    "sslmode",
    "ssl-mode",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
    STATEMENT_CACHE,
];
/// The parameter for the number of statements that each connection keeps prepared.
const STATEMENT_CACHE: &str = "statement-cache-capacity";
/// The parameter for a connection pooler in transaction mode.
const NO_STATEMENT_CACHE: &str = "statement-cache-capacity=0";
/// The oldest version of PostgreSQL that the server supports.
const OLDEST_POSTGRES: u32 = 13;
/// The code of PostgreSQL's errors about missing rights.
const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// The remedy for a user who may not create tables.
pub(super) const MAKE_OWNER: &str = "make this user the owner of the database (`alter database NAME owner to USER`)";
const UNFINISHED_COPY: &str = "it is the target of an unfinished copy: run the same `boxoffice copy` again to complete it";
/// The advisory lock of migrations through a pooler.
const MIGRATION_LOCK: i64 = 0x626f_786f_6666_6963;
/// Time for which a start waits for another one that brings the tables of the same SQLite database up to date.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// The level at which sqlx reports the server's statements to a subscriber of `tracing`, if the program has one. The tests recognize
/// the server's statements by it.
pub(super) const STATEMENT_LEVEL: LevelFilter = LevelFilter::Trace;
/// Pause between two attempts to connect or to lock.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The reason why a password with special characters is rejected: its end would be taken for the host or a parameter, and be shown in
/// the next error.
const NOT_ENCODED: &str = "in the username and the password, write %2F for `/`, %3F for `?`, %23 for `#` and %25 for `%`";

/// The location of a database.
#[derive(Debug, Clone)]
pub enum DatabaseLocation {
    /// The file of an embedded database.
    Sqlite(PathBuf),
    /// A PostgreSQL server, with the database and the credentials.
    Postgres(Box<PostgresLocation>),
}

/// A PostgreSQL server.
#[derive(Debug, Clone)]
pub struct PostgresLocation {
    /// Its address, the database and the credentials.
    pub(super) options: PgConnectOptions,
    /// True with the parameter `statement-cache-capacity=0`: a pooler such as PgBouncer in transaction mode passes each transaction
    /// to any connection. Then each statement is unnamed and in a transaction, because sqlx prepares and executes it in two steps.
    pub(super) is_behind_pooler: bool,
}

impl FromStr for DatabaseLocation {
    type Err = anyhow::Error;

    /// Parses `sqlite:PATH` or `postgres://…`. Errors don't contain the password.
    fn from_str(url: &str) -> anyhow::Result<Self> {
        match url.split_once(':') {
            Some(("sqlite", path)) => {
                let path = path.trim_start_matches("//");
                ensure!(!path.is_empty(), "the path of the file is missing, as in sqlite:data/boxoffice.db");
                ensure!(
                    path != ":memory:",
                    "a database in memory is not supported: give the path of a file, as in sqlite:data/boxoffice.db"
                );
                ensure!(
                    !path.contains('?'),
                    "a SQLite database has no parameters: give only the path, as in sqlite:data/boxoffice.db"
                );
                Ok(Self::Sqlite(path.into()))
            }
            Some(("postgres" | "postgresql", rest)) => {
                let before_parameters = rest.split('?').next().unwrap_or_default();
                let user = before_parameters.trim_start_matches('/').rsplit_once('@').map_or("", |(user, _)| user);
                ensure!(!user.contains(['/', '#']), NOT_ENCODED);
                let parameters = parse_parameters(url)?;
                let is_behind_pooler = url.contains(NO_STATEMENT_CACHE);
                ensure!(rest.starts_with("//"), "the host is missing, as in postgres://USER@HOST/NAME");
                let mut options = PgConnectOptions::from_str(url).map_err(|error| match error {
                    sqlx::Error::Configuration(cause) => {
                        anyhow!("not a PostgreSQL URL such as postgres://USER@HOST/NAME: {cause}")
                    }
                    error => error.into(),
                })?;
                let has_authority =
                    parameters.iter().any(|name| ["sslrootcert", "ssl-root-cert", "ssl-ca"].contains(&name.as_str()));
                // As in libpq: `require` verifies the certificate if there is an authority. sqlx would ignore the authority.
                if has_authority && matches!(options.get_ssl_mode(), PgSslMode::Require) {
                    options = options.ssl_mode(PgSslMode::VerifyCa);
                }
                if !parameters.iter().any(|name| name == STATEMENT_CACHE) {
                    options = options.statement_cache_capacity(PREPARED_STATEMENTS);
                }
                // PgBouncer rejects this parameter. The server reads numbers in binary form, which it does not affect.
                let options = options.extra_float_digits(None);
                Ok(Self::Postgres(Box::new(PostgresLocation { options, is_behind_pooler })))
            }
            _ => bail!("a database is sqlite:PATH or postgres://USER@HOST/NAME"),
        }
    }
}

/// Checks the parameters of a PostgreSQL URL, because sqlx ignores unknown ones. Returns their names.
fn parse_parameters(url: &str) -> anyhow::Result<Vec<String>> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut names = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
        if FILE_PARAMETERS.contains(&name) {
            let pem = std::fs::read_to_string(&*value);
            let pem = pem.with_context(|| format!("cannot read {value}, the file of the parameter {name}"))?;
            let content = if name.ends_with("key") { "PRIVATE KEY-----" } else { "BEGIN CERTIFICATE-----" };
            ensure!(pem.contains(content), "{value}, the file of the parameter {name}, is no PEM file with {content}");
        } else if ["sslmode", "ssl-mode"].contains(&name) {
            value
                .parse::<PgSslMode>()
                .map_err(|_| anyhow!("`{name}={value}` is none of disable, allow, prefer, require, verify-ca and verify-full"))?;
        } else if !PARAMETERS.contains(&name) && !name.starts_with("options[") {
            ensure!(!name.contains('@'), NOT_ENCODED);
            let known: Vec<&str> =
                ["sslmode", "sslrootcert", "sslcert", "sslkey"].into_iter().chain(PARAMETERS.into_iter().skip(2)).collect();
            bail!("the parameter `{name}` is unknown; the parameters are {}", known.join(", "));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

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
}

impl Db {
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
        if parameter(&mut connection, "show transaction_read_only").await? == "off" {
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

/// Returns the value of a parameter of the server. The statement is not prepared, so it also works behind a pooler.
async fn parameter(connection: &mut PgConnection, show: &'static str) -> sqlx::Result<String> {
    connection.fetch_one(sqlx::raw_sql(show)).await?.try_get(0)
}

/// Rejects a server or a database that the program can't use.
///
/// # Errors
/// Returns an error that says what to do.
pub(super) async fn require_supported(connection: &mut PgConnection) -> anyhow::Result<()> {
    check_version(connection.server_version_num())?;
    check_encoding(&parameter(connection, "show server_encoding").await?)
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

/// Returns the database, the user and the server, such as `database boxoffice as user boxoffice at db.example.com:5432`.
pub(super) fn server_name(options: &PgConnectOptions) -> String {
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    let server = match options.get_socket() {
        Some(socket) => format!("socket {}", socket.display()),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    format!("database {database} at {server} as user {user}")
}

/// Returns the server and the reason why it can't be reached.
pub(super) fn connection_problem(error: &sqlx::Error, options: &PgConnectOptions) -> String {
    format!("cannot open the PostgreSQL {}: {}", server_name(options), reason(error, options))
}

/// Returns the reason why a connection failed, and what to do about it.
fn reason(error: &sqlx::Error, options: &PgConnectOptions) -> String {
    match error {
        sqlx::Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused => format!("no server accepts connections there ({error})"),
            ErrorKind::NotFound => format!("there is no such socket; the server may not be running ({error})"),
            ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                format!("the server can't be reached ({error})")
            }
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => "the server closed the connection".to_owned(),
            ErrorKind::InvalidData => {
                format!("the server's certificate is not accepted; sslrootcert names a file of trusted authorities ({error})")
            }
            _ if is_unknown_host(error) => format!("the host {} is unknown ({error})", options.get_host()),
            _ => error.to_string(),
        },
        sqlx::Error::Tls(cause) if cause.to_string().contains("does not support TLS") => {
            "the server has no TLS; sslmode=disable connects without".to_owned()
        }
        sqlx::Error::Tls(cause) => format!("TLS failed: {cause}"),
        sqlx::Error::Database(error) => {
            let (code, message) = (error.code().unwrap_or_default(), error.message());
            match code.as_ref() {
                "28P01" => format!("the password is wrong or missing ({message})"),
                "28000" => format!("the server rejects this user or this machine ({message})"),
                "3D000" => format!("the database does not exist; create it first ({message})"),
                "53300" => format!("the server has no free connection ({message})"),
                "08P01" if message.contains("startup parameter") => format!(
                    "a connection pooler rejects the connection; let it ignore the parameter, for PgBouncer with \
                     ignore_startup_parameters ({message})"
                ),
                _ => format!("{message} (SQLSTATE {code})"),
            }
        }
        error => one_line(&anyhow!("{error}")),
    }
}

/// Returns the reason why the migrations failed.
fn migration_error(error: MigrateError) -> anyhow::Error {
    match &error {
        MigrateError::VersionMissing(version) | MigrateError::VersionTooOld(version, _) => {
            anyhow!(
                "a newer version of boxoffice has changed its tables (migration {version}): start that version, or restore a backup"
            )
        }
        MigrateError::VersionMismatch(version) => {
            anyhow!("its tables were made by another build of boxoffice (migration {version} differs)")
        }
        MigrateError::Execute(sqlx::Error::Database(cause)) | MigrateError::ExecuteMigration(sqlx::Error::Database(cause), _)
            if ["26000", "42P05"].contains(&cause.code().unwrap_or_default().as_ref()) =>
        {
            anyhow!(
                "a connection pooler does not keep prepared statements: add {NO_STATEMENT_CACHE} to the parameters of the URL, or set \
                 the pooler to session mode ({})",
                cause.message()
            )
        }
        MigrateError::Execute(sqlx::Error::Database(cause)) | MigrateError::ExecuteMigration(sqlx::Error::Database(cause), _)
            if cause.try_downcast_ref::<PgDatabaseError>().is_some() =>
        {
            // Without the position in PostgreSQL's own source, which the text of the error has.
            let (code, message) = (cause.code().unwrap_or_default(), cause.message());
            match code.as_ref() {
                INSUFFICIENT_PRIVILEGE => anyhow!("cannot bring the tables up to date: {message}; {MAKE_OWNER}"),
                _ => anyhow!("cannot bring the tables up to date: {message} (SQLSTATE {code})"),
            }
        }
        _ => anyhow::Error::new(error).context("cannot bring the tables up to date"),
    }
}
