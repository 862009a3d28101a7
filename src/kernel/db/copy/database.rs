//! The source or the target of a copy: one connection with exclusive access.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::{Stream, StreamExt, TryStreamExt};
use sqlx::postgres::PgRow;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqliteRow, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tokio::time::sleep;

use super::table::Table;
use super::value::{ColumnType, Value};
use crate::kernel::db::location::DatabaseLocation;
use crate::kernel::db::{open, open_errors};

/// A page ends after the row with which it exceeds this size in bytes, so that the memory is bounded.
const PAGE_BYTES: usize = 4 << 20;
/// Number of values in one insert into SQLite, which takes longer for each value if there are many.
const SQLITE_VALUES: usize = 500;
/// Time for which a program that is closing its connections may take.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Tables that are not copied: those of the migrations and of the copy itself.
const EXCLUDED: [&str; 3] = ["_sqlx_migrations", PROGRESS, DEFERRED];
/// The table with the progress, in the target until the copy is complete.
pub(in crate::kernel::db) const PROGRESS: &str = "copy_progress";
/// The table with the statements that complete the copy.
pub(super) const DEFERRED: &str = "copy_deferred";

/// A statement that removes a trigger or a foreign key for the time of the copy, and the one that creates it again.
type Suspension = (String, String);

/// A database with exclusive access.
pub(super) enum CopyDatabase {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// Evaluates an expression with the connection, whichever database it is to.
macro_rules! on_either {
    ($database:expr, |$connection:ident| $expression:expr) => {
        match $database {
            CopyDatabase::Sqlite($connection) => $expression,
            CopyDatabase::Postgres($connection) => $expression,
        }
    };
}

impl CopyDatabase {
    /// Opens the source and excludes all other programs: from a SQLite database by its lock; from a database of PostgreSQL by rejecting
    /// it if there are other connections, and by [`lock`](Self::lock).
    pub(super) async fn open_source(location: &DatabaseLocation) -> Result<Self> {
        let mut source = Self::open(location).await?;
        if let Self::Postgres(connection) = &mut source {
            reject_other_connections(connection).await?;
        }
        Ok(source)
    }

    /// Opens the target and excludes other copies.
    pub(super) async fn open_target(location: &DatabaseLocation) -> Result<Self> {
        let mut target = Self::open(location).await?;
        if let Self::Postgres(connection) = &mut target {
            open::require_supported(connection).await.context("cannot copy to this database")?;
            let lock = "set lock_timeout = '5s'; select pg_advisory_lock(hashtext('boxoffice copy')); reset lock_timeout";
            target.execute(lock).await.context("another copy to the same database is running")?;
        }
        Ok(target)
    }

    async fn open(location: &DatabaseLocation) -> Result<Self> {
        match location {
            DatabaseLocation::Sqlite(path) => {
                let opened = open_sqlite(path).await;
                opened.map(Self::Sqlite).with_context(|| format!("cannot open the SQLite database {}", path.display()))
            }
            DatabaseLocation::Postgres(location) => {
                let options = &location.options;
                ensure!(!location.is_behind_pooler, "a copy needs a connection to PostgreSQL itself, not to a pooler");
                let opened = open::connect(&options.clone().application_name("boxoffice copy")).await;
                opened
                    .map(Self::Postgres)
                    .with_context(|| format!("cannot open the PostgreSQL {}", open_errors::server_name(options)))
            }
        }
    }

    pub(super) async fn close(self) -> Result<()> {
        on_either!(self, |connection| connection.close().await)?;
        Ok(())
    }

    /// Executes statements that return nothing.
    pub(super) async fn execute(&mut self, sql: &str) -> Result<()> {
        let statement = AssertSqlSafe(sql.to_owned());
        let executed = on_either!(self, |connection| connection.execute(sqlx::raw_sql(statement)).await.map(drop));
        executed.with_context(|| format!("cannot execute `{}`", sql.chars().take(200).collect::<String>()))
    }

    /// Returns the rows of a statement.
    async fn query<R>(&mut self, sql: String) -> Result<Vec<R>>
    where
        R: for<'r> sqlx::FromRow<'r, SqliteRow> + for<'r> sqlx::FromRow<'r, PgRow> + Send + Unpin,
    {
        let sql = AssertSqlSafe(sql);
        Ok(on_either!(self, |connection| sqlx::query_as(sql).fetch_all(connection).await)?)
    }

    /// Begins the transaction in which a source is read. Until its end no other program can write.
    pub(super) async fn lock(&mut self, tables: &[Table]) -> Result<()> {
        if let Self::Sqlite(_) = self {
            return self.execute("begin").await;
        }
        let names: Vec<String> = tables.iter().map(|table| format!("\"{}\"", table.name)).collect();
        self.execute(&format!("begin isolation level repeatable read; lock table {} in share mode", names.join(", "))).await
    }

