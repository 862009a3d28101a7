//! Lists of advertisements: what a caller sees in them, filters, and what a zone shows at a moment.

use std::time::Duration;

use serde_json::{Value, json};

use super::{advertisement, cancel, make, publish, read, refusal, submit, uri};
use crate::on_both_databases;
use crate::support::{Answer, Event, Person, World, section};

on_both_databases![
    a_list_shows_a_caller_what_it_may_see,
    advertisements_are_filtered_by_host_event_and_status,
    advertisements_come_in_pages_in_the_order_of_making,
    a_page_shows_each_advertisement_as_it_is_read,
    a_hosts_advertisements_are_for_its_administrators_and_the_staff,
    an_advertisement_runs_within_its_slots,
    a_zone_shows_what_runs_in_it,
    a_zone_promotes_listed_events_alone,
];

const HOUR: Duration = Duration::from_secs(3600);

async fn names(world: &World, key: &str, path: &str) -> Vec<String> {
    let page = read(world, key, path).await;
    let entries = page.body["entries"].as_array().unwrap_or_else(|| panic!("{path}: {page:?}"));
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

/// Drafts with these names; their URIs.
async fn drafts<const N: usize>(world: &World, who: &Person, event: &Event, zone: &str, names: [&str; N]) -> [String; N] {
    let mut uris = names.map(str::to_owned);
    for name in &mut uris {
        *name = uri(&make(world, &who.key, &advertisement(name, event, &[zone])).await);
    }
    uris
}

async fn a_list_shows_a_caller_what_it_may_see(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let his = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let hers = world.listed_event(&world.host_of(&ama).await, &[]).await;
    let zone = world.zone(300, 250).await;
    drafts(&world, &kofi, &his, &zone, ["Kofi's Draft"]).await;
    let [listed, cancelled, waiting] =
        drafts(&world, &ama, &hers, &zone, ["Ama's Listed", "Ama's Cancelled", "Ama's Waiting"]).await;
    publish(&world, &listed).await;
    publish(&world, &cancelled).await;
    cancel(&world, &ama.key, &cancelled).await;
    submit(&world, &ama.key, &waiting).await;

    for (key, expected) in [
        (&world.public_key, vec!["Ama's Listed", "Ama's Cancelled"]),
        (&kofi.key, vec!["Kofi's Draft", "Ama's Listed", "Ama's Cancelled"]),
        (&ama.key, vec!["Ama's Listed", "Ama's Cancelled", "Ama's Waiting"]),
        (&world.staff.key, vec!["Kofi's Draft", "Ama's Listed", "Ama's Cancelled", "Ama's Waiting"]),
    ] {
        assert_eq!(names(&world, key, "/advertisements").await, expected);
    }
}

async fn advertisements_are_filtered_by_host_event_and_status(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let (his, hers) = (world.host_of(&kofi).await, world.host_of(&ama).await);
    let (first, second) = (world.listed_event(&his, &[]).await, world.listed_event(&his, &[]).await);
    let other = world.listed_event(&hers, &[]).await;
    let zone = world.zone(300, 250).await;
    let [listed, waiting] = drafts(&world, &kofi, &first, &zone, ["Listed", "Waiting"]).await;
    let [cancelled] = drafts(&world, &kofi, &second, &zone, ["Cancelled"]).await;
    drafts(&world, &ama, &other, &zone, ["Draft"]).await;
    publish(&world, &listed).await;
    publish(&world, &cancelled).await;
    cancel(&world, &kofi.key, &cancelled).await;
    submit(&world, &kofi.key, &waiting).await;
    let host = his.uri.rsplit('/').next().unwrap();

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
        assert_eq!(names(&world, &world.staff.key, &format!("/advertisements?{query}")).await, expected, "{query}");
    }
    let wrong = read(&world, &kofi.key, "/advertisements?host=/hosts/1&event=x&status=Gone&active=maybe&records=0").await;
    assert_eq!(wrong.complaints(), ["records", "host", "event", "status", "active"]);
}

