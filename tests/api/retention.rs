//! The deletion of rows and files that are no longer needed.

use std::sync::Arc;
use std::time::Duration;

use boxoffice::kernel::context::Context;
use boxoffice::kernel::settings::{RetentionSettings, Settings};
use boxoffice::retention;
use boxoffice::state::App;
use boxoffice_http::log;
use boxoffice_http::traces::Tracer;
use futures::future::join;
use serde_json::{Value, json};

use crate::support::{DAY, TestApp, card_payment, entries_of, section};
use crate::tokens::{create_token, global_token, redeemer_key};

on_both_databases![
    deletes_what_is_no_longer_needed,
    deletes_keys_of_gates_after_the_event,
    old_audit_entries_are_written_to_files,
    keeps_everything_after_a_wrong_clock,
    keeps_everything_while_clock_differs_from_database
];

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Runs the job of a server until it deletes nothing more, and returns the number of deleted rows.
async fn apply(server: &Arc<App>) -> u64 {
    let mut deleted = 0;
    loop {
        match retention::delete_expired(&Context::immediate(Arc::clone(server))).await.unwrap() {
            0 => return deleted,
            count => deleted += count,
        }
    }
}

/// Opens the state of a server with this retention. Only the test runs its job.
async fn open(app: &TestApp, retention: RetentionSettings) -> Arc<App> {
    app.stop_jobs().await;
    App::open(&app.database_url, Settings { retention, ..app.state.settings.clone() }, log::silent(), Tracer::default())
        .await
        .unwrap()
}

async fn deletes_what_is_no_longer_needed(app: TestApp) {
    let retention = RetentionSettings { unpaid_orders: Some(DAY * 2), ..app.state.settings.retention.clone() };
    let server = open(&app, retention).await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let floor = &event.sections[0];
    let paid = ama.order(floor, 1).await.unwrap().self_.clone();
    app.pay(&ama.key, &paid, card_payment()).await;
    let declined = ama.order(floor, 1).await.unwrap().self_.clone();
    app.pay(&ama.key, &declined, json!({ "method": "card", "token": "tok_decline" })).await;
    let unpaid = ama.order(floor, 2).await.unwrap().self_.clone();
    app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    app.deliver_mail().await;
    app.execute_sql(
        "insert into outbox (id, recipient, subject, body, created, attempts, failed) values (1, 'a@example.com', 'x', '', 1, 8, 2)",
    )
    .await;
    assert_eq!(apply(&server).await, 1, "the mail that was given up");

    // As if the rows had been written so long ago. A clock that is moved would stop the job.
    app.expire_due().await;
    app.execute_sql("update orders set status = 'Timed Out' where status = 'Placed'").await;
    app.execute_sql("delete from reservations").await;
    app.execute_sql("update sections set reserved = 0").await;
    for shift in [
        "update orders set placed = placed - 259200000000",
        "update codes set expires = expires - 259200000000",
        "update api_keys set expires = expires - 31 * 86400000000 - 30 * 86400000000 where kind = 'session'",
    ] {
        app.execute_sql(shift).await;
    }
    let sessions = app.scalar::<i64>("select count(*) from api_keys where kind = 'session'").await;

    assert_eq!(apply(&server).await, u64::try_from(sessions).unwrap() + 2, "the sessions, a code and an order");

    assert_eq!(app.scalar::<i64>("select count(*) from codes").await, 0);
    assert_eq!(app.scalar::<i64>("select count(*) from api_keys where kind <> 'session'").await, 2);
    let status = async |path: &str| app.get(&app.staff.key, path).await.status;
    assert_eq!((status(&paid).await, status(&declined).await, status(&unpaid).await), (200, 200, 404));
    assert_eq!(app.scalar::<i64>("select count(*) from order_items").await, 2);
    assert_eq!(app.read("/orders").await["total"], 2);
    for list in [&event.uri, &event.host.uri] {
        assert_eq!(app.read(&format!("{list}/orders")).await["total"], 2);
    }
}

