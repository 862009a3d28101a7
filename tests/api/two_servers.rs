//! Two servers on one PostgreSQL database that generate the same identifiers: their resources stay distinct.
//!
//! The race tests cover other conflicts of two servers; they also run on two servers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use boxoffice::kernel::jobs::{Job, Jobs};
use boxoffice::kernel::types::id::Id;
use boxoffice::state::App;
use futures::FutureExt;
use futures::future::{join, join_all};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{
    PASSWORD, SmtpBehavior, TestApp, card_payment, partial_card_payment, rejection, section, test_on, wait_until,
};

/// Sets both id generators to the same value, a minute ahead of the clocks.
fn align_ids(app: &TestApp) {
    let drawn = app.states().map(|app| app.clock.next_id()).max().unwrap();
    let ahead = Id(drawn.0.max(app.state.clock.now().0 / 100 + 600_000));
    app.states().for_each(|app| app.clock.ensure_ids_after(ahead));
}

/// The two servers receive consecutive requests.
#[test_on(two_servers)]
async fn resources_with_equal_ids_are_distinct(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 100)]).await;
    let esi = app.sign_up("esi").await;
    let floor = event.sections[0].as_str();
    let serials = ama.order_free_tickets(floor, 4).await;
    let make = async |key: &str, path: &str, bodies: [Value; 2]| {
        align_ids(&app);
        let mut created = BTreeSet::new();
        for body in bodies {
            let response = app.post(key, path, &body).await;
            assert_eq!(response.status, 201, "{path}: {}", response.body);
            let one = if response.body.is_array() { &response.body[0] } else { &response.body };
            created.insert(one["self"].as_str().unwrap().to_owned());
        }
        assert_eq!(created.len(), 2, "{path}: {created:?}");
    };

    let account = |name: &str| json!({ "username": name, "email": format!("{name}@example.com"), "password": PASSWORD });
    make(&app.public_key, "/accounts", [account("yaw"), account("abena")]).await;
    make(&app.staff.key, "/regions", ["Ashanti", "Volta"].map(|name| json!({ "name": name, "country": "Ghana" }))).await;
    make(&ama.key, "/orders", [5, 7].map(|tickets| json!({ "items": { floor: tickets } }))).await;
    let offer = |ticket: usize| json!({ "recipient": esi.number, "tickets": [serials[ticket]] });
    make(&ama.key, "/transfers", [offer(0), offer(1)]).await;
    let admit = |ticket: usize| json!({ "serials": [serials[ticket]] });
    make(&kofi.key, &format!("{}/admissions", event.uri), [admit(2), admit(3)]).await;
    let code = |email: &str| json!({ "email": email });
    make(&app.public_key, "/verifications", [code("ama@example.com"), code("esi@example.com")]).await;
}

#[test_on(two_servers)]
async fn concurrent_payments_have_distinct_ids(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Stalls", 100.0, 10)]).await;
    let yaw = app.sign_up("yaw").await;
    let hers = ama.order(&event.sections[0], 1).await.unwrap().self_;
    let his = yaw.order(&event.sections[0], 2).await.unwrap().self_;
    align_ids(&app);
    app.gateway.block();

    let release = async {
        app.gateway.wait_for_charges(2).await;
        app.gateway.unblock();
    };
    let pays = join(app.pay(&ama.key, &hers, card_payment()), app.pay(&yaw.key, &his, card_payment()));
    let ((first, second), ()) = join(pays, release).await;

    assert_eq!((first.status, second.status), (201, 201), "{} {}", first.body, second.body);
    assert_ne!(first.body["number"], second.body["number"]);
    assert_eq!(app.gateway.total(), 305.97);
    assert_eq!(app.payments(&hers).await, [(101.99, "Confirmed".to_owned())]);
    assert_eq!(app.payments(&his).await, [(203.98, "Confirmed".to_owned())]);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (3, 0));
}