async fn advertisements_come_in_pages_in_the_order_of_making(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    drafts(&world, &kofi, &event, &world.zone(300, 250).await, ["Charlie", "Alpha", "Bravo"]).await;

    let first = read(&world, &kofi.key, "/advertisements?records=2").await;
    let envelope = |page: &Answer| json!([page.body["total"], page.body["page"], page.body["records"]]);

    assert_eq!(envelope(&first), json!([3, 1, 2]));
    assert_eq!(names(&world, &kofi.key, "/advertisements?records=2").await, ["Charlie", "Alpha"]);
    assert_eq!(names(&world, &kofi.key, "/advertisements?records=2&page=2").await, ["Bravo"]);
    assert_eq!(refusal(&read(&world, &kofi.key, "/advertisements?records=2&page=3").await), (404, "page.past-end"));
}

async fn a_page_shows_each_advertisement_as_it_is_read(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let (first, second) = (world.listed_event(&host, &[section("Floor", 20.0, 10)]).await, world.listed_event(&host, &[]).await);
    let (zone, other) = (world.zone(300, 250).await, world.zone(300, 250).await);
    let mut uris = Vec::new();
    for (name, event, zones) in [
        ("One", &first, vec![zone.as_str(), &other]),
        ("Two", &second, vec![other.as_str()]),
        ("Three", &first, vec![other.as_str(), &zone]),
    ] {
        let mut body = advertisement(name, event, &zones);
        body["schedule"] = json!([
            { "start": "2997-01-01 00:00", "end": "2997-02-01 00:00" },
            { "start": "2996-01-01 00:00", "end": format!("2996-02-0{} 00:00", uris.len() + 1) },
        ]);
        uris.push(uri(&make(&world, &kofi.key, &body).await));
    }

    let page = read(&world, &kofi.key, "/advertisements").await;

    for (entry, uri) in page.body["entries"].as_array().unwrap().iter().zip(&uris) {
        assert_eq!(entry, &world.read(uri).await);
    }
    let urls = |entry: &Value| [entry["zones"][0]["self"].clone(), entry["event"]["self"].clone()];
    assert_eq!(urls(&page.body["entries"][2]), [json!(other), json!(first.uri)]);
}

async fn a_hosts_advertisements_are_for_its_administrators_and_the_staff(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let (his, hers) = (world.host_of(&kofi).await, world.host_of(&ama).await);
    let (event, other) = (world.listed_event(&his, &[]).await, world.listed_event(&his, &[]).await);
    let foreign = world.listed_event(&hers, &[]).await;
    let zone = world.zone(300, 250).await;
    let [listed, _] = drafts(&world, &kofi, &event, &zone, ["Listed", "Draft"]).await;
    drafts(&world, &kofi, &other, &zone, ["Other"]).await;
    drafts(&world, &ama, &foreign, &zone, ["Another's"]).await;
    publish(&world, &listed).await;
    let path = format!("{}/advertisements", his.uri);

    for (query, expected) in [
        ("".to_owned(), vec!["Listed", "Draft", "Other"]),
        (format!("event={}", event.id), vec!["Listed", "Draft"]),
        ("status=Draft".to_owned(), vec!["Draft", "Other"]),
        ("active=true".to_owned(), vec!["Listed"]),
        ("active=false&records=1&page=2".to_owned(), vec!["Other"]),
    ] {
        for key in [&kofi.key, &world.staff.key] {
            assert_eq!(names(&world, key, &format!("{path}?{query}")).await, expected, "{query}");
        }
    }
    assert_eq!(refusal(&read(&world, &ama.key, &path).await), (403, "resource.not-yours"));
    assert_eq!(refusal(&read(&world, &world.public_key, &path).await), (403, "key.refused"));
    assert_eq!(refusal(&read(&world, &kofi.key, &format!("{path}?page=2")).await), (404, "page.past-end"));
    let nothing = read(&world, &kofi.key, "/hosts/17637000000001/advertisements").await;
    assert_eq!(refusal(&nothing), (404, "resource.not-found"));
    world.run_sql("update hosts set removed = true").await;
    assert_eq!(refusal(&read(&world, &kofi.key, &path).await), (404, "resource.not-found"));
    assert_eq!(names(&world, &world.public_key, "/advertisements").await, ["Listed"], "it still runs");
}

