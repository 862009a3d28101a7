//! Advertising zones.

use futures::future::join;
use serde_json::{Value, json};

use crate::advertisements::{advertisement_body, create};
use crate::support::{Response, TestApp, rejection, test_on};

async fn add(app: &TestApp, key: &str, body: &Value) -> Response {
    app.post(key, "/zones", body).await
}

#[test_on(sqlite, postgres)]
async fn staff_create_zones_and_any_key_reads_them(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let zone = json!({ "name": "Leaderboard", "width": 728, "height": 90, "description": "On top." });

    let created = add(&app, &app.staff.key, &zone).await;
    let bare = add(&app, &app.staff.key, &json!({ "name": "Leaderboard", "width": 1, "height": 10000 })).await;

    assert_eq!(created.status, 201);
    let uri = created.uri();
    assert_eq!(created.header("location"), uri);
    let mut expected = zone.clone();
    expected["self"] = uri.into();
    expected["number"] = uri.strip_prefix("/zones/").unwrap().into();
    expected["advertisements"] = format!("{uri}/advertisements").into();
    assert_eq!(created.body, expected);
    assert_eq!((bare.status, &bare.body["description"]), (201, &json!("")), "a name is not unique");
    for key in [&app.public_key, &kofi.key, &app.staff.key] {
        assert_eq!(app.get(key, uri).await.body, expected);
    }
}

#[test_on(sqlite, postgres)]
async fn staff_update_zones(app: TestApp) {
    let zone = app.create_zone(300, 250).await;
    let before = app.read(&zone).await;

    let changed = app.put(&app.staff.key, &zone, json!({ "width": 320, "name": "Side", "description": null })).await;

    let mut expected = before;
    expected["width"] = 320.into();
    expected["name"] = "Side".into();
    assert_eq!((changed.status, &changed.body), (200, &expected));
    assert_eq!(app.read(&zone).await, expected);
}

#[test_on(sqlite, postgres)]
async fn staff_delete_zones(app: TestApp) {
    let zone = app.create_zone(300, 250).await;

    let staff = app.delete(&app.staff.key, &zone).await;
    let again = app.delete(&app.staff.key, &zone).await;

    assert_eq!((staff.status, staff.body), (204, Value::Null));
    assert_eq!(rejection(&again), (404, "resource.not-found"));
    assert_eq!(app.request("GET", &zone).send().await.status, 404);
}

#[test_on(sqlite, postgres)]
async fn dimensions_of_booked_zone_are_immutable(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let (zone, empty) = (app.create_zone(300, 250).await, app.create_zone(300, 250).await);
    let created = create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&zone])).await;
    let before = app.read(&zone).await;

    for body in [json!({ "width": 301 }), json!({ "height": 249, "name": "Other" }), json!({ "width": 250, "height": 300 })] {
        assert_eq!(rejection(&app.put(&app.staff.key, &zone, body.clone()).await), (409, "zone.in-use"), "{body}");
    }
    assert_eq!(app.read(&zone).await, before);
    let same = app.put(&app.staff.key, &zone, json!({ "width": 300, "height": 250, "name": "Side" })).await;
    let other = app.put(&app.staff.key, &empty, json!({ "width": 301 })).await;
    app.delete(&kofi.key, created.uri()).await;
    let free = app.put(&app.staff.key, &zone, json!({ "width": 301 })).await;

    assert_eq!((same.status, &same.body["name"]), (200, &json!("Side")));
    assert_eq!((other.status, free.status, &free.body["width"]), (200, 200, &json!(301)));
}

#[test_on(sqlite, postgres)]
async fn booked_zone_cannot_be_deleted(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let zone = app.create_zone(300, 250).await;
    let created = create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&zone])).await;

    let draft = app.delete(&app.staff.key, &zone).await;
    app.execute_sql("update advertisements set status = 'Cancelled'").await;
    let cancelled = app.delete(&app.staff.key, &zone).await;
    app.delete(&kofi.key, created.uri()).await;
    let free = app.delete(&app.staff.key, &zone).await;

    assert_eq!(rejection(&draft), (409, "zone.in-use"));
    assert_eq!(rejection(&cancelled), (409, "zone.in-use"), "whatever its status");
    assert_eq!(free.status, 204);
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_resize_and_booking_leave_one(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    for round in 0..8 {
        let zone = app.create_zone(300, 250).await;
        let body = advertisement_body(&format!("Jazz {round}"), &event, &[&zone]);

        let (booked, changed) =
            join(create(&app, &kofi.key, &body), app.put(&app.staff.key, &zone, json!({ "width": 301 }))).await;

        let width = &app.read(&zone).await["width"];
        match (booked.status, changed.status) {
            (201, 409) => assert_eq!(width, 300),
            (400, 200) => assert_eq!(width, 301),
            both => panic!("{both:?}: {} {}", booked.body, changed.body),
        }
    }
}
