//! The requests that refer to a resource, and the request that removes it.

use serde_json::{Value, json};

use super::fixtures::Fixtures;
use super::references::Reference;
use crate::advertisements::advertisement_body;
use crate::review::submission_of;
use crate::support::{Call, PASSWORD, User, section};

/// The number of equal requests that refer to the same resource at the same time.
const REQUESTS: usize = 3;

/// Requests that refer to a resource, and the request that removes it.
pub struct Race {
    pub requests: Vec<Call>,
    pub removal: Call,
}

impl Race {
    /// Builds the request several times.
    fn repeat(request: impl Fn() -> Call, removal: Call) -> Self {
        Self { requests: (0..REQUESTS).map(|_| request()).collect(), removal }
    }
}

/// Creates the resources of a race.
pub async fn prepare(fixtures: &Fixtures<'_>, reference: &Reference) -> Race {
    let (operation, removed) = (reference.operation, reference.removed);
    match operation {
        "venue_create" | "venue_update" => write_venue(fixtures, operation).await,
        "category_update" => update_category(fixtures).await,
        "event_create" | "event_update" => write_event(fixtures, operation, removed).await,
        "section_create" | "section_update" | "section_shorthand_update" => write_section(fixtures, operation).await,
        "section_modifier_create" => create_modifier(fixtures, removed).await,
        "section_modifier_update" => update_modifier(fixtures).await,
        "event_token_create" | "event_token_update" | "token_authentication_get" => use_token(fixtures, operation, removed).await,
        "event_admission_create" | "event_scan_create" | "event_offline_scan_create" => admit(fixtures, operation).await,
        "advertisement_create" => create_advertisement(fixtures, removed).await,
        "advertisement_update" => update_advertisement(fixtures, removed).await,
        "event_submission_create" => submit_event(fixtures, removed).await,
        "advertisement_submission_create" => submit_advertisement(fixtures).await,
        "submission_delete" => decide_on_submission(fixtures, removed).await,
        "order_create" if removed == "customer" => order_for_customer(fixtures).await,
        "order_create" => order_by_buyers(fixtures, removed).await,
        "event_complimentary_order_create" => issue_complimentary_order(fixtures, removed).await,
        "order_payment_create" => pay(fixtures).await,
        "section_waiting_entry_create" => join_waiting_list(fixtures).await,
        "transfer_create" => offer_ticket(fixtures, removed).await,
        "account_preferences_update" => update_preferences(fixtures, removed).await,
        "account_update" => update_account(fixtures).await,
        "integration_create" | "session_create" | "verification_create" | "reset_create" => {
            create_credential(fixtures, operation).await
        }
        "host_create" => create_host(fixtures).await,
        "host_update" => update_host(fixtures).await,
        "host_administrator_create" => add_administrator(fixtures, removed).await,
        _ => panic!("{reference:?} has no requests"),
    }
}

fn account_of(user: &User) -> String {
    format!("/accounts/{}", user.number)
}

async fn write_venue(fixtures: &Fixtures<'_>, operation: &str) -> Race {
    let region = fixtures.app.create_region().await;
    let removal = fixtures.removal(&region);
    if operation == "venue_update" {
        let venue = fixtures.app.create_venue().await;
        return Race::repeat(|| fixtures.by_staff("PUT", &venue, json!({ "region": region })), removal);
    }
    let venue = || {
        let (name, longitude) = (fixtures.name("Hall"), -0.2);
        json!({ "name": name, "region": region, "address": "Ring Road", "longitude": longitude, "latitude": 5.5 })
    };
    Race::repeat(|| fixtures.by_staff("POST", "/venues", venue()), removal)
}

async fn update_category(fixtures: &Fixtures<'_>) -> Race {
    let category = fixtures.app.create_category().await;
    let request = || fixtures.by_staff("PUT", &category, json!({ "subcategories": [fixtures.name("Jazz"), "Rock"] }));
    Race::repeat(request, fixtures.removal(&category))
}

async fn write_event(fixtures: &Fixtures<'_>, operation: &str, removed: &str) -> Race {
    let host = fixtures.app.create_host(&fixtures.kofi).await;
    let (category, venue) = (fixtures.app.create_category().await, fixtures.app.create_venue().await);
    let event = if operation == "event_update" { Some(fixtures.app.create_draft(&host).await.uri) } else { None };
    let request = || {
        let mut body = json!({
            "host": host.uri, "title": fixtures.name("Jazz Night"), "description": "Jazz.", "type": "Standard", "public": true,
            "category": category, "subcategory": "Jazz", "venue": venue,
        });
        match &event {
            None => fixtures.by_host("POST", "/events", body),
            Some(event) => {
                body.as_object_mut().unwrap().remove("title");
                fixtures.by_host("PUT", event, body)
            }
        }
    };
    let removal = match removed {
        "category" => fixtures.removal(&category),
        "subcategory" => fixtures.by_staff("PUT", &category, json!({ "subcategories": ["Rock"] })),
        "venue" => fixtures.removal(&venue),
        _ => fixtures.removal(&host.uri),
    };
    Race::repeat(request, removal)
}