#[test_on(two_servers)]
async fn concurrent_images_have_distinct_ids(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (one, other) = (app.create_draft(&host).await, app.create_draft(&host).await);
    align_ids(&app);
    let put = async |event: &str, image: &str| app.put(&kofi.key, event, json!({ "banner": image })).await.status;
    let get = async |event: &str| {
        let banner = app.read(event).await["banner"].as_str().unwrap().to_owned();
        let path = banner.strip_prefix(&app.state.settings.public_url).unwrap();
        app.request("GET", path).anonymous().send().await.header("etag").to_owned()
    };

    assert_eq!((put(&one.uri, WHITE).await, put(&other.uri, BLACK).await), (200, 200));
    assert_ne!(get(&one.uri).await, get(&other.uri).await);

    // These ids are random, and don't advance the id generator of a server that starts later.
    let next = app.start_second_server(app.state.settings.clone()).await;
    assert_eq!(next.state.clock.next_id().to_string().len(), 14);
    next.stop().await;

    // Removing an image from one event keeps the other's.
    assert_eq!(put(&other.uri, "").await, 200);
    assert!(!get(&one.uri).await.is_empty(), "the first event has its banner still");
}

/// A server caches valid keys. Once a request that revokes a key is answered, both servers must reject it. Other requests keep
/// both caches in use.
#[test_on(two_servers)]
async fn revoked_key_is_rejected_by_both_servers(app: TestApp) {
    let others = async || {
        loop {
            let time = || app.request("GET", "/time").send();
            join_all([time(), time(), time(), time()]).await;
        }
    };
    tokio::select! {
        () = others() => {}
        () = end_keys(&app) => {}
    }
}

async fn end_keys(app: &TestApp) {
    let (ama, kofi, yaw) = (app.sign_up("ama").await, app.sign_up("kofi").await, app.sign_up("yaw").await);
    let requested = async |key: &str| {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(app.get(key, "/time").await.status);
        }
        statuses
    };
    // Both servers have cached the key, and at least one is just checking it.
    let ends = async |what: &str, key: &str, method: &str, path: &str, by: &str, body: Value| {
        assert_eq!(requested(key).await, vec![200; 4], "before {what}");
        let request = app.request(method, path).key(by);
        let response = if body.is_null() { request.send().await } else { request.json(&body).send().await };
        assert!(response.status < 300, "{what}: {} {}", response.status, response.body);
        assert_eq!(requested(key).await, vec![403; 4], "after {what}");
    };
    let session = async |name: &str, password: &str| app.sign_in(name, password).await.unwrap().key.clone();
    let staff = app.staff.key.as_str();

    let key = session("ama", PASSWORD).await;
    ends("a log-out", &key, "DELETE", "/sessions/active", &key, Value::Null).await;
    let key = session("ama", PASSWORD).await;
    let active = app.get(&key, "/sessions/active").await;
    let path = active.uri();
    ends("the end of one session", &key, "DELETE", path, &ama.key, Value::Null).await;
    let key = session("ama", PASSWORD).await;
    let (account, another) = (format!("/accounts/{}", ama.number), json!({ "password": "another-Passw0rd-of-hers" }));
    ends("another password", &key, "PUT", &account, &ama.key, another).await;
    let program = app.post(staff, "/integrations", json!({ "name": "Shop", "role": "public" })).await;
    let (key, path) = (program.body["key"].as_str().unwrap(), program.uri());
    ends("the end of an integration", key, "DELETE", path, staff, Value::Null).await;
    let toggles = format!("/accounts/{}/toggles", kofi.number);
    ends("a deactivation", &kofi.key, "POST", &toggles, staff, Value::Null).await;
    assert_eq!(app.toggle(&kofi.number).await.status, 200);
    assert_eq!(requested(&session("kofi", PASSWORD).await).await, vec![200; 4]);
    ends("an account's removal", &yaw.key, "DELETE", &format!("/accounts/{}", yaw.number), staff, Value::Null).await;
}

