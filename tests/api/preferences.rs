//! Preferences: an account's preferred region.

use serde_json::{Value, json};

use crate::support::{Response, TestApp, entries_of, id_of, test_on};

async fn put(app: &TestApp, key: &str, number: &str, body: Value) -> Response {
    app.put(key, &format!("/accounts/{number}/preferences"), &body).await
}

async fn get(app: &TestApp, key: &str, number: &str) -> Response {
    app.get(key, &format!("/accounts/{number}/preferences")).await
}

#[test_on(sqlite, postgres)]
async fn new_account_has_no_preferences(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let account = ama.client.account_get().number(ama.number.as_str()).send().await.unwrap();

    let read = app.get(&ama.key, &account.preferences).await;
    let unchanged = put(&app, &ama.key, &ama.number, json!({})).await;

    assert_eq!((read.status, &read.body), (200, &json!({ "self": account.preferences, "region": null })));
    assert_eq!((unchanged.status, unchanged.body), (200, read.body));
}

#[test_on(sqlite, postgres)]
async fn region_is_given_by_id_or_uri(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (accra, volta) = (app.create_region().await, app.create_region().await);

    for (region, named) in [(&accra, id_of(&accra)), (&volta, volta.as_str()), (&accra, &format!("/v3{accra}"))] {
        let changed = put(&app, &ama.key, &ama.number, json!({ "region": named })).await;

        let expected = json!({ "self": format!("/accounts/{}/preferences", ama.number), "region": id_of(region) });
        assert_eq!((changed.status, &changed.body), (200, &expected), "{named}");
        assert_eq!(get(&app, &ama.key, &ama.number).await.body, expected);
        assert_eq!(put(&app, &ama.key, &ama.number, json!({ "city": "Ho" })).await.body, expected, "omitted properties stay");
    }
}

#[test_on(sqlite, postgres)]
async fn rejects_unknown_region(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let accra = app.create_region().await;
    put(&app, &ama.key, &ama.number, json!({ "region": accra })).await;

    for unknown in ["17637000000001", "/regions/17637000000001", "accra"] {
        let rejected = put(&app, &ama.key, &ama.number, json!({ "region": unknown })).await;
        assert_eq!(rejected.invalid_arguments(), ["region"], "{unknown}");
    }
    assert_eq!(get(&app, &ama.key, &ama.number).await.body["region"], id_of(&accra), "nothing was changed");
}

#[test_on(sqlite, postgres)]
async fn blank_or_null_region_is_unset(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let accra = app.create_region().await;

    for blank in [json!(""), json!("  "), Value::Null] {
        assert_eq!(put(&app, &ama.key, &ama.number, json!({ "region": accra })).await.body["region"], id_of(&accra));
        let unset = put(&app, &ama.key, &ama.number, json!({ "region": blank })).await;
        assert_eq!((unset.status, &unset.body["region"]), (200, &Value::Null), "{blank}");
        assert_eq!(get(&app, &ama.key, &ama.number).await.body, unset.body);
        let again = put(&app, &ama.key, &ama.number, unset.body.clone()).await;
        assert_eq!(again.body, unset.body, "sent back as it was read");
    }
}

/// Returns the URIs of the published events on a page, for this key.
async fn published(app: &TestApp, key: &str, query: &str) -> Vec<String> {
    let page = app.get(key, &format!("/published-events?{query}")).await;
    let entries = entries_of(&page.body);
    entries.iter().map(|event| event["self"].as_str().unwrap().to_owned()).collect()
}

