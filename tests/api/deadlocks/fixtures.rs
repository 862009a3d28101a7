//! The resources that all operations of a round share, and the requests for them.

use serde_json::{Value, json};

use crate::advertisements::{self, advertisement_body};
use crate::review::submission_of;
use crate::support::{Call, Event, Host, Response, TestApp, User, section};

/// Sends a request. A POST has an `Idempotency-Key`.
pub async fn send(app: &TestApp, call: &Call) -> Response {
    let request = call.request(app);
    if call.method != "POST" {
        return request.send().await;
    }
    request.header("Idempotency-Key", &format!("{:x}", rand::random::<u64>())).send().await
}

/// The resources that all operations of a round share.
pub struct Fixtures<'a> {
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
    pub async fn create(app: &'a TestApp, host: &'a Host, round: usize) -> Self {
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

    async fn add_catalog(&mut self) {
        let kofi = self.host.owner.key.clone();
        for event in [&self.listed, &self.draft] {
            let body = json!({ "sections": event.sections[1..] });
            let token = self.app.post(&kofi, &format!("{}/tokens", event.uri), body).await;
            self.tokens.push((token.uri().to_owned(), token.body["code"].as_str().unwrap().to_owned()));
            let path = format!("{}/modifiers", event.sections[1]);
            let modifier = self.app.post(&kofi, &path, json!({ "name": "Early bird", "priceDelta": 1.0 })).await;
            self.modifiers.push(modifier.uri().to_owned());
        }
        for number in 0..4 {
            let name = format!("Jazz {} {number}", self.draft.id);
            let zones = [&*self.zones[number % 2], &self.zones[1 - number % 2]];
            self.advertisements.push(advertisements::create_draft(self.app, &self.host.owner, &name, &self.draft, &zones).await);
        }
        for path in [&self.submitted.uri, &self.advertisements[3]] {
            self.app.post_empty(&kofi, &format!("{path}/submissions")).await.success();
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
            let entry = self.app.post(&key, &format!("{pit}/waiting-list"), json!({ "quantity": 1 })).await;
            self.waiting.push(entry.uri().to_owned());
        }
        for _ in 0..4 {
            let order = self.ama.order(&free, 2).await.unwrap();
            self.fulfilled.push(order.self_);
        }
        let wallet = self.app.wallet(&self.ama).await;
        self.serials = wallet.iter().map(|ticket| ticket["serial"].as_str().unwrap().to_owned()).collect();
        self.his = self.yaw.order_free_tickets(&free, 4).await;
        for _ in 0..2 {
            let order = self.yaw.order(&free, 1).await.unwrap().self_;
            let wallet = self.app.wallet(&self.yaw).await;
            let serial = &wallet.last().unwrap()["serial"];
            let admissions = self.app.admit(&self.host.owner.key, &self.listed, [serial]).await.success();
            self.admitted.push((order, admissions[0]["self"].as_str().unwrap().to_owned()));
        }
        for number in [1_usize, 3, 5, 7] {
            let recipient = if number < 4 { &self.yaw } else { &self.esi };
            // Tickets of two orders.
            let tickets = [&self.serials[number], &self.serials[(number + 7) % 8]];
            let body = json!({ "recipient": recipient.number, "tickets": tickets });
            let transfer = self.app.post(&self.ama.key, "/transfers", body).await;
            self.transfers.push(transfer.uri().to_owned());
        }
    }

    /// Returns the requests of a round, most of them twice.
    pub fn calls(&self, round: usize) -> Vec<Call> {
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
