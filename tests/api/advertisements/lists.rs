//! Lists of advertisements: visibility, filters, and the advertisements that run in a zone.

use std::time::Duration;

use serde_json::{Value, json};

use super::{advertisement_body, cancel, create, create_draft, publish, rejection, submit};
use crate::support::{Event, TestApp, User, entries_of, id_of, section, test_on};

const HOUR: Duration = Duration::from_secs(3600);

/// Creates drafts with these names, and returns their URIs.
async fn drafts<const N: usize>(app: &TestApp, user: &User, event: &Event, zone: &str, names: [&str; N]) -> [String; N] {
    let mut uris = names.map(str::to_owned);
    for name in &mut uris {
        *name = create_draft(app, user, name, event, &[zone]).await;
    }
    uris
}

#[test_on(sqlite, postgres)]
async fn lists_visible_advertisements_only(app: TestApp) {
    let (kofi, ama, his) = app.create_sale(&[]).await;
    let hers = app.create_listed_event(&app.create_host(&ama).await, &[]).await;
    let zone = app.create_zone(300, 250).await;
    drafts(&app, &kofi, &his, &zone, ["Kofi's Draft"]).await;
    let [listed, cancelled, waiting] =
        drafts(&app, &ama, &hers, &zone, ["Ama's Listed", "Ama's Cancelled", "Ama's Waiting"]).await;
    publish(&app, &listed).await;
    publish(&app, &cancelled).await;
    cancel(&app, &ama.key, &cancelled).await;
    submit(&app, &ama.key, &waiting).await;

    for (key, expected) in [
        (&app.public_key, vec!["Ama's Listed", "Ama's Cancelled"]),
        (&kofi.key, vec!["Kofi's Draft", "Ama's Listed", "Ama's Cancelled"]),
        (&ama.key, vec!["Ama's Listed", "Ama's Cancelled", "Ama's Waiting"]),
        (&app.staff.key, vec!["Kofi's Draft", "Ama's Listed", "Ama's Cancelled", "Ama's Waiting"]),
    ] {
        assert_eq!(app.list(key, "/advertisements", "name").await, expected);
    }
}

#[test_on(sqlite, postgres)]
async fn filters_by_host_event_and_status(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (his, hers) = (app.create_host(&kofi).await, app.create_host(&ama).await);
    let (first, second) = (app.create_listed_event(&his, &[]).await, app.create_listed_event(&his, &[]).await);
    let other = app.create_listed_event(&hers, &[]).await;
    let zone = app.create_zone(300, 250).await;
    let [listed, waiting] = drafts(&app, &kofi, &first, &zone, ["Listed", "Waiting"]).await;
    let [cancelled] = drafts(&app, &kofi, &second, &zone, ["Cancelled"]).await;
    drafts(&app, &ama, &other, &zone, ["Draft"]).await;
    publish(&app, &listed).await;
    publish(&app, &cancelled).await;
    cancel(&app, &kofi.key, &cancelled).await;
    submit(&app, &kofi.key, &waiting).await;
    let host = id_of(&his.uri);

    for (query, expected) in [
        (format!("host={host}"), vec!["Listed", "Waiting", "Cancelled"]),
        (format!("host={host}&event={}", second.id), vec!["Cancelled"]),
        (format!("host={host}&event={}", other.id), vec![]),
        (format!("event={}", first.id), vec!["Listed", "Waiting"]),
        ("event=17637000000001".to_owned(), vec![]),
        ("host=17637000000001".to_owned(), vec![]),
        ("status=Draft".to_owned(), vec!["Draft"]),
        ("status=Under%20Review".to_owned(), vec!["Waiting"]),
        ("status=Listed".to_owned(), vec!["Listed"]),
        ("status=Cancelled".to_owned(), vec!["Cancelled"]),
        ("active=true".to_owned(), vec!["Listed"]),
        ("active=false".to_owned(), vec!["Waiting", "Cancelled", "Draft"]),
        (format!("active=true&status=Cancelled&host={host}"), vec![]),
    ] {
        assert_eq!(app.list(&app.staff.key, &format!("/advertisements?{query}"), "name").await, expected, "{query}");
    }
    let wrong = app.get(&kofi.key, "/advertisements?host=/hosts/1&event=x&status=Gone&active=maybe&records=0").await;
    assert_eq!(wrong.invalid_arguments(), ["records", "host", "event", "status", "active"]);
}

