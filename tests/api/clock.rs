//! Steps of the system clock: by an hour, and by forty days.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use boxoffice::clock_watch;
use boxoffice::features::sales::{orders, payments};
use boxoffice::kernel::clock_state::ClockState;
use boxoffice::kernel::context::Context;
use boxoffice::kernel::types::clock::{Clock, ClockStep, MAX_LEAD, Timestamp};
use boxoffice::kernel::types::id::Id;
use boxoffice::state::Ctx;
use boxoffice_http::error::Error;
use futures::join;
use serde_json::{Value, json};
use slog::{Drain, Logger, OwnedKVList, Record, o};

use crate::support::{ANY_PORT, PASSWORD, RESERVATION_TTL, TestApp, card_payment, rejection, section, test_on, wait_until};

const HOUR: Duration = Duration::from_secs(3600);
const JUMP: Duration = Duration::from_secs(40 * 24 * 3600);

/// Collects the messages of a log.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl Drain for Messages {
    type Ok = ();
    type Err = slog::Never;

    fn log(&self, record: &Record, _: &OwnedKVList) -> Result<(), slog::Never> {
        self.0.lock().unwrap().push(record.msg().to_string());
        Ok(())
    }
}

impl Messages {
    fn contains(&self, text: &str) -> bool {
        self.0.lock().unwrap().iter().any(|message| message.contains(text))
    }
}

#[test_on(sqlite, postgres)]
async fn ids_increase_after_clock_steps_back(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;

    let before = ama.order(&event.sections[0], 1).await.unwrap();
    app.state.clock.rewind(HOUR);
    let after = ama.order(&event.sections[0], 1).await.unwrap();

    assert!(before.number < after.number, "{} {}", before.number.as_str(), after.number.as_str());
    assert!(before.placed <= after.placed);
}

#[test_on(sqlite, postgres)]
async fn ids_increase_after_restart_with_earlier_clock(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    app.advance_clock(HOUR);
    let before = ama.order(&event.sections[0], 1).await.unwrap();

    let restarted = app.start_second_server(app.state.settings.clone()).await;
    let body = json!({ "items": { event.sections[0].as_str(): 1 } });
    let after = app.request("POST", "/orders").at(restarted.address).key(&ama.key).json(&body).send().await;

    assert_eq!(after.status, 201, "{}", after.body);
    assert!(before.number.as_str() < after.body["number"].as_str().unwrap(), "{} {}", before.number.as_str(), after.body);
}

#[test_on(sqlite, postgres)]
async fn expired_order_stays_expired_after_clock_steps_back(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let floor = event.sections[0].as_str();
    let (verification, code) = app.request_code("/verifications", "ama@example.com", 1).await;
    let order = ama.order(floor, 3).await.unwrap().self_;
    app.advance_clock(RESERVATION_TTL);
    let expired = (app.read(&order).await["status"].clone(), app.sold_and_reserved(floor).await);

    app.state.clock.rewind(HOUR);
    app.expire_due().await;
    let paid = app.pay(&ama.key, &order, card_payment()).await;
    let verified = app.submit_code(&verification, json!({ "code": code })).await;
    let next = ama.order(floor, 2).await.unwrap().self_;
    app.advance_clock(HOUR + RESERVATION_TTL);
    app.expire_due().await;

    assert_eq!(expired, (json!("Timed Out"), (0, 0)));
    assert_eq!(rejection(&paid), (409, "order.not-open"));
    assert_eq!(rejection(&verified), (409, "verification.closed"));
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0)], 0), "its reservation was released once");
    assert_eq!(app.read(&next).await["status"], "Timed Out");
    assert_eq!(app.gateway.total(), 0.0);
    app.assert_invariants().await;

    app.advance_clock(Duration::from_secs(31 * 24 * 3600));
    let late = app.get(&ama.key, "/sessions/active").await;
    app.state.clock.rewind(2 * HOUR);
    let later = app.get(&ama.key, "/sessions/active").await;
    assert_eq!((late.status, later.status), (403, 403), "a session that has ended doesn't come back");
}

#[test_on(sqlite, postgres)]
async fn due_jobs_run_after_clock_steps_back(app: TestApp) {
    app.sign_up("ama").await;
    let requested = app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    app.state.clock.rewind(HOUR);
    let again = app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;

    assert_eq!((requested.status, again.status), (201, 201));
    app.mail_to("ama@example.com", 2).await;
    let now = async || app.request("GET", "/time").send().await.body["utc"].as_i64().unwrap();
    let before = now().await;
    wait_until(async || now().await > before).await;
}

