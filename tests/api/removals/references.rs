//! The references between resources, and the requests that use each of them.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::advertisements::advertisement_body;
use crate::support::{Event, TestApp, User, section};

/// A reference from the request of an operation to another resource.
#[derive(Debug)]
pub struct Reference {
    /// The operationId.
    pub operation: &'static str,
    /// The kind of resource that is removed.
    pub removed: &'static str,
    /// The foreign keys behind the reference, as `table(columns)`.
    pub foreign_keys: &'static [&'static str],
    /// The responses of the request after the removal.
    pub refused: &'static [(u16, &'static str)],
    /// The responses of the removal after the request.
    pub kept: &'static [(u16, &'static str)],
    /// Whether the removal may succeed after the request.
    pub cascades: bool,
}

const INVALID: (u16, &str) = (400, "arguments.invalid");
const UNKNOWN: (u16, &str) = (404, "resource.not-found");

const fn refused_by_removal(
    operation: &'static str,
    removed: &'static str,
    foreign_keys: &'static [&'static str],
    refused: &'static [(u16, &'static str)],
) -> Reference {
    Reference { operation, removed, foreign_keys, refused, kept: &[], cascades: true }
}

const fn exclusive(
    operation: &'static str,
    removed: &'static str,
    foreign_keys: &'static [&'static str],
    refused: &'static [(u16, &'static str)],
    kept: &'static [(u16, &'static str)],
) -> Reference {
    Reference { operation, removed, foreign_keys, refused, kept, cascades: false }
}

