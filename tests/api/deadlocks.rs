//! Every operation that locks rows runs at the same time as every other one, on the same rows. PostgreSQL must not detect a
//! deadlock: it would resolve one by ending a transaction, and until then both would wait for a second.
//!
//! Triggers make each changing statement slower, so that transactions overlap.

use std::collections::HashMap;
use std::fs;

use futures::future::{join, join_all};
use rand::seq::SliceRandom;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::advertisements::advertisement_body;
use crate::review::submission_of;
use crate::support::{Call, Event, Host, RESERVATION_TTL, Response, TestApp, User, entries_of, id_of, race_rounds, section};

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

/// Sends a request. A POST has an `Idempotency-Key`.
async fn send(app: &TestApp, call: &Call) -> Response {
    let request = call.request(app);
    if call.method != "POST" {
        return request.send().await;
    }
    request.header("Idempotency-Key", &format!("{:x}", rand::random::<u64>())).send().await
}

/// The resources that all operations of a round share.
struct Fixtures<'a> {
    app: &'a TestApp,
    host: &'a Host,
    ama: User,
    yaw: User,
    /// Will be removed.
    esi: User,
    listed: Event,
    /// A listed event of the same host.
    second: Event,
    draft: Event,
    submitted: Event,
    /// Two tokens for both paid sections of the listed event, with their codes.
    tokens: Vec<(String, String)>,
    modifiers: Vec<String>,
    zones: [String; 2],
    /// Advertisements of the draft event, in both zones.
    advertisements: Vec<String>,
    region: String,
    category: String,
    venues: [String; 2],
    /// Open orders of Ama and of Esi, each in the stalls and the balcony.
    open: Vec<String>,
    hers: Vec<String>,
    /// Open orders of Yaw for all places of the pit, and the entries of Ama and of Esi in its waiting list.
    full: Vec<String>,
    waiting: Vec<String>,
    /// Fulfilled orders of Ama with two tickets each, and their serial numbers.
    fulfilled: Vec<String>,
    serials: Vec<String>,
    /// Serial numbers of Yaw's tickets.
    his: Vec<String>,
    /// Orders of Yaw with one ticket each, and the admissions of the tickets.
    admitted: Vec<(String, String)>,
    /// Open transfers of a ticket of each fulfilled order: to Yaw, and to Esi.
    transfers: Vec<String>,
}

impl<'a> Fixtures<'a> {
    async fn create(app: &'a TestApp, host: &'a Host, round: usize) -> Self {
        let ama = app.sign_up(&format!("ama-{round}")).await;
        let yaw = app.sign_up(&format!("yaw-{round}")).await;
        let esi = app.sign_up(&format!("esi-{round}")).await;
        let blocks =
            [section("Free", 0.0, 1000), section("Stalls", 10.0, 1000), section("Balcony", 20.0, 1000), section("Pit", 20.0, 2)];
        let listed = app.create_listed_event(host, &blocks).await;
        let second = app.create_listed_event(host, &[section("Floor", 10.0, 1000)]).await;
        let mut draft = app.create_draft(host).await;
        for block in &blocks {
            draft.sections.push(app.add_section(&draft, block).await);
        }
        let submitted = app.create_draft(host).await;
        let zones = [app.create_zone(300, 250).await, app.create_zone(300, 250).await];
        let region = app.create_region().await;
        let venues = [app.create_venue().await, app.create_venue().await];
        let category = app.create_category().await;
        let mut fixtures = Self {
            app,
            host,
            ama,
            yaw,
            esi,
            listed,
            second,
            draft,
            submitted,
            zones,
            region,
            venues,
            category,
            tokens: Vec::new(),
            modifiers: Vec::new(),
            advertisements: Vec::new(),
            open: Vec::new(),
            hers: Vec::new(),
            full: Vec::new(),
            waiting: Vec::new(),
            fulfilled: Vec::new(),
            serials: Vec::new(),
            his: Vec::new(),
            admitted: Vec::new(),
            transfers: Vec::new(),
        };
        fixtures.add_catalog().await;
        fixtures.add_sales().await;
        fixtures
    }

    async fn send(&self, key: &str, method: &'static str, path: &str, body: Value) -> Value {
        let response = send(self.app, &Call::new(key, method, path, body)).await;
        assert!(response.status < 300, "{method} {path}: {} {}", response.status, response.body);
        response.body
    }

