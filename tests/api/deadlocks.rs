//! Every operation that locks rows runs at the same time as every other one, on the same rows. PostgreSQL must not detect a
//! deadlock: it would resolve one by ending a transaction, and until then both would wait for a second.
//!
//! Triggers make each changing statement slower, so that transactions overlap.

mod fixtures;

use std::collections::HashMap;
use std::fs;

use boxoffice::kernel::db::Tx;
use futures::future::{join, join_all, join3};
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

/// Has the transactions of requests wait when they update a table. The statement creates the trigger. Returns the lock that they wait
/// for.
async fn wait_after_updates(app: &TestApp, create_trigger: &'static str) -> Tx {
    app.stop_jobs().await;
    let wait = "create function wait() returns trigger language plpgsql
        as $$ begin perform pg_advisory_xact_lock_shared(1); return null; end $$";
    app.execute_sql(wait).await;
    app.execute_sql(create_trigger).await;
    app.begin_with_lock("select pg_advisory_xact_lock(1)").await
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

/// The account owns a ticket of a past event, and one that is newer and offered. A gate checks both.
#[test_on(two_servers)]
async fn deletion_of_account_does_not_deadlock(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let yaw = app.sign_up("yaw").await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let offer = json!({ "recipient": yaw.number, "tickets": [serials[1]] });
    assert_eq!(app.post(&ama.key, "/transfers", &offer).await.status, 201);
    app.end_event(&event).await;
    // Between the changes of the transfer and of the tickets.
    let lock = wait_after_updates(&app, "create trigger wait after update on transfers execute function wait()").await;

    let account = format!("/accounts/{}", ama.number);
    let admit = async {
        app.wait_for_lock_waits(1).await;
        app.admit(&kofi.key, &event, &serials).await
    };
    let (deleted, admitted, ()) = join3(app.delete(&app.staff.key, &account), admit, app.commit_when_awaited(lock, 2)).await;

    assert_eq!((deleted.status, admitted.status), (204, 201), "{} {}", deleted.body, admitted.body);
    check_deadlocks(&app).await;
}

/// Each order has a used ticket of one host and an unused ticket of the other one. Both change the sums of the customer at both hosts.
#[test_on(two_servers)]
async fn voids_of_two_hosts_do_not_deadlock(app: TestApp) {
    let hosts = [app.sign_up_with_host("kofi").await.1, app.sign_up_with_host("esi").await.1];
    let ama = app.sign_up("ama").await;
    let mut orders = Vec::new();
    for (used, unused) in [(&hosts[0], &hosts[1]), (&hosts[1], &hosts[0])] {
        let used = app.create_listed_event(used, &[section("Floor", 0.0, 10)]).await;
        let unused = app.create_listed_event(unused, &[section("Floor", 0.0, 10)]).await;
        let order = app.place_order(&ama.key, json!({ used.sections[0].as_str(): 1, unused.sections[0].as_str(): 1 })).await;
        let wallet = app.wallet(&ama).await;
        let ticket = wallet.iter().find(|ticket| ticket["section"]["self"] == used.sections[0].as_str()).unwrap();
        let admitted = app.admit(&app.staff.key, &used, [&ticket["serial"]]).await;
        assert_eq!((order.status, admitted.status), (201, 201), "{} {}", order.body, admitted.body);
        orders.push(order.uri().to_owned());
    }
    // Between the changes of the tickets and of the order.
    let lock = wait_after_updates(&app, "create trigger wait after update on events execute function wait()").await;

    let reason = json!({ "reason": "Paid with a stolen card." });
    let voided = join_all(orders.iter().map(|order| app.void_order(&app.staff.key, order, reason.clone())));
    let (voided, ()) = join(voided, app.commit_when_awaited(lock, 2)).await;

    for order in &voided {
        assert_eq!((order.status, order.body["status"].as_str()), (200, Some("Voided")), "{}", order.body);
    }
    check_deadlocks(&app).await;
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
