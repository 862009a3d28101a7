//! Changes of the tables by a newer version while servers run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use tokio::time::sleep;

use super::{check, create_load, fault_duration, print_figure};
use crate::support::{TestApp, test_on, wait_until};

/// A connection of another program.
enum Other {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Other {
    async fn connect(url: &str) -> Self {
        if url.starts_with("sqlite:") {
            return Self::Sqlite(SqliteConnection::connect(url).await.unwrap());
        }
        Self::Postgres(PgConnection::connect(url).await.unwrap())
    }

    async fn execute(&mut self, sql: String) {
        let sql = AssertSqlSafe(sql);
        match self {
            Self::Sqlite(connection) => drop(sqlx::raw_sql(sql).execute(connection).await.unwrap()),
            Self::Postgres(connection) => drop(sqlx::raw_sql(sql).execute(connection).await.unwrap()),
        }
    }
}

/// The changes that the policy for migrations allows while the previous version runs.
#[test_on(sqlite, postgres, two_servers)]
async fn new_columns_tables_and_indexes_fail_no_request(app: TestApp) {
    let load = create_load(&app).await;
    let mut other = Other::connect(&app.database_url).await;
    let tables = app.tables().await;
    assert!(tables.len() > 30, "{tables:?}");
    let (stopped, work) = (AtomicBool::new(false), load.start(&app.address));
    let event = format!("/events/{}", load.event);
    let staff = async {
        let mut count = 0;
        while !stopped.load(Ordering::Relaxed) {
            for path in [
                "/accounts",
                "/events",
                "/hosts",
                "/regions",
                "/venues",
                "/categories",
                "/zones",
                "/orders",
                "/transactions",
                &event,
            ] {
                assert_eq!(app.get(&app.staff.key, path).await.status, 200, "{path}");
            }
            let change = app.request("PUT", &event).key(&app.staff.key).json(&json!({ "description": format!("Jazz {count}") }));
            assert_eq!(change.send().await.status, 200);
            count += 11;
        }
        count
    };
    let migration = async {
        wait_until(async || !load.records().transfers.is_empty()).await;
        for table in &tables {
            other.execute(format!("alter table {table} add column new_fact bigint")).await;
            other.execute(format!("alter table {table} add column new_name text not null default ''")).await;
            sleep(Duration::from_millis(20)).await;
        }
        other
            .execute(
                "create table new_things (id bigint primary key, order_id bigint not null references orders (id))".to_owned(),
            )
            .await;
        let concurrently = if matches!(other, Other::Postgres(_)) { "concurrently" } else { "" };
        other.execute(format!("create index {concurrently} new_index on orders (new_fact)")).await;
        let before = load.records().done_at.len();
        wait_until(async || load.records().done_at.len() > before + 50).await;
        sleep(fault_duration(1)).await;
        stopped.store(true, Ordering::Relaxed);
    };
    let (staff_requests, ()) = tokio::join!(staff, migration);
    work.stop().await;

    check(&app, &load).await;
    assert!(load.records().unavailable.is_empty(), "{}", load.figures());
    print_figure(format!(
        "2 columns added to each of {} tables, a table and an index: 0 requests failed, and {staff_requests} by staff; {}",
        tables.len(),
        load.figures()
    ));
}

/// PostgreSQL rejects prepared statements whose result has other types than before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_recovers_from_a_changed_type() {
    let Some(app) = TestApp::on_postgres().await else { return };
    let zone = app.create_zone(300, 250).await;
    let read = async || app.request("GET", &zone).send().await.status;
    let rename = async |name: &str| {
        let request = app.request("PUT", &zone).key(&app.staff.key).json(&json!({ "name": name }));
        request.send().await.status
    };
    // On several connections.
    futures::future::join_all((0..20).map(|_| read())).await;
    assert_eq!(rename("Footer").await, 200);

    let mut other = Other::connect(&app.database_url).await;
    other.execute("alter table zones alter column name type varchar(300)".to_owned()).await;
    let changed = rename("Header").await;
    let mut statuses = Vec::new();
    for _ in 0..30 {
        statuses.push(read().await);
    }

    assert_eq!(changed, 200, "a transaction is run again");
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    assert!(statuses[10..].iter().all(|status| *status == 200), "{statuses:?}");
}
