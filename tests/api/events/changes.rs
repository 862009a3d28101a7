//! Updates of events.

use serde_json::json;

use super::{create, create_pending_venue, event_body};
use crate::support::{TestApp, rejection, section, test_on};

#[test_on(sqlite, postgres)]
async fn update_keeps_omitted_properties(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    body["disclaimer"] = "No refunds.".into();
    body["tags"] = json!(["jazz", "rock"]);
    let before = create(&app, &kofi.key, &body).await;
    let uri = before.uri().to_owned();

    let nothing = app.put(&kofi.key, &uri, json!({})).await;
    let some = json!({
        "title": "Rock Night", "subcategory": "Rock", "public": false, "end": "2998-12-21T01:00+01:00", "tags": ["rock"],
        "disclaimer": "", "start": null, "host": before.body["host"], "status": "Listed",
    });
    let after = app.put(&kofi.key, &uri, some).await;

    assert_eq!((nothing.status, &nothing.body), (200, &before.body));
    let mut expected = before.body;
    for (name, value) in [("title", "Rock Night"), ("subcategory", "Rock"), ("end", "2998-12-21T00:00"), ("disclaimer", "")] {
        expected[name] = value.into();
    }
    expected["public"] = false.into();
    expected["tags"] = json!(["rock"]);
    assert_eq!((after.status, &after.body), (200, &expected));
    assert_eq!(app.get(&kofi.key, &uri).await.body, expected);
}

#[test_on(sqlite, postgres)]
async fn update_follows_creation_rules(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let created = create(&app, &kofi.key, &event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await).await;
    let uri = created.uri().to_owned();
    let words = app.post(&app.staff.key, "/categories", json!({ "name": "Words", "subcategories": ["Poetry"] })).await;
    let words = &words.body["self"];

    for (body, complaints) in [
        (json!({ "title": " ", "type": "", "public": null, "venue": "" }), vec!["-title", "-type", "-public", "-venue"]),
        (json!({ "host": "" }), vec!["-host"]),
        (json!({ "host": "/hosts/17637000000001", "subcategory": "Poetry" }), vec!["host", "subcategory"]),
        (json!({ "category": words }), vec!["subcategory"]),
        (json!({ "subcategory": "Poetry" }), vec!["subcategory"]),
        (json!({ "category": "17637000000001", "venue": "17637000000001" }), vec!["category", "venue"]),
        (json!({ "start": "2998-12-20T23:00" }), vec!["end"]),
        // A leap second is in the next minute, which has a year of five digits.
        (json!({ "end": "9999-12-31T23:59:60" }), vec!["end"]),
        (json!({ "tags": ["jazz", " \u{200d}"] }), vec!["tags"]),
        (json!({ "end": "2998-12-20T18:00", "thumbnail": "*" }), vec!["end", "thumbnail"]),
    ] {
        let response = app.put(&kofi.key, &uri, body.clone()).await;

        assert_eq!(response.invalid_arguments(), complaints, "{body}");
    }
    assert_eq!(app.get(&kofi.key, &uri).await.body, created.body);
    let both = app.put(&kofi.key, &uri, json!({ "category": words, "subcategory": "Poetry" })).await;
    assert_eq!((both.status, &both.body["category"]["name"]), (200, &json!("Words")));
}

#[test_on(sqlite, postgres)]
async fn accepts_current_venue(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let mut body = event_body(&app, &app.create_host(&ama).await, "Her Night").await;
    body["venue"] = create_pending_venue(&app, &ama.key).await.into();
    let created = create(&app, &ama.key, &body).await;
    let (event, venue) = (created.uri().to_owned(), create_pending_venue(&app, &kofi.key).await);

    let same = app.put(&ama.key, &event, json!({ "venue": body["venue"], "title": "Our Night" })).await;
    let not_hers = app.put(&ama.key, &event, json!({ "venue": venue })).await;

    assert_eq!(same.status, 200);
    assert_eq!(not_hers.invalid_arguments(), ["venue"]);
}

#[test_on(sqlite, postgres)]
async fn update_of_listed_event_keeps_status(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;

    let changed = app.put(&kofi.key, &event.uri, json!({ "title": "Later", "status": "Draft" })).await;

    assert_eq!((&changed.body["title"], &changed.body["status"]), (&json!("Later"), &json!("Listed")));
    assert_eq!(app.get(&app.public_key, &event.uri).await.body, changed.body);
}