async fn write_section(fixtures: &Fixtures<'_>, operation: &str) -> Race {
    let event = fixtures.draft_event().await;
    let removal = fixtures.removal(&event.uri);
    let section_uri = event.sections[0].as_str();
    match operation {
        "section_create" => {
            let request = || {
                let body = serde_json::to_value(section(&fixtures.name("Block"), 10.0, 10)).unwrap();
                fixtures.by_host("POST", format!("{}/sections", event.uri), body)
            };
            Race::repeat(request, removal)
        }
        _ => {
            let path = if operation == "section_update" { section_uri } else { &section_uri[event.uri.len()..] };
            Race::repeat(|| fixtures.by_host("PUT", path, json!({ "name": fixtures.name("Block") })), removal)
        }
    }
}

async fn create_modifier(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let event = fixtures.draft_event().await;
    let path = format!("{}/modifiers", event.sections[0]);
    let request = || fixtures.by_host("POST", &path, json!({ "name": fixtures.name("Early bird"), "priceDelta": -1.0 }));
    Race::repeat(request, fixtures.removal(if removed == "event" { &event.uri } else { &event.sections[0] }))
}

async fn update_modifier(fixtures: &Fixtures<'_>) -> Race {
    let event = fixtures.draft_event().await;
    let body = json!({ "name": "Early bird", "priceDelta": -1.0 });
    let modifier = fixtures.create_with(fixtures.by_host("POST", format!("{}/modifiers", event.sections[0]), body)).await;
    let request = || fixtures.by_host("PUT", &modifier, json!({ "name": fixtures.name("Late bird") }));
    Race::repeat(request, fixtures.removal(&event.sections[0]))
}

async fn use_token(fixtures: &Fixtures<'_>, operation: &str, removed: &str) -> Race {
    let event = fixtures.draft_event().await;
    let (path, body) = (format!("{}/tokens", event.uri), json!({ "sections": event.sections }));
    let created = fixtures.by_host("POST", &path, body.clone()).send(fixtures.app).await.body;
    let (token, code) = (created["self"].as_str().unwrap(), created["code"].as_str().unwrap());
    let request = || match operation {
        "event_token_create" => fixtures.by_host("POST", &path, body.clone()),
        "event_token_update" => fixtures.by_host("PUT", token, body.clone()),
        _ => fixtures.by_staff("GET", format!("/tokens/{code}"), Value::Null),
    };
    let removed = match removed {
        "section" => &event.sections[0],
        "event" => &event.uri,
        _ => token,
    };
    Race::repeat(request, fixtures.removal(removed))
}

async fn admit(fixtures: &Fixtures<'_>, operation: &str) -> Race {
    let event = fixtures.listed_event(&[0.0]).await;
    let serials = fixtures.buyers[0].order_free_tickets(&event.sections[0], REQUESTS).await;
    let body = json!({ "sections": event.sections });
    let created = fixtures.by_host("POST", format!("{}/tokens", event.uri), body).send(fixtures.app).await.body;
    let code = created["code"].as_str().unwrap();
    let authentication = fixtures.app.request("GET", &format!("/tokens/{code}")).send().await.body;
    let key = authentication["key"].as_str().unwrap();
    let path = match operation {
        "event_scan_create" => "scans",
        "event_offline_scan_create" => "offline-scans",
        _ => "admissions",
    };
    let scanned = fixtures.app.state.clock.now().format_rfc3339();
    let request = |serial: &String| {
        // Each operation ignores the properties of the other.
        let body = json!({ "serials": [serial], "device": "Gate A", "scans": [{ "serial": serial, "scanned": scanned }] });
        Call::new(key, "POST", format!("{}/{path}", event.uri), body)
    };
    Race { requests: serials.iter().map(request).collect(), removal: fixtures.removal(created["self"].as_str().unwrap()) }
}