    /// Returns all tables that are copied, by name. The full-text index of SQLite is none of them.
    pub(super) async fn tables(&mut self) -> Result<Vec<Table>> {
        let columns = match self {
            Self::Sqlite(_) => {
                "select l.name, c.name, c.type, cast(c.pk - 1 as bigint) from pragma_table_list l join pragma_table_info(l.name) c
                 where l.schema = 'main' and l.type = 'table' and l.name not like 'sqlite%' order by l.name, c.name"
            }
            Self::Postgres(_) => {
                "select t.relname::text, a.attname::text, format_type(a.atttypid, null),
                    coalesce(array_position(i.indkey::int2[], a.attnum), -1)::bigint
                 from pg_class t join pg_attribute a on a.attrelid = t.oid
                 left join pg_index i on i.indrelid = t.oid and i.indisprimary
                 where t.relkind = 'r' and t.relnamespace = current_schema()::regnamespace and a.attnum > 0 and not a.attisdropped
                 order by t.relname collate \"C\", a.attname collate \"C\""
            }
        };
        let columns: Vec<(String, String, String, i64)> = self.query(columns.to_owned()).await?;
        // The columns, and the indexes of those of the primary key by their positions in it.
        type Columns = (Vec<(String, ColumnType)>, BTreeMap<i64, usize>);
        let mut tables: BTreeMap<String, Columns> = BTreeMap::new();
        for (table, column, column_type, position) in columns {
            if EXCLUDED.contains(&table.as_str()) {
                continue;
            }
            let parsed = ColumnType::parse(&column_type);
            let parsed = parsed.with_context(|| format!("the column {column} of {table} has the unknown type {column_type}"))?;
            let (columns, key) = tables.entry(table).or_default();
            if position >= 0 {
                key.insert(position, columns.len());
            }
            columns.push((column, parsed));
        }
        let table = |(name, (columns, key)): (_, (_, BTreeMap<_, _>))| Table { name, columns, key: key.into_values().collect() };
        Ok(tables.into_iter().map(table).collect())
    }

    /// Returns the number of rows of each table.
    pub(super) async fn count(&mut self, tables: &[Table]) -> Result<u64> {
        let counts: Vec<String> = tables.iter().map(|table| format!("select count(*) as rows from \"{}\"", table.name)).collect();
        let total = format!("select cast(sum(rows) as bigint) from ({}) as counts", counts.join(" union all "));
        let total: Vec<(i64,)> = self.query(total).await?;
        Ok(total.first().map_or(0, |(rows,)| rows.unsigned_abs()))
    }

    /// Returns the tables with rows. Those without a primary key are left out: migrations fill them.
    pub(super) async fn filled_tables(&mut self, tables: &[Table]) -> Result<Vec<String>> {
        let with_key = tables.iter().filter(|table| table.has_key()).map(|table| &table.name);
        let checks = with_key.map(|name| format!("select '{name}' as name where exists (select 1 from \"{name}\")"));
        let filled: Vec<(String,)> = self.query(checks.collect::<Vec<_>>().join(" union all ")).await?;
        Ok(filled.into_iter().map(|(name,)| name).collect())
    }

    /// Returns the rows that follow a key, up to the size of a page; none at the end of the table.
    pub(super) async fn read_page(&mut self, table: &Table, after: Option<&[Value]>) -> Result<Vec<Vec<Value>>> {
        let sql = AssertSqlSafe(table.select(after.is_some()));
        let key = after.unwrap_or_default();
        let read = match self {
            Self::Sqlite(connection) => {
                let mut query = sqlx::query(sql);
                for value in key {
                    query = bind_sqlite(query, value);
                }
                let rows = query.fetch(connection).map(|row| {
                    let row: SqliteRow = row?;
                    table.columns.iter().enumerate().map(|(index, (_, kind))| Value::read(&row, index, *kind)).collect()
                });
                take_page(rows).await
            }
            Self::Postgres(connection) => {
                let mut query = sqlx::query(sql);
                for value in key {
                    query = match value {
                        Value::Integer(number) => query.bind(*number),
                        Value::Text(text) => query.bind(text.clone()),
                        _ => bail!("the primary key of {} is neither numbers nor text", table.name),
                    };
                }
                let rows = query.fetch(connection).map(|row| {
                    let row: PgRow = row?;
                    table.columns.iter().enumerate().map(|(index, (_, kind))| Value::read(&row, index, *kind)).collect()
                });
                take_page(rows).await
            }
        };
        read.with_context(|| format!("cannot read the table {}", table.name))
    }

