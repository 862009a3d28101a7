//! The state of a database, read without changing it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};

use super::location::DatabaseLocation;
use super::open::{
    POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS, connect, has_unfinished_copy_postgres, has_unfinished_copy_sqlite,
    reject_undeclared_pooler, require_supported,
};
use super::open_errors::{MAKE_OWNER, server_name};
use crate::kernel::private_files;

/// The state of a database.
#[derive(Debug)]
pub struct DatabaseState {
    /// The database, without a password.
    pub name: String,
    /// The number of migrations that the next start applies; `None` if there are no tables yet.
    pub pending: Option<usize>,
    /// The currency that the first start has fixed.
    pub currency: Option<String>,
    /// True if the database is the target of a copy that is not complete.
    pub has_unfinished_copy: bool,
}

/// A migration that was applied: its version, its checksum and its success.
type AppliedMigration = (i64, Vec<u8>, bool);

const APPLIED: &str = "select version, checksum, success from _sqlx_migrations";
/// The rights of a connection's user in a PostgreSQL database.
#[derive(Debug, sqlx_macros::FromRow)]
struct Rights {
    is_standby: bool,
    is_read_only: bool,
    may_create: bool,
}

const RIGHTS: &str = "select pg_is_in_recovery() as is_standby, current_setting('transaction_read_only') = 'on' as is_read_only,
    coalesce(has_schema_privilege(current_schema(), 'create'), false) as may_create";
const CURRENCY: &str = "select value from fixed_settings where name = 'currency'";

/// Returns the state of the database at `url`. Changes nothing.
///
/// # Errors
/// Returns an error that names the database and the reason, if `serve` could not use it.
pub async fn inspect(url: &str) -> anyhow::Result<DatabaseState> {
    match url.parse()? {
        DatabaseLocation::Sqlite(path) => {
            inspect_sqlite(&path).await.with_context(|| format!("cannot use the SQLite database {}", path.display()))
        }
        DatabaseLocation::Postgres(location) => {
            let name = format!("PostgreSQL {}", server_name(&location.options));
            let inspected = async {
                let mut connection = connect(&location.options).await?;
                require_supported(&mut connection).await?;
                reject_undeclared_pooler(&mut connection, &location).await?;
                // One transaction of unnamed statements, for a pooler in transaction mode.
                let mut tx = connection.begin().await?;
                let has_unfinished_copy = has_unfinished_copy_postgres(&mut tx).await?;
                let rights: Rights = sqlx::query_as(RIGHTS).persistent(false).fetch_one(&mut *tx).await?;
                ensure!(!rights.is_standby, "the server is a standby, which can't be written; give the primary");
                ensure!(!rights.is_read_only, "it is read-only: set default_transaction_read_only to off");
                let applied = sqlx::query_as(APPLIED).persistent(false).fetch_all(&mut *tx).await;
                let applied = if is_table_missing(&applied) { None } else { Some(applied?) };
                let currency = sqlx::query_as(CURRENCY).persistent(false);
                let currency = if applied.is_some() { currency.fetch_optional(&mut *tx).await.ok() } else { None };
                tx.rollback().await?;
                connection.close().await?;
                let state = state(name.clone(), applied, currency.flatten(), &POSTGRES_MIGRATIONS)?;
                let may_migrate = state.pending == Some(0) || rights.may_create;
                ensure!(may_migrate, "the user may not create tables in it; {MAKE_OWNER}");
                Ok(DatabaseState { has_unfinished_copy, ..state })
            };
            inspected.await.with_context(|| format!("cannot use the {name}"))
        }
    }
}

async fn inspect_sqlite(path: &Path) -> anyhow::Result<DatabaseState> {
    let name = format!("SQLite {}", path.display());
    if !path.exists() {
        private_files::require_writable(private_files::folder_of(path))?;
        return state(name, None, None, &SQLITE_MIGRATIONS);
    }
    private_files::require_writable(path)?;
    // A connection creates the files of the WAL, unless the database is declared to be constant. Without a WAL, no server has it
    // open.
    let [_, wal, ..] = private_files::sqlite_files(path);
    let is_idle = !wal.exists();
    let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(is_idle);
    let mut connection = SqliteConnection::connect_with(&options.busy_timeout(Duration::from_secs(5))).await?;
    let applied = sqlx::query_as(APPLIED).fetch_all(&mut connection).await;
    let applied = if is_table_missing(&applied) { None } else { Some(applied?) };
    let currency = if applied.is_some() { sqlx::query_as(CURRENCY).fetch_optional(&mut connection).await.ok() } else { None };
    let has_unfinished_copy = has_unfinished_copy_sqlite(&mut connection).await?;
    connection.close().await?;
    Ok(DatabaseState { has_unfinished_copy, ..state(name, applied, currency.flatten(), &SQLITE_MIGRATIONS)? })
}

fn is_table_missing<T>(result: &Result<T, sqlx::Error>) -> bool {
    let Err(sqlx::Error::Database(error)) = result else { return false };
    error.code().is_some_and(|code| code == "42P01") || error.message().contains("no such table")
}

/// Compares the applied migrations with those of this program.
fn state(
    name: String,
    applied: Option<Vec<AppliedMigration>>,
    currency: Option<(String,)>,
    migrations: &Migrator,
) -> anyhow::Result<DatabaseState> {
    let currency = currency.map(|(currency,)| currency);
    let Some(applied) = applied else { return Ok(DatabaseState { name, pending: None, currency, has_unfinished_copy: false }) };
    for (version, checksum, is_complete) in &applied {
        ensure!(is_complete, "migration {version} was not completed: restore a backup");
        match migrations.iter().find(|migration| migration.version == *version) {
            None => bail!(
                "a newer version of boxoffice has changed its tables (migration {version}): use that version, or restore a backup"
            ),
            Some(migration) if *migration.checksum != **checksum => {
                bail!("its tables were made by another build of boxoffice (migration {version} differs)")
            }
            Some(_) => {}
        }
    }
    let is_pending = |version: i64| !applied.iter().any(|(applied, ..)| *applied == version);
    let pending = migrations.iter().filter(|migration| is_pending(migration.version)).count();
    Ok(DatabaseState { name, pending: Some(pending), currency, has_unfinished_copy: false })
}
