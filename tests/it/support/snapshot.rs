//! A world's database as it was at one moment: what has changed in it since, and the way back.
//!
//! ```ignore
//! let mut before = Snapshot::of(&world).await;
//! world.request("DELETE", "/regions/1").send().await;
//! assert_eq!(before.changes().await, [""; 0]);
//! ```

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::post::Held;
use super::till::Books;
use super::{Till, World, eventually};

/// Tables that tell nothing of what a request has done, and are not put back: from the trail that every request leaves nothing can
/// be taken away.
const APART: [&str; 2] = ["_sqlx_migrations", "audit"];
/// Columns that change by themselves: when a key was last used, and how often a job has tried to send a mail.
const PASSING: [&str; 2] = ["last_used", "attempts"];

/// A copy of every table, beside the database.
pub struct Snapshot {
    connection: Session,
    tables: Vec<Table>,
    till: Till,
    books: Books,
    /// A mail that a request has written down stays where it is, to be compared.
    _mail: Held,
}

enum Session {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

struct Table {
    name: String,
    columns: Vec<String>,
}

impl Snapshot {
    /// Takes it, once no mail is on its way; until it is dropped, none leaves.
    pub async fn of(world: &World) -> Self {
        world.deliver().await;
        eventually(async || {
            let mut tx = world.app.db.read().await.unwrap();
            tx.query("select count(*) from outbox where due is not null").scalar::<i64>().await.unwrap() == 0
        })
        .await;
        let mail = world.post.hold().await;
        let mut snapshot = match world.database_url.strip_prefix("sqlite:") {
            Some(path) => Self::of_sqlite(world, path, mail).await,
            None => Self::of_postgres(world, mail).await,
        };
        for table in 0..snapshot.tables.len() {
            let name = snapshot.tables[table].name.clone();
            snapshot.run(format!("create table kept.{name} as select * from {name}")).await;
        }
        snapshot
    }

    async fn of_sqlite(world: &World, path: &str, mail: Held) -> Self {
        let mut connection = SqliteConnection::connect(&format!("sqlite:{path}")).await.unwrap();
        let columns = "select t.name, c.name from sqlite_schema t join pragma_table_info(t.name) c
            where t.type = 'table' and t.name not like 'sqlite_%' order by t.rowid, c.cid";
        let columns = sqlx::query_as(columns).fetch_all(&mut connection).await.unwrap();
        let mut snapshot = Self::new(world, Session::Sqlite(connection), columns, mail);
        snapshot.run("attach ':memory:' as kept".to_owned()).await;
        snapshot
    }

    async fn of_postgres(world: &World, mail: Held) -> Self {
        let mut connection = PgConnection::connect(&world.database_url).await.unwrap();
        // In the order of their making, in which each refers to earlier ones alone.
        let columns = "select relname::text, attname::text from pg_class join pg_attribute on attrelid = pg_class.oid
            where relkind = 'r' and relnamespace = 'public'::regnamespace and attnum > 0 and not attisdropped
            order by pg_class.oid, attnum";
        let columns = sqlx::query_as(columns).fetch_all(&mut connection).await.unwrap();
        let mut snapshot = Self::new(world, Session::Postgres(connection), columns, mail);
        snapshot.run("create schema kept".to_owned()).await;
        snapshot
    }

    fn new(world: &World, connection: Session, columns: Vec<(String, String)>, mail: Held) -> Self {
        let mut tables: Vec<Table> = Vec::new();
        for (table, column) in columns.into_iter().filter(|(table, _)| !APART.contains(&table.as_str())) {
            if tables.last().is_none_or(|last| last.name != table) {
                tables.push(Table { name: table, columns: Vec::new() });
            }
            tables.last_mut().unwrap().columns.push(column);
        }
        Self { connection, tables, till: world.till.clone(), books: world.till.books(), _mail: mail }
    }

    /// Every row that has come (`+`) or gone (`-`) since; a row that was changed has done both.
    pub async fn changes(&mut self) -> Vec<String> {
        let is_sqlite = matches!(self.connection, Session::Sqlite(_));
        let here = if is_sqlite { "main" } else { "public" };
        let changes = |sign: &str, Table { name, columns }: &Table, here: &str, there: &str| {
            let columns: Vec<_> =
                columns.iter().filter(|column| !PASSING.contains(&column.as_str())).map(String::as_str).collect();
            let row = if is_sqlite { format!("quote({})", columns.join(") || ', ' || quote(")) } else { "t::text".to_owned() };
            let columns = columns.join(", ");
            format!(
                "select '{sign} {name}: ' || {row} from (select {columns} from {here}.{name} except select {columns} from {there}.{name}) t"
            )
        };
        let both = |table| [changes("-", table, "kept", here), changes("+", table, here, "kept")];
        let query = self.tables.iter().flat_map(both).collect::<Vec<_>>().join(" union all ");
        let query = AssertSqlSafe(query);
        match &mut self.connection {
            Session::Sqlite(connection) => sqlx::query_scalar(query).fetch_all(connection).await.unwrap(),
            Session::Postgres(connection) => sqlx::query_scalar(query).fetch_all(connection).await.unwrap(),
        }
    }

    /// Makes the database again what it was, and with it the books of the payment gateway.
    pub async fn restore(&mut self) {
        self.till.reopen(&self.books);
        let names = || self.tables.iter().map(|table| table.name.as_str());
        let put_back = names().map(|name| format!("insert into {name} select * from kept.{name};")).collect::<String>();
        let script = match self.connection {
            Session::Sqlite(_) => {
                let empty = names().map(|name| format!("delete from {name};")).collect::<String>();
                format!("begin immediate; pragma defer_foreign_keys = on; {empty} {put_back} commit")
            }
            Session::Postgres(_) => {
                let all = names().collect::<Vec<_>>().join(", ");
                format!("begin; truncate {all}; {put_back} commit")
            }
        };
        self.run(script).await;
    }

    async fn run(&mut self, sql: String) {
        let sql = AssertSqlSafe(sql);
        match &mut self.connection {
            Session::Sqlite(connection) => drop(sqlx::raw_sql(sql).execute(connection).await.unwrap()),
            Session::Postgres(connection) => drop(sqlx::raw_sql(sql).execute(connection).await.unwrap()),
        }
    }
}