#[test_on(two_servers)]
async fn concurrent_mails_have_distinct_ids(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::Accept).await;
    for name in ["ama", "yaw"] {
        app.sign_up(name).await;
    }
    align_ids(&app);

    for (count, email) in [(1, "ama@example.com"), (2, "yaw@example.com")] {
        let requested = app.request("POST", "/verifications").json(&json!({ "email": email })).send().await;
        assert_eq!(requested.status, 201, "{}", requested.body);
        wait_until(async || server.accepted().len() >= count).await;
        // Removes the stored responses, so that no row conflicts with the identifier.
        app.deliver_mail().await;
    }

    let mails = server.accepted();
    let names: BTreeSet<_> =
        mails.iter().map(|mail| mail.lines().find(|line| line.starts_with("Message-ID:")).unwrap()).collect();
    assert_eq!((mails.len(), names.len()), (2, 2), "a mail system that sees a name again throws the mail away: {names:?}");
}

/// Twenty partly paid orders expire while the gateway rejects refunds. Then the jobs of both servers make the refunds.
#[test_on(two_servers)]
async fn owed_refunds_are_made_once(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Stalls", 10.0, 40)]).await;
    for number in 0..4 {
        let user = app.sign_up(&format!("person-{number}")).await;
        for _ in 0..5 {
            let order = user.order(&event.sections[0], 2).await.unwrap().self_;
            assert_eq!(app.pay(&user.key, &order, partial_card_payment(5.0)).await.status, 201);
            assert_eq!(app.pay(&user.key, &order, partial_card_payment(7.0)).await.status, 201);
        }
    }
    app.gateway.reject_refunds(true);
    app.time_out_orders().await;
    assert_eq!(app.gateway.total(), 240.0);

    app.gateway.reject_refunds(false);
    join(app.expire_due(), app.expire_due()).await;

    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (40, 0.0));
    assert_eq!(app.read("/transactions?type=Refund").await["total"], 40);
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0)], 0));
    let states: Vec<(String, i64)> = app.rows("select status, count(*) from refunds group by status").await;
    assert_eq!(states, [("Done".to_owned(), 40)]);
}

/// The clock of one server is ten minutes ahead, so a reservation expires earlier there. No ticket may be sold twice.
#[test_on(two_servers)]
async fn tickets_are_sold_once_with_different_clocks(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Stalls", 10.0, 4)]).await;
    let stalls = event.sections[0].as_str();
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let hers = [ama.order(stalls, 2).await.unwrap().self_, ama.order(stalls, 2).await.unwrap().self_];
    let ahead = app.other_state.as_ref().unwrap();
    ahead.clock.advance(Duration::from_secs(10 * 60));
    app.advance_clock(Duration::from_secs(6 * 60));

    // The tickets are free on one server, and reserved for nine more minutes on the other.
    let [first, second] =
        [app.place_order(&yaw.key, json!({ stalls: 3 })).await, app.place_order(&yaw.key, json!({ stalls: 3 })).await];
    assert_eq!(first.status + second.status, 201 + 409, "{} {}", first.body, second.body);
    let paid = [app.pay(&ama.key, &hers[0], card_payment()).await, app.pay(&ama.key, &hers[1], card_payment()).await];

    assert!(paid.iter().all(|paid| rejection(paid) == (409, "order.not-open")), "{paid:?}");
    app.expire_due().await;
    assert_eq!(app.gateway.total(), 0.0, "the late payment is refunded");
    assert_eq!(app.sold_and_reserved(stalls).await, (0, 3));
}

/// A step of the job.
#[derive(Debug, Clone)]
struct Step {
    server: String,
    began: Instant,
    ended: Option<Instant>,
}

static STEPS: Mutex<Vec<Step>> = Mutex::new(Vec::new());

/// The time for which a server leases the job before each of its steps: the interval and a half.
const JOB_LEASE: Duration = Duration::from_millis(1500);

