//! Databases as they are: opened without migrations, checked, and backed up while a server uses them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use boxoffice_http::error::Result;
use rustix::fs::Access;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};

use super::database::Db;
use super::location::DatabaseLocation;
use super::open;
use crate::kernel::private_files;

/// Time for which a read waits for another program that recovers the write-ahead log or runs a checkpoint.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

impl Db {
    /// Opens a database that exists, without migrations. A SQLite database is opened read-only.
    ///
    /// # Errors
    /// Returns an error that names the database and the reason, without the password.
    pub async fn open_existing(url: &str) -> anyhow::Result<Self> {
        match url.parse()? {
            DatabaseLocation::Sqlite(path) => {
                private_files::require_access(&path, Access::READ_OK, None)?;
                ensure!(path.exists(), "there is no SQLite database {}", path.display());
                Self::sqlite_pools(read_only(&path))
            }
            DatabaseLocation::Postgres(location) => open::connect_postgres(*location).await,
        }
    }

    /// Returns the number of the last migration of this database; 0 if it has no tables of boxoffice.
    ///
    /// # Errors
    /// Returns an error if the database can't be read.
    pub async fn schema_version(&self) -> Result<i64> {
        let mut reader = self.read().await?;
        let exists = if reader.is_postgres() {
            "select to_regclass('_sqlx_migrations') is not null"
        } else {
            "select exists (select 1 from sqlite_master where name = '_sqlx_migrations')"
        };
        if !reader.query(exists).scalar::<bool>().await? {
            return Ok(0);
        }
        reader.query("select cast(coalesce(max(version), 0) as bigint) from _sqlx_migrations where success").scalar().await
    }

    /// Returns a description of everything that is wrong with the file of a SQLite database and with its foreign keys. PostgreSQL
    /// enforces its foreign keys itself, and has no such check.
    ///
    /// # Errors
    /// Returns an error if the database can't be read.
    pub async fn damage(&self) -> Result<Vec<String>> {
        let mut reader = self.read().await?;
        if reader.is_postgres() {
            return Ok(Vec::new());
        }
        let mut found: Vec<String> = reader.query("pragma integrity_check").scalars().await?;
        found.retain(|text| text != "ok");
        let foreign_keys = "select \"table\", coalesce(rowid, 0), parent from pragma_foreign_key_check limit 100";
        let missing: Vec<(String, i64, String)> = reader.query(foreign_keys).all().await?;
        found.extend(missing.iter().map(|(table, row, parent)| format!("row {row} of {table} refers to no row of {parent}")));
        Ok(found)
    }

    /// Returns the number of rows of each table of a SQLite database, by the table's name.
    ///
    /// # Errors
    /// Returns an error if the database can't be read.
    pub async fn sqlite_row_counts(&self) -> Result<BTreeMap<String, i64>> {
        let mut reader = self.read().await?;
        let tables = "select name from pragma_table_list
            where schema = 'main' and type = 'table' and name not like 'sqlite%' order by name";
        let tables: Vec<String> = reader.query(tables).scalars().await?;
        let counts: Vec<String> = tables.iter().map(|table| format!("select '{table}', count(*) from \"{table}\"")).collect();
        let counts: Vec<(String, i64)> = reader.select(counts.join(" union all ").trim_start_matches("select ")).all().await?;
        Ok(counts.into_iter().collect())
    }
}

/// Writes a consistent copy of a SQLite database to a new file: all transactions that were committed before, and none in part.
///
/// `vacuum into` reads in one transaction, which does not block writers. The online backup interface of SQLite starts again with
/// each change by another process, so under load it would only end if it copied everything in one step, as here. The new file also
/// has no free pages, so it contains nothing that was deleted.
///
/// # Errors
/// Returns an error if the database can't be read or the file can't be written.
pub async fn back_up_sqlite(database: &Path, backup: &Path) -> anyhow::Result<()> {
    let mut connection = SqliteConnection::connect_with(&read_only(database)).await?;
    let backup = backup.to_str().ok_or_else(|| anyhow!("the path {} is not valid UTF-8", backup.display()))?;
    let written = sqlx::query("vacuum into $1").bind(backup).execute(&mut connection).await;
    written.with_context(|| format!("cannot copy the database to {backup}"))?;
    Ok(connection.close().await?)
}

fn read_only(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(BUSY_TIMEOUT)
}