async fn an_advertisement_runs_within_its_slots(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let zone = world.zone(300, 250).await;
    let at = |hours: u32| world.app.clock.now().plus(HOUR * hours).to_plain_minutes();
    let mut body = advertisement("Jazz", &event, &[&zone]);
    body["schedule"] = json!([{ "start": at(4), "end": at(6) }, { "start": at(1), "end": at(3) }]);
    let uri = uri(&make(&world, &kofi.key, &body).await);
    publish(&world, &uri).await;

    let runs = async || {
        let key = &world.public_key;
        let lists = [format!("{zone}/advertisements"), "/advertisements?active=true".to_owned()];
        let (shown, active) = (names(&world, key, &lists[0]).await, names(&world, key, &lists[1]).await);
        let others = names(&world, key, "/advertisements?active=false").await;
        assert_eq!(shown, active);
        assert_eq!(active.len() + others.len(), 1);
        !shown.is_empty()
    };

    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(runs().await);
        world.advance(HOUR * 2);
    }
    // At 0, 2, 4 and 6 hours: the slots' bounds are cut to minutes, so that the last one has just ended.
    assert_eq!(running, [false, true, true, false]);
    let mut gap = advertisement("Rock", &event, &[&zone]);
    gap["schedule"] = json!([{ "start": at(1), "end": at(2) }, { "start": at(4), "end": at(5) }]);
    publish(&world, &super::uri(&make(&world, &kofi.key, &gap).await)).await;
    world.advance(HOUR * 3);
    assert_eq!(names(&world, &world.public_key, "/advertisements?active=true").await, [""; 0], "between two slots");
}

async fn a_zone_shows_what_runs_in_it(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let (zone, other) = (world.zone(300, 250).await, world.zone(300, 250).await);
    let [listed, cancelled, _] = drafts(&world, &kofi, &event, &zone, ["Listed", "Cancelled", "Draft"]).await;
    let both = uri(&make(&world, &kofi.key, &advertisement("Both", &event, &[&zone, &other])).await);
    let mut past = advertisement("Past", &event, &[&zone]);
    past["schedule"] = json!([{ "start": "2020-01-01 00:00", "end": "2020-01-02 00:00" }]);
    let past = uri(&make(&world, &kofi.key, &past).await);
    for uri in [&listed, &cancelled, &both, &past] {
        publish(&world, uri).await;
    }
    cancel(&world, &kofi.key, &cancelled).await;

    for key in [&world.public_key, &kofi.key, &world.staff.key] {
        assert_eq!(names(&world, key, &format!("{zone}/advertisements")).await, ["Listed", "Both"], "the same for everyone");
        assert_eq!(names(&world, key, &format!("{other}/advertisements")).await, ["Both"]);
    }
    assert_eq!(names(&world, &kofi.key, &format!("{zone}/advertisements?records=1&page=2")).await, ["Both"]);
    let shown = read(&world, &world.public_key, &format!("{other}/advertisements")).await;
    assert_eq!(shown.body["entries"], json!([world.read(&both).await]));
    let past = read(&world, &kofi.key, &format!("{zone}/advertisements?page=2")).await;
    assert_eq!(refusal(&past), (404, "page.past-end"));
    let nothing = read(&world, &kofi.key, "/zones/17637000000001/advertisements").await;
    assert_eq!(refusal(&nothing), (404, "resource.not-found"));
}

async fn a_zone_promotes_listed_events_alone(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let zone = world.zone(300, 250).await;
    let mut events = Vec::new();
    for name in ["Listed", "Cancelled", "Withdrawn"] {
        let event = world.listed_event(&host, &[]).await;
        publish(&world, &uri(&make(&world, &kofi.key, &advertisement(name, &event, &[&zone])).await)).await;
        events.push(event);
    }
    let zone = format!("{zone}/advertisements");
    assert_eq!(names(&world, &world.public_key, &zone).await, ["Listed", "Cancelled", "Withdrawn"]);

    cancel(&world, &kofi.key, &events[1].uri).await;
    kofi.client.event_withdrawal_create().event(&events[2].id).send().await.unwrap();

    for key in [&world.public_key, &kofi.key, &world.staff.key] {
        assert_eq!(names(&world, key, &zone).await, ["Listed"], "for everyone");
    }
    assert_eq!(names(&world, &world.public_key, "/advertisements").await, ["Listed", "Cancelled"], "it can still be read");
}
