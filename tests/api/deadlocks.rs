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

use crate::support::{RESERVATION_TTL, TestApp, User, id_of, race_rounds, section};
use fixtures::{Fixtures, send};

on_two_servers![mutual_transfers_do_not_deadlock, publishing_and_withdrawing_do_not_deadlock, concurrent_changes_do_not_deadlock,];

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
    // Each is followed by the statements of both transactions.
    let reports: Vec<String> = detected.map(|(at, _)| lines[at..lines.len().min(at + 12)].join("\n")).collect();
    assert!(deadlocks == 0 && reports.is_empty(), "{deadlocks} deadlocks\n{}", reports.join("\n\n"));
}

/// Makes each change of these tables take a few milliseconds.
async fn slow_down(app: &TestApp) {
    app.execute_sql(
        "create function pause() returns trigger language plpgsql as $$ begin perform pg_sleep(0.003); return null; end $$",
    )
    .await;
    app.execute_sql(
        "do $$ declare t text; begin
            foreach t in array array['accounts', 'account_preferences', 'advertisement_zones', 'advertisements', 'api_keys', 'codes',
                'events', 'host_administrators', 'hosts', 'modifiers', 'orders', 'payments', 'reservations', 'sections',
                'submissions', 'tickets', 'token_sections', 'tokens', 'transfers', 'venues', 'waiting_entries']
            loop
                execute format('create trigger pause after insert or update or delete on %I execute function pause()', t);
            end loop;
         end $$",
    )
    .await;
}

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

/// Returns two connections that add to the same parts of the numbers of lists.
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

/// Sets the status of an event, whose identifier is a number.
async fn set_status(connection: &mut PgConnection, event: &str, status: &str) -> sqlx::Result<()> {
    let update = format!("update events set status = '{status}' where id = {event}");
    connection.execute(AssertSqlSafe(update)).await.map(drop)
}

/// Both change the same numbers of lists, if their connections add to the same parts.
async fn publishing_and_withdrawing_do_not_deadlock(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, esi) = (app.sign_up("kofi").await, app.sign_up("esi").await);
    let draft = app.create_draft(&app.create_host(&kofi).await).await;
    let listed = app.create_listed_event(&app.create_host(&esi).await, &[]).await;
    let [mut publishing, mut withdrawing] = connect_twice_to_a_part(&app).await;
    for (event, statuses) in [(&draft, ["Listed", "Draft"]), (&listed, ["Draft", "Listed"])] {
        // The numbers of this part exist from now on.
        for status in statuses {
            set_status(&mut publishing, &event.id, status).await.unwrap();
        }
    }
    let mut blocking = app.state.db.begin().await.unwrap();
    let host: i64 = id_of(&draft.host.uri).parse().unwrap();
    let locked = "select owner from list_counts where list = 'closed events of host' and owner = $1 for update";
    let _locked: Vec<i64> = blocking.query(locked).bind(host).scalars().await.unwrap();

    let published = tokio::spawn(async move { set_status(&mut publishing, &draft.id, "Listed").await });
    app.wait_for_lock_waits(1).await;
    let withdrawn = tokio::spawn(async move { set_status(&mut withdrawing, &listed.id, "Draft").await });
    app.wait_for_lock_waits(2).await;
    drop(blocking);

    published.await.unwrap().unwrap();
    withdrawn.await.unwrap().unwrap();
    app.assert_invariants().await;
    check_deadlocks(&app).await;
}

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