#[test_on(sqlite, postgres)]
async fn clock_step_forward_expires_everything_once(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let floor = event.sections[0].as_str();
    let paid = ama.order(floor, 2).await.unwrap();
    ama.pay(&paid).await.unwrap();
    let part = ama.order(floor, 3).await.unwrap().self_;
    assert_eq!(app.pay(&ama.key, &part, crate::support::partial_card_payment(5.0)).await.status, 201);

    app.advance_clock(HOUR);
    app.expire_due().await;
    app.state.clock.rewind(HOUR);
    app.advance_clock(HOUR);
    app.expire_due().await;

    assert_eq!(app.stored_sold_and_reserved().await, (vec![(2, 0)], 0));
    assert_eq!(app.payments(&part).await, [(5.0, "Refunded".to_owned())]);
    app.assert_invariants().await;
    app.check_gateway_balance().await;
}

#[test_on(sqlite, postgres)]
async fn step_forward_during_a_check_is_noticed(app: TestApp) {
    app.stop_jobs().await;
    clock_watch::watch(&app.state).await.unwrap();
    let step = async { app.state.clock.advance(JUMP) };

    join!(clock_watch::watch(&app.state), step).0.unwrap();
    clock_watch::watch(&app.state).await.unwrap();
    app.state.clock.rewind(JUMP);

    let last_seen: Timestamp = app.scalar("select last_seen from clock_state").await;
    let before_step: Option<Timestamp> = app.scalar("select before_step from clock_state").await;
    let now = app.state.clock.now();
    // PostgreSQL has a clock of its own: while it differs, nothing is stored.
    assert!(last_seen <= now || before_step.is_some_and(|time| time <= now), "{now:?}: {last_seen:?} {before_step:?}");
}

/// Times in the database that decide about the future: the latest of each kind.
async fn latest_times(app: &TestApp) -> [Option<Timestamp>; 7] {
    let mut latest = [None; 7];
    for (latest, query) in latest.iter_mut().zip([
        "select max(expires) from orders where status = 'Placed'",
        "select max(expires) from reservations",
        "select max(expires) from api_keys where kind = 'session'",
        "select max(last_used) from api_keys",
        "select max(expires) from codes",
        "select max(due) from outbox",
        "select max(claimed) from idempotency",
    ]) {
        *latest = app.scalar(query).await;
    }
    latest
}

/// Logs in, places an order of 3 tickets with an idempotency key, and requests a code. Returns the session's key and the order.
async fn use_server(app: &TestApp, address: std::net::SocketAddr, section: &str) -> (String, Value) {
    let post = |path: &str, body: Value| app.request("POST", path).at(address).json(&body);
    let session = post("/sessions", json!({ "identification": "ama", "password": PASSWORD })).key(&app.public_key).send().await;
    let key = session.body["key"].as_str().unwrap().to_owned();
    let order =
        post("/orders", json!({ "items": { section: 3 } })).key(&key).header("Idempotency-Key", "of-the-jump").send().await;
    let code = post("/verifications", json!({ "email": "ama@example.com" })).key(&app.public_key).send().await;
    assert_eq!((session.status, order.status, code.status), (201, 201, 201), "{}", order.body);
    (key, order.body)
}

