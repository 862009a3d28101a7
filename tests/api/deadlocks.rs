//! Every operation that locks rows runs at the same time as every other one, on the same rows. PostgreSQL must not detect a
//! deadlock: it would resolve one by ending a transaction, and until then both would wait for a second.
//!
//! Triggers make each changing statement slower, so that transactions overlap.

mod fixtures;

use std::collections::HashMap;
use std::fs;

use futures::future::{join, join_all};
use rand::seq::SliceRandom;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::support::{RESERVATION_TTL, TestApp, User, race_rounds, section, test_on};
use fixtures::{Fixtures, send};

/// Fails with the server's log if PostgreSQL has detected a deadlock in the test's database.
async fn check_deadlocks(app: &TestApp) {
    // A connection publishes its statistics at its end.
    for state in app.states() {
        state.db.close().await;
    }
    let mut connection = PgConnection::connect(&app.database_url).await.unwrap();
    let select = "select deadlocks, datname::text from pg_stat_database where datname = current_database()";
    let (deadlocks, database): (i64, String) = sqlx::query_as(select).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let folder = app.database_url.split_once("host=").map(|(_, folder)| folder.to_owned()).unwrap_or_default();
    let log = fs::read_to_string(format!("{folder}/log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let detected = lines.iter().enumerate().filter(|(_, line)| line.contains(&database) && line.contains("deadlock detected"));
    // Each is followed by the statements of both transactions, and by the row for which the first one waits.
    let report = |at: usize| lines[at..].split(|line| line.contains("STATEMENT: ")).next().unwrap_or_default().join("\n");
    let reports: Vec<String> = detected.map(|(at, _)| report(at)).collect();
    assert!(deadlocks == 0 && reports.is_empty(), "{deadlocks} deadlocks\n{}", reports.join("\n\n"));
}

/// Makes each change of these tables take a few milliseconds.
async fn slow_down(app: &TestApp) {
    app.execute_sql(
        "create function pause() returns trigger language plpgsql as $$ begin perform pg_sleep(random() * 0.006); return null; end $$",
    )
    .await;
    app.execute_sql(
        "do $$ declare t text; begin
            foreach t in array array['accounts', 'account_preferences', 'admissions', 'advertisement_zones', 'advertisements',
                'api_keys', 'codes', 'event_sales', 'events', 'host_administrators', 'host_customers', 'host_orders', 'host_sales',
                'hosts', 'list_counts', 'modifiers', 'order_items', 'orders', 'payments', 'reservations', 'sections', 'submissions',
                'tickets', 'token_sections', 'tokens', 'transaction_shares', 'transactions', 'transfers', 'venues',
                'waiting_entries']
            loop
                execute format('create trigger pause after insert or update or delete on %I execute function pause()', t);
            end loop;
         end $$",
    )
    .await;
}

#[test_on(two_servers)]
async fn mutual_transfers_do_not_deadlock(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 0.0, 100)]).await;
    let yaw = app.sign_up("yaw").await;
    let (hers, his) =
        (ama.order_free_tickets(&event.sections[0], 20).await, yaw.order_free_tickets(&event.sections[0], 20).await);
    let offer = async |from: &User, to: &User, serial: &str| {
        let body = json!({ "recipient": to.number, "tickets": [serial] });
        app.post(&from.key, "/transfers", &body).await
    };

    let offers = hers.iter().zip(&his).map(|(hers, his)| join(offer(&ama, &yaw, hers), offer(&yaw, &ama, his)));
    let offers = join_all(offers).await;

    for (of_ama, of_yaw) in &offers {
        assert_eq!((of_ama.status, of_yaw.status), (201, 201), "{} {}", of_ama.body, of_yaw.body);
    }
    check_deadlocks(&app).await;
}

/// Returns two connections whose transactions add to the same parts of sums, unless they run at the same time.
async fn connect_twice_to_a_part(app: &TestApp) -> [PgConnection; 2] {
    let mut by_part: HashMap<i32, PgConnection> = HashMap::new();
    loop {
        let mut connection = PgConnection::connect(&app.database_url).await.unwrap();
        let part = sqlx::query_scalar("select pg_backend_pid() % 16").fetch_one(&mut connection).await.unwrap();
        match by_part.remove(&part) {
            Some(other) => return [connection, other],
            None => _ = by_part.insert(part, connection),
        }
    }
}

/// Both change the same numbers of lists and the same sums of sales, which have parts.
#[test_on(two_servers)]
async fn transactions_do_not_wait_for_sums(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 0.0, 100)]).await;
    let yaw = app.sign_up("yaw").await;
    let tickets = [ama.order_free_tickets(&event.sections[0], 1).await, yaw.order_free_tickets(&event.sections[0], 1).await];
    let mut connections = connect_twice_to_a_part(&app).await;

    for (connection, serials) in connections.iter_mut().zip(&tickets) {
        let set_void = format!(
            "set lock_timeout = '10s'; begin; update tickets set status = 'Void', replaced_by = id where serial = '{}'",
            serials[0]
        );
        connection.execute(AssertSqlSafe(set_void)).await.unwrap();
    }
    for connection in &mut connections {
        connection.execute("commit").await.unwrap();
    }

    let wallet = app.read(&format!("/accounts/{}/tickets", ama.number)).await;
    assert_eq!(wallet["total"], 0, "{wallet}");
    let statistics = app.read(&format!("{}/statistics", event.uri)).await;
    assert_eq!(statistics["tickets"], 0, "{statistics}");
}

#[test_on(two_servers)]
async fn concurrent_changes_do_not_deadlock(app: TestApp) {
    slow_down(&app).await;
    let kofi = app.sign_up("kofi").await;
    let (mut accepted, mut sent) = (0, 0);
    for round in 0..race_rounds(3, 20) {
        let host = app.create_host(&kofi).await;
        let fixtures = Fixtures::create(&app, &host, round).await;
        let mut calls = fixtures.calls(round);
        calls.shuffle(&mut rand::rng());
        // In every other round the reservations have expired, so they are released by orders, payments and the job.
        if round % 2 == 1 {
            app.advance_clock(RESERVATION_TTL);
        }
        let (responses, ()) = join(join_all(calls.iter().map(|call| send(&app, call))), async {
            app.expire_due().await;
            app.offer_places().await;
        })
        .await;
        for (call, response) in calls.iter().zip(&responses) {
            assert_ne!(response.status, 500, "{} {}: {}", call.method, call.path, response.body);
        }
        accepted += responses.iter().filter(|response| response.status < 300).count();
        sent += responses.len();
    }
    assert!(accepted * 2 > sent, "only {accepted} of {sent} requests are accepted");
    check_deadlocks(&app).await;
}