#[test_on(sqlite, postgres)]
async fn list_and_get_return_same_representation(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (first, second) =
        (app.create_listed_event(&host, &[section("Floor", 20.0, 10)]).await, app.create_listed_event(&host, &[]).await);
    let (zone, other) = (app.create_zone(300, 250).await, app.create_zone(300, 250).await);
    let mut uris = Vec::new();
    for (name, event, zones) in [
        ("One", &first, vec![zone.as_str(), &other]),
        ("Two", &second, vec![other.as_str()]),
        ("Three", &first, vec![other.as_str(), &zone]),
    ] {
        let mut body = advertisement_body(name, event, &zones);
        body["schedule"] = json!([
            { "start": "2997-01-01 00:00", "end": "2997-02-01 00:00" },
            { "start": "2996-01-01 00:00", "end": format!("2996-02-0{} 00:00", uris.len() + 1) },
        ]);
        uris.push(create(&app, &kofi.key, &body).await.uri().to_owned());
    }

    let page = app.get(&kofi.key, "/advertisements").await;

    for (entry, uri) in entries_of(&page.body).iter().zip(&uris) {
        assert_eq!(entry, &app.read(uri).await);
    }
    let urls = |entry: &Value| [entry["zones"][0]["self"].clone(), entry["event"]["self"].clone()];
    assert_eq!(urls(&page.body["entries"][2]), [json!(other), json!(first.uri)]);
}

#[test_on(sqlite, postgres)]
async fn lists_advertisements_of_host(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (his, hers) = (app.create_host(&kofi).await, app.create_host(&ama).await);
    let (event, other) = (app.create_listed_event(&his, &[]).await, app.create_listed_event(&his, &[]).await);
    let foreign = app.create_listed_event(&hers, &[]).await;
    let zone = app.create_zone(300, 250).await;
    let [listed, _] = drafts(&app, &kofi, &event, &zone, ["Listed", "Draft"]).await;
    drafts(&app, &kofi, &other, &zone, ["Other"]).await;
    drafts(&app, &ama, &foreign, &zone, ["Another's"]).await;
    publish(&app, &listed).await;
    let path = format!("{}/advertisements", his.uri);

    for (query, expected) in [
        ("".to_owned(), vec!["Listed", "Draft", "Other"]),
        (format!("event={}", event.id), vec!["Listed", "Draft"]),
        ("status=Draft".to_owned(), vec!["Draft", "Other"]),
        ("active=true".to_owned(), vec!["Listed"]),
        ("active=false&records=1&page=2".to_owned(), vec!["Other"]),
    ] {
        for key in [&kofi.key, &app.staff.key] {
            assert_eq!(app.list(key, &format!("{path}?{query}"), "name").await, expected, "{query}");
        }
    }
    app.execute_sql("update hosts set removed = true").await;
    assert_eq!(rejection(&app.get(&kofi.key, &path).await), (404, "resource.not-found"));
    assert_eq!(app.list(&app.public_key, "/advertisements", "name").await, ["Listed"], "it still runs");
}

#[test_on(sqlite, postgres)]
async fn runs_within_scheduled_slots(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let zone = app.create_zone(300, 250).await;
    let at = |hours: u32| app.state.clock.now().plus(HOUR * hours).format_plain_minutes();
    let mut body = advertisement_body("Jazz", &event, &[&zone]);
    body["schedule"] = json!([{ "start": at(4), "end": at(6) }, { "start": at(1), "end": at(3) }]);
    let uri = create(&app, &kofi.key, &body).await.uri().to_owned();
    publish(&app, &uri).await;

    let runs = async || {
        let key = &app.public_key;
        let lists = [format!("{zone}/advertisements"), "/advertisements?active=true".to_owned()];
        let (shown, active) = (app.list(key, &lists[0], "name").await, app.list(key, &lists[1], "name").await);
        let others = app.list(key, "/advertisements?active=false", "name").await;
        assert_eq!(shown, active);
        assert_eq!(active.len() + others.len(), 1);
        !shown.is_empty()
    };

    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(runs().await);
        app.advance_clock(HOUR * 2);
    }
    // At 0, 2, 4 and 6 hours. Slots are truncated to minutes, so the last one has just ended.
    assert_eq!(running, [false, true, true, false]);
    let mut gap = advertisement_body("Rock", &event, &[&zone]);
    gap["schedule"] = json!([{ "start": at(1), "end": at(2) }, { "start": at(4), "end": at(5) }]);
    publish(&app, create(&app, &kofi.key, &gap).await.uri()).await;
    app.advance_clock(HOUR * 3);
    assert_eq!(app.list(&app.public_key, "/advertisements?active=true", "name").await, [""; 0], "between two slots");
}

