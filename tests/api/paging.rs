//! Every list of the contract in pages of any size: each entry occurs once, in the order of the whole list, and the lists end as declared.

use boxoffice::kernel::types::paging::{PAGE_BYTES, PageRequest, SizedPage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::advertisements::{advertisement_body, create as create_advertisement, publish};
use crate::support::{
    Event, Operation, PASSWORD, TestApp, User, card_payment, entries_of, id_of, operations, rejection, section, test_on, types,
};

/// The minimum number of entries in every list.
const MIN_ENTRIES: usize = 3;
/// Lists that have no sort order of their own.
const OLDEST_FIRST: [&str; 5] = ["advertisement_list", "event_list", "host_list", "order_payment_list", "zone_list"];
/// The number of page sizes for each list, besides 1.
const CASES: usize = 4;

/// The resources that have lists.
struct Fixtures {
    kofi: User,
    ama: User,
    event: Event,
    /// An event whose tickets have a price.
    paid: Event,
    /// An unpaid order of five tickets.
    order: types::Order,
    zone: String,
}

impl Fixtures {
    async fn create(app: &TestApp) -> Self {
        let (kofi, ama, event) = app.create_sale(&sections()).await;
        let paid = app.create_listed_event(&event.host, &[section("Floor", 20.0, 100)]).await;
        let order = ama.order(&paid.sections[0], 5).await.unwrap();
        let zone = app.create_zone(300, 250).await;
        Self { kofi, ama, event, paid, order, zone }
    }

    /// Returns the path of a list, to which parameters can be appended.
    fn path(&self, list: &Operation) -> String {
        let path = list.path_with(&[
            ("number", &self.ama.number),
            ("host", id_of(&self.event.host.uri)),
            ("event", &self.event.id),
            ("section", id_of(&self.event.sections[0])),
            ("order", &self.order.number),
            ("zone", id_of(&self.zone)),
        ]);
        // The setup makes more entries than fit on a page.
        let filter = if list.id == "audit_list" { "operation=zone_create&" } else { "" };
        format!("{path}?{filter}")
    }
}

fn sections() -> [types::SectionCreate; 3] {
    ["Floor", "Balcony", "Box"].map(|name| section(name, 0.0, 100))
}

/// Creates at least [`MIN_ENTRIES`] entries for every list.
async fn fill_lists(app: &TestApp, fixtures: &Fixtures) {
    let Fixtures { kofi, ama, event, paid, order, zone } = fixtures;
    let sections = sections();
    let esi = app.sign_up("esi").await;
    let mut friends = Vec::new();
    for number in 0..MIN_ENTRIES {
        friends.push(app.sign_up(&format!("friend{number}")).await);
    }
    for width in [320, 728] {
        app.create_zone(width, 90).await;
    }
    for (number, friend) in friends.iter().enumerate() {
        app.create_host(ama).await;
        app.create_draft(&event.host).await;
        let another = app.create_listed_event(&event.host, &sections).await;
        ama.order(&another.sections[0], 1).await.unwrap();
        app.post(&kofi.key, &format!("{}/administrators", event.host.uri), json!({ "account": friend.number })).await.success();
        app.post(&kofi.key, &format!("{}/tokens", event.uri), json!({ "sections": [event.sections[0]] })).await.success();
        let modifier = json!({ "name": format!("Modifier {number}"), "priceDelta": -1 });
        app.post(&kofi.key, &format!("{}/modifiers", event.sections[0]), modifier).await.success();
        let integration = json!({ "name": format!("Kiosk {number}"), "role": "customer" });
        app.post(&app.staff.key, "/integrations", integration).await.success();
        let region = app.create_region().await;
        let venue =
            json!({ "name": format!("Yard {number}"), "region": region, "address": "Osu", "longitude": 0, "latitude": 5 });
        app.post(&ama.key, "/venues", venue).await.success();
        let log_in = json!({ "identification": "ama", "password": PASSWORD });
        app.post(&app.public_key, "/sessions", log_in).await.success();
        for place in &event.sections {
            let serials = ama.order_free_tickets(place, 2).await;
            app.post(&ama.key, "/transfers", json!({ "recipient": esi.number, "tickets": [serials[0]] })).await.success();
            app.post(&kofi.key, &format!("{}/admissions", event.uri), json!({ "serials": [serials[1]] })).await.success();
            // Another gate admitted the ticket too.
            let scans = json!([{ "serial": serials[1], "scanned": chrono::Utc::now().to_rfc3339() }]);
            let scans = json!({ "device": "Hand scanner", "scans": scans });
            app.post(&kofi.key, &format!("{}/offline-scans", event.uri), scans).await.success();
        }
        let banner = create_advertisement(app, &kofi.key, &advertisement_body(&format!("Banner {number}"), paid, &[zone])).await;
        publish(app, banner.uri()).await;
    }
    for _ in 0..MIN_ENTRIES {
        let part = json!({ "method": "card", "token": "tok_approve", "amount": 10.0 });
        assert_eq!(app.pay(&ama.key, &order.self_, part).await.status, 201);
    }
    assert_eq!(app.pay(&ama.key, &order.self_, card_payment()).await.status, 201);
    let tickets = app.read(&format!("{}/tickets", paid.uri)).await;
    for ticket in &entries_of(&tickets)[..MIN_ENTRIES] {
        let returned = json!({ "tickets": [ticket["serial"]] });
        app.post(&kofi.key, &format!("{}/returns", order.self_), returned).await.success();
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
    // Offers to all accounts in the first section, and to one account in all sections.
    app.execute_sql(
        "insert into waiting_entries (id, section_id, account_id, quantity, status, joined, offered, expires)
         select 17000000000000 + row_number() over (order by s.id, a.id), s.id, a.id, 1, 'Offered', 0, 0, 9000000000000000
         from sections s cross join accounts a where s.id = (select min(id) from sections) or a.username = 'ama'",
    )
    .await;
}

/// Checks the first page of a list with one entry a page, and the pages after the last one.
async fn check_ends(app: &TestApp, path: &str) {
    let page =
        async |number: i64, records: usize| app.get(&app.staff.key, &format!("{path}page={number}&records={records}")).await;

    let first = page(1, 1).await;
    let total = first.body["total"].as_i64().unwrap_or_else(|| panic!("{path}: {first:?}"));
    let past = page(total.max(1) + 1, 1).await;
    let far = page(1_000_000_000, 100).await;

    assert_eq!((first.status, entries_of(&first.body).len()), (200, usize::from(total > 0)), "{path}");
    assert_eq!(rejection(&past), (404, "page.past-end"), "{path}");
    assert_eq!(rejection(&far), (404, "page.past-end"), "{path}");
    assert_eq!(past.body["error"], "There is presently no resource with the given URI.", "{path}");
}

#[test_on(sqlite, postgres)]
async fn pages_of_any_size_form_the_whole_list(app: TestApp) {
    let lists: Vec<_> = operations().iter().filter(|operation| operation.is_list()).collect();
    assert!(lists.len() >= 28, "only {}", lists.len());
    let fixtures = Fixtures::create(&app).await;
    for list in &lists {
        check_ends(&app, &fixtures.path(list)).await;
    }
    fill_lists(&app, &fixtures).await;
    let mut runner = TestRunner::default();
    for operation in lists {
        let path = fixtures.path(operation);
        check_ends(&app, &path).await;
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
    }
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
