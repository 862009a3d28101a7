//! Plans of SQLite.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use boxoffice::kernel::db::Db;
use regex::Regex;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use super::Plans;
use super::access::Access;

/// The indexes of the tables by name.
type Indexes = HashMap<String, Index>;

struct Index {
    table: String,
    columns: usize,
    is_unique: bool,
    /// True if it has only some of the rows.
    is_partial: bool,
}

/// Returns the plans of the statements that SQLite can execute, after somebody has collected statistics of tables with few rows.
pub async fn accesses(statements: &BTreeSet<String>) -> Plans {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
    drop(Db::open(&url).await.unwrap());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    let few = "analyze; insert into sqlite_stat1 (tbl, idx, stat) select tbl_name, name, '10 1' from sqlite_master where type = 'index'";
    sqlx::raw_sql(few).execute(&mut connection).await.unwrap();
    drop(Db::open(&url).await.unwrap());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    let indexes = indexes(&mut connection).await;
    let mut plans = Plans::new();
    for text in statements {
        let explain = AssertSqlSafe(format!("explain query plan {text}"));
        // PostgreSQL's statements fail.
        let Ok(rows) = sqlx::query(explain).fetch_all(&mut connection).await else { continue };
        let steps: Vec<Step> = rows.iter().map(|row| Step { id: row.get(0), parent: row.get(1), detail: row.get(3) }).collect();
        plans.insert(text.clone(), steps.iter().filter_map(|step| step.access(&steps, text, &indexes)).collect());
    }
    plans
}

/// Returns whether the plans of SQLite depend on the values that are bound. Then it plans a statement again for each execution. Options in
/// `.cargo/config.toml` prevent it.
pub async fn plans_depend_on_values() -> bool {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    let options: Vec<String> = sqlx::query_scalar("pragma compile_options").fetch_all(&mut connection).await.unwrap();
    let has = |option: &str| options.iter().any(|one| one == option);
    has("ENABLE_STAT4") || !has("ENABLE_QPSG")
}

/// A row of `explain query plan`.
struct Step {
    id: i64,
    parent: i64,
    detail: String,
}

impl Step {
    /// Returns the table that this step reads, if it reads one.
    fn access(&self, steps: &[Self], text: &str, indexes: &Indexes) -> Option<Access> {
        static READ: LazyLock<Regex> = LazyLock::new(|| {
            let by = r"(?: USING (?:AUTOMATIC |PARTIAL )*(?:COVERING )?(?:INDEX (\w+)|INTEGER PRIMARY KEY))?(?: \((.*)\))?";
            Regex::new(&format!(r"^(SEARCH|SCAN) (\w+){by}")).unwrap()
        });
        static EQUAL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(<expr>|\w+)=\?").unwrap());

        let read = READ.captures(&self.detail)?;
        let (kind, name, index) = (&read[1], &read[2], read.get(3).map(|index| index.as_str()));
        if self.detail.contains("VIRTUAL TABLE") {
            return None;
        }
        let conditions = read.get(4).map_or("", |conditions| conditions.as_str());
        let columns: Vec<String> = EQUAL.captures_iter(conditions).map(|column| column[1].to_owned()).collect();
        let index = index.and_then(|index| indexes.get(index));
        let table = index.map_or_else(|| table_of(name, text), |index| Some(index.table.clone()))?;
        // Without a condition it is the first or the last entry of the index. A range narrows as far as the statement allows it.
        let is_extreme_or_range = kind == "SEARCH" && columns.is_empty();
        let has_key = columns.iter().any(|column| column == "rowid" || column == "id");
        // A scan of a partial index reads all of its rows, such as all open orders.
        let has_unique_index =
            index.is_some_and(|index| index.is_partial && kind == "SEARCH" || index.is_unique && columns.len() == index.columns);
        let is_narrowed = is_extreme_or_range || has_key || has_unique_index;
        let is_sorted = !steps.iter().any(|step| step.parent == self.parent && step.detail.contains("TEMP B-TREE FOR ORDER BY"));
        let is_page = self.parent == 0 && is_sorted && has_limit(text) && self.is_outermost(steps);
        Some(Access { table, columns, is_narrowed, is_page })
    }

    /// Returns whether this step is the first of its select, so that the limit ends it.
    fn is_outermost(&self, steps: &[Self]) -> bool {
        steps.iter().filter(|step| step.parent == self.parent).map(|step| step.id).min() == Some(self.id)
    }
}

/// Returns whether a statement has a limit outside of its subqueries.
fn has_limit(text: &str) -> bool {
    let mut depth = 0;
    let outside = text.chars().filter(|letter| {
        depth += i32::from(*letter == '(') - i32::from(*letter == ')');
        depth == 0
    });
    outside.collect::<String>().contains(" limit ")
}

/// Returns the table with this name or alias in a statement. `None` for a subquery.
fn table_of(name: &str, text: &str) -> Option<String> {
    let table = Regex::new(&format!(r"\b(?:from|join|update|into|,) (\w+)(?: as)? {name}\b")).unwrap();
    let plain = Regex::new(&format!(r"\b(?:from|join|update|into) {name}\b")).unwrap();
    match table.captures(text) {
        Some(found) if !["delete", "select"].contains(&&found[1]) => Some(found[1].to_owned()),
        _ => plain.is_match(text).then(|| name.to_owned()),
    }
}

async fn indexes(connection: &mut SqliteConnection) -> Indexes {
    let list = "select m.name, i.name, i.\"unique\", i.partial, (select count(*) from pragma_index_info(i.name))
        from sqlite_master m join pragma_index_list(m.name) i where m.type = 'table'";
    let rows = sqlx::query(list).fetch_all(connection).await.unwrap();
    let index = |row: &SqliteRow| Index {
        table: row.get(0),
        is_unique: row.get(2),
        is_partial: row.get(3),
        columns: usize::try_from(row.get::<i64, _>(4)).unwrap(),
    };
    rows.iter().map(|row| (row.get(1), index(row))).collect()
}
