//! The requests that refer to a resource, and the request that removes it.

use std::cell::Cell;

use serde_json::{Value, json};

use super::references::Reference;
use crate::advertisements::advertisement_body;
use crate::support::{Event, TestApp, User, entries_of, section};

/// A request.
pub struct Call {
    pub key: String,
    pub method: &'static str,
    pub path: String,
    /// Null if it has none.
    pub body: Value,
}

/// Requests that refer to a resource, and the request that removes it.
pub struct Race {
    pub requests: Vec<Call>,
    pub removal: Call,
}

/// The people of the test.
pub struct World<'a> {
    app: &'a TestApp,
    kofi: User,
    pub buyers: Vec<User>,
    count: Cell<usize>,
}

/// The number of equal requests that refer to the same resource at the same time.
const REQUESTS: usize = 3;

impl<'a> World<'a> {
    pub async fn create(app: &'a TestApp) -> Self {
        let kofi = app.sign_up("kofi").await;
        let mut buyers = Vec::new();
        for name in ["ama", "esi", "yaw", "abena"] {
            buyers.push(app.sign_up(name).await);
        }
        Self { app, kofi, buyers, count: Cell::new(0) }
    }

    /// Returns a name that no other resource has.
    fn name(&self, kind: &str) -> String {
        self.count.set(self.count.get() + 1);
        format!("{kind} {}", self.count.get())
    }

    fn by_staff(&self, method: &'static str, path: impl Into<String>, body: Value) -> Call {
        Call { key: self.app.staff.key.clone(), method, path: path.into(), body }
    }

    pub fn by_host(&self, method: &'static str, path: impl Into<String>, body: Value) -> Call {
        Call { key: self.kofi.key.clone(), method, path: path.into(), body }
    }

    pub fn order(&self, buyer: &User, section: &str) -> Call {
        let body = json!({ "items": { section: 1 } });
        Call { key: buyer.key.clone(), method: "POST", path: "/orders".to_owned(), body }
    }

    /// Creates a listed event with a section for each price.
    pub async fn listed_event(&self, prices: &[f64]) -> Event {
        let host = self.app.create_host(&self.kofi).await;
        let sections: Vec<_> = prices.iter().map(|price| section(&self.name("Block"), *price, 1000)).collect();
        self.app.create_listed_event(&host, &sections).await
    }

    /// Creates a draft event with two sections.
    async fn draft_event(&self) -> Event {
        let host = self.app.create_host(&self.kofi).await;
        let mut event = self.app.create_draft(&host).await;
        for name in ["Stalls", "Balcony"] {
            event.sections.push(self.app.add_section(&event, &section(name, 10.0, 100)).await);
        }
        event
    }

    /// Sends a request that must succeed, and returns the URI in its response.
    async fn create_with(&self, call: Call) -> String {
        let response = super::send(self.app, &call).await;
        assert!(response.status < 300, "{} {}: {} {}", call.method, call.path, response.status, response.body);
        response.body["self"].as_str().unwrap_or_default().to_owned()
    }

    async fn advertisement(&self, event: &Event, zone: &str) -> String {
        let body = advertisement_body(&self.name("Jazz"), event, &[zone]);
        self.create_with(self.by_host("POST", "/advertisements", body)).await
    }

    /// Signs up a user who will be removed.
    async fn leaving_user(&self) -> User {
        self.app.sign_up(&self.name("person").replace(' ', "-")).await
    }

    fn event_body(&self, host: &str, category: &str, venue: &str) -> Value {
        json!({
            "host": host, "title": self.name("Jazz Night"), "description": "Jazz.", "type": "Standard", "public": true,
            "category": category, "subcategory": "Jazz", "venue": venue,
        })
    }

