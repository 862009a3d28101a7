//! A PostgreSQL that allows fewer connections than the server's pool has.

use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::failures::LogBuffer;
use crate::support::{ANY_PORT, TestApp, wait_until};

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
    let log = LogBuffer::default();
    let limited = app.start_second_server_on(app.state.settings.clone(), log.logger(), ANY_PORT).await;
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
    let metrics = limited.state.metrics.encode().unwrap();
    let refused = metrics.lines().find_map(|line| line.strip_prefix("boxoffice_database_refused_connections_total "));
    assert!(refused.unwrap().parse::<u32>().unwrap() > 0, "{metrics}");

    // The next change of the state.
    app.execute_sql("do $$ begin execute format('alter role %I connection limit 30', current_database()); end $$").await;
    let mut connections = Vec::new();
    for _ in 0..=ALLOWED {
        connections.push(limited.state.db.begin().await.unwrap());
    }
    drop(connections);
    let messages = log.lines().into_iter().filter(|line| line["msg"].as_str().unwrap().starts_with("PostgreSQL"));
    let messages: Vec<_> = messages.collect();
    let refused = &messages[0];
    assert!(refused["msg"].as_str().unwrap().starts_with("PostgreSQL refuses more connections"), "{}", log.text());
    assert!(refused["cause"].as_str().unwrap().contains("too many connections for role"), "{refused}");
    let is_accepted = |message: &&Value| message["msg"] == "PostgreSQL accepts connections again";
    let accepted = messages.iter().filter(is_accepted).count();
    // Each pool logs the changes of its state.
    assert!(accepted > 0 && messages.len() <= 2 * accepted + limited.state.db.pools().len(), "{}", log.text());

    limited.stop().await;
    app.execute_sql("do $$ begin execute format('drop role %I', current_database()); end $$").await;
}