#[test_on(sqlite, postgres)]
async fn recovers_from_clock_that_was_days_ahead(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let cancelled = app.create_listed_event(&event.host, &[]).await;
    let floor = event.sections[0].as_str();
    let messages = Messages::default();
    let other =
        app.start_second_server_on(app.state.settings.clone(), Logger::root(messages.clone().fuse(), o!()), ANY_PORT).await;
    let watch = async || clock_watch::watch(&other.state).await.unwrap();
    let status = async |key: &str| app.request("GET", "/sessions/active").at(other.address).key(key).send().await.status;
    let delivery = app.mailbox.block().await;
    // Before a server has stored the time, there is nothing to compare with.
    wait_until(async || app.scalar::<i64>("select last_seen from clock_state").await > 0).await;

    other.state.clock.advance(JUMP);
    watch().await;
    let (key, of_jump) = use_server(&app, other.address, floor).await;
    assert_eq!(status(&ama.key).await, 403, "a session of thirty days is over");
    let log_in = json!({ "identification": "kofi", "password": PASSWORD });
    let session = app.request("POST", "/sessions").at(other.address).json(&log_in).send().await;
    let cancel = app.request("POST", &format!("{}/cancellations", cancelled.uri)).at(other.address);
    let cancel = cancel.key(session.body["key"].as_str().unwrap()).send().await;
    assert_eq!(cancel.status, 200, "{}", cancel.body);
    let kept_from = clock_watch::deletion_time(&other.state).await.unwrap();
    assert!(kept_from.is_none_or(|time| time <= app.state.clock.now()), "stored responses are kept for now: {kept_from:?}");
    // The job leases its mails until a later time. Otherwise it could read the wrong time now, and store it after the correction.
    wait_until(async || matches!(latest_times(&app).await, [.., due, _] if due > Some(other.state.clock.now()))).await;
    other.state.clock.rewind(JUMP);
    watch().await;

    assert_eq!((status(&ama.key).await, status(&key).await), (200, 200));
    let kept_from = clock_watch::deletion_time(&other.state).await.unwrap();
    assert!(kept_from.is_some_and(|time| time >= app.state.clock.now().minus(HOUR)), "{kept_from:?}");
    let time = app.request("GET", "/time").at(other.address).send().await.body["utc"].as_i64().unwrap();
    let now = app.state.clock.now();
    assert!(time <= now.plus(MAX_LEAD).seconds(), "{time}");
    let minutes = |minutes: u64| Some(now.plus(Duration::from_secs(60 * minutes)));
    let [orders, reservations, sessions, used, codes, due, claimed] = latest_times(&app).await;
    assert!(orders.is_some() && orders == reservations && orders < minutes(16));
    assert!(sessions < minutes(30 * 24 * 60 + 1) && codes < minutes(16));
    assert!(used < minutes(1) && claimed < minutes(1), "{now:?}: {used:?} {claimed:?}");
    let revised: Option<Timestamp> = app.scalar("select max(revised) from events where status = 'Cancelled'").await;
    assert!(revised.is_some() && revised < minutes(1), "{now:?}: {revised:?}");
    // A mail is leased for two and a half minutes.
    assert!(due.is_some() && due < minutes(3), "{now:?}: {due:?}");
    drop(delivery);

    let next =
        app.request("POST", "/orders").at(other.address).key(&ama.key).json(&json!({ "items": { floor: 1 } })).send().await;
    assert!(next.body["number"].as_str() > of_jump["number"].as_str(), "{}", next.body);
    assert!(next.body["placed"].as_str().unwrap() <= app.state.clock.now().plus(HOUR).format_rfc3339().as_str());
    assert_eq!(app.sold_and_reserved(floor).await, (0, 4));
    app.time_out_orders().await;
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0)], 0));
    for text in ["set forward", "set back; the server follows it", "stored times are ahead", "were corrected"] {
        assert!(messages.contains(text), "{text}: {:?}", messages.0.lock().unwrap());
    }
    assert!(!messages.contains("steady for 10 minutes"), "they were corrected at once: {:?}", messages.0.lock().unwrap());
}

/// An order reads the time, and waits for a section while the clock is set back and stored times are corrected.
#[test_on(two_servers)]
async fn corrects_times_that_are_stored_after_correction(app: TestApp) {
    app.stop_jobs().await;
    let event = app.create_listed_event(&app.create_host(&app.sign_up("kofi").await).await, &[section("Floor", 20.0, 10)]).await;
    let watch = async || {
        for state in app.states() {
            clock_watch::watch(state).await.unwrap();
        }
    };
    app.advance_clock(JUMP);
    let ama = app.sign_up("ama").await;
    let mut lock = app.state.db.begin().await.unwrap();
    lock.query("select id from sections for update").execute().await.unwrap();
    let step_back = async {
        app.wait_for_lock_waits(1).await;
        app.states().for_each(|state| state.clock.rewind(JUMP));
        watch().await;
        lock.commit().await.unwrap();
    };
    join!(ama.order(&event.sections[0], 1), step_back).0.unwrap();
    let [ahead, ..] = latest_times(&app).await;

    watch().await;

    let [orders, reservations, ..] = latest_times(&app).await;
    let in_an_hour = Some(app.state.clock.now().plus(HOUR));
    assert!(ahead > in_an_hour, "the order has not waited: {ahead:?}");
    assert!(orders.is_some() && orders == reservations && orders < in_an_hour, "{orders:?} {reservations:?}");
}

