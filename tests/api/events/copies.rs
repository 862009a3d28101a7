//! Copies of events.

use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::{cancel_events, remove_hosts};
use crate::support::{Event, Response, TestApp, entries_of, rejection, section, test_on};

/// The smallest PNG.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4kSICAAM4AUH8/hrTAAAAAElFTkSuQmCC";

async fn copy(app: &TestApp, key: &str, event: &Event, body: Value) -> Response {
    app.post(key, &format!("{}/copies", event.uri), &body).await
}

#[test_on(sqlite, postgres)]
async fn copy_has_everything_but_sales(app: TestApp) {
    let mut floor = section("Floor", 100.0, 10);
    (floor.sales_start, floor.sales_end) = ("2020-01-01T00:00".to_owned(), "2998-12-20T18:00".to_owned());
    let (kofi, ama, event) = app.create_sale(&[floor, section("Free", 0.0, 10)]).await;
    let add = async |modifier: Value| app.post(&kofi.key, &format!("{}/modifiers", event.sections[0]), &modifier).await;
    add(json!({ "name": "Last day", "priceDelta": 5, "availableFrom": "2998-12-20T00:00" })).await;
    add(json!({ "name": "Group", "priceDelta": -10, "minOrder": 4, "active": false })).await;
    ama.order(&event.sections[0], 1).await.unwrap();
    ama.order_free_tickets(&event.sections[1], 2).await;
    app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await;

    let copied = copy(&app, &kofi.key, &event, json!({ "title": "Once more", "start": "2998-12-22T20:00" })).await;

    assert_eq!(copied.status, 201, "{}", copied.body);
    let uri = copied.uri();
    assert_eq!((copied.header("location"), &app.get(&kofi.key, uri).await.body), (uri, &copied.body));
    let source = app.read(&event.uri).await;
    for name in ["description", "type", "public", "category", "subcategory", "venue", "disclaimer", "tags", "host"] {
        assert_eq!(copied.body[name], source[name], "{name}");
    }
    let of_copy = ["title", "status", "start", "end", "popularity", "published"].map(|name| copied.body[name].clone());
    assert_eq!(json!(of_copy), json!(["Once more", "Draft", "2998-12-22T20:00", "2998-12-23T00:00", 0, ""]));
    let sections = copied.body["sections"].as_array().unwrap();
    let numbers = ["sold", "reserved", "remaining", "capacity"].map(|name| sections[1][name].clone());
    assert_eq!((sections.len(), json!(numbers)), (2, json!([0, 0, 10, 10])));
    // The start is moved by two days and one hour.
    assert_eq!((&sections[0]["salesStart"], &sections[0]["salesEnd"]), (&json!("2020-01-03T01:00"), &json!("2998-12-22T19:00")));
    let modifiers = app.get(&kofi.key, &format!("{uri}{}/modifiers", sections[0]["self"].as_str().unwrap())).await;
    let modifiers: Vec<Value> = entries_of(&modifiers.body).to_vec();
    let of =
        |index: usize| ["name", "priceDelta", "availableFrom", "minOrder", "active"].map(|name| modifiers[index][name].clone());
    assert_eq!(json!(of(0)), json!(["Last day", 5.0, "2998-12-22T01:00", null, true]));
    assert_eq!(json!(of(1)), json!(["Group", -10.0, null, 4, false]));
    let tokens = app.get(&kofi.key, &format!("{uri}/tokens")).await.body;
    assert_eq!((&tokens["total"], &tokens["entries"][0]["global"]), (&json!(1), &json!(true)));
    // The copy is independent of the event, and can be sold.
    let copy = Event::new(&event.host, uri);
    app.list_event(&copy).await;
    ama.order_free_tickets(&format!("{uri}{}", sections[1]["self"].as_str().unwrap()), 1).await;
    assert_eq!(app.read(&event.sections[1]).await["sold"], 2);
}