/// Every reference. With `exclusive`, either the request or the removal is rejected; with `refused_by_removal`, the removal
/// may also come second.
pub const REFERENCES: &[Reference] = &[
    exclusive("venue_create", "region", &["venues(region_id)"], &[INVALID], &[(409, "region.in-use")]),
    exclusive("venue_update", "region", &[], &[INVALID], &[(409, "region.in-use")]),
    exclusive("event_create", "category", &["events(category_id,subcategory)"], &[INVALID], &[(409, "category.in-use")]),
    exclusive("event_create", "subcategory", &[], &[INVALID], &[(409, "category.in-use")]),
    exclusive("event_create", "venue", &["events(venue_id)"], &[INVALID], &[(409, "venue.in-use")]),
    refused_by_removal("event_create", "host", &["events(host_id)"], &[(409, "host.removed")]),
    exclusive("event_update", "category", &[], &[INVALID], &[(409, "category.in-use")]),
    exclusive("event_update", "subcategory", &[], &[INVALID], &[(409, "category.in-use")]),
    exclusive("event_update", "venue", &[], &[INVALID], &[(409, "venue.in-use")]),
    refused_by_removal("category_update", "category", &["subcategories(category_id)"], &[UNKNOWN]),
    refused_by_removal("section_create", "event", &["sections(event_id)"], &[UNKNOWN]),
    refused_by_removal("section_update", "event", &[], &[UNKNOWN]),
    refused_by_removal("section_shorthand_update", "event", &[], &[UNKNOWN]),
    refused_by_removal("section_modifier_create", "section", &["modifiers(section_id)"], &[UNKNOWN]),
    refused_by_removal("section_modifier_create", "event", &[], &[UNKNOWN]),
    refused_by_removal("section_modifier_update", "section", &[], &[UNKNOWN]),
    refused_by_removal("event_token_create", "section", &["token_sections(section_id)"], &[INVALID]),
    refused_by_removal("event_token_create", "event", &["tokens(event_id)"], &[UNKNOWN]),
    refused_by_removal("event_token_update", "section", &[], &[INVALID]),
    refused_by_removal("event_token_update", "event", &[], &[UNKNOWN]),
    refused_by_removal("event_token_update", "token", &["token_sections(token_id)"], &[UNKNOWN]),
    refused_by_removal("token_authentication_get", "token", &[], &[UNKNOWN]),
    refused_by_removal("token_authentication_get", "event", &[], &[UNKNOWN]),
    exclusive(
        "advertisement_create",
        "zone",
        &["advertisement_zones(zone_id,width,height)"],
        &[INVALID],
        &[(409, "zone.in-use")],
    ),
    refused_by_removal("advertisement_create", "event", &["advertisements(event_id)"], &[INVALID]),
    exclusive("advertisement_update", "zone", &[], &[INVALID], &[(409, "zone.in-use")]),
    exclusive("advertisement_update", "dimensions of zone", &[], &[INVALID], &[(409, "zone.in-use")]),
    refused_by_removal("advertisement_update", "event", &[], &[INVALID, UNKNOWN]),
    refused_by_removal("advertisement_update", "own event", &[], &[UNKNOWN]),
    exclusive("order_create", "section", &["reservations(section_id)"], &[INVALID], &[(409, "section.in-use")]),
    exclusive("order_create", "event", &[], &[INVALID], &[(409, "event.sold")]),
    exclusive("order_create", "free section", &["tickets(section_id)"], &[INVALID], &[(409, "section.in-use")]),
    exclusive("order_create", "event with free section", &["tickets(event_id)"], &[INVALID], &[(409, "event.sold")]),
    refused_by_removal("order_create", "customer", &["orders(account_id)"], &[INVALID]),
    exclusive("event_complimentary_order_create", "section", &[], &[INVALID], &[(409, "section.in-use")]),
    exclusive("event_complimentary_order_create", "customer", &[], &[INVALID], &[(409, "account.has-tickets")]),
    refused_by_removal(
        "section_waiting_entry_create",
        "account",
        &["waiting_entries(account_id)", "waiting_entries(section_id)"],
        &[(403, "key.refused"), (409, "waiting-list.joined")],
    ),
    refused_by_removal("account_preferences_update", "region", &["account_preferences(region_id)"], &[INVALID]),
    refused_by_removal("account_preferences_update", "account", &["account_preferences(account_id)"], &[UNKNOWN]),
    refused_by_removal("account_update", "account", &[], &[UNKNOWN]),
    refused_by_removal("host_administrator_create", "account", &["host_administrators(account_id)"], &[INVALID]),
    refused_by_removal("host_administrator_create", "host", &["host_administrators(host_id)"], &[UNKNOWN]),
    refused_by_removal("host_create", "account", &[], &[(403, "key.refused")]),
    refused_by_removal("host_update", "host", &[], &[UNKNOWN]),
    refused_by_removal(
        "transfer_create",
        "recipient",
        &["transfers(recipient_id)", "transfers(sender_id)"],
        &[INVALID, (409, "ticket.not-issued")],
    ),
    refused_by_removal("transfer_create", "ticket", &["transfer_tickets(ticket_id)"], &[(409, "ticket.not-issued")]),
    exclusive("order_payment_create", "order", &[], &[(409, "order.not-open")], &[(409, "order.not-open")]),
    refused_by_removal("integration_create", "account", &["api_keys(account_id)"], &[INVALID]),
    refused_by_removal("session_create", "account", &[], &[(404, "account.unknown"), (401, "session.wrong-password")]),
    refused_by_removal("verification_create", "account", &["codes(account_id)"], &[(404, "account.unknown")]),
    refused_by_removal("reset_create", "account", &[], &[(404, "account.unknown")]),
    refused_by_removal("event_submission_create", "event", &[], &[UNKNOWN, (409, "event.not-draft")]),
    refused_by_removal("event_submission_create", "host", &[], &[(409, "host.removed"), (409, "event.not-draft")]),
    refused_by_removal("advertisement_submission_create", "advertisement", &[], &[UNKNOWN, (409, "advertisement.not-draft")]),
    refused_by_removal("submission_delete", "event", &[], &[UNKNOWN, (409, "submission.decided")]),
    refused_by_removal("submission_delete", "advertisement", &[], &[UNKNOWN, (409, "submission.decided")]),
    refused_by_removal("submission_delete", "venue", &[], &[UNKNOWN, (409, "submission.decided")]),
    refused_by_removal("event_admission_create", "token", &[], &[(403, "key.refused"), (400, "admission.none")]),
    refused_by_removal("event_scan_create", "token", &[], &[(403, "key.refused"), (400, "admission.none")]),
    refused_by_removal("event_offline_scan_create", "token", &[], &[(403, "key.refused")]),
];

