//! Lists of events: what a caller sees in them, filters and sorts.

use serde_json::json;

use super::{cancel_events, event, make, read, refusal, remove_hosts, uri};
use crate::on_both_databases;
use crate::support::{Answer, Host, World, section};

on_both_databases![
    a_list_shows_a_caller_what_it_may_see,
    published_events_are_listed_and_open_to_the_public,
    a_hosts_events_are_its_own,
    a_removed_hosts_events_stay_but_not_below_it,
    events_come_in_pages_in_the_order_of_making,
    events_are_filtered_by_region_and_host,
    a_title_is_found_by_any_part_of_it,
    events_are_filtered_by_status_and_publicity,
    active_events_are_those_that_have_not_ended,
    events_are_found_by_any_name_of_a_section,
    titles_are_sorted_without_regard_to_case,
    unpublished_events_come_last,
    the_popular_and_the_early_come_first_when_asked_for,
];

async fn list(world: &World, key: &str, query: &str) -> Vec<String> {
    titles(&read(world, key, query).await)
}

fn titles(page: &Answer) -> Vec<String> {
    let entries = page.body["entries"].as_array().unwrap_or_else(|| panic!("{page:?}"));
    entries.iter().map(|event| event["title"].as_str().unwrap().to_owned()).collect()
}

/// Drafts with these titles; their URIs.
async fn drafts<const N: usize>(world: &World, host: &Host<'_>, titles: [&str; N]) -> [String; N] {
    let mut uris = titles.map(str::to_owned);
    for title in &mut uris {
        let made = make(world, &host.owner.key, &event(world, host, title).await).await;
        *title = uri(&made);
    }
    uris
}

/// Submits and approves an event.
async fn publish(world: &World, host: &Host<'_>, uri: &str) {
    let submission = world.request("POST", &format!("{uri}/submissions")).key(&host.owner.key).send().await;
    let decision = format!("{}?approved=true", super::uri(&submission));
    assert_eq!(world.request("DELETE", &decision).key(&world.staff.key).send().await.status, 200);
}

async fn a_list_shows_a_caller_what_it_may_see(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let (kofis, amas) = (world.host_of(&kofi).await, world.host_of(&ama).await);
    drafts(&world, &kofis, ["Kofi's Draft"]).await;
    let [listed, _] = drafts(&world, &amas, ["Ama's Listed", "Ama's Draft"]).await;
    publish(&world, &amas, &listed).await;

    assert_eq!(list(&world, &world.public_key, "/events").await, ["Ama's Listed"]);
    assert_eq!(list(&world, &kofi.key, "/events").await, ["Kofi's Draft", "Ama's Listed"]);
    assert_eq!(list(&world, &ama.key, "/events").await, ["Ama's Listed", "Ama's Draft"]);
    assert_eq!(list(&world, &world.staff.key, "/events").await, ["Kofi's Draft", "Ama's Listed", "Ama's Draft"]);
    cancel_events(&world).await;
    assert_eq!(list(&world, &world.public_key, "/events").await.len(), 3);
}

async fn published_events_are_listed_and_open_to_the_public(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let mut closed = event(&world, &host, "Closed").await;
    closed["public"] = false.into();
    let closed = uri(&make(&world, &kofi.key, &closed).await);
    let [open, _, cancelled] = drafts(&world, &host, ["Open", "Draft", "Cancelled"]).await;
    for uri in [&closed, &open, &cancelled] {
        publish(&world, &host, uri).await;
    }
    world.run_sql("update events set status = 'Cancelled' where title = 'Cancelled'").await;

    for key in [&world.public_key, &kofi.key, &world.staff.key] {
        assert_eq!(list(&world, key, "/published-events").await, ["Open"]);
    }
    let published = read(&world, &world.public_key, "/published-events").await;
    assert_eq!(published.body["entries"][0], read(&world, &kofi.key, &open).await.body);
}

async fn a_hosts_events_are_its_own(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let (kofis, amas) = (world.host_of(&kofi).await, world.host_of(&ama).await);
    let [listed, _] = drafts(&world, &kofis, ["Listed", "Draft"]).await;
    publish(&world, &kofis, &listed).await;
    drafts(&world, &amas, ["Another's"]).await;
    let events = format!("{}/events", kofis.uri);

    assert_eq!(list(&world, &kofi.key, &events).await, ["Listed", "Draft"]);
    assert_eq!(list(&world, &ama.key, &events).await, ["Listed"]);
    assert_eq!(list(&world, &kofi.key, &format!("{events}?status=Draft")).await, ["Draft"]);
    assert_eq!(refusal(&read(&world, &ama.key, "/hosts/17637000000001/events").await), (404, "resource.not-found"));
}

