//! The event cache: no server returns outdated data, whichever server made the change.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{RESERVATION_TTL, TestApp, card_payment, section, test_on};

/// Compares the published events under every filter and each event, on both servers, with the list of all events, which is not
/// cached.
async fn check(app: &TestApp, region: &str, after: &str) {
    let region = format!("&region={region}");
    let finders = ["&search=dru", "&search=night&past=true", "&search=night&sort=start", "&tag=drums"];
    let sorts = ["&sort=alphabetical", "&sort=popularity", "&sort=start", "&sort=start&order=desc&active=true"];
    for query in
        ["", "&title=night", "&active=true", "&active=false", "&records=1", &region].into_iter().chain(finders).chain(sorts)
    {
        let expected = app.read(&format!("/events?status=Listed&public=true{query}")).await;
        for _ in 0..2 {
            let shown = app.get(&app.public_key, &format!("/published-events?{}", query.trim_start_matches('&'))).await;
            assert_eq!(shown.body, expected, "{query} after {after}");
        }
    }
    for expected in app.read("/events?records=100").await["entries"].as_array().unwrap() {
        for _ in 0..2 {
            assert_eq!(app.read(expected["self"].as_str().unwrap()).await, *expected, "after {after}");
        }
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn changes_are_visible_immediately(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Stalls", 40.0, 10), section("Circle", 60.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 20.0, 10)]).await;
    let (stalls, circle) = (event.sections[0].as_str(), event.sections[1].as_str());
    let shown = app.read(&event.uri).await;
    let (category, venue) = (shown["category"]["self"].as_str().unwrap(), shown["venue"]["self"].as_str().unwrap());
    let (region, elsewhere) = (shown["venue"]["region"]["self"].as_str().unwrap(), app.create_region().await);
    let check = async |after: &str| check(&app, region, after).await;
    let put = async |key: &str, path: &str, body: Value| {
        let changed = app.put(key, path, body).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.body);
        check(path).await;
    };
    let post = async |key: &str, path: &str, body: Value| {
        let created = app.post(key, path, &body).await;
        assert_eq!(created.status, 201, "{path}: {}", created.body);
        check(path).await;
        created
    };
    check("the beginning").await;

    put(&kofi.key, &event.uri, json!({ "title": "Night of the Drums", "tags": ["drums"] })).await;
    put(&kofi.key, stalls, json!({ "name": "Front Stalls", "capacity": 12 })).await;
    let balcony = json!({
        "name": "Balcony", "basePrice": 30, "capacity": 5, "salesStart": "2020-01-01T00:00", "salesEnd": "2998-12-20T19:00",
    });
    let balcony = post(&kofi.key, &format!("{}/sections", event.uri), balcony).await.uri().to_owned();
    assert_eq!(app.delete(&kofi.key, &format!("{}{balcony}", event.uri)).await.status, 204);
    check("a section is removed").await;
    let early = json!({ "name": "Early", "priceDelta": -5 });
    let early = post(&kofi.key, &format!("{circle}/modifiers"), early).await.uri().to_owned();
    put(&kofi.key, &early, json!({ "priceDelta": -10 })).await;
    assert_eq!(app.delete(&kofi.key, &early).await.status, 204);
    check("a modifier is removed").await;
    let at = |minutes: u64| app.state.clock.now().plus(Duration::from_secs(60 * minutes)).format_plain_minutes();
    let late = json!({ "name": "Late", "priceDelta": 5, "availableFrom": at(5), "availableTo": at(10) });
    post(&kofi.key, &format!("{circle}/modifiers"), late).await;
    for passed in ["a modifier begins", "it ends"] {
        app.advance_clock(Duration::from_secs(60 * 6));
        check(passed).await;
    }
    put(&app.staff.key, category, json!({ "name": "Sounds", "subcategories": ["Drums", "Jazz"] })).await;
    put(&app.staff.key, venue, json!({ "name": "The Hall", "region": elsewhere })).await;
    put(&app.staff.key, &elsewhere, json!({ "name": "The Coast", "country": "Togo" })).await;

    let order = post(&ama.key, "/orders", json!({ "items": { stalls: 2 } })).await.uri().to_owned();
    post(&ama.key, &format!("{order}/payments"), card_payment()).await;
    post(&ama.key, "/orders", json!({ "items": { circle: 3 } })).await;
    app.advance_clock(RESERVATION_TTL);
    check("an order is over").await;

    for withdrawn in ["withdrawals", "submissions"] {
        let requested = app.post_empty(&kofi.key, &format!("{}/{withdrawn}", other.uri)).await;
        assert!(requested.status < 300, "{withdrawn}: {}", requested.body);
        check(withdrawn).await;
    }
    let draft = app.create_draft(&event.host).await;
    check("a draft is made").await;
    app.list_event(&draft).await;
    check("it is listed").await;
    let cancelled = app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await;
    assert!(cancelled.status < 300, "{}", cancelled.body);
    check("an event is cancelled").await;
}

#[test_on(two_servers)]
async fn changes_after_lost_commits_are_visible(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Stalls", 40.0, 10)]).await;
    for title in ["Drums", "Voices"] {
        let changed = app.put(&kofi.key, &event.uri, json!({ "title": title })).await;
        assert_eq!(changed.status, 200, "{}", changed.body);
        for _ in 0..2 {
            assert_eq!(app.read(&event.uri).await["title"], title);
        }
        // Simulates a failover to a standby that lacks the last change.
        app.execute_sql("update event_changes set count = count - 1").await;
    }
}