/// Runs a job that reads the time, and waits for a transaction with the table while the clock is set back. Returns its error.
async fn run_while_clock_is_set_back<T>(
    app: &TestApp,
    lock_of_table: &'static str,
    job: impl AsyncFnOnce(&Ctx) -> Result<T, Error>,
) -> String {
    let lock = app.begin_with_lock(lock_of_table).await;
    app.state.clock.advance(JUMP);
    let step_back = async {
        app.state.clock.rewind(JUMP);
        lock.commit().await.unwrap();
    };
    let ctx = Context::immediate(Arc::clone(&app.state));
    match join!(job(&ctx), step_back).0 {
        Err(Error::Unavailable(error)) => error.to_string(),
        Err(error) => panic!("{error:?}"),
        Ok(_) => "no error".to_owned(),
    }
}

#[test_on(sqlite, postgres)]
async fn step_back_keeps_order_that_is_about_to_time_out(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap();

    let error = run_while_clock_is_set_back(&app, "lock table orders in share mode", orders::expire_due).await;

    assert!(error.contains("set back"), "{error}");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 1));
    ama.pay(&order).await.unwrap();
}

#[test_on(sqlite, postgres)]
async fn step_back_keeps_payment_that_is_in_progress(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap();
    app.gateway.block();

    let job = async {
        app.gateway.wait_for_charges(1).await;
        let error = run_while_clock_is_set_back(&app, "lock table payments in share mode", payments::process_due).await;
        app.gateway.unblock();
        error
    };
    let (paid, error) = join!(app.pay(&ama.key, &order.self_, card_payment()), job);

    assert!(error.contains("set back"), "{error}");
    assert_eq!((paid.status, &paid.body["status"]), (201, &json!("Confirmed")), "{}", paid.body);
    assert_eq!(json!(app.gateway.total()), paid.body["amount"]);
}