#[test_on(sqlite, postgres)]
async fn published_events_of_preferred_region_come_first(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let mut events = Vec::new();
    for _ in 0..4 {
        events.push(app.create_listed_event(&host, &[]).await.uri);
    }
    let [a, b, c, d] = [0, 1, 2, 3].map(|number: usize| events[number].as_str());
    let venue = app.read(c).await["venue"].clone();
    app.put(&kofi.key, d, json!({ "venue": venue["self"] })).await;
    let region = venue["region"]["self"].as_str().unwrap();
    put(&app, &ama.key, &ama.number, json!({ "region": region })).await;

    for _ in 0..2 {
        assert_eq!(published(&app, &ama.key, "").await, [c, d, a, b]);
        assert_eq!(published(&app, &ama.key, "records=3").await, [c, d, a]);
        assert_eq!(published(&app, &ama.key, "records=3&page=2").await, [b]);
        assert_eq!(published(&app, &ama.key, "active=true").await, [c, d, a, b]);
        assert_eq!(published(&app, &ama.key, "sort=start").await, [a, b, c, d]);
        assert_eq!(published(&app, &ama.key, &format!("region={region}")).await, [c, d]);
        for key in [&kofi.key, &app.public_key, &app.staff.key] {
            assert_eq!(published(&app, key, "").await, [a, b, c, d]);
        }
    }
    let integration = json!({ "name": "Kiosk", "role": "customer", "account": ama.number });
    let integration = app.post(&app.staff.key, "/integrations", &integration).await;
    assert_eq!(published(&app, integration.body["key"].as_str().unwrap(), "").await, [c, d, a, b]);
}

#[test_on(sqlite, postgres)]
async fn change_of_preference_changes_list_immediately(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let (first, second) = (app.create_listed_event(&host, &[]).await.uri, app.create_listed_event(&host, &[]).await.uri);
    let region = app.read(&second).await["venue"]["region"]["self"].clone();
    let request = || app.request("GET", "/published-events").key(&ama.key);
    let before = request().send().await;
    let tag = before.header("etag").to_owned();
    let known = async || request().header("If-None-Match", &tag).send().await.status;
    assert_eq!(known().await, 304);

    for (choice, expected, status) in [(region.clone(), [&second, &first], 200), ("".into(), [&first, &second], 304)] {
        put(&app, &ama.key, &ama.number, json!({ "region": choice })).await;
        assert_eq!((published(&app, &ama.key, "").await, known().await), (expected.map(String::clone).to_vec(), status));
    }
    put(&app, &ama.key, &ama.number, json!({ "region": region })).await;
    assert_eq!(published(&app, &ama.key, "").await, [second.as_str(), &first]);
    let elsewhere = json!({ "region": app.create_region().await });
    let venue = app.read(&second).await["venue"]["self"].as_str().unwrap().to_owned();
    app.put(&app.staff.key, &venue, &elsewhere).await;
    assert_eq!(published(&app, &ama.key, "").await, [first.as_str(), &second], "the venue is in another region");
}

#[test_on(sqlite, postgres)]
async fn deleted_region_is_removed_from_preferences(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let (accra, volta) = (app.create_region().await, app.create_region().await);
    put(&app, &ama.key, &ama.number, json!({ "region": accra })).await;
    put(&app, &kofi.key, &kofi.number, json!({ "region": volta })).await;

    let removed = app.delete(&app.staff.key, &accra).await;

    assert_eq!(removed.status, 204);
    assert_eq!(get(&app, &ama.key, &ama.number).await.body["region"], Value::Null);
    assert_eq!(get(&app, &kofi.key, &kofi.number).await.body["region"], id_of(&volta));
    assert_eq!(put(&app, &ama.key, &ama.number, json!({ "region": volta })).await.body["region"], id_of(&volta));
}

#[test_on(sqlite, postgres)]
async fn staff_set_preferences_of_any_account(app: TestApp) {
    let (ama, accra) = (app.sign_up("ama").await, app.create_region().await);

    let staffs = put(&app, &app.staff.key, &ama.number, json!({ "region": accra })).await;

    assert_eq!((staffs.status, &staffs.body["region"]), (200, &json!(id_of(&accra))));
    assert_eq!(get(&app, &app.staff.key, &ama.number).await.body, staffs.body);
}
