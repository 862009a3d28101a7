//! A copy of a test's database, to find and to revert the changes since.
//!
//! ```ignore
//! let mut before = Snapshot::take(&app).await;
//! app.request("DELETE", "/regions/1").send().await;
//! assert_eq!(before.changes().await, [""; 0]);
//! ```

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::fake_gateway::GatewaySnapshot;
use super::mailbox::DeliveryGuard;
use super::{FakeGateway, TestApp, wait_until};

/// Tables that are neither compared nor restored. The audit log changes with every request, and its rows can't be deleted. Jobs record
/// their runs at any time. Restoring events queues them for the search, and counts as changes of them: a server must not find the
/// numbers of changes that it has seen before.
const EXCLUDED_TABLES: [&str; 6] =
    ["_sqlx_migrations", "audit", "event_changes", "event_search_queue", "job_runs", "published_event_changes"];
/// Tables that triggers keep. They are restored but not compared, because they follow from the others, and numbers are spread over parts
/// by chance.
const KEPT_TABLES: [&str; 5] = ["list_counts", "host_orders", "event_sales", "host_customers", "host_sales"];
/// Columns that change without a request: the last use of a key, and the delivery attempts of a mail.
const VOLATILE_COLUMNS: [&str; 2] = ["last_used", "attempts"];

/// A copy of every table, in a schema beside the original, and of the gateway's balances.
pub struct Snapshot {
    connection: DbConnection,
    tables: Vec<Table>,
    gateway: FakeGateway,
    gateway_snapshot: GatewaySnapshot,
    /// Keeps new mail in the outbox, where it is compared.
    _mail: DeliveryGuard,
}

enum DbConnection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

struct Table {
    name: String,
    columns: Vec<String>,
}

impl Snapshot {
    /// Copies the database once all mail is delivered. Until the snapshot is dropped, no mail is delivered.
    pub async fn take(app: &TestApp) -> Self {
        app.deliver_mail().await;
        wait_until(async || {
            let mut tx = app.state.db.read().await.unwrap();
            tx.query("select count(*) from outbox where due is not null").scalar::<i64>().await.unwrap() == 0
        })
        .await;
        let mail = app.mailbox.block().await;
        let mut snapshot = match app.database_url.strip_prefix("sqlite:") {
            Some(path) => Self::of_sqlite(app, path, mail).await,
            None => Self::of_postgres(app, mail).await,
        };
        for table in 0..snapshot.tables.len() {
            let name = snapshot.tables[table].name.clone();
            snapshot.run(format!("create table backup.{name} as select * from {name}")).await;
        }
        snapshot
    }

    async fn of_sqlite(app: &TestApp, path: &str, mail: DeliveryGuard) -> Self {
        let mut connection = SqliteConnection::connect(&format!("sqlite:{path}")).await.unwrap();
        let columns = "select t.name, c.name from sqlite_schema t join pragma_table_info(t.name) c
            where t.name in (select l.name from pragma_table_list l where l.schema = 'main' and l.type = 'table')
                and t.name not like 'sqlite_%' order by t.rowid, c.cid";
        let columns = sqlx::query_as(columns).fetch_all(&mut connection).await.unwrap();
        let mut snapshot = Self::new(app, DbConnection::Sqlite(connection), columns, mail);
        snapshot.run("attach ':memory:' as backup".to_owned()).await;
        snapshot
    }

    async fn of_postgres(app: &TestApp, mail: DeliveryGuard) -> Self {
        let mut connection = PgConnection::connect(&app.database_url).await.unwrap();
        // In order of creation, so that foreign keys refer to earlier tables only.
        let columns = "select relname::text, attname::text from pg_class join pg_attribute on attrelid = pg_class.oid
            where relkind = 'r' and relnamespace = 'public'::regnamespace and attnum > 0 and not attisdropped
            order by pg_class.oid, attnum";
        let columns = sqlx::query_as(columns).fetch_all(&mut connection).await.unwrap();
        let mut snapshot = Self::new(app, DbConnection::Postgres(connection), columns, mail);
        snapshot.run("create schema backup".to_owned()).await;
        snapshot
    }