async fn create_advertisement(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let (event, zone) = (fixtures.draft_event().await, fixtures.app.create_zone(300, 250).await);
    let request = || {
        let body = advertisement_body(&fixtures.name("Jazz"), &event, &[&zone]);
        fixtures.by_host("POST", "/advertisements", body)
    };
    Race::repeat(request, fixtures.removal(if removed == "zone" { &zone } else { &event.uri }))
}

async fn update_advertisement(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let event = fixtures.draft_event().await;
    let other = if removed == "event" {
        fixtures.draft_event().await
    } else {
        fixtures.app.create_draft(&fixtures.app.create_host(&fixtures.kofi).await).await
    };
    let (old, zone) = (fixtures.app.create_zone(300, 250).await, fixtures.app.create_zone(300, 250).await);
    let advertisement = fixtures.advertisement(&event, &old).await;
    let request = || {
        let body = if removed == "event" { json!({ "event": other.id }) } else { json!({ "zones": [zone, old] }) };
        fixtures.by_host("PUT", &advertisement, body)
    };
    let removal = match removed {
        "zone" => fixtures.removal(&zone),
        "dimensions of zone" => fixtures.by_staff("PUT", &zone, json!({ "width": 301 })),
        "event" => fixtures.removal(&other.uri),
        _ => fixtures.removal(&event.uri),
    };
    Race::repeat(request, removal)
}

async fn submit_event(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let host = fixtures.app.create_host(&fixtures.kofi).await;
    let event = fixtures.app.create_draft(&host).await;
    let request = || fixtures.by_host("POST", format!("{}/submissions", event.uri), Value::Null);
    Race::repeat(request, fixtures.removal(if removed == "host" { &host.uri } else { &event.uri }))
}

async fn submit_advertisement(fixtures: &Fixtures<'_>) -> Race {
    let (event, zone) = (fixtures.draft_event().await, fixtures.app.create_zone(300, 250).await);
    let advertisement = fixtures.advertisement(&event, &zone).await;
    let request = || fixtures.by_host("POST", format!("{advertisement}/submissions"), Value::Null);
    Race::repeat(request, fixtures.removal(&advertisement))
}

async fn decide_on_submission(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let content = match removed {
        "event" => fixtures.draft_event().await.uri,
        "venue" => {
            let (region, name) = (fixtures.app.create_region().await, fixtures.name("Hall"));
            let body = json!({ "name": name, "region": region, "address": "Road", "longitude": 0.0, "latitude": 5.5 });
            fixtures.create_with(fixtures.by_host("POST", "/venues", body)).await
        }
        _ => {
            let (event, zone) = (fixtures.draft_event().await, fixtures.app.create_zone(300, 250).await);
            fixtures.advertisement(&event, &zone).await
        }
    };
    if removed != "venue" {
        fixtures.create_with(fixtures.by_host("POST", format!("{content}/submissions"), Value::Null)).await;
    }
    let (submission, approved) = (submission_of(&content), fixtures.is_even());
    let decision = fixtures.by_staff("DELETE", format!("{submission}?approved={approved}"), Value::Null);
    Race { requests: vec![decision], removal: fixtures.removal(&content) }
}

async fn order_for_customer(fixtures: &Fixtures<'_>) -> Race {
    let (event, customer) = (fixtures.listed_event(&[10.0]).await, fixtures.leaving_user().await);
    let body = json!({ "customer": customer.number, "items": { event.sections[0].as_str(): 1 } });
    Race::repeat(|| fixtures.by_staff("POST", "/orders", body.clone()), fixtures.removal(&account_of(&customer)))
}

async fn order_by_buyers(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let price = if removed.contains("free") { 0.0 } else { 10.0 };
    let event = fixtures.listed_event(&[price]).await;
    let section = event.sections[0].as_str();
    let orders = fixtures.buyers.iter().map(|buyer| fixtures.order(buyer, section)).collect();
    // A customer has at most ten open orders.
    for buyer in &fixtures.buyers {
        fixtures.cancel_open_orders(buyer).await;
    }
    Race { requests: orders, removal: fixtures.removal(if removed.contains("event") { &event.uri } else { section }) }
}

async fn issue_complimentary_order(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let (event, customer) = (fixtures.listed_event(&[10.0]).await, fixtures.leaving_user().await);
    let body = json!({ "account": customer.number, "items": { event.sections[0].as_str(): 1 } });
    let path = format!("{}/complimentary-orders", event.uri);
    let account = account_of(&customer);
    let removal = fixtures.removal(if removed == "customer" { &account } else { &event.sections[0] });
    Race::repeat(|| fixtures.by_host("POST", &path, body.clone()), removal)
}

