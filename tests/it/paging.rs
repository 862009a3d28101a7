//! Every list of the contract, walked in pages of any size: each entry comes once, in the order of the whole list.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::advertisements::{advertisement, make, publish};
use crate::on_both_databases;
use crate::support::{Operation, PASSWORD, World, by_card, operations, section};
use crate::tickets::buy;

on_both_databases![a_list_in_pages_of_any_size_is_the_whole_list];

/// Entries that every list has at the least.
const LEAST: usize = 3;
/// Page sizes that are tried for each list, beside one entry a page.
const CASES: usize = 4;

/// A world in which every list has at least [`LEAST`] entries, and the path variables under which they are found.
async fn crowded(world: &World) -> Vec<(&'static str, String)> {
    let (kofi, ama, esi) = (world.person("kofi").await, world.person("ama").await, world.person("esi").await);
    let host = world.host_of(&kofi).await;
    let sections = ["Floor", "Balcony", "Box"].map(|name| section(name, 0.0, 100));
    let event = world.listed_event(&host, &sections).await;
    let paid = world.listed_event(&host, &[section("Floor", 20.0, 100)]).await;
    let zone = world.zone(300, 250).await;
    let mut friends = Vec::new();
    for number in 0..LEAST {
        friends.push(world.person(&format!("friend{number}")).await);
    }
    let send = async |key: &str, method: &str, path: &str, body: Value| {
        let answer = world.request(method, path).key(key).json(&body).send().await;
        assert!(answer.status < 300, "{method} {path}: {}", answer.body);
        answer.body
    };
    for width in [320, 728] {
        world.zone(width, 90).await;
    }
    for (number, friend) in friends.iter().enumerate() {
        world.host_of(&ama).await;
        world.draft(&host).await;
        let another = world.listed_event(&host, &sections).await;
        ama.order(&another.sections[0], 1).await.unwrap();
        send(&kofi.key, "POST", &format!("{}/administrators", host.uri), json!({ "account": friend.number })).await;
        send(&kofi.key, "POST", &format!("{}/tokens", event.uri), json!({ "sections": [event.sections[0]] })).await;
        let till = json!({ "name": format!("Till {number}"), "role": "customer" });
        send(&world.staff.key, "POST", "/integrations", till).await;
        let region = world.region().await;
        let venue =
            json!({ "name": format!("Yard {number}"), "region": region, "address": "Osu", "longitude": 0, "latitude": 5 });
        send(&ama.key, "POST", "/venues", venue).await;
        let log_in = json!({ "identification": "ama", "password": PASSWORD });
        send(&world.public_key, "POST", "/sessions", log_in).await;
        for place in &event.sections {
            let serials = buy(&ama, place, 2).await;
            send(&ama.key, "POST", "/transfers", json!({ "recipient": esi.number, "tickets": [serials[0]] })).await;
            send(&kofi.key, "POST", &format!("{}/admissions", event.uri), json!({ "serials": [serials[1]] })).await;
        }
        let banner = make(world, &kofi.key, &advertisement(&format!("Banner {number}"), &paid, &[&zone])).await;
        publish(world, banner.body["self"].as_str().unwrap()).await;
    }
    let order = ama.order(&paid.sections[0], 5).await.unwrap();
    for _ in 0..LEAST {
        let part = json!({ "method": "card", "token": "tok_approve", "amount": 10.0 });
        assert_eq!(world.pay(&ama.key, &order.self_, part).await.status, 201);
    }
    assert_eq!(world.pay(&ama.key, &order.self_, by_card()).await.status, 201);
    let last = |uri: &str| uri.rsplit('/').next().unwrap().to_owned();
    vec![
        ("number", ama.number.clone()),
        ("host", last(&host.uri)),
        ("event", event.id.clone()),
        ("order", order.number.to_string()),
        ("zone", last(&zone)),
    ]
}

async fn a_list_in_pages_of_any_size_is_the_whole_list(world: World) {
    let known = crowded(&world).await;
    let mut runner = TestRunner::default();
    let mut lists = 0;
    for operation in operations() {
        if !operation.parameters("query").iter().any(|parameter| parameter["name"] == "page") {
            continue;
        }
        let known: Vec<(&str, &str)> = known.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut path = operation.path_with(&known);
        if operation.id == "audit_list" {
            // All that was done to make this world is more than a page.
            path.push_str("?operation=zone_create&");
        } else {
            path.push('?');
        }
        for sort in sorts(&operation) {
            let page =
                async |records: usize, page: usize| world.read(&format!("{path}records={records}&page={page}{sort}")).await;
            let whole = page(100, 1).await;
            let whole = whole["entries"].as_array().unwrap_or_else(|| panic!("{path}: {whole}")).clone();
            assert!(whole.len() >= LEAST && whole.len() < 100, "{path} has {} entries", whole.len());
            assert_all_different(&whole, &path);
            let mut sizes = vec![1];
            sizes.extend((0..CASES).map(|_| (2..=whole.len() + 1).new_tree(&mut runner).unwrap().current()));
            for records in sizes {
                let mut walked = Vec::new();
                for number in 1..=whole.len().div_ceil(records) {
                    let page = page(records, number).await;
                    let envelope = ["total", "page", "records"].map(|name| page[name].clone());
                    assert_eq!(envelope, [whole.len(), number, records].map(|count| json!(count)), "{path}{sort}");
                    walked.extend(page["entries"].as_array().unwrap().clone());
                }
                assert_eq!(walked, whole, "{path}{sort} by {records}");
            }
        }
        lists += 1;
    }
    assert!(lists >= 28, "only {lists}");
}

/// Every sort that a list offers, either way round, and none.
fn sorts(operation: &Operation) -> Vec<String> {
    let sorts = operation.parameters("query").into_iter().find(|parameter| parameter["name"] == "sort").cloned();
    let names = sorts.and_then(|sort| sort["schema"]["enum"].as_array().cloned()).unwrap_or_default();
    let both =
        names.iter().flat_map(|name| ["asc", "desc"].map(|order| format!("&sort={}&order={order}", name.as_str().unwrap())));
    std::iter::once(String::new()).chain(both).collect()
}

fn assert_all_different(entries: &[Value], path: &str) {
    for (place, entry) in entries.iter().enumerate() {
        assert!(!entries[..place].contains(entry), "{path} has an entry twice: {entry}");
    }
}