#[test_on(sqlite, postgres)]
async fn corrects_times_in_the_future_after_restart(app: TestApp) {
    let (_, _, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let ahead = app.start_second_server(app.state.settings.clone()).await;
    ahead.state.clock.advance(JUMP);
    let (_, order) = use_server(&app, ahead.address, &event.sections[0]).await;
    ahead.stop().await;

    let restarted = app.start_second_server(app.state.settings.clone()).await;
    clock_watch::watch(&restarted.state).await.unwrap();
    let [at_the_start, ..] = latest_times(&app).await;
    assert!(at_the_start > Some(app.state.clock.now().plus(JUMP)), "the clock may be behind: {at_the_start:?}");
    restarted.state.clock.advance(clock_watch::SETTLING_TIME);
    clock_watch::watch(&restarted.state).await.unwrap();

    let [orders, .., codes, due, _] = latest_times(&app).await;
    assert!(orders < Some(app.state.clock.now().plus(HOUR)) && codes < Some(app.state.clock.now().plus(HOUR)));
    assert!(due < Some(app.state.clock.now().plus(HOUR)));
    assert_eq!(app.read(order["self"].as_str().unwrap()).await["placed"], order["placed"], "it is a record");
    let highest = app.state.db.highest_id().await.unwrap();
    assert!(restarted.state.clock.next_id() > highest);
}

/// The machine has an empty battery, and NTP sets its clock after the start of the server.
#[test_on(sqlite, postgres)]
async fn start_with_clock_behind_changes_nothing_until_it_is_set(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    app.advance_clock(JUMP);
    let key = app.sign_in(&ama.username, PASSWORD).await.unwrap().key;
    let order = app.place_order(&key, json!({ event.sections[0].as_str(): 1 })).await.body;
    let stored = async || {
        let [orders, reservations, sessions, used, ..] = latest_times(&app).await;
        [orders, reservations, sessions, used]
    };
    let before = stored().await;

    let behind = app.start_second_server(app.state.settings.clone()).await;
    let watch = async || clock_watch::watch(&behind.state).await.unwrap();
    watch().await;
    behind.state.clock.advance(clock_watch::SETTLING_TIME / 2);
    watch().await;
    behind.state.clock.advance(JUMP);
    watch().await;

    assert_eq!(stored().await, before);
    let session = app.request("GET", "/sessions/active").at(behind.address).key(&key).send().await;
    assert_eq!((session.status, &app.read(order["self"].as_str().unwrap()).await["status"]), (200, &json!("Placed")));
}

/// Only PostgreSQL has a clock of its own.
#[test_on(sqlite, postgres)]
async fn corrects_nothing_while_clock_differs_from_database(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    ama.order(&event.sections[0], 1).await.unwrap();
    let messages = Messages::default();
    let behind =
        app.start_second_server_on(app.state.settings.clone(), Logger::root(messages.clone().fuse(), o!()), ANY_PORT).await;
    let before = latest_times(&app).await;

    behind.state.clock.rewind(JUMP);
    clock_watch::watch(&behind.state).await.unwrap();

    let is_postgres = app.state.db.clock_time().await.unwrap().is_some();
    assert_eq!(messages.contains("differs from that of the database"), is_postgres);
    let orders = [before, latest_times(&app).await].map(|[orders, ..]| orders);
    assert_eq!(orders[0] == orders[1], is_postgres);
}

#[test_on(sqlite, postgres)]
async fn step_back_keeps_reservations_of_section_that_is_changed(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let floor = event.sections[0].as_str();
    let order = ama.order(floor, 1).await.unwrap();
    let day = 24 * HOUR;

    for way in ["change", "order", "deletion"] {
        let lock = app.begin_with_lock("lock table sections in exclusive mode").await;
        app.state.clock.advance(day);
        let request = async {
            match way {
                "change" => app.put(&kofi.key, floor, json!({ "description": "New" })).await,
                "order" => app.place_order(&esi.key, json!({ floor: 1 })).await,
                _ => app.delete(&kofi.key, &event.uri).await,
            }
        };
        let step_back = async {
            app.wait_for_lock_waits(1).await;
            app.state.clock.rewind(day);
            lock.commit().await.unwrap();
        };
        let (response, ()) = join!(request, step_back);

        assert!([200, 201, 409, 503].contains(&response.status), "{way}: {}", response.body);
        assert!(app.sold_and_reserved(floor).await.1 >= 1, "{way}");
    }
    ama.pay(&order).await.unwrap();
}

#[test]
fn parses_times_in_every_format_as_utc() {
    for (text, expected) in [
        ("2026-12-01T19:30", Some("2026-12-01T19:30")),
        ("2026-12-01 19:30", Some("2026-12-01T19:30")),
        ("2026-12-01T19:30:15", Some("2026-12-01T19:30")),
        ("2026-12-01T19:30:15.123456", Some("2026-12-01T19:30")),
        ("2026-12-01T19:30Z", Some("2026-12-01T19:30")),
        ("2026-12-01T19:30:00+02:00", Some("2026-12-01T17:30")),
        ("2026-12-01T19:30-0530", Some("2026-12-02T01:00")),
        ("2026-12-01T19:30+02", Some("2026-12-01T17:30")),
        ("2026-12-01T19:30:15z", Some("2026-12-01T19:30")),
        ("9999-12-31T23:59", Some("9999-12-31T23:59")),
        ("0000-01-01T00:00", Some("0000-01-01T00:00")),
        ("0000-01-01T00:00+01:00", None),
        ("9999-12-31T23:59-01:00", None),
        ("2026-12-31T23:59:60Z", Some("2027-01-01T00:00")),
        ("9999-12-31T23:59:60", None),
        ("2026-13-01T19:30", None),
        ("2026-02-30T19:30", None),
        ("yesterday", None),
    ] {
        let read = Timestamp::parse(text).map(Timestamp::format_minutes);
        assert_eq!(read.as_deref(), expected, "{text}");
    }
    assert_eq!(Timestamp::parse("9999-12-31T23:59"), Some(Timestamp::NEVER));
}

#[test]
fn server_that_is_stopped_each_night_deletes_what_expired_the_day_before() {
    let mut state = ClockState { last_seen: Timestamp(0).plus(17 * HOUR), before_step: None, accepted_at: None };
    for hour in (24..24 * 60).filter(|hour| (8..18).contains(&(hour % 24))) {
        let now = Timestamp(0).plus(HOUR * hour);
        state = state.at(now, now);
        assert!(state.before_step.is_some_and(|before| now.since(before) <= 24 * HOUR), "{hour}: {state:?}");
    }
}

#[test]
fn step_forward_is_accepted_after_a_day_and_the_next_one_is_not() {
    let start = Timestamp(0).plus(HOUR);
    let state = ClockState { last_seen: start, before_step: None, accepted_at: None };

    let ahead = state.at(start.plus(JUMP), start.plus(JUMP));
    let restarted = ahead.at(start.plus(JUMP + 23 * HOUR), start.plus(JUMP + 23 * HOUR));
    let accepted = restarted.at(start.plus(JUMP + 24 * HOUR), start.plus(JUMP + 23 * HOUR));
    let again = restarted.at(start.plus(2 * JUMP), start.plus(2 * JUMP));

    assert_eq!((ahead.before_step, restarted.before_step, accepted.before_step), (Some(start), Some(start), None));
    assert_eq!(again.before_step, Some(start.plus(JUMP + 23 * HOUR)));
    assert_eq!(state.at(start.plus(HOUR), start.plus(HOUR)).before_step, None);
}

/// The database was not available, so nothing was stored.
#[test]
fn time_that_a_server_has_seen_pass_is_no_step() {
    let start = Timestamp(0).plus(HOUR);
    let state = ClockState { last_seen: start, before_step: None, accepted_at: None };

    let after_outage = state.at(start.plus(JUMP), start.plus(HOUR));

    assert_eq!((after_outage.last_seen, after_outage.before_step), (start.plus(JUMP), None));
}

#[test]
fn runs_at_half_speed_after_the_clock_is_set_back() {
    let clock = Clock::default();
    let before = clock.now();
    clock.rewind(Duration::from_secs(3600));
    let readings: Vec<Timestamp> = (0..1000).map(|_| clock.now()).collect();
    assert!(readings.is_sorted() && before <= readings[0], "it never goes back");
    assert!(readings[999].0 - before.0 < 3_600_000_000, "and does not leap");

    clock.advance(Duration::from_secs(7200));
    assert!(clock.now().0 - before.0 >= 3_600_000_000, "forward it goes at once");
}

#[test]
fn identifiers_exceed_those_of_a_clock_ahead() {
    let clock = Clock::default();
    let later = Id(clock.next_id().0 + 36_000_000);
    clock.ensure_ids_after(later);
    clock.ensure_ids_after(Id(1));
    assert_eq!(clock.next_id(), Id(later.0 + 1));
}

#[test]
fn follows_a_large_step_back_with_rising_identifiers() {
    const DAYS: Duration = Duration::from_secs(40 * 24 * 60 * 60);
    let clock = Clock::default();
    let before = (clock.now(), clock.next_id());

    clock.advance(DAYS);
    let ahead = (clock.now(), clock.next_id());
    clock.rewind(DAYS);
    let after = (clock.now(), clock.next_id(), clock.next_id());

    assert!(ahead.0 >= before.0.plus(DAYS));
    assert!(before.0 <= after.0 && after.0 < before.0.plus(MAX_LEAD), "the time follows the machine's clock");
    assert!(before.1 < ahead.1 && ahead.1 < after.1 && after.1 < after.2, "identifiers rise");
    let steps: Vec<bool> = clock.take_steps().iter().map(ClockStep::is_back).collect();
    assert_eq!(steps, [false, true]);
    assert_eq!(clock.take_steps(), []);
}

#[test]
fn servers_ahead_of_the_time_generate_different_identifiers() {
    let mut remainders = BTreeSet::new();
    for _ in 0..20 {
        let clock = Clock::default();
        clock.ensure_ids_after(Id(clock.next_id().0 + 2 * MAX_LEAD.as_micros() as i64 / 100));
        let ids: Vec<Id> = (0..100).map(|_| clock.next_id()).collect();
        // Each server has chosen one of 64 remainders.
        let remainder = ids[0].0 % 64;
        assert!(ids.is_sorted_by(|a, b| a < b) && ids.iter().all(|id| id.0 % 64 == remainder));
        remainders.insert(remainder);
    }
    assert!(remainders.len() > 1, "{remainders:?}");
}

#[test]
fn identifiers_have_14_digits_and_increase() {
    let clock = Clock::default();
    let ids: Vec<Id> = (0..1000).map(|_| clock.next_id()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b));
    assert!(ids.iter().all(|id| id.to_string().len() == 14));
}