    /// Inserts rows.
    pub(super) async fn write(&mut self, table: &Table, rows: &[Vec<Value>]) -> Result<()> {
        let written = match self {
            Self::Sqlite(connection) => write_sqlite(connection, table, rows).await,
            Self::Postgres(connection) => write_postgres(connection, table, rows).await,
        };
        written.with_context(|| format!("cannot write the table {}", table.name))
    }

    /// Returns the statements that suspend triggers and foreign keys. The owner of the tables may execute them. SQLite's foreign keys
    /// are off in this connection.
    pub(super) async fn suspensions(&mut self) -> Result<Vec<Suspension>> {
        let statements = match self {
            Self::Sqlite(_) => {
                "select 'drop trigger \"' || name || '\"', sql from sqlite_master where type = 'trigger' order by name"
            }
            Self::Postgres(_) => {
                "select format('alter table %I drop constraint %I', t.relname, c.conname),
                    format('alter table %I add constraint %I %s', t.relname, c.conname, pg_get_constraintdef(c.oid))
                 from pg_constraint c join pg_class t on t.oid = c.conrelid
                 where c.contype = 'f' and t.relnamespace = current_schema()::regnamespace
                 union all
                 select format('alter table %I disable trigger user', t.relname),
                    format('alter table %I enable trigger user', t.relname)
                 from pg_class t where t.relnamespace = current_schema()::regnamespace
                    and exists (select 1 from pg_trigger where tgrelid = t.oid and not tgisinternal)"
            }
        };
        self.query(statements.to_owned()).await
    }

    /// Returns the statements that [`suspensions`](Self::suspensions) has stored.
    pub(super) async fn deferred(&mut self) -> Result<Vec<String>> {
        let statements: Vec<(String,)> = self.query(format!("select statement from {DEFERRED} order by position")).await?;
        Ok(statements.into_iter().map(|(statement,)| statement).collect())
    }

    /// Collects the statistics of PostgreSQL, without which the first statements of a server would be slow. A server doesn't use
    /// those of SQLite.
    pub(super) async fn collect_statistics(&mut self) -> Result<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(_) => self.execute("analyze").await,
        }
    }

    /// Sets the identity columns of PostgreSQL to follow the copied values.
    pub(super) async fn set_identities(&mut self) -> Result<()> {
        if let Self::Sqlite(_) = self {
            return Ok(());
        }
        let identities =
            "select format('select setval(pg_get_serial_sequence(%L, %L), coalesce(max(%I), 1), max(%I) is not null) from %I',
                table_name, column_name, column_name, column_name, table_name)
            from information_schema.columns where table_schema = current_schema() and is_identity = 'YES'";
        let statements: Vec<(String,)> = self.query(identities.to_owned()).await?;
        for (statement,) in statements {
            self.execute(&statement).await?;
        }
        Ok(())
    }

    /// Fills the full-text index of SQLite, whose triggers were suspended. PostgreSQL has filled its own.
    pub(super) async fn rebuild_search_index(&mut self) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.execute("insert into event_search (event_search) values ('rebuild')").await,
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Checks the foreign keys of SQLite. PostgreSQL has checked its own when they were created again.
    pub(super) async fn check_foreign_keys(&mut self) -> Result<()> {
        if let Self::Postgres(_) = self {
            return Ok(());
        }
        let missing: Vec<(String, String)> =
            self.query("select distinct \"table\", parent from pragma_foreign_key_check limit 10".to_owned()).await?;
        let missing: Vec<String> = missing.into_iter().map(|(table, parent)| format!("{table} to {parent}")).collect();
        ensure!(missing.is_empty(), "references between tables lead to rows that don't exist: {}", missing.join(", "));
        Ok(())
    }

    /// Returns whether the tables of a copy exist.
    pub(super) async fn has_progress(&mut self) -> Result<bool> {
        let exists = match self {
            Self::Sqlite(connection) => open::has_unfinished_copy_sqlite(connection).await,
            Self::Postgres(connection) => open::has_unfinished_copy_postgres(connection).await,
        };
        Ok(exists?)
    }

    /// Returns the rows that were copied of each table, the last primary key as JSON, and true if the table is complete.
    pub(super) async fn progress(&mut self) -> Result<Vec<(String, i64, Option<String>, bool)>> {
        self.query(format!("select table_name, copied_rows, last_key, is_complete from {PROGRESS}")).await
    }

    /// Records the progress of a table.
    pub(super) async fn save_progress(
        &mut self,
        table: &str,
        rows: u64,
        last_key: Option<String>,
        is_complete: bool,
    ) -> Result<()> {
        let sql = "insert into copy_progress (table_name, copied_rows, last_key, is_complete) values ($1, $2, $3, $4)
            on conflict (table_name) do update set copied_rows = excluded.copied_rows, last_key = excluded.last_key,
                is_complete = excluded.is_complete";
        let rows = i64::try_from(rows)?;
        on_either!(self, |connection| {
            sqlx::query(sql).bind(table).bind(rows).bind(last_key).bind(is_complete).execute(connection).await.map(drop)
        })?;
        Ok(())
    }

    /// Stores a statement that completes the copy.
    pub(super) async fn defer(&mut self, position: usize, statement: &str) -> Result<()> {
        let sql = "insert into copy_deferred (position, statement) values ($1, $2)";
        let position = i64::try_from(position)?;
        on_either!(self, |connection| sqlx::query(sql).bind(position).bind(statement).execute(connection).await.map(drop))?;
        Ok(())
    }
}