/// Foreign keys that no request can violate, with the reason.
pub const FIXED_FOREIGN_KEYS: &[(&str, &[&str])] = &[
    (
        "rows of accounts, hosts, orders, payments, refunds, tickets, transfers and transactions stay",
        &[
            "login_addresses(account_id)",
            "outbox(account_id)",
            "order_items(order_id)",
            "payments(order_id)",
            "refund_shares(host_id)",
            "refund_shares(refund_id)",
            "refunds(order_id)",
            "refunds(payment_id)",
            "reservations(order_id)",
            "event_returns(account_id)",
            "revocations(account_id)",
            "revocations(order_id)",
            "submissions(submitter_id)",
            "tickets(order_id)",
            "tickets(owner_id)",
            "tickets(replaced_by)",
            "transaction_shares(host_id)",
            "transaction_shares(transaction_id)",
            "transactions(order_id)",
            "transactions(payment_id)",
            "transactions(refund_id)",
            "transfer_tickets(transfer_id)",
            "venues(creator_id)",
        ],
    ),
    (
        "both rows are written under a lock of the first, or in one transaction",
        &[
            "event_notices(event_id)",
            "event_search_queue(event_id)",
            "event_tags(event_id)",
            "event_words(event_id)",
            "advertisement_slots(advertisement_id)",
            "advertisement_zones(advertisement_id)",
            "event_returns(event_id)",
            "order_item_modifiers(order_id,position)",
        ],
    ),
    (
        "an event or a section with sold tickets stays",
        &[
            "admission_conflicts(event_id)",
            "admission_conflicts(ticket_id)",
            "admissions(event_id)",
            "admissions(patron_id)",
            "admissions(section_id)",
            "admissions(ticket_id)",
            "undone_admissions(ticket_id)",
        ],
    ),
    (
        "an admission with a conflict can't be undone, and both are written under the lock of the ticket",
        &["admission_conflicts(admission_id)"],
    ),
];

/// Operations whose requests refer to no resource that can be removed, except the one that they change or remove.
pub const INDEPENDENT_OPERATIONS: &[&str] = &[
    "account_create",
    "account_delete",
    "account_deletion_create",
    "account_session_delete",
    "account_toggle_create",
    "advertisement_cancellation_create",
    "advertisement_delete",
    "category_create",
    "category_delete",
    "event_admission_delete",
    "event_cancellation_create",
    "event_copy_create",
    "event_delete",
    "event_return_create",
    "event_token_delete",
    "event_withdrawal_create",
    "host_administrator_delete",
    "host_delete",
    "integration_delete",
    "lookup_create",
    "order_cancellation_create",
    "order_return_create",
    "order_void_create",
    "quote_create",
    "region_create",
    "region_delete",
    "region_update",
    "reset_update",
    "section_delete",
    "section_modifier_delete",
    "section_shorthand_delete",
    "section_waiting_entry_delete",
    "session_active_delete",
    "transfer_claim_create",
    "transfer_delete",
    "transfer_rejection_create",
    "venue_delete",
    "verification_update",
    "zone_create",
    "zone_delete",
    "zone_update",
];

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
            event.sections.push(self.app.add_section(&host, &event, &section(name, 10.0, 100)).await);
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
        for order in orders["entries"].as_array().unwrap() {
            self.app.cancel_order(&buyer.key, order["self"].as_str().unwrap()).await;
        }
    }
}
