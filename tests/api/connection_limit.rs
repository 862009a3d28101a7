//! A PostgreSQL that allows fewer connections than the server's pool has.

use futures::future::{join, join_all};
use serde_json::json;

use crate::support::{TestApp, wait_until};

/// Connections that the database allows.
const ALLOWED: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_wait_for_the_connections_that_the_database_allows() {
    let Some(mut app) = TestApp::on_postgres().await else { return };
    app.execute_sql(
        "do $$ begin
             execute format('create role %I login password ''limited'' connection limit 3', current_database());
             execute format('grant %I to %I', current_user, current_database());
         end $$",
    )
    .await;
    let role: String = app.scalar("select current_database()::text").await;
    let separator = if app.database_url.contains('?') { '&' } else { '?' };
    app.database_url = format!("{}{separator}user={role}&password=limited", app.database_url);
    let limited = app.start_second_server(app.state.settings.clone()).await;
    let mut lock = app.state.db.begin().await.unwrap();
    lock.query("lock table regions in exclusive mode").execute().await.unwrap();

    let create = async |number: usize| {
        let region = json!({ "name": format!("Region {number}"), "country": "Ghana" });
        app.request("POST", "/regions").at(limited.address).key(&app.staff.key).json(&region).send().await
    };
    let release = async {
        wait_until(async || {
            let pools = limited.state.db.pools();
            let used: usize = pools.iter().map(|pool| pool.used).sum();
            used >= ALLOWED && pools.iter().any(|pool| pool.waiting > 0)
        })
        .await;
        lock.commit().await.unwrap();
    };
    let (created, ()) = join(join_all((0..3 * ALLOWED).map(create)), release).await;

    for response in created {
        assert_eq!(response.status, 201, "{}", response.body);
    }
    limited.stop().await;
    app.execute_sql("do $$ begin execute format('drop role %I', current_database()); end $$").await;
}
