//! Regions of venues.

use serde_json::{Value, json};

use crate::support::{TestApp, rejection, section, test_on};

async fn made(app: &TestApp, name: &str) -> String {
    let created = app.post(&app.staff.key, "/regions", json!({ "name": name, "country": "Ghana" })).await;
    assert_eq!(created.status, 201);
    created.uri().to_owned()
}

/// Returns the URIs in a list of regions.
async fn listed(app: &TestApp, query: &str) -> Vec<String> {
    app.list(&app.public_key, &format!("/regions?{query}"), "self").await
}

#[test_on(sqlite, postgres)]
async fn region_has_icon_of_country(app: TestApp) {
    let abidjan = json!({ "name": "Abidjan", "country": "Côte d'Ivoire", "district": "Lagunes", "city": "Abidjan" });

    let full = app.post(&app.staff.key, "/regions", abidjan.clone()).await;
    let short = app.post(&app.staff.key, "/regions", json!({ "name": "Volta", "country": "Ghana", "city": null })).await;

    let mut expected = abidjan;
    expected["self"] = full.header("location").into();
    expected["icon"] = "https://boxoffice.example/media/cote_d_ivoire.png".into();
    assert_eq!((full.status, &full.body), (201, &expected));
    assert_eq!(app.request("GET", full.header("location")).send().await.body, expected);
    assert_eq!((&short.body["district"], &short.body["city"]), (&json!(""), &json!("")));
    assert_eq!(short.body["icon"], "https://boxoffice.example/media/ghana.png");
    assert_eq!(listed(&app, "").await, [full.header("location"), short.header("location")]);
    let long = app.post(&app.staff.key, "/regions", json!({ "name": "Long", "country": "ß".repeat(200) })).await;
    let icon = long.body["icon"].as_str().unwrap().strip_prefix("https://boxoffice.example").unwrap();
    assert_eq!(app.request("GET", icon).send().await.status, 200, "{icon}");
}

#[test_on(sqlite, postgres)]
async fn update_keeps_omitted_properties(app: TestApp) {
    let body = json!({ "name": "Lomé", "country": "Ghana", "district": "Maritime", "city": "Lomé" });
    let before = app.post(&app.staff.key, "/regions", body).await.body;
    let uri = before["self"].as_str().unwrap();

    let after = app.put(&app.staff.key, uri, json!({ "country": "Togo", "district": "", "city": null })).await;

    let icon = "https://boxoffice.example/media/togo.png";
    let expected = json!({ "self": uri, "name": "Lomé", "country": "Togo", "district": "", "city": "Lomé", "icon": icon });
    assert_eq!((after.status, after.body), (200, expected));
}

#[test_on(sqlite, postgres)]
async fn region_is_active_with_future_listed_event(app: TestApp) {
    let (ama, host) = app.sign_up_with_host("ama").await;
    let quiet = made(&app, "Volta").await;
    let drafted = app.create_draft(&host).await;
    let event = app.create_listed_event(&host, &[section("Floor", 20.0, 100)]).await;
    let region = async |id: &str| ama.client.event_get().event(id).send().await.unwrap().venue.region.self_.clone();
    let (drafted, busy) = (region(&drafted.id).await, region(&event.id).await);

    assert_eq!(listed(&app, "active=true").await, [busy.as_str()]);
    assert_eq!(listed(&app, "active=false").await, [quiet.as_str(), drafted.as_str()]);
    assert_eq!(listed(&app, "").await, [quiet.as_str(), drafted.as_str(), busy.as_str()]);

    // The event ends in the year 2998.
    app.advance_clock(std::time::Duration::from_secs(980 * 366 * 24 * 60 * 60));
    assert!(listed(&app, "active=true").await.is_empty());
}

#[test_on(sqlite, postgres)]
async fn deletes_region_without_venues(app: TestApp) {
    let venue = app.create_venue().await;
    let venue = app.request("GET", &venue).send().await;
    let used = venue.body["region"].as_str().unwrap();
    let unused = made(&app, "Volta").await;
    let remove = |uri: &str| app.request("DELETE", uri).key(&app.staff.key).send();

    let (rejected, removed) = (remove(used).await, remove(&unused).await);
    let again = remove(&unused).await;

    assert_eq!(rejection(&rejected), (409, "region.in-use"));
    assert_eq!((removed.status, removed.body), (204, Value::Null));
    assert_eq!(rejection(&again), (404, "resource.not-found"));
    assert_eq!(listed(&app, "").await, [used]);
}