const EXCLUSIVE_JOB: Job<App> = Job {
    name: "a job of the test",
    interval: Duration::from_secs(1),
    shutdown_timeout: Duration::from_secs(5),
    runs_on_one_server: true,
    is_in_memory: false,
    step: |app| {
        let mut steps = STEPS.lock();
        let index = steps.len();
        steps.push(Step { server: app.server_name.clone(), began: Instant::now(), ended: None });
        // A run has four steps, and takes longer than the lease that it begins with.
        let has_more = !steps.len().is_multiple_of(4);
        async move {
            // More than half an interval, after which a lease is renewed.
            sleep(Duration::from_millis(600)).await;
            STEPS.lock()[index].ended = Some(Instant::now());
            Ok(u64::from(has_more))
        }
        .boxed()
    },
};

/// Requires that each change of the server came after the lease of the one before. A busy machine may be too late to renew it.
fn assert_leases_had_ended(steps: &[Step]) {
    for (index, next) in steps.iter().enumerate().skip(1) {
        let previous = &steps[index - 1];
        if previous.server == next.server {
            continue;
        }
        // The lease of the last step began after the step before it.
        if let Some(step) = steps[..index - 1].iter().rfind(|step| step.server == previous.server) {
            assert!(step.ended.is_some_and(|ended| next.began >= ended + JOB_LEASE), "{steps:#?}");
        }
    }
}

/// The other server takes over when the one that runs the job stops.
#[test_on(two_servers)]
async fn one_server_runs_an_exclusive_job(app: TestApp) {
    let mut jobs: Vec<(String, Jobs)> =
        app.states().map(|state| (state.server_name.clone(), Jobs::start(state, [EXCLUSIVE_JOB]))).collect();
    let steps = || STEPS.lock().clone();
    wait_until(async || steps().len() >= 6).await;

    let first_steps = steps();
    assert_leases_had_ended(&first_steps);
    let first = first_steps.last().unwrap().server.clone();
    let holder = jobs.iter().position(|(name, _)| *name == first).unwrap();
    let (_, mut holder) = jobs.remove(holder);
    holder.stop().await;
    let other = jobs[0].0.clone();
    let count = |server: &str| steps().iter().filter(|step| step.server == server).count();
    let before = (count(&first), count(&other));

    wait_until(async || count(&other) >= before.1 + 2).await;
    assert_eq!(count(&first), before.0);
    jobs.remove(0).1.stop().await;
}

/// Both servers have cached the event and the keys before each change.
#[test_on(two_servers)]
async fn changes_on_one_server_are_seen_by_the_other(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    // The proxy sends consecutive requests to different servers.
    let titles = async || {
        let mut titles = BTreeSet::new();
        for _ in 0..4 {
            titles.insert(app.read(&event.uri).await["title"].as_str().unwrap().to_owned());
            let list = app.read("/published-events").await;
            titles.insert(list["entries"][0]["title"].as_str().unwrap_or_default().to_owned());
        }
        titles
    };
    for title in ["Highlife Evening", "Highlife Night", "Highlife Morning"] {
        titles().await;
        let changed = app.put(&kofi.key, &event.uri, json!({ "title": title })).await;
        assert_eq!(changed.status, 200, "{}", changed.body);

        assert_eq!(titles().await, BTreeSet::from([title.to_owned()]));
    }
}

/// A white pixel in base64.
const WHITE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4//8/AAX+Av4zEpUUAAAAAElFTkSuQmCC";
/// A black pixel.
const BLACK: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mNgYGAAAAAEAAHI6uv5AAAAAElFTkSuQmCC";

#[test_on(two_servers)]
async fn lease_of_server_whose_clock_was_ahead_ends(app: TestApp) {
    app.stop_jobs().await;
    app.execute_sql(
        "insert into job_runs (name, server, started, finished, succeeded, processed, error, leased_until)
         values ('return orders of cancelled events', 'gone', 0, null, true, 0, '', 9000000000000000)
         on conflict (name) do update set server = excluded.server, leased_until = excluded.leased_until",
    )
    .await;

    let server = app.start_second_server(app.state.settings.clone()).await;

    let holder = "select server from job_runs where name = 'return orders of cancelled events'";
    wait_until(async || app.scalar::<String>(holder).await == server.state.server_name).await;
}