async fn open_sqlite(path: &Path) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .locking_mode(SqliteLockingMode::Exclusive)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(false)
        .busy_timeout(BUSY_TIMEOUT);
    let opened = async {
        let mut connection = SqliteConnection::connect_with(&options).await?;
        // Takes the lock now. It is held until the connection is closed.
        connection.execute("begin immediate; rollback").await?;
        Ok(connection)
    };
    opened.await.map_err(|error: sqlx::Error| {
        let is_locked =
            error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok()).is_some_and(|code| code & 0xff == 5);
        let context =
            if is_locked { "another program, such as a server, uses the database; stop it first" } else { "SQLite fails" };
        anyhow::Error::new(error).context(context)
    })
}

/// Waits a moment for servers that have just been stopped, and returns an error if another program is connected.
async fn reject_other_connections(connection: &mut PgConnection) -> Result<()> {
    let others = "select coalesce(nullif(application_name, ''), usename::text, 'unnamed') || ' (process ' || pid || ')'
        from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' order by pid limit 10";
    let start = Instant::now();
    loop {
        let others: Vec<String> = sqlx::query_scalar(others).fetch_all(&mut *connection).await?;
        if others.is_empty() {
            return Ok(());
        }
        ensure!(
            start.elapsed() < BUSY_TIMEOUT,
            "other programs, such as servers, are connected to the database to copy; stop them first: {}",
            others.join(", ")
        );
        sleep(Duration::from_millis(100)).await;
    }
}

type SqliteQuery<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

fn bind_sqlite<'q>(query: SqliteQuery<'q>, value: &'q Value) -> SqliteQuery<'q> {
    match value {
        Value::Null => query.bind(None::<i64>),
        Value::Integer(number) => query.bind(*number),
        Value::Boolean(is_true) => query.bind(*is_true),
        Value::Double(number) => query.bind(*number),
        Value::Text(text) => query.bind(text.as_str()),
        Value::Bytes(bytes) => query.bind(bytes.as_slice()),
    }
}

/// Returns the rows of a stream up to the maximum size of a page.
async fn take_page(rows: impl Stream<Item = sqlx::Result<Vec<Value>>>) -> sqlx::Result<Vec<Vec<Value>>> {
    let mut rows = std::pin::pin!(rows);
    let (mut page, mut size) = (Vec::new(), 0);
    while size < PAGE_BYTES
        && let Some(row) = rows.try_next().await?
    {
        size += row.iter().map(Value::size).sum::<usize>();
        page.push(row);
    }
    Ok(page)
}

async fn write_sqlite(connection: &mut SqliteConnection, table: &Table, rows: &[Vec<Value>]) -> Result<()> {
    let width = table.columns.len();
    for chunk in rows.chunks((SQLITE_VALUES / width).max(1)) {
        let row = |row: usize| {
            let places: Vec<String> = (1..=width).map(|column| format!("${}", row * width + column)).collect();
            format!("({})", places.join(", "))
        };
        let places: Vec<String> = (0..chunk.len()).map(row).collect();
        let sql = format!("insert into \"{}\" ({}) values {}", table.name, table.column_list(), places.join(", "));
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for value in chunk.iter().flatten() {
            query = bind_sqlite(query, value);
        }
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

async fn write_postgres(connection: &mut PgConnection, table: &Table, rows: &[Vec<Value>]) -> Result<()> {
    let mut data = Vec::new();
    for row in rows {
        for (index, value) in row.iter().enumerate() {
            if index > 0 {
                data.push(b'\t');
            }
            value.append_copy_text(&mut data);
        }
        data.push(b'\n');
    }
    // The encoding of the connection is UTF-8, sqlx's default.
    let mut copy = connection.copy_in_raw(&format!("copy \"{}\" ({}) from stdin", table.name, table.column_list())).await?;
    copy.send(data.as_slice()).await?;
    copy.finish().await?;
    Ok(())
}