async fn pay(fixtures: &Fixtures<'_>) -> Race {
    let event = fixtures.listed_event(&[10.0]).await;
    let buyer = &fixtures.buyers[0];
    fixtures.cancel_open_orders(buyer).await;
    let order = fixtures.create_with(fixtures.order(buyer, &event.sections[0])).await;
    let body = json!({ "method": "external", "reference": "Counter 1" });
    let payment = fixtures.by_staff("POST", format!("{order}/payments"), body);
    let cancellation = fixtures.by_staff("POST", format!("{order}/cancellations"), Value::Null);
    Race { requests: vec![payment], removal: cancellation }
}

async fn join_waiting_list(fixtures: &Fixtures<'_>) -> Race {
    let (event, user) = (fixtures.listed_event(&[0.0]).await, fixtures.leaving_user().await);
    let floor = &event.sections[0];
    fixtures.create_with(fixtures.by_host("PUT", floor, json!({ "capacity": 1 }))).await;
    fixtures.create_with(fixtures.order(&fixtures.buyers[0], floor)).await;
    let path = format!("{floor}/waiting-list");
    let request = || Call::new(&user.key, "POST", &path, json!({ "quantity": 1 }));
    Race::repeat(request, fixtures.removal(&account_of(&user)))
}

async fn offer_ticket(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let (event, user) = (fixtures.listed_event(&[0.0]).await, fixtures.leaving_user().await);
    let order = fixtures.create_with(fixtures.order(&fixtures.buyers[0], &event.sections[0])).await;
    let serial: String = fixtures.app.scalar("select serial from tickets order by id desc limit 1").await;
    let recipient = if removed == "recipient" { &user } else { &fixtures.buyers[1] };
    let body = json!({ "recipient": recipient.number, "tickets": [serial] });
    let offer = Call::new(&fixtures.buyers[0].key, "POST", "/transfers", body);
    let removal = match removed {
        "recipient" => fixtures.removal(&account_of(&user)),
        _ => fixtures.by_host("POST", format!("{order}/returns"), json!({})),
    };
    Race { requests: vec![offer], removal }
}

async fn update_preferences(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let (user, region) = (fixtures.leaving_user().await, fixtures.app.create_region().await);
    let account = account_of(&user);
    let request = || fixtures.by_staff("PUT", format!("{account}/preferences"), json!({ "region": region }));
    Race::repeat(request, fixtures.removal(if removed == "region" { &region } else { &account }))
}

async fn update_account(fixtures: &Fixtures<'_>) -> Race {
    let account = account_of(&fixtures.leaving_user().await);
    let request = || fixtures.by_staff("PUT", &account, json!({ "city": fixtures.name("Accra") }));
    Race::repeat(request, fixtures.removal(&account))
}

async fn create_credential(fixtures: &Fixtures<'_>, operation: &str) -> Race {
    let user = fixtures.leaving_user().await;
    let name = user.username.as_str();
    let email = format!("{name}@example.com");
    let (path, body) = match operation {
        "integration_create" => ("/integrations", json!({ "name": "Shop", "role": "customer", "account": user.number })),
        "session_create" => ("/sessions", json!({ "identification": name, "password": PASSWORD })),
        "verification_create" => ("/verifications", json!({ "email": email })),
        _ => ("/resets", json!({ "email": email })),
    };
    Race::repeat(|| fixtures.by_staff("POST", path, body.clone()), fixtures.removal(&account_of(&user)))
}

async fn create_host(fixtures: &Fixtures<'_>) -> Race {
    let user = fixtures.leaving_user().await;
    let request = || {
        let name = fixtures.name("Presents");
        let body = json!({ "name": name, "contact": "Front office", "email": "office@example.com" });
        Call::new(&user.key, "POST", "/hosts", body)
    };
    Race::repeat(request, fixtures.removal(&account_of(&user)))
}

async fn update_host(fixtures: &Fixtures<'_>) -> Race {
    let host = fixtures.app.create_host(&fixtures.kofi).await;
    let request = || fixtures.by_host("PUT", &host.uri, json!({ "city": fixtures.name("Accra") }));
    Race::repeat(request, fixtures.removal(&host.uri))
}

async fn add_administrator(fixtures: &Fixtures<'_>, removed: &str) -> Race {
    let (host, user) = (fixtures.app.create_host(&fixtures.kofi).await, fixtures.leaving_user().await);
    let request = fixtures.by_host("POST", format!("{}/administrators", host.uri), json!({ "account": user.number }));
    let account = account_of(&user);
    Race { requests: vec![request], removal: fixtures.removal(if removed == "host" { &host.uri } else { &account }) }
}
