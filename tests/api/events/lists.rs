//! Lists of events: visibility, filters and sort orders.

use futures::future::join_all;
use serde_json::json;

use super::{cancel_events, create, event_body, rejection, remove_hosts};
use crate::support::{Host, Response, TestApp, id_of, section, test_on, texts};

async fn list(app: &TestApp, key: &str, query: &str) -> Vec<String> {
    app.list(key, query, "title").await
}

fn titles(page: &Response) -> Vec<&str> {
    texts(&page.body, "title")
}

/// Creates drafts with these titles, and returns their URIs.
async fn drafts<const N: usize>(app: &TestApp, host: &Host, titles: [&str; N]) -> [String; N] {
    let mut uris = titles.map(str::to_owned);
    for title in &mut uris {
        let created = create(app, &host.owner.key, &event_body(app, host, title).await).await;
        *title = created.uri().to_owned();
    }
    uris
}

/// Submits and approves an event.
async fn publish(app: &TestApp, host: &Host, uri: &str) {
    let submission = app.post_empty(&host.owner.key, &format!("{uri}/submissions")).await;
    let decision = format!("{}?approved=true", submission.uri());
    assert_eq!(app.delete(&app.staff.key, &decision).await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn lists_visible_events_only(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (kofis, amas) = (app.create_host(&kofi).await, app.create_host(&ama).await);
    drafts(&app, &kofis, ["Kofi's Draft"]).await;
    let [listed, _] = drafts(&app, &amas, ["Ama's Listed", "Ama's Draft"]).await;
    publish(&app, &amas, &listed).await;

    assert_eq!(list(&app, &app.public_key, "/events").await, ["Ama's Listed"]);
    assert_eq!(list(&app, &kofi.key, "/events").await, ["Kofi's Draft", "Ama's Listed"]);
    assert_eq!(list(&app, &ama.key, "/events").await, ["Ama's Listed", "Ama's Draft"]);
    assert_eq!(list(&app, &app.staff.key, "/events").await, ["Kofi's Draft", "Ama's Listed", "Ama's Draft"]);
    cancel_events(&app).await;
    assert_eq!(list(&app, &app.public_key, "/events").await.len(), 3);
}

#[test_on(sqlite, postgres)]
async fn published_events_are_public(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let mut closed = event_body(&app, &host, "Closed").await;
    closed["public"] = false.into();
    let closed = create(&app, &kofi.key, &closed).await.uri().to_owned();
    let [open, _, cancelled] = drafts(&app, &host, ["Open", "Draft", "Cancelled"]).await;
    for uri in [&closed, &open, &cancelled] {
        publish(&app, &host, uri).await;
    }
    app.execute_sql("update events set status = 'Cancelled' where title = 'Cancelled'").await;

    for key in [&app.public_key, &kofi.key, &app.staff.key] {
        assert_eq!(list(&app, key, "/published-events").await, ["Open"]);
    }
    let published = app.get(&app.public_key, "/published-events").await;
    assert_eq!(published.body["entries"][0], app.get(&kofi.key, &open).await.body);
}

#[test_on(sqlite, postgres)]
async fn lists_events_of_host(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (kofis, amas) = (app.create_host(&kofi).await, app.create_host(&ama).await);
    let [listed, _] = drafts(&app, &kofis, ["Listed", "Draft"]).await;
    publish(&app, &kofis, &listed).await;
    drafts(&app, &amas, ["Another's"]).await;
    let events = format!("{}/events", kofis.uri);

    assert_eq!(list(&app, &kofi.key, &events).await, ["Listed", "Draft"]);
    assert_eq!(list(&app, &ama.key, &events).await, ["Listed"]);
    assert_eq!(list(&app, &kofi.key, &format!("{events}?status=Draft")).await, ["Draft"]);
}

/// Concurrent requests share statements, but only with callers who see the same events.
#[test_on(sqlite, postgres)]
async fn concurrent_lists_of_host_have_visible_events(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (kofis, amas) = (app.create_host(&kofi).await, app.create_host(&ama).await);
    let [listed, later] = drafts(&app, &kofis, ["Listed", "Later"]).await;
    publish(&app, &kofis, &listed).await;
    drafts(&app, &amas, ["Another's"]).await;
    let page = async |key: &str, records: u32, page: u32| {
        app.get(key, &format!("{}/events?records={records}&page={page}", kofis.uri)).await
    };
    let check = async |key: &str, titles_of_all: &[&str]| {
        let all = page(key, 25, 1).await;
        assert_eq!((titles(&all), &all.body["total"]), (titles_of_all.to_vec(), &json!(titles_of_all.len())));
        let second = page(key, 1, 2).await;
        match titles_of_all.get(1) {
            Some(title) => assert_eq!(titles(&second), [*title]),
            None => assert_eq!(rejection(&second), (404, "page.past-end")),
        }
        let sees_drafts_of_ama = [&ama.key, &app.staff.key].iter().any(|one| *one == key);
        assert_eq!(list(&app, key, &format!("{}/events", amas.uri)).await.len(), usize::from(sees_drafts_of_ama));
    };
    let check_all = async |titles_of_others: &[&str]| {
        let managers = [&kofi.key, &app.staff.key].map(|key| (key, &["Listed", "Later"][..]));
        let others = [&ama.key, &app.public_key].map(|key| (key, titles_of_others));
        let checks = [managers, others].concat().repeat(4);
        join_all(checks.into_iter().map(|(key, titles)| check(key, titles))).await;
    };

    check_all(&["Listed"]).await;
    publish(&app, &kofis, &later).await;
    check_all(&["Listed", "Later"]).await;
}

#[test_on(sqlite, postgres)]
async fn events_of_removed_host_are_listed_elsewhere(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let [listed] = drafts(&app, &host, ["Listed"]).await;
    publish(&app, &host, &listed).await;
    remove_hosts(&app).await;

    let below = app.get(&kofi.key, &format!("{}/events", host.uri)).await;

    assert_eq!(rejection(&below), (404, "resource.not-found"));
    assert_eq!(list(&app, &app.public_key, "/events").await, ["Listed"]);
}

#[test_on(sqlite, postgres)]
async fn filters_by_region_and_host(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (kofis, amas) = (app.create_host(&kofi).await, app.create_host(&ama).await);
    let [his] = drafts(&app, &kofis, ["His"]).await;
    drafts(&app, &amas, ["Hers"]).await;
    let region = app.get(&kofi.key, &his).await.body["venue"]["region"]["self"].as_str().unwrap().to_owned();
    let id = |uri: &str| id_of(uri).to_owned();

    for (query, expected) in [
        (format!("host={}", kofis.uri), vec!["His"]),
        (format!("host={}", id(&kofis.uri)), vec!["His"]),
        (format!("region={region}"), vec!["His"]),
        (format!("region=/v3{region}&host={}", amas.uri), vec![]),
        ("host=17637000000001".to_owned(), vec![]),
    ] {
        assert_eq!(list(&app, &app.staff.key, &format!("/events?{query}")).await, expected, "{query}");
    }
}

#[test_on(sqlite, postgres)]
async fn finds_title_by_substring(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    drafts(&app, &app.create_host(&kofi).await, ["100% Jazz", "100 Jazz", "A_B", "AxB", r"C\D"]).await;

    for (query, expected) in [
        ("jazz", vec!["100% Jazz", "100 Jazz"]),
        ("100%25", vec!["100% Jazz"]),
        ("a_b", vec!["A_B"]),
        (r"%5C", vec![r"C\D"]),
        ("", vec!["100% Jazz", "100 Jazz", "A_B", "AxB", r"C\D"]),
        ("rock", vec![]),
    ] {
        assert_eq!(list(&app, &kofi.key, &format!("/events?title={query}")).await, expected, "{query}");
    }
}

#[test_on(sqlite, postgres)]
async fn filters_by_status_and_visibility(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let [listed, waiting, _] = drafts(&app, &host, ["Listed", "Waiting", "Draft"]).await;
    publish(&app, &host, &listed).await;
    app.post_empty(&kofi.key, &format!("{waiting}/submissions")).await;
    app.execute_sql("update events set public = false where title = 'Draft'").await;

    for (query, expected) in [
        ("status=Listed", vec!["Listed"]),
        ("status=Under%20Review", vec!["Waiting"]),
        ("status=Draft", vec!["Draft"]),
        ("status=Cancelled", vec![]),
        ("public=true", vec!["Listed", "Waiting"]),
        ("public=false", vec!["Draft"]),
    ] {
        assert_eq!(list(&app, &kofi.key, &format!("/events?{query}")).await, expected, "{query}");
    }
}

#[test_on(sqlite, postgres)]
async fn active_events_have_not_ended(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    drafts(&app, &host, ["To Come"]).await;
    let mut past = event_body(&app, &host, "Past").await;
    past["start"] = "2020-01-01T19:00".into();
    past["end"] = "2020-01-01T23:00".into();
    create(&app, &kofi.key, &past).await;

    assert_eq!(list(&app, &kofi.key, "/events?active=true").await, ["To Come"]);
    assert_eq!(list(&app, &kofi.key, "/events?active=false").await, ["Past"]);
}

#[test_on(sqlite, postgres)]
async fn finds_events_by_section_name(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10), section("Balcony", 30.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 20.0, 10)]).await;
    let id = id_of(&event.sections[0]);

    let found = async |name: &str| app.list(&kofi.key, &format!("/events?section={name}"), "self").await;

    for name in [id, &format!("/sections/{id}"), &event.sections[0], &format!("/v3{}", event.sections[0]), "Balcony"] {
        assert_eq!(found(name).await, [event.uri.as_str()], "{name}");
    }
    assert_eq!(found("Floor").await, [event.uri.as_str(), other.uri.as_str()]);
    let by_name = app.client(&kofi.key).event_list().section("\u{ff26}LOOR ").send().await.unwrap();
    assert_eq!(by_name.total, 2, "without regard to case and Unicode representation");
    for nothing in ["flo", "17637000000001", &format!("{}/sections/{id}", other.uri)] {
        assert!(found(nothing).await.is_empty(), "{nothing}");
    }
}

