//! Every POST and PATCH of the contract, sent twice at once, repeated, and once with another request's idempotency key.

use serde_json::{Value, json};

use super::{is_replayed, send_twice};
use crate::advertisements::{advertisement_body, create as create_advertisement, publish};
use crate::support::{Event, Host, PASSWORD, TestApp, User, card_payment, operations, rejection, section};

on_both_databases![every_post_and_patch_is_idempotent];

/// A request that succeeds once.
struct PreparedRequest {
    path: String,
    key: String,
    body: Option<Value>,
}

/// The resources of the requests.
struct Fixture<'a> {
    app: &'a TestApp,
    kofi: &'a User,
    ama: &'a User,
    host: &'a Host,
    /// An event on sale, with a large section.
    event: &'a Event,
    zone: &'a str,
}

impl Fixture<'_> {
    async fn listed(&self) -> Event {
        self.app.create_listed_event(self.host, &[section("Floor", 20.0, 100)]).await
    }

    /// Creates an order of Ama for one ticket.
    async fn order(&self) -> String {
        self.ama.order(&self.event.sections[0], 1).await.unwrap().self_.clone()
    }

    /// Creates a paid order, and returns it with its ticket's serial.
    async fn sold(&self) -> (String, String) {
        let order = self.order().await;
        assert_eq!(self.app.pay(&self.ama.key, &order, card_payment()).await.status, 201);
        (order, self.app.scalar("select serial from tickets order by id desc limit 1").await)
    }

    /// Creates a transfer of a ticket from Ama to Kofi.
    async fn transfer(&self) -> String {
        let offer = json!({ "recipient": self.kofi.number, "tickets": [self.sold().await.1] });
        let created = self.app.post(&self.ama.key, "/transfers", offer).await;
        created.uri().to_owned()
    }

    async fn advertisement(&self, name: &str) -> String {
        let created = create_advertisement(self.app, &self.kofi.key, &advertisement_body(name, self.event, &[self.zone])).await;
        created.body["self"].as_str().unwrap_or_else(|| panic!("{created:?}")).to_owned()
    }

    /// Builds a request of this operation.
    async fn request(&self, operation: &str) -> PreparedRequest {
        let (app, kofi, ama, event) = (self.app, self.kofi, self.ama, &self.event.uri);
        let staff = app.staff.key.as_str();
        let plain = |path: String, key: &str| PreparedRequest { path, key: key.to_owned(), body: None };
        let with =
            |path: &str, key: &str, body: Value| PreparedRequest { path: path.to_owned(), key: key.to_owned(), body: Some(body) };
        let anyone = app.public_key.as_str();
        match operation {
            "session_create" => with("/sessions", anyone, json!({ "identification": "ama", "password": PASSWORD })),
            "integration_create" => {
                with("/integrations", staff, json!({ "name": "Kiosk", "role": "customer", "account": ama.number }))
            }
            "account_create" => {
                let body = json!({ "username": "adwoa", "email": "adwoa@example.com", "password": PASSWORD });
                with("/accounts", anyone, body)
            }
            "account_toggle_create" => plain(format!("/accounts/{}/toggles", app.sign_up("efua").await.number), staff),
            "account_deletion_create" => plain(format!("/accounts/{}/deletions", app.sign_up("yaw").await.number), staff),
            "lookup_create" => with("/lookups", anyone, json!({ "identification": "ama" })),
            "verification_create" => with("/verifications", anyone, json!({ "email": "ama@example.com" })),
            "reset_create" => with("/resets", anyone, json!({ "email": "ama@example.com" })),
            "verification_update" => {
                app.sign_up("efia").await;
                let (uri, code) = app.request_code("/verifications", "efia@example.com", 1).await;
                with(&uri, anyone, json!({ "code": code }))
            }
            "reset_update" => {
                app.sign_up("abena").await;
                let (uri, code) = app.request_code("/resets", "abena@example.com", 1).await;
                with(&uri, anyone, json!({ "code": code, "password": "another horse battery" }))
            }
            "host_create" => {
                with("/hosts", &ama.key, json!({ "name": "Ama Live", "contact": "Ama", "email": "live@example.com" }))
            }
            "host_administrator_create" => {
                with(&format!("{}/administrators", self.host.uri), &kofi.key, json!({ "account": ama.number }))
            }
            "region_create" => with("/regions", staff, json!({ "name": "Volta", "country": "Ghana" })),
            "category_create" => with("/categories", staff, json!({ "name": "Theatre", "subcategories": ["Drama"] })),
            "venue_create" => {
                let (region, place) = (app.create_region().await, (-0.2, 5.55));
                let body =
                    json!({ "name": "Hall", "region": region, "address": "Road", "longitude": place.0, "latitude": place.1 });
                with("/venues", staff, body)
            }
            "event_create" => {
                let body = json!({
                    "host": self.host.uri, "title": "Once", "description": "Jazz.", "type": "Standard", "public": true,
                    "category": app.create_category().await, "subcategory": "Jazz", "venue": app.create_venue().await,
                    "start": "2998-12-20T19:00", "end": "2998-12-20T23:00",
                });
                with("/events", &kofi.key, body)
            }
            "event_copy_create" => {
                with(&format!("{event}/copies"), &kofi.key, json!({ "title": "Copied", "start": "2998-12-21T19:00" }))
            }
            "event_submission_create" => plain(format!("{}/submissions", app.create_draft(self.host).await.uri), &kofi.key),
            "event_withdrawal_create" => plain(format!("{}/withdrawals", self.listed().await.uri), &kofi.key),
            "event_cancellation_create" => plain(format!("{}/cancellations", self.listed().await.uri), &kofi.key),
            "section_create" => {
                let body = serde_json::to_value(section("Balcony", 30.0, 10)).unwrap();
                with(&format!("{event}/sections"), &kofi.key, body)
            }
            "section_modifier_create" => {
                let body = json!({ "name": "Early bird", "priceDelta": -5 });
                with(&format!("{}/modifiers", self.event.sections[0]), &kofi.key, body)
            }
            "order_create" => with("/orders", &ama.key, json!({ "items": { self.event.sections[0].as_str(): 1 } })),
            "quote_create" => with("/quotes", anyone, json!({ "items": { self.event.sections[0].as_str(): 1 } })),
            "order_cancellation_create" => plain(format!("{}/cancellations", self.order().await), &ama.key),
            "order_payment_create" => with(&format!("{}/payments", self.order().await), &ama.key, card_payment()),
            "order_return_create" => with(&format!("{}/returns", self.sold().await.0), staff, json!({})),
            "event_complimentary_order_create" => {
                let body = json!({ "account": ama.number, "items": { self.event.sections[0].as_str(): 1 } });
                with(&format!("{event}/complimentary-orders"), &kofi.key, body)
            }
            "event_return_create" => {
                let event = self.listed().await.uri;
                app.post_empty(&kofi.key, &format!("{event}/cancellations")).await;
                with(&format!("{event}/returns"), &kofi.key, json!({ "reason": "Rain" }))
            }
            "order_void_create" => with(&format!("{}/voids", self.sold().await.0), staff, json!({ "reason": "Lost" })),
            "section_waiting_entry_create" => {
                let event = app.create_listed_event(self.host, &[section("Lounge", 0.0, 1)]).await;
                kofi.order(&event.sections[0], 1).await.unwrap();
                with(&format!("{}/waiting-list", event.sections[0]), &ama.key, json!({ "quantity": 1 }))
            }
            "transfer_create" => {
                let body = json!({ "recipient": kofi.number, "tickets": [self.sold().await.1] });
                with("/transfers", &ama.key, body)
            }
            "transfer_claim_create" => plain(format!("{}/claims", self.transfer().await), &kofi.key),
            "transfer_rejection_create" => plain(format!("{}/rejections", self.transfer().await), &kofi.key),
            "event_token_create" => with(&format!("{event}/tokens"), &kofi.key, json!({ "sections": [self.event.sections[0]] })),
            "event_token_code_create" => {
                let body = json!({ "sections": [self.event.sections[0]] });
                let created = app.post(&kofi.key, &format!("{event}/tokens"), &body).await;
                plain(format!("{}/codes", created.header("location")), &kofi.key)
            }
            "event_admission_create" => {
                with(&format!("{event}/admissions"), &kofi.key, json!({ "serials": [self.sold().await.1] }))
            }
            "event_scan_create" => with(&format!("{event}/scans"), &kofi.key, json!({ "serials": [self.sold().await.1] })),
            "event_offline_scan_create" => {
                let scan = json!({ "serial": self.sold().await.1, "scanned": app.state.clock.now().format_rfc3339() });
                with(&format!("{event}/offline-scans"), &kofi.key, json!({ "device": "Gate A", "scans": [scan] }))
            }
            "zone_create" => with("/zones", staff, json!({ "name": "Top", "width": 300, "height": 250 })),
            "advertisement_create" => with("/advertisements", &kofi.key, advertisement_body("Twice", self.event, &[self.zone])),
            "advertisement_submission_create" => {
                plain(format!("{}/submissions", self.advertisement("To be approved").await), &kofi.key)
            }
            "advertisement_cancellation_create" => {
                let advertisement = self.advertisement("To be cancelled").await;
                publish(app, &advertisement).await;
                plain(format!("{advertisement}/cancellations"), &kofi.key)
            }
            other => panic!("{other} has no request in this test"),
        }
    }
}

