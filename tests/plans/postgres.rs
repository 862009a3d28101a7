//! Plans of PostgreSQL.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use boxoffice::kernel::db::Db;
use regex::Regex;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::Plans;
use super::access::Access;
use super::support::postgres;

/// Returns the plans of the statements that PostgreSQL can execute; `None` without a PostgreSQL.
pub async fn accesses(statements: &BTreeSet<String>) -> Option<Plans> {
    let database = postgres::new_database().await?;
    drop(Db::open(&database.url).await.unwrap());
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    // By its prices alone, the planner would read empty tables completely. The generic plan is for any value.
    for setting in
        ["enable_seqscan = off", "enable_hashjoin = off", "enable_mergejoin = off", "plan_cache_mode = force_generic_plan"]
    {
        execute(&mut connection, format!("set {setting}")).await.unwrap();
    }
    let partial_indexes = partial_indexes(&mut connection).await;
    let mut plans = Plans::new();
    for text in statements {
        // SQLite's statements fail.
        let Some(plan) = explain(&mut connection, text).await else { continue };
        let mut accesses = Vec::new();
        collect(&plan[0]["Plan"], false, &partial_indexes, &mut accesses);
        plans.insert(text.clone(), accesses);
    }
    Some(plans)
}

async fn execute(connection: &mut PgConnection, sql: String) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(drop)
}

async fn explain(connection: &mut PgConnection, text: &str) -> Option<Value> {
    static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$(\d+)").unwrap());

    let numbers: BTreeSet<usize> = PLACEHOLDER.captures_iter(text).map(|number| number[1].parse().unwrap()).collect();
    let count = numbers.last().copied().unwrap_or(0);
    // The server gives the type of a value that the text doesn't use. `unknown` lets PostgreSQL find the others.
    let types = (1..=count).map(|number| if numbers.contains(&number) { "unknown" } else { "bigint" });
    let types = if count == 0 { String::new() } else { format!("({})", types.collect::<Vec<_>>().join(", ")) };
    if let Err(error) = execute(connection, format!("prepare recorded {types} as {text}")).await {
        let code = error.as_database_error().and_then(|error| error.code());
        assert_ne!(code.as_deref(), Some("42P18"), "no statement of SQLite lacks a type: {error}: {text}");
        return None;
    }
    let values = if count == 0 { String::new() } else { format!("({})", vec!["null"; count].join(", ")) };
    let explain = AssertSqlSafe(format!("explain (format json) execute recorded{values}"));
    let row = sqlx::raw_sql(explain).fetch_one(&mut *connection).await;
    execute(connection, "deallocate recorded".to_owned()).await.unwrap();
    Some(row.unwrap_or_else(|error| panic!("{error}: {text}")).get(0))
}

/// Adds the reads of a step and of those below it. `is_limited` is true below a limit whose rows need no sorting.
fn collect(step: &Value, is_limited: bool, partial_indexes: &BTreeSet<String>, accesses: &mut Vec<Access>) {
    static EQUAL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\(?\b(\w+)(?:\)::\w+)? = ").unwrap());

    let kind = step["Node Type"].as_str().unwrap();
    let steps = step["Plans"].as_array().into_iter().flatten();
    // The index of a bitmap scan is in the step below it, which has no relation.
    let index_step = if kind == "Bitmap Heap Scan" { &step["Plans"][0] } else { step };
    if let Some(table) = step["Relation Name"].as_str().filter(|_| kind.contains("Scan")) {
        // A combination of several indexes has a condition for each.
        let first = &index_step["Plans"][0];
        let index_step =
            if ["BitmapOr", "BitmapAnd"].iter().any(|kind| index_step["Node Type"] == *kind) { first } else { index_step };
        let conditions = index_step["Index Cond"].as_str().unwrap_or_default();
        let columns: Vec<String> = EQUAL.captures_iter(conditions).map(|column| column[1].to_owned()).collect();
        let is_partial = index_step["Index Name"].as_str().is_some_and(|index| partial_indexes.contains(index));
        let is_narrowed = is_partial || !conditions.is_empty();
        accesses.push(Access { table: table.to_owned(), columns, is_narrowed, is_page: is_limited });
    }
    let is_limited = kind == "Limit" || is_limited && !["Sort", "Hash", "Aggregate"].contains(&kind);
    for below in steps {
        let is_subplan = below["Parent Relationship"].as_str().is_some_and(|relation| relation != "Outer");
        collect(below, is_limited && !is_subplan, partial_indexes, accesses);
    }
}

/// Returns the indexes that have only some of the rows of their table.
async fn partial_indexes(connection: &mut PgConnection) -> BTreeSet<String> {
    let list = "select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid where i.indpred is not null";
    sqlx::query(list).fetch_all(connection).await.unwrap().iter().map(|row| row.get(0)).collect()
}