    fn new(app: &TestApp, connection: DbConnection, columns: Vec<(String, String)>, mail: DeliveryGuard) -> Self {
        let mut tables: Vec<Table> = Vec::new();
        for (table, column) in columns.into_iter().filter(|(table, _)| !EXCLUDED_TABLES.contains(&table.as_str())) {
            if tables.last().is_none_or(|last| last.name != table) {
                tables.push(Table { name: table, columns: Vec::new() });
            }
            tables.last_mut().unwrap().columns.push(column);
        }
        Self { connection, tables, gateway: app.gateway.clone(), gateway_snapshot: app.gateway.snapshot(), _mail: mail }
    }

    /// Returns every row that was inserted (`+`) or deleted (`-`) since. A changed row appears with both signs.
    pub async fn changes(&mut self) -> Vec<String> {
        let is_sqlite = matches!(self.connection, DbConnection::Sqlite(_));
        let original = if is_sqlite { "main" } else { "public" };
        let changes = |sign: &str, Table { name, columns }: &Table, one: &str, other: &str| {
            let columns: Vec<_> =
                columns.iter().filter(|column| !VOLATILE_COLUMNS.contains(&column.as_str())).map(String::as_str).collect();
            let row = if is_sqlite { format!("quote({})", columns.join(") || ', ' || quote(")) } else { "t::text".to_owned() };
            let columns = columns.join(", ");
            format!(
                "select '{sign} {name}: ' || {row} from (select {columns} from {one}.{name} except select {columns} from {other}.{name}) t"
            )
        };
        let both = |table| [changes("-", table, "backup", original), changes("+", table, original, "backup")];
        let compared = self.tables.iter().filter(|table| !KEPT_TABLES.contains(&table.name.as_str()));
        let query = compared.flat_map(both).collect::<Vec<_>>().join(" union all ");
        let query = AssertSqlSafe(query);
        match &mut self.connection {
            DbConnection::Sqlite(connection) => sqlx::query_scalar(query).fetch_all(connection).await.unwrap(),
            DbConnection::Postgres(connection) => sqlx::query_scalar(query).fetch_all(connection).await.unwrap(),
        }
    }

    /// Restores the database and the payment gateway.
    pub async fn restore(&mut self) {
        self.gateway.restore(&self.gateway_snapshot);
        let names = || self.tables.iter().map(|table| table.name.as_str());
        // Triggers have filled them when the rows of other tables were inserted.
        let restore = |name| {
            let empty = if KEPT_TABLES.contains(&name) { format!("delete from {name}; ") } else { String::new() };
            format!("{empty}insert into {name} select * from backup.{name};")
        };
        let restore = names().map(restore).collect::<String>();
        let script = match self.connection {
            DbConnection::Sqlite(_) => {
                let empty = names().map(|name| format!("delete from {name};")).collect::<String>();
                format!("begin immediate; pragma defer_foreign_keys = on; {empty} {restore} commit")
            }
            DbConnection::Postgres(_) => {
                let all = names().collect::<Vec<_>>().join(", ");
                format!("begin; truncate {all}, event_search_queue; {restore} commit")
            }
        };
        self.run(script).await;
    }

    async fn run(&mut self, sql: String) {
        match &mut self.connection {
            DbConnection::Sqlite(connection) => drop(sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap()),
            DbConnection::Postgres(connection) => {
                // A job may read a table that is locked already, and have read one that isn't yet: PostgreSQL cancels one of both.
                while let Err(error) = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut *connection).await {
                    assert_eq!(error.as_database_error().and_then(|error| error.code()).as_deref(), Some("40P01"), "{error}");
                    sqlx::raw_sql("rollback").execute(&mut *connection).await.unwrap();
                }
            }
        }
    }
}
