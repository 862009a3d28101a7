//! Regions: the staff's list of where venues lie.

use serde_json::{Value, json};

use crate::on_both_databases;
use crate::support::{Answer, World, section};

on_both_databases![
    a_region_is_told_with_its_countrys_icon,
    a_name_belongs_to_one_region,
    a_change_leaves_what_it_does_not_name,
    a_region_is_active_with_a_listed_event_to_come,
    a_region_without_venues_can_be_removed,
    the_staff_alone_keep_regions,
];

async fn send(world: &World, method: &str, path: &str, body: Value) -> Answer {
    world.request(method, path).key(&world.staff.key).json(&body).send().await
}

async fn made(world: &World, name: &str) -> String {
    let made = send(world, "POST", "/regions", json!({ "name": name, "country": "Ghana" })).await;
    assert_eq!(made.status, 201);
    made.body["self"].as_str().unwrap().to_owned()
}

/// The URIs of the regions that a list has.
async fn listed(world: &World, query: &str) -> Vec<String> {
    let page = world.request("GET", &format!("/regions?{query}")).send().await;
    assert_eq!(page.status, 200, "{query}");
    page.body["entries"].as_array().unwrap().iter().map(|region| region["self"].as_str().unwrap().to_owned()).collect()
}

async fn a_region_is_told_with_its_countrys_icon(world: World) {
    let abidjan = json!({ "name": "Abidjan", "country": "Côte d'Ivoire", "district": "Lagunes", "city": "Abidjan" });

    let full = send(&world, "POST", "/regions", abidjan.clone()).await;
    let short = send(&world, "POST", "/regions", json!({ "name": "Volta", "country": "Ghana", "city": null })).await;

    let mut expected = abidjan;
    expected["self"] = full.header("location").into();
    expected["icon"] = "https://boxoffice.example/media/cote_d_ivoire.png".into();
    assert_eq!((full.status, &full.body), (201, &expected));
    assert_eq!(world.request("GET", full.header("location")).send().await.body, expected);
    assert_eq!((&short.body["district"], &short.body["city"]), (&json!(""), &json!("")));
    assert_eq!(short.body["icon"], "https://boxoffice.example/media/ghana.png");
    assert_eq!(listed(&world, "").await, [full.header("location"), short.header("location")]);
    let nothing = send(&world, "POST", "/regions", json!({})).await;
    assert_eq!(nothing.complaints(), ["-name", "-country"]);
}

async fn a_name_belongs_to_one_region(world: World) {
    made(&world, "Greater Accra").await;
    let volta = made(&world, "Volta").await;

    let same = send(&world, "POST", "/regions", json!({ "name": "Greater Accra", "country": "Ghana" })).await;
    let renamed = send(&world, "PUT", &volta, json!({ "name": "Greater Accra" })).await;
    let its_own = send(&world, "PUT", &volta, json!({ "name": "Volta" })).await;

    assert_eq!((same.status, same.code()), (409, "region.taken"));
    assert_eq!((renamed.status, renamed.code()), (409, "region.taken"));
    assert_eq!(its_own.status, 200);
}

async fn a_change_leaves_what_it_does_not_name(world: World) {
    let body = json!({ "name": "Lomé", "country": "Ghana", "district": "Maritime", "city": "Lomé" });
    let before = send(&world, "POST", "/regions", body).await.body;
    let uri = before["self"].as_str().unwrap();

    let after = send(&world, "PUT", uri, json!({ "country": "Togo", "district": "", "city": null })).await;
    let blank = send(&world, "PUT", uri, json!({ "name": "", "country": " " })).await;
    let unknown = send(&world, "PUT", "/regions/17637000000001", json!({ "name": "Kara" })).await;

    let icon = "https://boxoffice.example/media/togo.png";
    let expected = json!({ "self": uri, "name": "Lomé", "country": "Togo", "district": "", "city": "Lomé", "icon": icon });
    assert_eq!((after.status, after.body), (200, expected));
    assert_eq!(blank.complaints(), ["-name", "-country"]);
    assert_eq!((unknown.status, unknown.code()), (404, "resource.not-found"));
}

async fn a_region_is_active_with_a_listed_event_to_come(world: World) {
    let ama = world.person("ama").await;
    let host = world.host_of(&ama).await;
    let quiet = made(&world, "Volta").await;
    let drafted = world.draft(&host).await;
    let event = world.listed_event(&host, &[section("Floor", 20.0, 100)]).await;
    let region = async |id: &str| ama.client.event_get().event(id).send().await.unwrap().venue.region.clone();
    let (drafted, busy) = (region(&drafted.id).await, region(&event.id).await);

    assert_eq!(listed(&world, "active=true").await, [busy.as_str()]);
    assert_eq!(listed(&world, "active=false").await, [quiet.as_str(), drafted.as_str()]);
    assert_eq!(listed(&world, "").await, [quiet.as_str(), drafted.as_str(), busy.as_str()]);

    // The event ends in the year 2998.
    world.advance(std::time::Duration::from_secs(980 * 366 * 24 * 60 * 60));
    assert!(listed(&world, "active=true").await.is_empty());
}

async fn a_region_without_venues_can_be_removed(world: World) {
    let venue = world.venue().await;
    let venue = world.request("GET", &venue).send().await;
    let used = venue.body["region"].as_str().unwrap();
    let unused = made(&world, "Volta").await;
    let remove = |uri: &str| world.request("DELETE", uri).key(&world.staff.key).send();

    let (refused, removed) = (remove(used).await, remove(&unused).await);
    let again = remove(&unused).await;

    assert_eq!((refused.status, refused.code()), (409, "region.in-use"));
    assert_eq!((removed.status, removed.body), (204, Value::Null));
    assert_eq!((again.status, again.code()), (404, "resource.not-found"));
    assert_eq!(listed(&world, "").await, [used]);
}

async fn the_staff_alone_keep_regions(world: World) {
    let ama = world.person("ama").await;
    let volta = made(&world, "Volta").await;

    for (method, path) in [("POST", "/regions"), ("PUT", volta.as_str()), ("DELETE", volta.as_str())] {
        for key in [&ama.key, &world.public_key] {
            let answer = world.request(method, path).key(key).json(&json!({})).send().await;
            assert_eq!((answer.status, answer.code()), (403, "key.refused"), "{method}");
        }
    }
}