#[test_on(sqlite, postgres)]
async fn copy_is_rejected_with_reasons(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 10)]).await;
    let body = json!({ "title": "Once more", "start": "2998-12-22T20:00" });

    assert_eq!(rejection(&copy(&app, &ama.key, &event, body.clone()).await), (403, "resource.not-yours"));
    for (body, invalid) in [
        (json!({}), &["-title", "-start"][..]),
        (json!({ "title": " ", "start": "tomorrow" }), &["-title", "start"]),
        (json!({ "title": "Once more", "start": "2998-12-22T20:00", "end": "2998-12-22T20:00" }), &["end"]),
        // Sales from 1 January 2020 would be before the year 0.
        (json!({ "title": "Once more", "start": "0970-12-22T20:00", "end": "0970-12-22T21:00" }), &["start"]),
        // The event lasts four hours.
        (json!({ "title": "Once more", "start": "9999-12-31T22:00" }), &["start"]),
    ] {
        let rejected = copy(&app, &kofi.key, &event, body.clone()).await;
        let expected: Vec<String> = invalid.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!((rejected.status, rejected.invalid_arguments()), (400, expected), "{body}: {}", rejected.body);
    }
    // One minute later is the time that stands for none.
    let end = app.read(&event.sections[0]).await["salesEnd"].clone();
    let set_end = async |end: Value| app.put(&kofi.key, &event.sections[0], json!({ "salesEnd": end })).await.status;
    assert_eq!(set_end("9999-12-31T23:58".into()).await, 200);
    let start = app.read(&event.uri).await["start"].as_str().unwrap().replace(":00", ":01");
    let later = copy(&app, &kofi.key, &event, json!({ "title": "Once more", "start": start })).await;
    assert_eq!(later.invalid_arguments(), ["start"], "{}", later.body);
    assert_eq!(set_end(end).await, 200);
    let several = join_all((0..3).map(|_| copy(&app, &kofi.key, &event, body.clone()))).await;
    let mut statuses: Vec<u16> = several.iter().map(|response| response.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409]);
    assert_eq!(rejection(&copy(&app, &kofi.key, &event, body.clone()).await), (409, "event.taken"));
    cancel_events(&app).await;
    remove_hosts(&app).await;
    let other = json!({ "title": "Once again", "start": "2998-12-22T20:00" });
    assert_eq!(rejection(&copy(&app, &app.staff.key, &event, other).await), (409, "host.removed"));
}

/// Clients write the first time of their clock for sales that have always been open.
#[test_on(sqlite, postgres)]
async fn times_before_1970_are_moved(app: TestApp) {
    let [mut floor, mut lawn] = [section("Floor", 10.0, 10), section("Lawn", 10.0, 10)];
    (floor.sales_start, lawn.sales_start) = ("1970-01-01T00:00".to_owned(), "0001-01-01T00:00".to_owned());
    let (kofi, event) = app.sign_up_host("kofi", &[floor, lawn]).await;
    let start = app.read(&event.uri).await["start"].as_str().unwrap().replace("-20T", "-19T");

    let copied = copy(&app, &kofi.key, &event, json!({ "title": "Once more", "start": start })).await;

    assert_eq!(copied.status, 201, "{}", copied.body);
    let sales = [0, 1].map(|index: usize| copied.body["sections"][index]["salesStart"].clone());
    assert_eq!(json!(sales), json!(["1969-12-31T00:00", "0000-12-31T00:00"]));
}

#[test_on(sqlite, postgres)]
async fn images_are_copied_and_discarded(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    app.put(&kofi.key, &event.uri, json!({ "banner": PNG })).await;
    let files = || {
        let folder = app.state.settings.media.folder().unwrap().join("banner");
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    };

    let body = json!({ "title": "Once more", "start": "2998-12-22T20:00" });
    let copied = copy(&app, &kofi.key, &event, body.clone()).await;
    assert_eq!((copied.status, files()), (201, 2), "{}", copied.body);
    assert_eq!(copy(&app, &kofi.key, &event, body).await.status, 409);
    assert_eq!(files(), 2, "a rejected copy leaves no file");
    let uri = copied.uri();
    assert_eq!(app.fetch_image("banner", uri).await.status, 200);

    assert_eq!(app.delete(&kofi.key, &event.uri).await.status, 204);
    assert_eq!((files(), app.fetch_image("banner", uri).await.status), (1, 200), "the copy keeps its image");
}

#[test_on(sqlite, postgres)]
async fn image_that_is_replaced_meanwhile_is_copied(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let put = || app.put(&kofi.key, &event.uri, json!({ "banner": PNG }));
    assert_eq!(put().await.status, 200);
    let body = |number: u32| json!({ "title": format!("Night {number}"), "start": "2998-12-22T20:00" });
    let has_banner = |copied: &Response| copied.body["banner"].as_str().unwrap().contains("?secret=");

    for round in 0..40 {
        let (replaced, copied) = join(put(), copy(&app, &kofi.key, &event, body(round))).await;

        assert_eq!((replaced.status, copied.status, has_banner(&copied)), (200, 201, true), "{round}: {}", copied.body);
        assert_eq!(app.fetch_image("banner", copied.uri()).await.status, 200);
    }
    // The store may have lost an image.
    let folder = app.state.settings.media.folder().unwrap().join("banner");
    std::fs::remove_dir_all(&folder).unwrap();
    let copied = copy(&app, &kofi.key, &event, body(40)).await;
    assert_eq!((copied.status, has_banner(&copied)), (201, false), "{}", copied.body);
}