    async fn add_catalog(&mut self) {
        let kofi = self.host.owner.key.clone();
        let uri = |body: Value| body["self"].as_str().unwrap().to_owned();
        for event in [&self.listed, &self.draft] {
            let body = json!({ "sections": event.sections[1..] });
            let token = self.send(&kofi, "POST", &format!("{}/tokens", event.uri), body).await;
            self.tokens.push((token["self"].as_str().unwrap().to_owned(), token["code"].as_str().unwrap().to_owned()));
            let path = format!("{}/modifiers", event.sections[1]);
            let modifier = self.send(&kofi, "POST", &path, json!({ "name": "Early bird", "priceDelta": 1.0 })).await;
            self.modifiers.push(uri(modifier));
        }
        for number in 0..4 {
            let name = format!("Jazz {} {number}", self.draft.id);
            let body = advertisement_body(&name, &self.draft, &[&self.zones[number % 2], &self.zones[1 - number % 2]]);
            let advertisement = self.send(&kofi, "POST", "/advertisements", body).await;
            self.advertisements.push(uri(advertisement));
        }
        for path in [&self.submitted.uri, &self.advertisements[3]] {
            self.send(&kofi, "POST", &format!("{path}/submissions"), Value::Null).await;
        }
    }

    async fn add_sales(&mut self) {
        let [free, stalls, balcony] = [0, 1, 2].map(|number| self.listed.sections[number].clone());
        for _ in 0..4 {
            let order = self.ama.order_items([(stalls.as_str(), 1), (balcony.as_str(), 1)]).await.unwrap();
            self.open.push(order.self_);
            let order = self.esi.order_items([(balcony.as_str(), 1), (stalls.as_str(), 1)]).await.unwrap();
            self.hers.push(order.self_);
        }
        let pit = self.listed.sections[3].clone();
        for _ in 0..2 {
            self.full.push(self.yaw.order(&pit, 1).await.unwrap().self_);
        }
        for key in [self.ama.key.clone(), self.esi.key.clone()] {
            let entry = self.send(&key, "POST", &format!("{pit}/waiting-list"), json!({ "quantity": 1 })).await;
            self.waiting.push(entry["self"].as_str().unwrap().to_owned());
        }
        for _ in 0..4 {
            let order = self.ama.order(&free, 2).await.unwrap();
            self.fulfilled.push(order.self_);
        }
        let wallet = self.app.read(&format!("/accounts/{}/tickets", self.ama.number)).await;
        let serials = entries_of(&wallet).iter().map(|ticket| ticket["serial"].as_str().unwrap().to_owned());
        self.serials = serials.collect();
        self.his = self.yaw.order_free_tickets(&free, 4).await;
        for _ in 0..2 {
            let order = self.yaw.order(&free, 1).await.unwrap().self_;
            let wallet = self.app.read(&format!("/accounts/{}/tickets", self.yaw.number)).await;
            let body = json!({ "serials": [entries_of(&wallet).last().unwrap()["serial"]] });
            let path = format!("{}/admissions", self.listed.uri);
            let admissions = self.send(&self.host.owner.key, "POST", &path, body).await;
            self.admitted.push((order, admissions[0]["self"].as_str().unwrap().to_owned()));
        }
        for number in [1_usize, 3, 5, 7] {
            let recipient = if number < 4 { &self.yaw } else { &self.esi };
            // Tickets of two orders.
            let tickets = [&self.serials[number], &self.serials[(number + 7) % 8]];
            let body = json!({ "recipient": recipient.number, "tickets": tickets });
            let transfer = self.send(&self.ama.key, "POST", "/transfers", body).await;
            self.transfers.push(transfer["self"].as_str().unwrap().to_owned());
        }
    }