    /// Creates the resources of a race.
    pub async fn prepare(&self, reference: &Reference) -> Race {
        let (operation, removed) = (reference.operation, reference.removed);
        let removal = |path: &str| self.by_staff("DELETE", path, Value::Null);
        let race = |requests: Vec<Call>, removal: Call| Race { requests, removal };
        let repeat = |request: &dyn Fn() -> Call| (0..REQUESTS).map(|_| request()).collect::<Vec<Call>>();
        match (operation, removed) {
            ("venue_create", _) => {
                let region = self.app.create_region().await;
                let venue = || {
                    let (name, longitude) = (self.name("Hall"), -0.2);
                    json!({ "name": name, "region": region, "address": "Ring Road", "longitude": longitude, "latitude": 5.5 })
                };
                race(repeat(&|| self.by_staff("POST", "/venues", venue())), removal(&region))
            }
            ("venue_update", _) => {
                let (venue, region) = (self.app.create_venue().await, self.app.create_region().await);
                race(repeat(&|| self.by_staff("PUT", &venue, json!({ "region": region }))), removal(&region))
            }
            ("event_create" | "event_update", _) => {
                let host = self.app.create_host(&self.kofi).await;
                let (category, venue) = (self.app.create_category().await, self.app.create_venue().await);
                let event = if operation == "event_update" { Some(self.app.create_draft(&host).await.uri) } else { None };
                let request = || {
                    let mut body = self.event_body(&host.uri, &category, &venue);
                    match &event {
                        None => self.by_host("POST", "/events", body),
                        Some(event) => {
                            body.as_object_mut().unwrap().remove("title");
                            self.by_host("PUT", event, body)
                        }
                    }
                };
                let removal = match removed {
                    "category" => removal(&category),
                    "subcategory" => self.by_staff("PUT", &category, json!({ "subcategories": ["Rock"] })),
                    "venue" => removal(&venue),
                    _ => removal(&host.uri),
                };
                race(repeat(&request), removal)
            }
            ("category_update", _) => {
                let category = self.app.create_category().await;
                let request = || self.by_staff("PUT", &category, json!({ "subcategories": [self.name("Jazz"), "Rock"] }));
                race(repeat(&request), removal(&category))
            }
            ("section_create", _) => {
                let event = self.draft_event().await;
                let request = || {
                    let body = serde_json::to_value(section(&self.name("Block"), 10.0, 10)).unwrap();
                    self.by_host("POST", format!("{}/sections", event.uri), body)
                };
                race(repeat(&request), removal(&event.uri))
            }
            ("section_update" | "section_shorthand_update", _) => {
                let event = self.draft_event().await;
                let long = event.sections[0].as_str();
                let path = if operation == "section_update" { long } else { &long[event.uri.len()..] };
                let request = || self.by_host("PUT", path, json!({ "name": self.name("Block") }));
                race(repeat(&request), removal(&event.uri))
            }
            ("section_modifier_create", _) => {
                let event = self.draft_event().await;
                let path = format!("{}/modifiers", event.sections[0]);
                let request = || self.by_host("POST", &path, json!({ "name": self.name("Early bird"), "priceDelta": -1.0 }));
                race(repeat(&request), removal(if removed == "event" { &event.uri } else { &event.sections[0] }))
            }
            ("section_modifier_update", _) => {
                let event = self.draft_event().await;
                let body = json!({ "name": "Early bird", "priceDelta": -1.0 });
                let modifier = self.create_with(self.by_host("POST", format!("{}/modifiers", event.sections[0]), body)).await;
                let request = || self.by_host("PUT", &modifier, json!({ "name": self.name("Late bird") }));
                race(repeat(&request), removal(&event.sections[0]))
            }
            ("event_token_create" | "event_token_update" | "token_authentication_get", _) => {
                let event = self.draft_event().await;
                let (path, body) = (format!("{}/tokens", event.uri), json!({ "sections": event.sections }));
                let created = super::send(self.app, &self.by_host("POST", &path, body.clone())).await.body;
                let (token, code) = (created["self"].as_str().unwrap(), created["code"].as_str().unwrap());
                let request = || match operation {
                    "event_token_create" => self.by_host("POST", &path, body.clone()),
                    "event_token_update" => self.by_host("PUT", token, body.clone()),
                    _ => self.by_staff("GET", format!("/tokens/{code}"), Value::Null),
                };
                let path = match removed {
                    "section" => &event.sections[0],
                    "event" => &event.uri,
                    _ => token,
                };
                race(repeat(&request), removal(path))
            }
            ("advertisement_create", _) => {
                let (event, zone) = (self.draft_event().await, self.app.create_zone(300, 250).await);
                let request = || {
                    let body = advertisement_body(&self.name("Jazz"), &event, &[&zone]);
                    self.by_host("POST", "/advertisements", body)
                };
                race(repeat(&request), removal(if removed == "zone" { &zone } else { &event.uri }))
            }
            ("advertisement_update", _) => {
                let event = self.draft_event().await;
                let other = if removed == "event" {
                    self.draft_event().await
                } else {
                    self.app.create_draft(&self.app.create_host(&self.kofi).await).await
                };
                let (old, zone) = (self.app.create_zone(300, 250).await, self.app.create_zone(300, 250).await);
                let advertisement = self.advertisement(&event, &old).await;
                let request = || {
                    let body = if removed == "event" { json!({ "event": other.id }) } else { json!({ "zones": [zone, old] }) };
                    self.by_host("PUT", &advertisement, body)
                };
                let removal = match removed {
                    "zone" => removal(&zone),
                    "dimensions of zone" => self.by_staff("PUT", &zone, json!({ "width": 301 })),
                    "event" => removal(&other.uri),
                    _ => removal(&event.uri),
                };
                race(repeat(&request), removal)
            }
            ("event_complimentary_order_create", _) => {
                let (event, customer) = (self.listed_event(&[10.0]).await, self.leaving_user().await);
                let body = json!({ "account": customer.number, "items": { event.sections[0].as_str(): 1 } });
                let path = format!("{}/complimentary-orders", event.uri);
                let request = || self.by_host("POST", &path, body.clone());
                let account = format!("/accounts/{}", customer.number);
                race(repeat(&request), removal(if removed == "customer" { &account } else { &event.sections[0] }))
            }
            ("order_create", "customer") => {
                let (event, customer) = (self.listed_event(&[10.0]).await, self.leaving_user().await);
                let body = json!({ "customer": customer.number, "items": { event.sections[0].as_str(): 1 } });
                let request = || self.by_staff("POST", "/orders", body.clone());
                race(repeat(&request), removal(&format!("/accounts/{}", customer.number)))
            }
            ("order_create", _) => {
                let price = if removed.contains("free") { 0.0 } else { 10.0 };
                let event = self.listed_event(&[price]).await;
                let section = event.sections[0].as_str();
                let orders = self.buyers.iter().map(|buyer| {
                    let order = self.order(buyer, section);
                    // A customer has at most ten open orders.
                    Call { body: json!({ "items": order.body["items"] }), ..order }
                });
                let orders: Vec<Call> = orders.collect();
                for buyer in &self.buyers {
                    self.cancel_open_orders(buyer).await;
                }
                race(orders, removal(if removed.contains("event") { &event.uri } else { section }))
            }
            ("account_preferences_update", _) => {
                let (user, region) = (self.leaving_user().await, self.app.create_region().await);
                let path = format!("/accounts/{}/preferences", user.number);
                let account = format!("/accounts/{}", user.number);
                let request = || self.by_staff("PUT", &path, json!({ "region": region }));
                race(repeat(&request), removal(if removed == "region" { &region } else { &account }))
            }
            ("account_update", _) => {
                let user = self.leaving_user().await;
                let account = format!("/accounts/{}", user.number);
                race(repeat(&|| self.by_staff("PUT", &account, json!({ "city": self.name("Accra") }))), removal(&account))
            }
            ("host_administrator_create", _) => {
                let (host, user) = (self.app.create_host(&self.kofi).await, self.leaving_user().await);
                let path = format!("{}/administrators", host.uri);
                let request = self.by_host("POST", path, json!({ "account": user.number }));
                let account = format!("/accounts/{}", user.number);
                race(vec![request], removal(if removed == "host" { &host.uri } else { &account }))
            }
            ("host_create", _) => {
                let user = self.leaving_user().await;
                let request = || {
                    let name = self.name("Presents");
                    let body = json!({ "name": name, "contact": "Front office", "email": "office@example.com" });
                    Call { key: user.key.clone(), method: "POST", path: "/hosts".to_owned(), body }
                };
                race(repeat(&request), removal(&format!("/accounts/{}", user.number)))
            }
            ("host_update", _) => {
                let host = self.app.create_host(&self.kofi).await;
                race(repeat(&|| self.by_host("PUT", &host.uri, json!({ "city": self.name("Accra") }))), removal(&host.uri))
            }
            ("section_waiting_entry_create", _) => {
                let (event, user) = (self.listed_event(&[0.0]).await, self.leaving_user().await);
                let floor = &event.sections[0];
                self.create_with(self.by_host("PUT", floor, json!({ "capacity": 1 }))).await;
                self.create_with(self.order(&self.buyers[0], floor)).await;
                let path = format!("{floor}/waiting-list");
                let request =
                    || Call { key: user.key.clone(), method: "POST", path: path.clone(), body: json!({ "quantity": 1 }) };
                race(repeat(&request), removal(&format!("/accounts/{}", user.number)))
            }
            ("transfer_create", _) => {
                let (event, user) = (self.listed_event(&[0.0]).await, self.leaving_user().await);
                let order = self.create_with(self.order(&self.buyers[0], &event.sections[0])).await;
                let serial: String = self.app.scalar("select serial from tickets order by id desc limit 1").await;
                let recipient = if removed == "recipient" { &user } else { &self.buyers[1] };
                let body = json!({ "recipient": recipient.number, "tickets": [serial] });
                let sender = self.buyers[0].key.clone();
                let request = || Call { key: sender.clone(), method: "POST", path: "/transfers".to_owned(), body: body.clone() };
                let removal = match removed {
                    "recipient" => removal(&format!("/accounts/{}", user.number)),
                    _ => self.by_host("POST", format!("{order}/returns"), json!({})),
                };
                race(vec![request()], removal)
            }
            ("order_payment_create", _) => {
                let event = self.listed_event(&[10.0]).await;
                let buyer = &self.buyers[0];
                self.cancel_open_orders(buyer).await;
                let order = self.create_with(self.order(buyer, &event.sections[0])).await;
                let body = json!({ "method": "external", "reference": "Counter 1" });
                let payment = self.by_staff("POST", format!("{order}/payments"), body);
                race(vec![payment], self.by_staff("POST", format!("{order}/cancellations"), Value::Null))
            }
            ("integration_create" | "session_create" | "verification_create" | "reset_create", _) => {
                let user = self.leaving_user().await;
                let name = user.username.as_str();
                let email = format!("{name}@example.com");
                let (path, body) = match operation {
                    "integration_create" => {
                        ("/integrations", json!({ "name": "Shop", "role": "customer", "account": user.number }))
                    }
                    "session_create" => ("/sessions", json!({ "identification": name, "password": crate::support::PASSWORD })),
                    "verification_create" => ("/verifications", json!({ "email": email })),
                    _ => ("/resets", json!({ "email": email })),
                };
                let request = || self.by_staff("POST", path, body.clone());
                race(repeat(&request), removal(&format!("/accounts/{}", user.number)))
            }
            ("event_submission_create", _) => {
                let host = self.app.create_host(&self.kofi).await;
                let event = self.app.create_draft(&host).await;
                let request = || self.by_host("POST", format!("{}/submissions", event.uri), Value::Null);
                race(repeat(&request), removal(if removed == "host" { &host.uri } else { &event.uri }))
            }
            ("advertisement_submission_create", _) => {
                let (event, zone) = (self.draft_event().await, self.app.create_zone(300, 250).await);
                let advertisement = self.advertisement(&event, &zone).await;
                let request = || self.by_host("POST", format!("{advertisement}/submissions"), Value::Null);
                race(repeat(&request), removal(&advertisement))
            }
            ("submission_delete", _) => {
                let content = match removed {
                    "event" => self.draft_event().await.uri,
                    "venue" => {
                        let (region, name) = (self.app.create_region().await, self.name("Hall"));
                        let body =
                            json!({ "name": name, "region": region, "address": "Road", "longitude": 0.0, "latitude": 5.5 });
                        self.create_with(self.by_host("POST", "/venues", body)).await
                    }
                    _ => {
                        let (event, zone) = (self.draft_event().await, self.app.create_zone(300, 250).await);
                        self.advertisement(&event, &zone).await
                    }
                };
                if removed != "venue" {
                    self.create_with(self.by_host("POST", format!("{content}/submissions"), Value::Null)).await;
                }
                let submission = crate::review::submission_of(&content);
                let approved = self.count.get().is_multiple_of(2);
                let request = || self.by_staff("DELETE", format!("{submission}?approved={approved}"), Value::Null);
                race(vec![request()], removal(&content))
            }
            ("event_admission_create" | "event_scan_create" | "event_offline_scan_create", _) => {
                let event = self.listed_event(&[0.0]).await;
                let serials = self.buyers[0].order_free_tickets(&event.sections[0], REQUESTS).await;
                let body = json!({ "sections": event.sections });
                let created = super::send(self.app, &self.by_host("POST", format!("{}/tokens", event.uri), body)).await.body;
                let code = created["code"].as_str().unwrap();
                let authentication = self.app.request("GET", &format!("/tokens/{code}")).send().await.body;
                let path = match reference.operation {
                    "event_scan_create" => "scans",
                    "event_offline_scan_create" => "offline-scans",
                    _ => "admissions",
                };
                let scanned = self.app.state.clock.now().format_rfc3339();
                let admit = |serial: &String| Call {
                    key: authentication["key"].as_str().unwrap().to_owned(),
                    method: "POST",
                    path: format!("{}/{path}", event.uri),
                    // Each operation ignores the properties of the other.
                    body: json!({
                        "serials": [serial], "device": "Gate A", "scans": [{ "serial": serial, "scanned": scanned }],
                    }),
                };
                race(serials.iter().map(admit).collect(), removal(created["self"].as_str().unwrap()))
            }
            _ => panic!("{reference:?} has no requests"),
        }
    }

    async fn cancel_open_orders(&self, buyer: &User) {
        let orders = self.app.read(&format!("/accounts/{}/orders?status=Placed&records=100", buyer.number)).await;
        for order in entries_of(&orders) {
            self.app.cancel_order(&buyer.key, order["self"].as_str().unwrap()).await;
        }
    }
}
