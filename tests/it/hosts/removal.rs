//! Removing a host: what goes, what stays, and what it may no longer do.

use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::{change, host, make, names};
use crate::support::{Answer, Event, Person, World, by_card, refusal, section};
use crate::{on_both_databases, race_tests};

on_both_databases![
    a_removed_host_is_gone_from_every_path,
    a_host_is_removed_by_its_administrators_and_the_staff,
    what_a_removed_host_has_sold_stays_valid,
    a_removed_host_makes_submits_lists_and_sells_nothing,
    what_a_removed_host_has_is_still_looked_after,
    the_name_of_a_removed_host_is_free,
    a_host_is_removed_once,
];

race_tests![sales_and_a_removal_at_once_end_with_the_host_removed];

async fn send(world: &World, method: &str, key: &str, uri: &str, body: Value) -> Answer {
    world.request(method, uri).key(key).json(&body).send().await
}

async fn remove(world: &World, key: &str, uri: &str) -> Answer {
    world.request("DELETE", uri).key(key).send().await
}

/// Kofi with his host and a Listed event of it with ten places at 20.00.
async fn concert(world: &World, kofi: &Person) -> (String, Event) {
    let host = world.host_of(kofi).await;
    let event = world.listed_event(&host, &[section("Floor", 20.0, 10)]).await;
    (host.uri, event)
}

async fn a_removed_host_is_gone_from_every_path(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let (uri, event) = concert(&world, &kofi).await;
    let before = world.request("GET", &event.uri).send().await.body;

    let removed = remove(&world, &kofi.key, &uri).await;

    assert_eq!((removed.status, removed.body), (204, Value::Null));
    let administrators = format!("{uri}/administrators");
    let account = format!("{administrators}?account={}", kofi.number);
    for (method, path, body) in [
        ("GET", uri.clone(), Value::Null),
        ("PUT", uri.clone(), json!({ "phone": "1" })),
        ("DELETE", uri.clone(), Value::Null),
        ("GET", administrators.clone(), Value::Null),
        ("POST", administrators.clone(), json!({ "account": ama.number })),
        ("DELETE", account, Value::Null),
        ("GET", format!("{uri}/statistics"), Value::Null),
        ("GET", format!("{uri}/events"), Value::Null),
    ] {
        for key in [&kofi.key, &world.staff.key] {
            let answer = send(&world, method, key, &path, body.clone()).await;
            assert_eq!(refusal(&answer), (404, "resource.not-found"), "{method} {path}");
        }
    }
    assert!(names(&world.request("GET", "/hosts").send().await).is_empty());
    assert!(names(&world.request("GET", &format!("/hosts?account={}", kofi.number)).send().await).is_empty());
    let after = world.request("GET", &event.uri).send().await;
    assert_eq!((after.status, after.body), (200, before), "its events stay as they are");
    assert_eq!(world.anyone.published_event_list().send().await.unwrap().total, 1);
}

async fn a_host_is_removed_by_its_administrators_and_the_staff(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let uri = world.host_of(&kofi).await.uri;

    let stranger = remove(&world, &ama.key, &uri).await;
    let application = remove(&world, &world.public_key, &uri).await;
    let unknown = remove(&world, &ama.key, "/hosts/17637000000001").await;
    let kept = world.request("GET", &uri).send().await.status;
    let staff = remove(&world, &world.staff.key, &uri).await;

    assert_eq!(refusal(&stranger), (403, "resource.not-yours"));
    assert_eq!(refusal(&application), (403, "key.refused"));
    assert_eq!(refusal(&unknown), (404, "resource.not-found"));
    assert_eq!((kept, staff.status), (200, 204));
    assert_eq!(world.request("GET", &uri).send().await.status, 404);
}

async fn what_a_removed_host_has_sold_stays_valid(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let (uri, event) = concert(&world, &kofi).await;
    let paid = ama.order(&event.sections[0], 1).await.unwrap();
    ama.pay(&paid).await.unwrap();
    let open = ama.order(&event.sections[0], 1).await.unwrap();

    assert_eq!(remove(&world, &kofi.key, &uri).await.status, 204);

    // What was reserved before can be paid.
    assert_eq!(world.pay(&ama.key, &open.self_, by_card()).await.status, 201);
    let tickets = world.read(&format!("/accounts/{}/tickets", ama.number)).await;
    let serials: Vec<&Value> = tickets["entries"].as_array().unwrap().iter().map(|ticket| &ticket["serial"]).collect();
    assert_eq!(serials.len(), 2);
    let admissions = format!("{}/admissions", event.uri);
    let by_its_administrator = send(&world, "POST", &kofi.key, &admissions, json!({ "serials": [serials[0]] })).await;
    assert_eq!((by_its_administrator.status, by_its_administrator.body.as_array().unwrap().len()), (201, 1));
    let code = world.read(&format!("{}/tokens", event.uri)).await["entries"][0]["code"].as_str().unwrap().to_owned();
    let gate = world.anyone.token_authentication_get().code(code).send().await.unwrap().key.clone();
    let at_the_gate = send(&world, "POST", &gate, &admissions, json!({ "serials": [serials[1]] })).await;
    assert_eq!((at_the_gate.status, at_the_gate.body.as_array().unwrap().len()), (201, 1));
}

