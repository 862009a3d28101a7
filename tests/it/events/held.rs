//! The events that an account has tickets for.

use serde_json::json;

use crate::on_both_databases;
use crate::support::{Answer, Event, World, section};
use crate::tickets::{buy, set_status};

on_both_databases![
    an_account_lists_the_events_that_it_has_tickets_for,
    held_events_are_filtered_and_sorted,
    held_events_are_their_accounts_and_the_staffs,
];

async fn get(world: &World, key: &str, number: &str, query: &str) -> Answer {
    world.request("GET", &format!("/accounts/{number}/events?{query}")).key(key).send().await
}

fn uris(page: &Answer) -> Vec<&str> {
    assert_eq!(page.status, 200, "{}", page.body);
    page.body["entries"].as_array().unwrap().iter().map(|event| event["self"].as_str().unwrap()).collect()
}

/// Kofi's events, in the order of making, each with a free section.
async fn events<const N: usize>(world: &World) -> [Event; N] {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let mut events = Vec::new();
    for _ in 0..N {
        events.push(world.listed_event(&host, &[section("Floor", 0.0, 10)]).await);
    }
    events.try_into().ok().unwrap()
}

async fn an_account_lists_the_events_that_it_has_tickets_for(world: World) {
    let [first, second, third, fourth, not_hers] = events(&world).await;
    let (ama, esi) = (world.person("ama").await, world.person("esi").await);
    let empty = get(&world, &ama.key, &ama.number, "").await;
    assert_eq!(empty.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
    buy(&esi, &not_hers.sections[0], 1).await;
    for (event, status) in [(&third, "Redeemed"), (&second, "Pending"), (&fourth, "Void")] {
        let serials = buy(&ama, &event.sections[0], 1).await;
        set_status(&world, &serials[0], status).await;
    }
    let serials = buy(&ama, &first.sections[0], 3).await;
    set_status(&world, &serials[0], "Void").await;

    let page = get(&world, &ama.key, &ama.number, "").await;

    assert_eq!(uris(&page), [&first.uri, &second.uri, &third.uri], "each once, in the order of making");
    assert_eq!(page.body["entries"][0], world.read(&first.uri).await);
    let last = get(&world, &ama.key, &ama.number, "records=2&page=2").await;
    assert_eq!((uris(&last), &last.body["total"]), (vec![third.uri.as_str()], &json!(3)));
    let past = get(&world, &ama.key, &ama.number, "records=2&page=3").await;
    assert_eq!((past.status, past.code()), (404, "page.past-end"));

    // Whatever becomes of an event, who has tickets for it finds it here.
    let mut tx = world.app.db.begin().await.unwrap();
    tx.query("update events set status = 'Draft', public = false").execute().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(uris(&get(&world, &ama.key, &ama.number, "").await).len(), 3);
}

async fn held_events_are_filtered_and_sorted(world: World) {
    let [first, second, not_hers] = events(&world).await;
    let ama = world.person("ama").await;
    buy(&ama, &first.sections[0], 1).await;
    buy(&ama, &second.sections[0], 2).await;
    let past = json!({ "start": "2020-01-01T19:00", "end": "2020-01-01T23:00" });
    for event in [&first, &not_hers] {
        assert_eq!(world.request("PUT", &event.uri).key(&world.staff.key).json(&past).send().await.status, 200);
    }
    let list = async |query: &str| {
        let page = get(&world, &ama.key, &ama.number, query).await;
        uris(&page).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };

    assert_eq!(list("active=true").await, [second.uri.as_str()]);
    assert_eq!(list("active=false").await, [first.uri.as_str()]);
    assert_eq!(list("sort=popularity").await, [first.uri.as_str(), &second.uri]);
    assert_eq!(list("sort=popularity&order=desc").await, [second.uri.as_str(), &first.uri]);
    assert_eq!(list("sort=start&order=desc").await, [second.uri.as_str(), &first.uri]);
    assert_eq!(list(&format!("section={}", first.sections[0])).await, [first.uri.as_str()]);
    assert_eq!(list("title=no%20such").await, [""; 0]);
    assert_eq!(list("region=17637000000001").await, [""; 0]);
}

async fn held_events_are_their_accounts_and_the_staffs(world: World) {
    let [event] = events(&world).await;
    let (ama, esi) = (world.person("ama").await, world.person("esi").await);
    buy(&ama, &event.sections[0], 1).await;

    assert_eq!(uris(&get(&world, &world.staff.key, &ama.number, "").await), [&event.uri]);
    for (key, number, expected) in [
        (&esi.key, ama.number.as_str(), (403, "resource.not-yours")),
        (&world.public_key, &ama.number, (403, "key.refused")),
        (&ama.key, "ZZ-00000000", (404, "resource.not-found")),
    ] {
        let refused = get(&world, key, number, "").await;
        assert_eq!((refused.status, refused.code()), expected, "{number}");
    }
}
