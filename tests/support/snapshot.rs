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
use super::{FakeGateway, TestApp};

/// Tables that are neither compared nor restored. The audit log changes with every request, and its rows can't be deleted. Restoring
/// events queues them for the search, and counts as changes of them: a server must not find the numbers of changes that it has seen
/// before.
const EXCLUDED_TABLES: [&str; 5] =
    ["_sqlx_migrations", "audit", "event_changes", "event_search_queue", "published_event_changes"];
/// Tables that triggers keep. They are restored but not compared, because they follow from the others, and numbers are spread over parts
/// by chance.
const KEPT_TABLES: [&str; 6] = ["list_counts", "host_orders", "removed_events", "event_sales", "host_customers", "host_sales"];
/// A column that changes with requests of any kind.
const LAST_USE: &str = "last_used";

/// A copy of every table, in a schema beside the original, and of the gateway's balances.
pub struct Snapshot {
    connection: DbConnection,
    tables: Vec<Table>,
    gateway: FakeGateway,
    gateway_snapshot: GatewaySnapshot,
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
    /// Copies the database once all mail is delivered. From then on, the test's servers run no jobs, and new mail stays in the outbox.
    pub async fn take(app: &TestApp) -> Self {
        app.stop_jobs().await;
        app.deliver_mail().await;
        match app.database_url.strip_prefix("sqlite:") {
            Some(path) => Self::of_sqlite(app, path).await,
            None => Self::of_postgres(app).await,
        }
    }

    async fn of_sqlite(app: &TestApp, path: &str) -> Self {
        let mut connection = SqliteConnection::connect(&format!("sqlite:{path}")).await.unwrap();
        let columns = "select t.name, c.name from sqlite_schema t join pragma_table_info(t.name) c
            where t.name in (select l.name from pragma_table_list l where l.schema = 'main' and l.type = 'table')
                and t.name not like 'sqlite_%' order by t.rowid, c.cid";
        let columns = sqlx::query_as(columns).fetch_all(&mut connection).await.unwrap();
        let mut snapshot = Self::new(app, DbConnection::Sqlite(connection), columns);
        let copy = |table: &Table| format!("create table backup.{0} as select * from {0};", table.name);
        let copies: String = snapshot.tables.iter().map(copy).collect();
        snapshot.run(format!("attach ':memory:' as backup; {copies}")).await;
        snapshot
    }

    /// Also creates triggers that record which tables change: comparing and restoring all of them takes a tenth of a second.
    async fn of_postgres(app: &TestApp) -> Self {
        let mut connection = PgConnection::connect(&app.database_url).await.unwrap();
        let columns = "select relname::text, attname::text from pg_class join pg_attribute on attrelid = pg_class.oid
            where relkind = 'r' and relnamespace = 'public'::regnamespace and attnum > 0 and not attisdropped
            order by pg_class.oid, attnum";
        let columns = sqlx::query_as(columns).fetch_all(&mut connection).await.unwrap();
        let mut snapshot = Self::new(app, DbConnection::Postgres(connection), columns);
        let copy = |table: &Table| {
            format!(
                "create table backup.{0} as select * from {0};
                 create trigger record_changed_table after insert or update or delete or truncate on {0}
                     for each statement execute function backup.record_changed_table();",
                table.name
            )
        };
        let copies: String = snapshot.tables.iter().map(copy).collect();
        snapshot
            .run(format!(
                "create schema backup;
                 create table backup.changed_tables (name text not null);
                 create function backup.record_changed_table() returns trigger language plpgsql as $$
                 begin
                     insert into backup.changed_tables values (tg_table_name);
                     return null;
                 end
                 $$;
                 {copies}"
            ))
            .await;
        snapshot
    }

    fn new(app: &TestApp, connection: DbConnection, columns: Vec<(String, String)>) -> Self {
        let mut tables: Vec<Table> = Vec::new();
        for (table, column) in columns.into_iter().filter(|(table, _)| !EXCLUDED_TABLES.contains(&table.as_str())) {
            if tables.last().is_none_or(|last| last.name != table) {
                tables.push(Table { name: table, columns: Vec::new() });
            }
            tables.last_mut().unwrap().columns.push(column);
        }
        Self { connection, tables, gateway: app.gateway.clone(), gateway_snapshot: app.gateway.snapshot() }
    }