/// Returns the number of rows in every table.
async fn rows(app: &TestApp) -> Vec<(String, i64)> {
    let mut tx = app.state.db.begin().await.unwrap();
    let tables = if tx.is_postgres() {
        "select table_name from information_schema.tables where table_schema = 'public' order by 1"
    } else {
        "select name from pragma_table_list where schema = 'main' and type = 'table' and name not like 'sqlite%' order by 1"
    };
    let tables: Vec<(String,)> = tx.query(tables).all().await.unwrap();
    let mut rows = Vec::new();
    for (table,) in tables {
        let count: Vec<(i64,)> = tx.select(&format!("count(*) from {table}")).all().await.unwrap();
        rows.push((table, count[0].0));
    }
    rows
}

async fn every_post_and_patch_is_idempotent(app: TestApp) {
    // A job that runs between two counts would change the numbers of rows.
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 100)]).await;
    let zone = app.create_zone(300, 250).await;
    let fixture = Fixture { app: &app, kofi: &kofi, ama: &ama, host: &event.host, event: &event, zone: &zone };
    let mut tried = 0;
    for operation in operations().iter().filter(|operation| ["POST", "PATCH"].contains(&operation.method.as_str())) {
        let (id, prepared) = (&operation.id, fixture.request(&operation.id).await);
        let send = async || {
            let request = app.request(&operation.method, &prepared.path).key(&prepared.key).header("Idempotency-Key", id);
            match &prepared.body {
                Some(body) => request.json(body).send().await,
                None => request.send().await,
            }
        };

        let (actual, first) = send_twice(&app, send).await;
        let before = rows(&app).await;
        let again = send().await;
        let after = rows(&app).await;
        let other = operation.send(&app, |request| request.key(&prepared.key).header("Idempotency-Key", id)).await;

        assert_eq!(rejection(&actual), (409, "idempotency.under-way"), "{id}");
        assert!([200, 201].contains(&first.status) && !is_replayed(&first), "{id}: {first:?}");
        assert_eq!((again.status, is_replayed(&again), &again.body), (first.status, true, &first.body), "{id}");
        assert_eq!(again.header("location"), first.header("location"), "{id}");
        assert_eq!(again.header("content-type"), first.header("content-type"), "{id}");
        assert_eq!(before, after, "{id}");
        assert_eq!(rejection(&other), (422, "idempotency.other-request"), "{id}: {other:?}");
        tried += 1;
    }
    assert!(tried > 30, "only {tried}");
}