async fn a_removed_host_makes_submits_lists_and_sells_nothing(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let listed = world.listed_event(&host, &[section("Floor", 20.0, 10), section("Lawn", 0.0, 10)]).await;
    let (draft, reviewed) = (world.draft(&host).await, world.draft(&host).await);
    kofi.client.event_submission_create().event(&reviewed.id).send().await.unwrap();
    let event = json!({
        "host": host.uri, "title": "One More", "description": "Jazz.", "type": "Standard", "public": true,
        "category": world.category().await, "subcategory": "Jazz", "venue": world.venue().await,
    });
    let before = world.read("/events").await;

    assert_eq!(remove(&world, &kofi.key, &host.uri).await.status, 204);

    let balcony = serde_json::to_value(section("Balcony", 5.0, 5)).unwrap();
    let approval = format!("{}?approved=true", crate::review::submission_of(&reviewed.uri));
    let staff = &world.staff.key;
    for (method, key, path, body) in [
        ("POST", &kofi.key, "/events".to_owned(), event.clone()),
        ("POST", staff, "/events".to_owned(), event),
        ("POST", &kofi.key, format!("{}/submissions", draft.uri), Value::Null),
        ("DELETE", staff, approval, Value::Null),
        ("POST", &kofi.key, format!("{}/sections", listed.uri), balcony.clone()),
        ("POST", &kofi.key, format!("{}/sections", draft.uri), balcony),
        ("POST", &kofi.key, "/orders".to_owned(), json!({ "items": { listed.sections[0].as_str(): 1 } })),
        ("POST", staff, "/orders".to_owned(), json!({ "items": { listed.sections[1].as_str(): 1 } })),
    ] {
        let answer = send(&world, method, key, &path, body).await;
        assert_eq!(refusal(&answer), (409, "host.removed"), "{method} {path}");
    }
    assert_eq!(world.read("/events").await, before, "nothing has changed");
    assert_eq!(world.read("/orders").await["total"], 0);
}

async fn what_a_removed_host_has_is_still_looked_after(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let (first, second) = (concert(&world, &kofi).await, world.listed_event(&host, &[section("Floor", 20.0, 10)]).await);
    let (reviewed, draft) = (world.draft(&host).await, world.draft(&host).await);
    kofi.client.event_submission_create().event(&reviewed.id).send().await.unwrap();
    for uri in [&host.uri, &first.0] {
        assert_eq!(remove(&world, &kofi.key, uri).await.status, 204);
    }
    let first = first.1;

    let rejection = format!("{}?approved=false", crate::review::submission_of(&reviewed.uri));
    for (method, key, path, body, status) in [
        ("PUT", &kofi.key, first.uri.clone(), json!({ "title": "An Hour Later" }), 200),
        ("PUT", &kofi.key, first.sections[0].clone(), json!({ "description": "By the sea" }), 200),
        ("GET", &kofi.key, format!("{}/statistics", first.uri), Value::Null, 200),
        ("GET", &kofi.key, format!("{}/sales", first.uri), Value::Null, 200),
        ("POST", &kofi.key, format!("{}/cancellations", first.uri), Value::Null, 200),
        ("POST", &kofi.key, format!("{}/withdrawals", second.uri), Value::Null, 200),
        ("DELETE", &kofi.key, second.sections[0].clone(), Value::Null, 204),
        ("DELETE", &world.staff.key, rejection, Value::Null, 200),
        ("DELETE", &kofi.key, draft.uri.clone(), Value::Null, 204),
    ] {
        let answer = send(&world, method, key, &path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
    }
}

async fn the_name_of_a_removed_host_is_free(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);
    let uri = |answer: &Answer| answer.body["self"].as_str().unwrap().to_owned();
    let first = make(&world, &ama.key, &host("Accra Live")).await;
    let other = make(&world, &kofi.key, &host("Kumasi Live")).await;
    assert_eq!(refusal(&make(&world, &kofi.key, &host("Accra Live")).await), (409, "host.taken"));

    assert_eq!(remove(&world, &ama.key, &uri(&first)).await.status, 204);

    let second = make(&world, &ama.key, &host("Accra Live")).await;
    assert_eq!(second.status, 201);
    assert_eq!(refusal(&change(&world, &kofi.key, &uri(&other), json!({ "name": "Accra Live" })).await), (409, "host.taken"));
    assert_eq!(remove(&world, &ama.key, &uri(&second)).await.status, 204);
    assert_eq!(change(&world, &kofi.key, &uri(&other), json!({ "name": "Accra Live" })).await.status, 200);
}

async fn a_host_is_removed_once(world: World) {
    let kofi = world.person("kofi").await;
    let uri = world.host_of(&kofi).await.uri;

    let (one, other) = join(remove(&world, &kofi.key, &uri), remove(&world, &world.staff.key, &uri)).await;

    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 404]);
}

async fn sales_and_a_removal_at_once_end_with_the_host_removed(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let event = world.listed_event(&host, &[section("Floor", 20.0, 100), section("Lawn", 0.0, 100)]).await;
    let [floor, lawn] = [event.sections[0].as_str(), event.sections[1].as_str()];
    let mut crowd = Vec::new();
    for number in 0..4 {
        crowd.push(world.person(&format!("person-{number}")).await);
    }

    let wants = crowd.iter().flat_map(|person| [floor, lawn, floor, lawn].map(|section| (person, section)));
    let wants = join_all(wants.map(|(person, section)| world.place(&person.key, json!({ section: 1 }))));
    let (answers, removed) = join(wants, remove(&world, &kofi.key, &host.uri)).await;

    assert_eq!(removed.status, 204);
    let sold = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| refusal(answer) == (409, "host.removed")).count();
    assert_eq!(sold + refused, 16, "{answers:?}");
    let ((sold_free, none), (also_none, reserved)) = (world.places(lawn).await, world.places(floor).await);
    assert_eq!((none, also_none, usize::try_from(sold_free + reserved).unwrap()), (0, 0, sold));
    assert_eq!(refusal(&world.place(&crowd[0].key, json!({ lawn: 1 })).await), (409, "host.removed"));
}