    /// Returns every row that was inserted (`+`) or deleted (`-`) since. A changed row appears with both signs.
    pub async fn changes(&mut self) -> Vec<String> {
        let changed = self.changed_tables().await;
        let is_sqlite = matches!(self.connection, DbConnection::Sqlite(_));
        let original = if is_sqlite { "main" } else { "public" };
        let changes = |sign: &str, Table { name, columns }: &Table, one: &str, other: &str| {
            let columns: Vec<_> = columns.iter().filter(|column| column.as_str() != LAST_USE).map(String::as_str).collect();
            let row = if is_sqlite { format!("quote({})", columns.join(") || ', ' || quote(")) } else { "t::text".to_owned() };
            let columns = columns.join(", ");
            format!(
                "select '{sign} {name}: ' || {row} from (select {columns} from {one}.{name} except select {columns} from {other}.{name}) t"
            )
        };
        let both = |table| [changes("-", table, "backup", original), changes("+", table, original, "backup")];
        let compared =
            self.tables.iter().filter(|table| changed.contains(&table.name) && !KEPT_TABLES.contains(&table.name.as_str()));
        let queries: Vec<String> = compared.flat_map(both).collect();
        if queries.is_empty() {
            return Vec::new();
        }
        let query = AssertSqlSafe(queries.join(" union all "));
        match &mut self.connection {
            DbConnection::Sqlite(connection) => sqlx::query_scalar(query).fetch_all(connection).await.unwrap(),
            DbConnection::Postgres(connection) => sqlx::query_scalar(query).fetch_all(connection).await.unwrap(),
        }
    }

    /// Restores the database and the payment gateway.
    pub async fn restore(&mut self) {
        self.gateway.restore(&self.gateway_snapshot);
        let changed = self.changed_tables().await;
        let script = match self.connection {
            DbConnection::Sqlite(_) => {
                let empty = changed.iter().map(|name| format!("delete from {name};")).collect::<String>();
                // Triggers have filled them when the rows of other tables were inserted.
                let restore = |name: &String| {
                    let empty =
                        if KEPT_TABLES.contains(&name.as_str()) { format!("delete from {name}; ") } else { String::new() };
                    format!("{empty}insert into {name} select * from backup.{name};")
                };
                let restore = changed.iter().map(restore).collect::<String>();
                // A trigger has counted the modifiers again.
                let recount = "update sections set active_modifiers =
                    (select b.active_modifiers from backup.sections b where b.id = sections.id);";
                format!("begin immediate; pragma defer_foreign_keys = on; {empty} {restore} {recount} commit")
            }
            DbConnection::Postgres(_) => {
                let restore = |name: &String| format!("delete from {name}; insert into {name} select * from backup.{name};");
                let restore = changed.iter().map(restore).collect::<String>();
                // Without triggers: in this role no foreign key is checked either. So the changes of events are recorded here.
                format!(
                    "begin;
                     set local session_replication_role = replica;
                     delete from event_search_queue;
                     {restore}
                     delete from backup.changed_tables;
                     update event_changes set count = (random() * 9e18)::bigint, position = position + 1;
                     update published_event_changes set position = (select position from event_changes);
                     insert into published_event_changes (event_id, position)
                     select id, position from events, event_changes where status = 'Listed' on conflict do nothing;
                     commit"
                )
            }
        };
        self.run(script).await;
    }

    /// Returns the tables that have changed since; on SQLite all tables.
    async fn changed_tables(&mut self) -> Vec<String> {
        match &mut self.connection {
            DbConnection::Sqlite(_) => self.tables.iter().map(|table| table.name.clone()).collect(),
            DbConnection::Postgres(connection) => {
                sqlx::query_scalar("select distinct name from backup.changed_tables").fetch_all(connection).await.unwrap()
            }
        }
    }

    async fn run(&mut self, sql: String) {
        let sql = AssertSqlSafe(sql);
        match &mut self.connection {
            DbConnection::Sqlite(connection) => drop(sqlx::raw_sql(sql).execute(connection).await.unwrap()),
            DbConnection::Postgres(connection) => drop(sqlx::raw_sql(sql).execute(connection).await.unwrap()),
        }
    }
}