async fn a_removed_hosts_events_stay_but_not_below_it(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let [listed] = drafts(&world, &host, ["Listed"]).await;
    publish(&world, &host, &listed).await;
    remove_hosts(&world).await;

    let below = read(&world, &kofi.key, &format!("{}/events", host.uri)).await;

    assert_eq!(refusal(&below), (404, "resource.not-found"));
    assert_eq!(list(&world, &world.public_key, "/events").await, ["Listed"]);
}

async fn events_come_in_pages_in_the_order_of_making(world: World) {
    let kofi = world.person("kofi").await;
    drafts(&world, &world.host_of(&kofi).await, ["Charlie", "Alpha", "Bravo"]).await;

    let first = read(&world, &kofi.key, "/events?records=2").await;
    let second = read(&world, &kofi.key, "/events?records=2&page=2").await;
    let past = read(&world, &kofi.key, "/events?records=2&page=3").await;

    assert_eq!((titles(&first), titles(&second)), (vec!["Charlie".to_owned(), "Alpha".to_owned()], vec!["Bravo".to_owned()]));
    let envelope = |page: &Answer| json!([page.body["total"], page.body["page"], page.body["records"]]);
    assert_eq!((envelope(&first), envelope(&second)), (json!([3, 1, 2]), json!([3, 2, 2])));
    assert_eq!(refusal(&past), (404, "page.past-end"));
    assert_eq!(read(&world, &kofi.key, "/published-events").await.body["entries"], json!([]));
    assert_eq!(read(&world, &kofi.key, "/events?sort=price&order=up&active=maybe&records=0").await.complaints().len(), 4);
}

async fn events_are_filtered_by_region_and_host(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let (kofis, amas) = (world.host_of(&kofi).await, world.host_of(&ama).await);
    let [his] = drafts(&world, &kofis, ["His"]).await;
    drafts(&world, &amas, ["Hers"]).await;
    let region = read(&world, &kofi.key, &his).await.body["venue"]["region"].as_str().unwrap().to_owned();
    let id = |uri: &str| uri.rsplit('/').next().unwrap().to_owned();

    for (query, expected) in [
        (format!("host={}", kofis.uri), vec!["His"]),
        (format!("host={}", id(&kofis.uri)), vec!["His"]),
        (format!("region={region}"), vec!["His"]),
        (format!("region=/v3{region}&host={}", amas.uri), vec![]),
        ("host=17637000000001".to_owned(), vec![]),
    ] {
        assert_eq!(list(&world, &world.staff.key, &format!("/events?{query}")).await, expected, "{query}");
    }
}

async fn a_title_is_found_by_any_part_of_it(world: World) {
    let kofi = world.person("kofi").await;
    drafts(&world, &world.host_of(&kofi).await, ["100% Jazz", "100 Jazz", "A_B", "AxB", r"C\D"]).await;

    for (query, expected) in [
        ("jazz", vec!["100% Jazz", "100 Jazz"]),
        ("100%25", vec!["100% Jazz"]),
        ("a_b", vec!["A_B"]),
        (r"%5C", vec![r"C\D"]),
        ("", vec!["100% Jazz", "100 Jazz", "A_B", "AxB", r"C\D"]),
        ("rock", vec![]),
    ] {
        assert_eq!(list(&world, &kofi.key, &format!("/events?title={query}")).await, expected, "{query}");
    }
}

async fn events_are_filtered_by_status_and_publicity(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let [listed, waiting, _] = drafts(&world, &host, ["Listed", "Waiting", "Draft"]).await;
    publish(&world, &host, &listed).await;
    world.request("POST", &format!("{waiting}/submissions")).key(&kofi.key).send().await;
    world.run_sql("update events set public = false where title = 'Draft'").await;

    for (query, expected) in [
        ("status=Listed", vec!["Listed"]),
        ("status=Under%20Review", vec!["Waiting"]),
        ("status=Draft", vec!["Draft"]),
        ("status=Cancelled", vec![]),
        ("public=true", vec!["Listed", "Waiting"]),
        ("public=false", vec!["Draft"]),
    ] {
        assert_eq!(list(&world, &kofi.key, &format!("/events?{query}")).await, expected, "{query}");
    }
}

