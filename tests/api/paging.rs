//! Every list of the contract in pages of any size: each entry occurs once, in the order of the whole list.

use boxoffice::kernel::types::paging::{PAGE_BYTES, PageRequest, SizedPage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::advertisements::{advertisement_body, create as create_advertisement, publish};
use crate::support::{Operation, PASSWORD, TestApp, card_payment, entries_of, operations, section};

on_both_databases![pages_of_any_size_form_the_whole_list];

/// The minimum number of entries in every list.
const MIN_ENTRIES: usize = 3;
/// Lists that have no sort order of their own.
const OLDEST_FIRST: [&str; 5] = ["advertisement_list", "event_list", "host_list", "order_payment_list", "zone_list"];
/// The number of page sizes for each list, besides 1.
const CASES: usize = 4;

/// Creates at least [`LEAST`] entries for every list, and returns the path variables of the lists.
async fn fill_lists(app: &TestApp) -> Vec<(&'static str, String)> {
    let sections = ["Floor", "Balcony", "Box"].map(|name| section(name, 0.0, 100));
    let (kofi, ama, event) = app.create_sale(&sections).await;
    let esi = app.sign_up("esi").await;
    let paid = app.create_listed_event(&event.host, &[section("Floor", 20.0, 100)]).await;
    let zone = app.create_zone(300, 250).await;
    let mut friends = Vec::new();
    for number in 0..MIN_ENTRIES {
        friends.push(app.sign_up(&format!("friend{number}")).await);
    }
    let send = async |key: &str, method: &str, path: &str, body: Value| {
        let response = app.request(method, path).key(key).json(&body).send().await;
        assert!(response.status < 300, "{method} {path}: {}", response.body);
        response.body
    };
    for width in [320, 728] {
        app.create_zone(width, 90).await;
    }
    for (number, friend) in friends.iter().enumerate() {
        app.create_host(&ama).await;
        app.create_draft(&event.host).await;
        let another = app.create_listed_event(&event.host, &sections).await;
        ama.order(&another.sections[0], 1).await.unwrap();
        send(&kofi.key, "POST", &format!("{}/administrators", event.host.uri), json!({ "account": friend.number })).await;
        send(&kofi.key, "POST", &format!("{}/tokens", event.uri), json!({ "sections": [event.sections[0]] })).await;
        let modifier = json!({ "name": format!("Modifier {number}"), "priceDelta": -1 });
        send(&kofi.key, "POST", &format!("{}/modifiers", event.sections[0]), modifier).await;
        let integration = json!({ "name": format!("Kiosk {number}"), "role": "customer" });
        send(&app.staff.key, "POST", "/integrations", integration).await;
        let region = app.create_region().await;
        let venue =
            json!({ "name": format!("Yard {number}"), "region": region, "address": "Osu", "longitude": 0, "latitude": 5 });
        send(&ama.key, "POST", "/venues", venue).await;
        let log_in = json!({ "identification": "ama", "password": PASSWORD });
        send(&app.public_key, "POST", "/sessions", log_in).await;
        for place in &event.sections {
            let serials = ama.order_free_tickets(place, 2).await;
            send(&ama.key, "POST", "/transfers", json!({ "recipient": esi.number, "tickets": [serials[0]] })).await;
            send(&kofi.key, "POST", &format!("{}/admissions", event.uri), json!({ "serials": [serials[1]] })).await;
            // Another gate admitted the ticket too.
            let scans = json!([{ "serial": serials[1], "scanned": chrono::Utc::now().to_rfc3339() }]);
            let scans = json!({ "device": "Hand scanner", "scans": scans });
            send(&kofi.key, "POST", &format!("{}/offline-scans", event.uri), scans).await;
        }
        let banner =
            create_advertisement(app, &kofi.key, &advertisement_body(&format!("Banner {number}"), &paid, &[&zone])).await;
        publish(app, banner.uri()).await;
    }
    let order = ama.order(&paid.sections[0], 5).await.unwrap();
    for _ in 0..MIN_ENTRIES {
        let part = json!({ "method": "card", "token": "tok_approve", "amount": 10.0 });
        assert_eq!(app.pay(&ama.key, &order.self_, part).await.status, 201);
    }
    assert_eq!(app.pay(&ama.key, &order.self_, card_payment()).await.status, 201);
    let tickets = app.read(&format!("{}/tickets", paid.uri)).await;
    for ticket in &entries_of(&tickets)[..MIN_ENTRIES] {
        let returned = json!({ "tickets": [ticket["serial"]] });
        send(&kofi.key, "POST", &format!("{}/returns", order.self_), returned).await;
    }
    // Runs that return the orders of an event, and sales of several days.
    app.execute_sql(
        "insert into event_returns
         (id, event_id, status, reason, last_order, orders, tickets, amount, started, finished)
         select 17000000000000 + row_number() over (order by e.id, n.column1), e.id, 'Done', '', 0, 0, 0, 0, 0, 0
         from events e cross join (values (1), (2), (3), (4), (5), (6)) as n",
    )
    .await;
    app.execute_sql(
        "insert into event_sales (event_id, day, section_id, part, orders, tickets, sales, fees)
         select s.event_id, s.day - n.column1, s.section_id, s.part, s.orders, s.tickets, s.sales, s.fees
         from event_sales s cross join (values (1), (2), (3), (4), (5), (6)) as n",
    )
    .await;
    // More voids than an order can have.
    app.execute_sql(
        "insert into revocations (id, order_id, type, tickets, reason, revoked)
         select 17000000000000 + row_number() over (order by id), order_id, 'Void', row_number() over (order by id), reason, 0
         from revocations",
    )
    .await;
    let last = |uri: &str| uri.rsplit('/').next().unwrap().to_owned();
    // Offers to all accounts in the first section, and to one account in all sections.
    app.execute_sql(
        "insert into waiting_entries (id, section_id, account_id, quantity, status, joined, offered, expires)
         select 17000000000000 + row_number() over (order by s.id, a.id), s.id, a.id, 1, 'Offered', 0, 0, 9000000000000000
         from sections s cross join accounts a where s.id = (select min(id) from sections) or a.username = 'ama'",
    )
    .await;
    vec![
        ("number", ama.number.clone()),
        ("host", last(&event.host.uri)),
        ("event", event.id.clone()),
        ("section", last(&event.sections[0])),
        ("order", order.number.to_string()),
        ("zone", last(&zone)),
    ]
}

async fn pages_of_any_size_form_the_whole_list(app: TestApp) {
    let known = fill_lists(&app).await;
    let mut runner = TestRunner::default();
    let mut lists = 0;
    for operation in operations() {
        if !operation.parameters("query").iter().any(|parameter| parameter["name"] == "page") {
            continue;
        }
        let known: Vec<(&str, &str)> = known.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut path = operation.path_with(&known);
        if operation.id == "audit_list" {
            // The setup makes more entries than fit on a page.
            path.push_str("?operation=zone_create&");
        } else {
            path.push('?');
        }
        for sort in sorts(operation) {
            let page = async |records: usize, page: usize| app.read(&format!("{path}records={records}&page={page}{sort}")).await;
            let whole = page(100, 1).await;
            let whole = entries_of(&whole).to_vec();
            assert!(whole.len() >= MIN_ENTRIES && whole.len() < 100, "{path} has {} entries", whole.len());
            assert_all_different(&whole, &path);
            if sort.is_empty() && OLDEST_FIRST.contains(&operation.id.as_str()) {
                assert!(whole.is_sorted_by_key(|entry| entry["self"].to_string()), "{path}");
            }
            let mut sizes = vec![1];
            sizes.extend((0..CASES).map(|_| (2..=whole.len() + 1).new_tree(&mut runner).unwrap().current()));
            for records in sizes {
                let mut walked = Vec::new();
                for number in 1..=whole.len().div_ceil(records) {
                    let page = page(records, number).await;
                    let envelope = ["total", "page", "records"].map(|name| page[name].clone());
                    assert_eq!(envelope, [whole.len(), number, records].map(|count| json!(count)), "{path}{sort}");
                    walked.extend(entries_of(&page).to_vec());
                }
                assert_eq!(walked, whole, "{path}{sort} by {records}");
            }
        }
        lists += 1;
    }
    assert!(lists >= 28, "only {lists}");
}

/// Returns every sort order of a list in both directions, and none.
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

proptest! {
    #[test]
    fn pages_divide_the_list(sizes in vec(1..PAGE_BYTES * 3 / 2, 0..60), records in 1_u32..30) {
        let mut walked = 0;
        for page in 1.. {
            // The database returns only the sizes that may be needed.
            let known = sizes.len().min((page * records) as usize);
            let page = PageRequest::new(page, records).divide(&sizes[..known]);
            prop_assert!(page.bytes <= PAGE_BYTES || page.count == 1);
            prop_assert!(page.count <= records as usize);
            if page.count == 0 {
                break;
            }
            prop_assert_eq!(page.offset, walked);
            walked += page.count;
        }
        prop_assert_eq!(walked, sizes.len());
    }

    #[test]
    fn small_entries_are_on_the_usual_pages(count in 0_usize..300, records in 1_u32..30, page in 1_u32..20) {
        let request = PageRequest::new(page, records);
        let known = count.min((page * records) as usize);
        let divided = request.divide(&vec![1; known]);

        let offset = (request.offset() as usize).min(known);
        prop_assert_eq!(divided, SizedPage { offset, count: known - offset, bytes: (known - offset) as i64 });
    }
}