    /// Returns the requests of a round, most of them twice.
    fn calls(&self, round: usize) -> Vec<Call> {
        let mut calls = Vec::new();
        let mut add = |key: &str, method: &'static str, path: String, body: Value| {
            calls.push(Call::new(key, method, path, body));
        };
        let (kofi, staff) = (self.host.owner.key.as_str(), self.app.staff.key.as_str());
        let (listed, draft) = (&self.listed, &self.draft);
        let [free, stalls, balcony, pit] = [0, 1, 2, 3].map(|number| listed.sections[number].as_str());
        for number in 0..2 {
            let name = |kind: &str| format!("{kind} {} {number}", listed.id);
            // Orders, payments and their ends.
            for user in [&self.ama, &self.yaw] {
                add(&user.key, "POST", "/orders".to_owned(), json!({ "items": { balcony: 1, stalls: 1 } }));
                add(&user.key, "POST", "/orders".to_owned(), json!({ "items": { stalls: 1, free: 1 } }));
                add(&user.key, "POST", "/orders".to_owned(), json!({ "items": { free: 1 } }));
                let of_both_events = json!({ "items": { balcony: 1, self.second.sections[0].as_str(): 1 } });
                add(&user.key, "POST", "/orders".to_owned(), of_both_events);
            }
            let external = json!({ "method": "external", "reference": "Counter 1" });
            add(staff, "POST", format!("{}/payments", self.open[number]), external.clone());
            add(staff, "POST", format!("{}/payments", self.hers[number]), external);
            let card = json!({ "method": "card", "token": "tok_approve" });
            add(&self.ama.key, "POST", format!("{}/payments", self.open[2 + number]), card);
            add(&self.ama.key, "POST", format!("{}/cancellations", self.open[number]), Value::Null);
            add(kofi, "POST", format!("{}/returns", self.fulfilled[number]), json!({}));
            // The waiting list.
            add(&self.yaw.key, "POST", format!("{}/cancellations", self.full[number]), Value::Null);
            add(&self.ama.key, "POST", "/orders".to_owned(), json!({ "items": { pit: 1, stalls: 1 } }));
            add(&self.yaw.key, "POST", format!("{pit}/waiting-list"), json!({ "quantity": 1 }));
            add(&self.ama.key, "DELETE", self.waiting[0].clone(), Value::Null);
            add(staff, "POST", format!("{}/voids", self.fulfilled[2 + number]), json!({ "reason": "Fraud." }));
            // Transfers and admissions.
            let offer = |to: &User, serial: &str| json!({ "recipient": to.number, "tickets": [serial] });
            add(&self.ama.key, "POST", "/transfers".to_owned(), offer(&self.yaw, &self.serials[2 * number + 4]));
            add(&self.yaw.key, "POST", "/transfers".to_owned(), offer(&self.ama, &self.his[number]));
            add(&self.yaw.key, "POST", "/transfers".to_owned(), offer(&self.esi, &self.his[2 + number]));
            add(&self.yaw.key, "POST", format!("{}/claims", self.transfers[number]), Value::Null);
            add(&self.yaw.key, "POST", format!("{}/rejections", self.transfers[number]), Value::Null);
            add(&self.esi.key, "POST", format!("{}/claims", self.transfers[2 + number]), Value::Null);
            add(&self.ama.key, "DELETE", self.transfers[number + 1].clone(), Value::Null);
            let mut serials: Vec<&String> = self.serials.iter().chain(&self.his).collect();
            if number == 1 {
                serials.reverse();
            }
            add(kofi, "POST", format!("{}/admissions", listed.uri), json!({ "serials": serials }));
            add(kofi, "POST", format!("{}/scans", listed.uri), json!({ "serials": serials }));
            let scanned = self.app.state.clock.now().format_rfc3339();
            let scans: Vec<Value> = serials.iter().map(|serial| json!({ "serial": serial, "scanned": scanned })).collect();
            add(kofi, "POST", format!("{}/offline-scans", listed.uri), json!({ "device": "Gate B", "scans": scans }));
            let (order, admission) = &self.admitted[number];
            add(kofi, "DELETE", admission.clone(), Value::Null);
            add(staff, "POST", format!("{order}/voids"), json!({ "reason": "Fraud." }));
            // Events and their parts.
            for event in [listed, draft] {
                let [first, last] = [1, 2].map(|number| event.sections[number].as_str());
                let change = json!({ "title": format!("{} {}", event.id, name("Jazz")), "venue": self.venues[number] });
                add(kofi, "PUT", event.uri.clone(), change);
                let block = serde_json::to_value(section(&name("Block"), 10.0, 10)).unwrap();
                add(kofi, "POST", format!("{}/sections", event.uri), block);
                add(kofi, "PUT", first.to_owned(), json!({ "name": name("First") }));
                add(kofi, "PUT", last.to_owned(), json!({ "capacity": 900 + number }));
                let modifier = json!({ "name": name("Late bird"), "priceDelta": 1.0 });
                add(kofi, "POST", format!("{first}/modifiers"), modifier);
                add(kofi, "POST", format!("{}/tokens", event.uri), json!({ "sections": [last, first] }));
            }
            for ((token, code), (event, modifier)) in self.tokens.iter().zip([listed, draft].into_iter().zip(&self.modifiers)) {
                let [first, last] = [1, 2].map(|number| event.sections[number].as_str());
                let sections = if number == 0 { [first, last] } else { [last, first] };
                add(kofi, "PUT", token.clone(), json!({ "sections": sections }));
                add(&self.app.public_key, "GET", format!("/tokens/{code}"), Value::Null);
                add(kofi, "PUT", modifier.clone(), json!({ "name": name("Bird") }));
            }
            for (at, advertisement) in self.advertisements.iter().enumerate() {
                let zones = [&self.zones[(at + number) % 2], &self.zones[(at + number + 1) % 2]];
                add(kofi, "PUT", advertisement.clone(), json!({ "zones": zones }));
            }
            let advertisement = advertisement_body(&name("Rock"), draft, &[&self.zones[number], &self.zones[1 - number]]);
            add(kofi, "POST", "/advertisements".to_owned(), advertisement);
            add(kofi, "PUT", self.advertisements[number].clone(), json!({ "event": listed.id }));
            add(kofi, "POST", format!("{}/submissions", self.advertisements[number]), Value::Null);
            // People and reference data.
            let region = json!({ "region": self.region });
            for user in [&self.ama, &self.yaw, &self.esi] {
                add(&user.key, "PUT", format!("/accounts/{}/preferences", user.number), region.clone());
                add(&user.key, "PUT", format!("/accounts/{}", user.number), json!({ "city": name("Accra") }));
                add(&user.key, "POST", "/verifications".to_owned(), json!({ "email": format!("{}@example.com", user.username) }));
                add(kofi, "POST", format!("{}/administrators", self.host.uri), json!({ "account": user.number }));
            }
            add(kofi, "PUT", self.host.uri.clone(), json!({ "city": name("Accra") }));
            add(kofi, "PUT", self.second.uri.clone(), json!({ "title": name("Second") }));
            add(staff, "PUT", self.venues[number].clone(), region.clone());
            add(staff, "PUT", self.zones[number].clone(), json!({ "description": name("Top") }));
            add(staff, "PUT", self.category.clone(), json!({ "subcategories": ["Rock", name("Folk"), "Jazz"] }));
            add(kofi, "PUT", draft.uri.clone(), json!({ "category": self.category, "subcategory": "Jazz" }));
        }
        // Removals. Those of the draft event come in some rounds only, because the other requests then find nothing.
        add(staff, "DELETE", format!("/accounts/{}", self.esi.number), Value::Null);
        add(kofi, "DELETE", format!("{}/administrators?account={}", self.host.uri, self.yaw.number), Value::Null);
        add(staff, "DELETE", format!("{}?approved=true", submission_of(&self.submitted.uri)), Value::Null);
        add(staff, "DELETE", format!("{}?approved=false", submission_of(&self.advertisements[3])), Value::Null);
        add(staff, "DELETE", self.zones[0].clone(), Value::Null);
        add(staff, "DELETE", self.region.clone(), Value::Null);
        add(staff, "DELETE", self.category.clone(), Value::Null);
        match round % 3 {
            0 => {
                add(kofi, "DELETE", draft.uri.clone(), Value::Null);
                add(kofi, "DELETE", self.submitted.uri.clone(), Value::Null);
            }
            1 => {
                add(kofi, "DELETE", draft.sections[1].clone(), Value::Null);
                add(kofi, "DELETE", draft.sections[2].clone(), Value::Null);
                add(kofi, "DELETE", self.advertisements[2].clone(), Value::Null);
                add(kofi, "DELETE", self.tokens[1].0.clone(), Value::Null);
            }
            _ => {
                add(kofi, "POST", format!("{}/submissions", draft.uri), Value::Null);
                add(kofi, "POST", format!("{}/cancellations", listed.uri), Value::Null);
            }
        }
        calls
    }
}