#[test_on(sqlite, postgres)]
async fn sorts_titles_case_insensitively(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    drafts(&app, &app.create_host(&kofi).await, ["banku", "Accra", "ampe", "Cape"]).await;

    assert_eq!(list(&app, &kofi.key, "/events?sort=alphabetical").await, ["Accra", "ampe", "banku", "Cape"]);
    assert_eq!(list(&app, &kofi.key, "/events?sort=alphabetical&order=desc").await, ["Cape", "banku", "ampe", "Accra"]);
    assert_eq!(list(&app, &kofi.key, "/events?order=desc").await, ["banku", "Accra", "ampe", "Cape"], "no sort, no order");
}

#[test_on(sqlite, postgres)]
async fn unpublished_events_are_sorted_last(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let [second, _, first, _] = drafts(&app, &host, ["Second", "Draft", "First", "Sketch"]).await;
    publish(&app, &host, &first).await;
    publish(&app, &host, &second).await;

    let ascending = list(&app, &kofi.key, "/events?sort=published").await;
    let descending = list(&app, &kofi.key, "/events?sort=published&order=desc").await;

    assert_eq!(ascending, ["First", "Second", "Draft", "Sketch"]);
    assert_eq!(descending, ["Second", "First", "Draft", "Sketch"]);
}

#[test_on(sqlite, postgres)]
async fn sorts_by_popularity_and_start(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let [late, hit, early] = drafts(&app, &host, ["Late", "Hit", "Early"]).await;
    for (uri, start) in [(&late, "2998-12-20T20:00"), (&hit, "2998-12-20T19:30"), (&early, "2998-12-20T19:00")] {
        app.put(&kofi.key, uri, json!({ "start": start })).await;
    }
    let free = serde_json::to_value(section("Floor", 0.0, 10)).unwrap();
    let floor = app.post(&kofi.key, &format!("{hit}/sections"), free).await;
    publish(&app, &host, &hit).await;
    ama.order(floor.uri(), 3).await.unwrap();

    for (query, expected) in [
        ("sort=popularity&order=desc", ["Hit", "Late", "Early"]),
        ("sort=popularity", ["Late", "Early", "Hit"]),
        ("sort=start", ["Early", "Hit", "Late"]),
        ("sort=start&order=desc", ["Late", "Hit", "Early"]),
    ] {
        assert_eq!(list(&app, &kofi.key, &format!("/events?{query}")).await, expected, "{query}");
    }
}