#[test_on(sqlite, postgres)]
async fn zone_lists_running_advertisements(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let (zone, other) = (app.create_zone(300, 250).await, app.create_zone(300, 250).await);
    let [listed, cancelled, _] = drafts(&app, &kofi, &event, &zone, ["Listed", "Cancelled", "Draft"]).await;
    let both = create_draft(&app, &kofi, "Both", &event, &[&zone, &other]).await;
    let mut past = advertisement_body("Past", &event, &[&zone]);
    past["schedule"] = json!([{ "start": "2020-01-01 00:00", "end": "2020-01-02 00:00" }]);
    let past = create(&app, &kofi.key, &past).await.uri().to_owned();
    for uri in [&listed, &cancelled, &both, &past] {
        publish(&app, uri).await;
    }
    cancel(&app, &kofi.key, &cancelled).await;

    for key in [&app.public_key, &kofi.key, &app.staff.key] {
        assert_eq!(app.list(key, &format!("{zone}/advertisements"), "name").await, ["Listed", "Both"], "the same for everyone");
        assert_eq!(app.list(key, &format!("{other}/advertisements"), "name").await, ["Both"]);
    }
    assert_eq!(app.list(&kofi.key, &format!("{zone}/advertisements?records=1&page=2"), "name").await, ["Both"]);
    let shown = app.get(&app.public_key, &format!("{other}/advertisements")).await;
    assert_eq!(shown.body["entries"], json!([app.read(&both).await]));
}

#[test_on(sqlite, postgres)]
async fn zone_lists_advertisements_of_listed_events_only(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let zone = app.create_zone(300, 250).await;
    let mut events = Vec::new();
    for name in ["Listed", "Cancelled", "Withdrawn"] {
        let event = app.create_listed_event(&host, &[]).await;
        publish(&app, &create_draft(&app, &kofi, name, &event, &[&zone]).await).await;
        events.push(event);
    }
    let zone = format!("{zone}/advertisements");
    assert_eq!(app.list(&app.public_key, &zone, "name").await, ["Listed", "Cancelled", "Withdrawn"]);

    cancel(&app, &kofi.key, &events[1].uri).await;
    kofi.client.event_withdrawal_create().event(&events[2].id).send().await.unwrap();

    for key in [&app.public_key, &kofi.key, &app.staff.key] {
        assert_eq!(app.list(key, &zone, "name").await, ["Listed"], "for everyone");
    }
    assert_eq!(app.list(&app.public_key, "/advertisements", "name").await, ["Listed", "Cancelled"], "it can still be read");
}

#[test_on(sqlite, postgres)]
async fn zone_does_not_list_advertisements_of_past_events(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let zone = app.create_zone(300, 250).await;
    for name in ["Soon", "Later"] {
        let event = app.create_listed_event(&host, &[]).await;
        if name == "Soon" {
            let times = json!({ "start": "2020-01-01T19:00", "end": app.state.clock.now().plus(HOUR).format_plain_minutes() });
            assert_eq!(app.put(&kofi.key, &event.uri, times).await.status, 200);
        }
        publish(&app, &create_draft(&app, &kofi, name, &event, &[&zone]).await).await;
    }
    let zone = format!("{zone}/advertisements");
    assert_eq!(app.list(&app.public_key, &zone, "name").await, ["Soon", "Later"]);

    app.advance_clock(HOUR);

    assert_eq!(app.list(&app.public_key, &zone, "name").await, ["Later"]);
    assert_eq!(app.list(&app.public_key, "/advertisements", "name").await, ["Soon", "Later"], "it can still be read");
}

#[test_on(sqlite, postgres)]
async fn advertisement_of_cancelled_event_is_not_active(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let zone = app.create_zone(300, 250).await;
    let [listed] = drafts(&app, &kofi, &event, &zone, ["Jazz"]).await;
    publish(&app, &listed).await;
    let active = async |active: bool| app.list(&app.staff.key, &format!("/advertisements?active={active}"), "name").await;
    assert_eq!((active(true).await, active(false).await), (vec!["Jazz".to_owned()], vec![]));

    app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await;

    assert_eq!(app.list(&app.public_key, &format!("{zone}/advertisements"), "name").await, [""; 0]);
    assert_eq!((active(true).await, active(false).await), (vec![], vec!["Jazz".to_owned()]));
}