async fn active_events_are_those_that_have_not_ended(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    drafts(&world, &host, ["To Come"]).await;
    let mut past = event(&world, &host, "Past").await;
    past["start"] = "2020-01-01T19:00".into();
    past["end"] = "2020-01-01T23:00".into();
    make(&world, &kofi.key, &past).await;

    assert_eq!(list(&world, &kofi.key, "/events?active=true").await, ["To Come"]);
    assert_eq!(list(&world, &kofi.key, "/events?active=false").await, ["Past"]);
}

async fn events_are_found_by_any_name_of_a_section(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let event = world.listed_event(&host, &[section("Floor", 20.0, 10), section("Balcony", 30.0, 10)]).await;
    let other = world.listed_event(&host, &[section("Floor", 20.0, 10)]).await;
    let id = event.sections[0].rsplit('/').next().unwrap();

    let found = async |name: &str| {
        let page = read(&world, &kofi.key, &format!("/events?section={name}")).await;
        let entries = page.body["entries"].as_array().unwrap().clone();
        entries.iter().map(|event| event["self"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };

    for name in [id, &format!("/sections/{id}"), &event.sections[0], &format!("/v3{}", event.sections[0]), "Balcony"] {
        assert_eq!(found(name).await, [event.uri.as_str()], "{name}");
    }
    assert_eq!(found("Floor").await, [event.uri.as_str(), other.uri.as_str()]);
    for nothing in ["floor", "17637000000001", &format!("{}/sections/{id}", other.uri)] {
        assert!(found(nothing).await.is_empty(), "{nothing}");
    }
}

async fn titles_are_sorted_without_regard_to_case(world: World) {
    let kofi = world.person("kofi").await;
    drafts(&world, &world.host_of(&kofi).await, ["banku", "Accra", "ampe", "Cape"]).await;

    assert_eq!(list(&world, &kofi.key, "/events?sort=alphabetical").await, ["Accra", "ampe", "banku", "Cape"]);
    assert_eq!(list(&world, &kofi.key, "/events?sort=alphabetical&order=desc").await, ["Cape", "banku", "ampe", "Accra"]);
    assert_eq!(list(&world, &kofi.key, "/events?order=desc").await, ["banku", "Accra", "ampe", "Cape"], "no sort, no order");
}

async fn unpublished_events_come_last(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let [second, _, first, _] = drafts(&world, &host, ["Second", "Draft", "First", "Sketch"]).await;
    publish(&world, &host, &first).await;
    publish(&world, &host, &second).await;

    let ascending = list(&world, &kofi.key, "/events?sort=published").await;
    let descending = list(&world, &kofi.key, "/events?sort=published&order=desc").await;

    assert_eq!(ascending, ["First", "Second", "Draft", "Sketch"]);
    assert_eq!(descending, ["Second", "First", "Draft", "Sketch"]);
}

async fn the_popular_and_the_early_come_first_when_asked_for(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    let [late, hit, early] = drafts(&world, &host, ["Late", "Hit", "Early"]).await;
    for (uri, start) in [(&late, "2998-12-20T20:00"), (&hit, "2998-12-20T19:30"), (&early, "2998-12-20T19:00")] {
        super::change(&world, &kofi.key, uri, json!({ "start": start })).await;
    }
    let free = serde_json::to_value(section("Floor", 0.0, 10)).unwrap();
    let floor = world.request("POST", &format!("{hit}/sections")).key(&kofi.key).json(&free).send().await;
    publish(&world, &host, &hit).await;
    ama.order(floor.body["self"].as_str().unwrap(), 3).await.unwrap();

    for (query, expected) in [
        ("sort=popularity&order=desc", ["Hit", "Late", "Early"]),
        ("sort=popularity", ["Late", "Early", "Hit"]),
        ("sort=start", ["Early", "Hit", "Late"]),
        ("sort=start&order=desc", ["Late", "Hit", "Early"]),
    ] {
        assert_eq!(list(&world, &kofi.key, &format!("/events?{query}")).await, expected, "{query}");
    }
}
