//! The deletion of rows and files that are no longer needed.

use std::sync::Arc;
use std::time::Duration;

use boxoffice::clock_watch;
use boxoffice::kernel::context::Context;
use boxoffice::kernel::settings::{RetentionSettings, Settings};
use boxoffice::retention;
use boxoffice::state::App;
use boxoffice_http::log;
use boxoffice_http::traces::Tracer;
use futures::future::join;
use serde_json::{Value, json};

use crate::admin_commands;
use crate::support::{DAY, TestApp, card_payment, entries_of, section, test_on};
use crate::tokens::{create_token, global_token, redeemer_key};

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

#[test_on(sqlite, postgres)]
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

#[test_on(sqlite, postgres)]
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
        let times = json!({ "start": end.minus(HOUR).format_minutes(), "end": end.format_minutes() });
        assert_eq!(app.put(&kofi.key, &event.uri, times).await.status, 200);
    };
    end_event(11).await;
    assert_eq!(apply(&server).await, 0, "the key has expired for less than 30 days");
    end_event(13).await;
    assert_eq!(apply(&server).await, 1, "the key of the event");
    assert_eq!(app.scalar::<i64>("select count(*) from api_keys where kind = 'admission'").await, 0);
}

#[test_on(sqlite, postgres)]
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
    let server = open(&app, keep(3)).await;
    // For this server, the clock was set forward by two days.
    clock_watch::accept_time(&server).await.unwrap();
    assert_eq!(apply(&server).await, 0, "the entries are not old enough");
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

#[test_on(sqlite, postgres)]
async fn keeps_everything_after_a_wrong_clock(app: TestApp) {
    app.sign_up("ama").await;
    app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    let retention = app.state.settings.retention.clone();
    let server = open(&app, retention).await;
    clock_watch::watch(&server).await.unwrap();
    server.clock.advance(DAY * 400);

    assert_eq!(apply(&server).await, 0);
    server.clock.rewind(DAY * 400);
}

/// No server has run before. SQLite has no clock of its own to compare the machine's with.
#[test_on(sqlite, postgres)]
async fn keeps_everything_while_clock_differs_from_database(app: TestApp) {
    app.sign_up("ama").await;
    app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    let server = open(&app, app.state.settings.retention.clone()).await;
    app.execute_sql("update clock_state set last_seen = 0").await;
    server.clock.advance(DAY * 400);

    let is_postgres = app.state.db.clock_time().await.unwrap().is_some();
    assert_eq!(apply(&server).await == 0, is_postgres);
}

/// Runs a job in a process of its own, and returns the number of deleted rows.
fn run_job(app: &TestApp, arguments: &[&str]) -> Value {
    admin_commands::json_of(app, &[&["jobs", "run"], arguments, &["--yes"]].concat())["processed"].clone()
}

/// Ama sends three requests with idempotency keys, of which the last one is for a code, and a week later, Kofi does. Then the servers
/// have been stopped for two days, or the clock is ahead by them.
async fn request_codes_before_stop(app: &TestApp) {
    app.stop_jobs().await;
    for (name, shift_responses, shift_codes) in [
        ("ama", "update idempotency set claimed = claimed - 604800000000", "update codes set expires = expires - 604800000000"),
        ("kofi", "update idempotency set claimed = claimed - 172800000000", "update codes set expires = expires - 172800000000"),
    ] {
        app.sign_up(name).await;
        let request = app.request("POST", "/verifications").header("Idempotency-Key", name);
        let requested = request.json(&json!({ "email": format!("{name}@example.com") })).send().await;
        assert_eq!(requested.status, 201, "{}", requested.body);
        app.execute_sql(shift_responses).await;
        app.execute_sql(shift_codes).await;
    }
    clock_watch::accept_time(&app.state).await.unwrap();
    app.execute_sql("update clock_state set last_seen = last_seen - 172800000000").await;
}

#[test_on(sqlite, postgres)]
async fn start_much_later_keeps_for_a_day_what_had_not_expired(app: TestApp) {
    request_codes_before_stop(&app).await;

    let first = admin_commands::admin(&app, &["jobs", "run", "delete stored responses"]);
    let server = open(&app, app.state.settings.retention.clone()).await;

    assert!(first.succeeded() && first.stderr.contains("the clock is much later"), "{}", first.stderr);
    let stored = async || app.scalar::<i64>("select count(*) from idempotency").await;
    assert_eq!(stored().await, 3, "the responses to Ama had expired before the stop");
    let deleted = (apply(&server).await, apply(&server).await, run_job(&app, &["apply the retention"]));
    assert_eq!(deleted, (1, 0, json!(0)), "her code had, too");
    assert_eq!(run_job(&app, &["delete stored responses"]), 0);

    // As if a day had passed.
    app.execute_sql("update clock_state set accepted_at = accepted_at - 86400000000").await;
    assert_eq!((run_job(&app, &["delete stored responses"]), run_job(&app, &["apply the retention"])), (json!(3), json!(1)));
}

#[test_on(sqlite, postgres)]
async fn time_after_a_long_stop_can_be_confirmed(app: TestApp) {
    request_codes_before_stop(&app).await;

    assert_eq!(run_job(&app, &["delete stored responses", "--accept-time"]), 6);
    assert_eq!(run_job(&app, &["apply the retention"]), 2);
}