async fn deletes_keys_of_gates_after_the_event(app: TestApp) {
    let server = open(&app, app.state.settings.retention.clone()).await;
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    let door = create_token(&event, &[&event.sections[0]]).await;
    redeemer_key(&app, &door).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;
    assert_eq!(app.delete(&kofi.key, &door.self_).await.status, 204);
    assert_eq!(apply(&server).await, 0, "the key of the removed token ended just now");

    app.execute_sql("update api_keys set ended = ended - 31 * 86400000000 where ended is not null").await;
    assert_eq!(apply(&server).await, 1, "the key of the removed token");
    assert_eq!(app.get(&key, &format!("{}/tickets", event.uri)).await.status, 200);

    let end_event = async |hours: u32| {
        let end = app.state.clock.now().minus(DAY * 30 + HOUR * hours);
        let times = json!({ "start": end.minus(HOUR).to_minutes(), "end": end.to_minutes() });
        assert_eq!(app.put(&kofi.key, &event.uri, times).await.status, 200);
    };
    end_event(11).await;
    assert_eq!(apply(&server).await, 0, "the key has expired for less than 30 days");
    end_event(13).await;
    assert_eq!(apply(&server).await, 1, "the key of the event");
    assert_eq!(app.scalar::<i64>("select count(*) from api_keys where kind = 'admission'").await, 0);
}

async fn old_audit_entries_are_written_to_files(app: TestApp) {
    // The entries are of the day before yesterday.
    app.state.clock.rewind(DAY * 2);
    let ama = app.sign_up("ama").await;
    let path = format!("/accounts/{}", ama.number);
    app.put(&ama.key, &path, json!({ "city": "Accra" })).await;
    // Those of the first start are of today.
    let is_request = |entry: &&Value| entry["operator"].is_null();
    let log = app.read("/audit?records=100").await;
    let before: Vec<Value> = entries_of(&log).iter().filter(is_request).cloned().collect();
    let folder = tempfile::tempdir().unwrap();
    let keep = |days| RetentionSettings {
        audit: Some(DAY * days),
        audit_archive: Some(folder.path().join("archive")),
        ..app.state.settings.retention.clone()
    };
    assert_eq!(apply(&open(&app, keep(3)).await).await, 0, "the entries are not old enough");
    let server = open(&app, keep(1)).await;

    // As if an operator started the job while a server runs it.
    let (deleted, by_other) = join(apply(&server), apply(&server)).await;

    assert_eq!(deleted + by_other, u64::try_from(before.len()).unwrap());
    assert_eq!(entries_of(&app.read("/audit").await).iter().filter(is_request).count(), 0);
    let mut lines = Vec::new();
    for file in std::fs::read_dir(folder.path().join("archive")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line["id"].as_i64().unwrap()));
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("id");
    }
    assert_eq!(lines, before);
    let cutoff = app.scalar::<i64>("select deletable_before from audit_retention").await;
    assert_eq!(cutoff, 0, "entries can't be deleted outside of the job");
}

async fn keeps_everything_after_a_wrong_clock(app: TestApp) {
    app.sign_up("ama").await;
    app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    let retention = app.state.settings.retention.clone();
    let server = open(&app, retention).await;
    server.clock.advance(DAY * 400);

    assert_eq!(apply(&server).await, 0);
    server.clock.rewind(DAY * 400);
}

/// The clock was wrong before the server was started. SQLite has no clock of its own to compare it with.
async fn keeps_everything_while_clock_differs_from_database(app: TestApp) {
    app.sign_up("ama").await;
    app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    let server = open(&app, app.state.settings.retention.clone()).await;
    server.clock.advance(DAY * 400);
    // As if the server had seen no other time.
    server.clock.take_steps();

    let is_postgres = app.state.db.clock_time().await.unwrap().is_some();
    assert_eq!(apply(&server).await == 0, is_postgres);
}