#[test_on(sqlite, postgres)]
async fn past_event_keeps_its_venue(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    app.end_event(&event).await;
    let (venue, other) = (app.read(&event.uri).await["venue"]["self"].clone(), app.create_venue().await);

    let moved = app.put(&kofi.key, &event.uri, json!({ "venue": other })).await;
    let same = app.put(&kofi.key, &event.uri, json!({ "venue": venue, "disclaimer": "It was loud." })).await;

    assert_eq!(rejection(&moved), (409, "event.over"));
    assert_eq!((same.status, &same.body["venue"]["self"]), (200, &venue));
    let removed = app.delete(&app.staff.key, venue.as_str().unwrap()).await;
    assert_eq!(rejection(&removed), (409, "venue.in-use"), "an event has been staged there");
    let withdrawn = app.post_empty(&kofi.key, &format!("{}/withdrawals", event.uri)).await;
    let moved = app.put(&kofi.key, &event.uri, json!({ "venue": other })).await;
    let removed = app.delete(&app.staff.key, venue.as_str().unwrap()).await;
    assert_eq!((withdrawn.status / 100, moved.status, removed.status, removed.code()), (2, 200, 409, "venue.in-use"));
}

#[test_on(sqlite, postgres)]
async fn withdrawn_event_with_tickets_takes_place_at_its_venue(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    ama.order_free_tickets(&event.sections[0], 1).await;
    let (venue, other) = (app.read(&event.uri).await["venue"]["self"].clone(), app.create_venue().await);
    assert_eq!(app.post_empty(&kofi.key, &format!("{}/withdrawals", event.uri)).await.status, 200);
    app.end_event(&event).await;

    let over = app.put(&kofi.key, &event.uri, json!({ "venue": other })).await;
    let again = app.put(&kofi.key, &event.uri, json!({ "start": "2998-01-03T20:30", "end": "2998-01-03T22:00" })).await;
    let moved = app.put(&kofi.key, &event.uri, json!({ "venue": other })).await;
    let removed = app.delete(&app.staff.key, venue.as_str().unwrap()).await;

    assert_eq!((rejection(&over), again.status, moved.status), ((409, "event.over"), 200, 200));
    assert_eq!(rejection(&removed), (409, "venue.in-use"), "the holders of tickets were there");
}

#[test_on(sqlite, postgres)]
async fn venue_of_a_removed_past_event_stays(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    let venue = app.put(&kofi.key, &event.uri, json!({ "start": "2020-01-01T19:00" })).await.body["venue"]["self"].clone();

    let event = app.delete(&kofi.key, &event.uri).await;
    let removed = app.delete(&app.staff.key, venue.as_str().unwrap()).await;

    assert_eq!((event.status, removed.status, removed.code()), (204, 409, "venue.in-use"));
}

#[test_on(sqlite, postgres)]
async fn event_sent_back_as_read_is_unchanged(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    body["start"] = "2998-12-20T19:00:45.5".into();
    body["end"] = "2998-12-20T23:00:59Z".into();
    let uri = create(&app, &kofi.key, &body).await.uri().to_owned();
    let section = json!({
        "name": "Floor", "basePrice": 20, "capacity": 10, "salesStart": "2020-01-01T00:00:30", "salesEnd": "2998-12-20T19:00:15",
    });
    let section = app.post(&kofi.key, &format!("{uri}/sections"), &section).await;
    let times = async || {
        let times = "select e.starts, e.ends, s.sales_start, s.sales_end from events e join sections s on s.event_id = e.id";
        app.rows::<(i64, i64, i64, i64)>(times).await
    };
    let (read, stored) = (app.read(&uri).await, times().await);

    let mut sent_back = read.clone();
    for reference in ["category", "venue"] {
        sent_back[reference] = read[reference]["self"].clone();
    }
    let changed = app.put(&kofi.key, &uri, sent_back).await;
    let same_section = app.put(&kofi.key, section.uri(), read["sections"][0].clone()).await;

    assert_eq!((&read["start"], &read["end"]), (&json!("2998-12-20T19:00"), &json!("2998-12-20T23:00")));
    assert_eq!((changed.status, &changed.body), (200, &read));
    assert_eq!(same_section.status, 200, "{}", same_section.body);
    assert_eq!(times().await, stored);
}
