//! Orders: rules, prices and access.

mod complimentary;
mod lists;
mod of_hosts;
mod reservations;

use boxoffice::features::sales::orders::{Items, OrderRow, OrderStatus};
use boxoffice::kernel::types::clock::Timestamp;
use boxoffice::kernel::types::id::Id;
use boxoffice::kernel::types::money::Money;
use boxoffice::provisioning;
use boxoffice_openapi::Scope;
use futures::future::join;
use serde_json::{Value, json};

use crate::support::{Event, Host, RESERVATION_TTL, Rejection, TestApp, entries_of, rejection, section, test_on, types};

/// Creates an event of Kofi with sections at these prices, with 100 tickets each.
async fn create_concert(app: &TestApp, prices: &[f64]) -> Event {
    let (_, host) = app.sign_up_with_host("kofi").await;
    event_at(app, &host, prices).await
}

async fn event_at(app: &TestApp, host: &Host, prices: &[f64]) -> Event {
    let sections = prices.iter().enumerate().map(|(number, price)| section(&format!("Block {number}"), *price, 100));
    app.create_listed_event(host, &sections.collect::<Vec<_>>()).await
}

/// Returns the short URI of a section.
fn short(section: &str) -> &str {
    &section[section.find("/sections/").unwrap()..]
}

#[test_on(sqlite, postgres)]
async fn fees_depend_on_ticket_price(app: TestApp) {
    let steps =
        [(0.0, 0.0), (0.01, 0.99), (50.0, 0.99), (50.01, 1.99), (100.0, 1.99), (150.0, 2.99), (200.0, 3.99), (200.01, 4.99)];
    let event = create_concert(&app, &steps.map(|(price, _)| price)).await;
    let ama = app.sign_up("ama").await;

    for (section, (price, fee)) in event.sections.iter().zip(steps) {
        let order = ama.order(section, 2).await.unwrap();

        assert_eq!((order.subtotal, order.fees), (price * 2.0, fee * 2.0), "{price}");
    }
}

#[test_on(sqlite, postgres)]
async fn free_order_is_fulfilled_immediately(app: TestApp) {
    let event = create_concert(&app, &[0.0, 0.0]).await;
    let ama = app.sign_up("ama").await;

    let order = ama.order_items([(event.sections[0].as_str(), 2), (event.sections[1].as_str(), 1)]).await.unwrap();

    assert_eq!((order.status, order.total), (types::OrderStatus::Fulfilled, 0.0));
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
    let tickets = app.get(&ama.key, &format!("/accounts/{}/tickets", ama.number)).await;
    assert_eq!(tickets.body["total"], 3);
    assert_eq!(app.get(&ama.key, &event.uri).await.body["popularity"], 3);
    let payments = app.get(&ama.key, &order.payments).await;
    assert_eq!(payments.body["total"], 0);

    // It stays fulfilled after the reservation time.
    app.time_out_orders().await;
    assert_eq!(app.get(&ama.key, &order.self_).await.body["status"], "Fulfilled");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
}

#[test_on(sqlite, postgres)]
async fn partly_free_order_waits_for_payment(app: TestApp) {
    let event = create_concert(&app, &[0.0, 10.0]).await;
    let ama = app.sign_up("ama").await;

    let order = ama.order_items([(event.sections[0].as_str(), 2), (event.sections[1].as_str(), 1)]).await.unwrap();
    assert_eq!((order.status.clone(), order.total), (types::OrderStatus::Placed, 10.99));
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 2));

    ama.pay(&order).await.unwrap();
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
    assert_eq!(app.sold_and_reserved(&event.sections[1]).await, (1, 0));
    assert_eq!(app.get(&ama.key, &event.uri).await.body["popularity"], 3);
}

#[test_on(sqlite, postgres)]
async fn names_all_invalid_arguments(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let event = event_at(&app, &host, &[10.0, 10.0]).await;
    let other = event_at(&app, &host, &[10.0]).await;
    let (stalls, balcony) = (&event.sections[0], &event.sections[1]);
    let nowhere = "/sections/17637000000001";
    let elsewhere = format!("{}{}", other.uri, short(stalls));

    for (items, named) in [
        (json!({ stalls: 1, nowhere: 1 }), vec![nowhere]),
        (json!({ elsewhere.as_str(): 1 }), vec![elsewhere.as_str()]),
        (json!({ event.uri.as_str(): 1, "": 1, "Stalls": 1 }), vec![event.uri.as_str(), "Stalls"]),
        (json!({ stalls: 1, short(stalls): 1 }), vec![short(stalls)]),
        (json!({ stalls: 30, balcony: 21 }), vec!["50 tickets"]),
        (json!({ stalls: 50, short(stalls): 1, nowhere: 1 }), vec![nowhere, short(stalls), "50 tickets"]),
    ] {
        let rejected = app.place_order(&kofi.key, items.clone()).await;

        assert_eq!(rejected.invalid_arguments(), ["items"], "{items}");
        let detail = rejected.body["fields"][0]["detail"].as_str().unwrap();
        assert!(named.iter().all(|name| detail.contains(name)), "{items}: {detail}");
    }

    let body = json!({ "customer": "ZZ-00000000", "items": { nowhere: 1 } });
    let rejected = app.post(&app.staff.key, "/orders", &body).await;
    assert_eq!(rejected.invalid_arguments(), ["items", "customer"]);
    assert_eq!(app.sold_and_reserved(stalls).await, (0, 0));

    // The maximum of 50 is accepted.
    assert_eq!(app.place_order(&kofi.key, json!({ stalls: 30, balcony: 20 })).await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn contract_limits_order(app: TestApp) {
    let event = create_concert(&app, &[10.0]).await;
    let ama = app.sign_up("ama").await;
    let section = event.sections[0].as_str();

    for items in
        [json!({}), json!({ section: 0 }), json!({ section: 51 }), json!({ section: "two" }), json!([section]), json!("x")]
    {
        let rejected = app.place_order(&ama.key, items.clone()).await;

        assert_eq!(rejected.invalid_arguments(), ["items"], "{items}");
    }
    let rejected = app.post(&ama.key, "/orders", json!({ "customer": "Ama" })).await;
    assert_eq!(rejected.invalid_arguments(), ["-items", "customer"]);
}

#[test_on(sqlite, postgres)]
async fn customers_order_for_themselves_and_staff_for_any_account(app: TestApp) {
    let event = create_concert(&app, &[10.0]).await;
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let order = async |key: &str, customer: &str| {
        let body = json!({ "customer": customer, "items": { event.sections[0].as_str(): 1 } });
        app.post(key, "/orders", &body).await
    };

    assert_eq!(order(&ama.key, &ama.number).await.body["customer"]["number"], ama.number);
    for (key, customer) in [(&ama.key, yaw.number.as_str()), (&ama.key, "ZZ-00000000"), (&app.public_key, &ama.number)] {
        assert_eq!(order(key, customer).await.status, 403, "{customer}");
    }
    assert_eq!(order(&ama.key, &yaw.number).await.code(), "resource.not-yours");

    let placed = order(&app.staff.key, &yaw.number).await;
    assert_eq!(placed.body["customer"]["number"], yaw.number);
    assert_eq!(app.get(&yaw.key, placed.uri()).await.status, 200);
    assert_eq!(order(&app.staff.key, "ZZ-00000000").await.invalid_arguments(), ["customer"]);
    let own = app.place_order(&app.staff.key, json!({ event.sections[0].as_str(): 1 })).await;
    assert_eq!(own.body["customer"]["number"], app.staff.number);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 3));
}

#[test_on(sqlite, postgres)]
async fn key_without_account_must_name_customer(app: TestApp) {
    let event = create_concert(&app, &[10.0]).await;

    for scope in [Scope::Administrator, Scope::Customer] {
        let key = provisioning::create_key(&app.state, "a program", scope, None, None).await.unwrap();

        let rejected = app.place_order(&key, json!({ event.sections[0].as_str(): 1 })).await;

        assert_eq!(rejected.invalid_arguments(), ["-customer"], "{scope:?}");
    }
}

#[test_on(sqlite, postgres)]
async fn rejects_tickets_not_on_sale(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let open = event_at(&app, &host, &[10.0]).await;
    let with = |change: Value| {
        let mut changed = serde_json::to_value(section("VIP", 10.0, 5)).unwrap();
        changed.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value::<types::SectionCreate>(changed).unwrap()
    };
    let inactive = app.create_listed_event(&host, &[with(json!({ "active": false }))]).await;
    let early = app.create_listed_event(&host, &[with(json!({ "salesStart": "2998-01-01T00:00" }))]).await;
    let late = app.create_listed_event(&host, &[with(json!({ "salesEnd": "2021-01-01T00:00" }))]).await;
    let mut draft = app.create_draft(&host).await;
    draft.sections = vec![app.add_section(&draft, &section("VIP", 10.0, 5)).await];
    let over = app.create_listed_event(&host, &[section("VIP", 10.0, 5)]).await;
    app.end_event(&over).await;

    for (event, code) in [
        (&inactive, "section.inactive"),
        (&early, "section.not-on-sale"),
        (&late, "section.not-on-sale"),
        (&draft, "event.not-listed"),
        (&over, "event.over"),
    ] {
        let rejected = app.place_order(&kofi.key, json!({ open.sections[0].as_str(): 1, event.sections[0].as_str(): 1 })).await;

        assert_eq!(rejection(&rejected), (409, code));
        let (text, title) = (rejected.body["error"].as_str().unwrap(), app.get(&kofi.key, &event.uri).await.body);
        // The title of a draft is not revealed.
        let names = match code {
            "event.not-listed" => [event.sections[0].as_str(); 2],
            _ => ["VIP", title["title"].as_str().unwrap()],
        };
        assert!(names.iter().all(|name| text.contains(name)), "{text}");
        assert_eq!(app.sold_and_reserved(&open.sections[0]).await, (0, 0), "{code}");
    }

    assert_eq!(app.delete(&kofi.key, &host.uri).await.status, 204);
    assert_eq!(rejection(&app.place_order(&kofi.key, json!({ open.sections[0].as_str(): 1 })).await), (409, "host.removed"));
}

#[test_on(sqlite, postgres)]
async fn sold_out_section_rejects_whole_order(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Stalls", 10.0, 100), section("VIP", 0.0, 3)]).await;
    let (stalls, vip) = (event.sections[0].as_str(), event.sections[1].as_str());
    let ama = app.sign_up("ama").await;
    ama.order(vip, 2).await.unwrap();

    for items in [json!({ stalls: 1, vip: 2 }), json!({ vip: 2, stalls: 1 }), json!({ vip: 2 })] {
        let rejected = app.place_order(&kofi.key, items).await;

        assert_eq!(rejection(&rejected), (409, "section.sold-out"));
        assert!(rejected.body["error"].as_str().unwrap().contains("VIP"), "{}", rejected.body);
    }
    assert_eq!(app.sold_and_reserved(stalls).await, (0, 0));
    assert_eq!(app.sold_and_reserved(vip).await, (2, 0));
    assert_eq!(app.get(&app.staff.key, "/orders").await.body["total"], 1);
    ama.order_items([(stalls, 1), (vip, 1)]).await.unwrap();
}

/// Builds a section of which an account may buy this number of tickets.
pub fn limited_section(name: &str, price: f64, maximum: i64) -> types::SectionCreate {
    let mut limited = serde_json::to_value(section(name, price, 100)).unwrap();
    limited["maximumPerAccount"] = maximum.into();
    serde_json::from_value(limited).unwrap()
}

#[test_on(sqlite, postgres)]
async fn section_limits_tickets_per_account(app: TestApp) {
    let sections = [limited_section("VIP", 10.0, 4), limited_section("Lawn", 0.0, 1), section("Floor", 10.0, 100)];
    let (_, event) = app.sign_up_host("kofi", &sections).await;
    let [vip, lawn, floor] = [0, 1, 2].map(|section| event.sections[section].as_str());
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let maximum = (409, "section.account-maximum".to_owned());

    assert_eq!(ama.order(vip, 5).await.rejection(), maximum);
    ama.order(vip, 3).await.unwrap();
    let rejected = app.place_order(&ama.key, json!({ floor: 1, vip: 2 })).await;
    assert_eq!(rejection(&rejected), (409, "section.account-maximum"));
    let title = app.get(&ama.key, &event.uri).await.body["title"].as_str().unwrap().to_owned();
    let text = format!("An account may buy at most 4 tickets of the section VIP of {title}, and this one has 3.");
    assert_eq!(rejected.body["error"], text);
    assert_eq!(app.sold_and_reserved(floor).await, (0, 0), "the whole order is rejected");
    // Staff order for the account under the same rule.
    let body = json!({ "customer": ama.number, "items": { vip: 2 } });
    let by_staff = app.post(&app.staff.key, "/orders", &body).await;
    assert_eq!(rejection(&by_staff), (409, "section.account-maximum"));
    ama.order_items([(vip, 1), (floor, 50 - 1)]).await.unwrap();
    assert_eq!(ama.order(vip, 1).await.rejection(), maximum);

    // Free orders count, too, and other accounts have their own maximum.
    ama.order(lawn, 1).await.unwrap();
    assert_eq!(ama.order(lawn, 1).await.rejection(), maximum);
    yaw.order_items([(vip, 4), (lawn, 1)]).await.unwrap();
    assert_eq!(app.sold_and_reserved(vip).await, (0, 8));
    assert_eq!(app.sold_and_reserved(lawn).await, (1, 1));
}

#[test_on(sqlite, postgres)]
async fn only_valid_tickets_count_for_the_maximum(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[limited_section("VIP", 10.0, 2)]).await;
    let vip = event.sections[0].as_str();
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let is_full = async || assert_eq!(ama.order(vip, 1).await.rejection(), (409, "section.account-maximum".to_owned()));
    let order = async |quantity: i64| ama.order(vip, quantity).await.unwrap();

    let cancelled = order(2).await;
    is_full().await;
    assert_eq!(app.cancel_order(&ama.key, &cancelled.self_).await.status, 200);
    order(2).await;
    is_full().await;
    app.advance_clock(RESERVATION_TTL);
    let voided = order(2).await;
    ama.pay(&voided).await.unwrap();
    is_full().await;
    assert_eq!(app.void_order(&app.staff.key, &voided.self_, json!({ "reason": "A stolen card." })).await.status, 200);
    let paid = order(2).await;
    ama.pay(&paid).await.unwrap();
    is_full().await;

    let wallet = app.get(&ama.key, &format!("/accounts/{}/tickets", ama.number)).await.body;
    let mut issued = entries_of(&wallet).iter().filter(|ticket| ticket["status"] == "Issued");
    let [one, other] = [issued.next().unwrap(), issued.next().unwrap()].map(|ticket| ticket["serial"].clone());
    let returned = app.return_tickets(&kofi.key, &paid.self_, json!({ "tickets": [one] })).await;
    assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Fulfilled")));
    let last = order(1).await;
    is_full().await;
    // A ticket that was transferred counts for the account that has bought it.
    let transfer = app.post(&ama.key, "/transfers", json!({ "recipient": yaw.number, "tickets": [other] })).await;
    let claims = format!("{}/claims", transfer.uri());
    assert_eq!(app.post_empty(&yaw.key, &claims).await.status, 200);
    is_full().await;
    yaw.order(vip, 2).await.unwrap();

    // A lower maximum leaves existing tickets alone; without one there is no limit.
    let change = async |body: Value| app.put(&kofi.key, vip, &body).await.status;
    assert_eq!(change(json!({ "maximumPerAccount": 1 })).await, 200);
    ama.pay(&last).await.unwrap();
    is_full().await;
    assert_eq!(change(json!({ "maximumPerAccount": null })).await, 200);
    order(50).await;
}

#[test_on(sqlite, postgres)]
async fn orders_follow_change_of_section_that_they_wait_for(app: TestApp) {
    app.stop_jobs().await;
    let event = create_concert(&app, &[20.0]).await;
    let ama = app.sign_up("ama").await;
    let order = || app.place_order(&ama.key, json!({ &event.sections[0]: 1 }));
    // Requests of the host, which have locked the section when the orders begin.
    let mut dearer = app.state.db.begin().await.unwrap();
    dearer.query("update sections set base_price = 3000").execute().await.unwrap();
    let (ordered, ()) = join(order(), app.commit_when_awaited(dearer, 1)).await;
    let mut withdrawn = app.state.db.begin().await.unwrap();
    withdrawn.query("update sections set active = false").execute().await.unwrap();
    let (rejected, ()) = join(order(), app.commit_when_awaited(withdrawn, 1)).await;

    assert_eq!((ordered.status, &ordered.body["subtotal"]), (201, &json!(30.0)), "{}", ordered.body);
    assert_eq!(rejection(&rejected), (409, "section.inactive"));
}

#[test_on(sqlite, postgres)]
async fn account_has_at_most_ten_open_orders(app: TestApp) {
    let event = create_concert(&app, &[10.0, 0.0]).await;
    let (paid, free) = (event.sections[0].as_str(), event.sections[1].as_str());
    let ama = app.sign_up("ama").await;
    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(ama.order(paid, 1).await.unwrap());
    }

    assert_eq!(ama.order(paid, 1).await.rejection(), (409, "order.too-many".to_owned()));
    let body = json!({ "customer": ama.number, "items": { paid: 1 } });
    assert_eq!(rejection(&app.post(&app.staff.key, "/orders", body).await), (409, "order.too-many"));
    assert_eq!(app.sold_and_reserved(paid).await, (0, 10));
    // A free order is never open, and other accounts are not limited.
    ama.order(free, 1).await.unwrap();
    app.sign_up("yaw").await.order(paid, 1).await.unwrap();

    // Every end of an order makes room for another.
    ama.pay(&open[0]).await.unwrap();
    ama.order(paid, 1).await.unwrap();
    assert_eq!(app.cancel_order(&ama.key, &open[1].self_).await.status, 200);
    ama.order(paid, 1).await.unwrap();
    assert_eq!(ama.order(paid, 1).await.rejection(), (409, "order.too-many".to_owned()));
    app.advance_clock(RESERVATION_TTL);
    ama.order(paid, 1).await.unwrap();
}

#[test]
fn an_open_order_times_out_when_its_reservation_is_over() {
    let row = |stored_status| OrderRow {
        id: Id(1),
        account_id: Id(2),
        stored_status,
        placed: Timestamp(0),
        expires: Timestamp(100),
        subtotal: Money(1),
        fees: Money(0),
        complimentary: false,
    };
    assert_eq!(row(OrderStatus::Placed).status(Timestamp(99)), OrderStatus::Placed);
    assert_eq!(row(OrderStatus::Placed).status(Timestamp(100)), OrderStatus::TimedOut);
    assert_eq!(row(OrderStatus::Fulfilled).status(Timestamp(100)), OrderStatus::Fulfilled);
}

#[test]
fn items_keep_their_order() {
    let items: Items = serde_json::from_str(r#"{"/sections/2": 1, "/sections/1": 3}"#).unwrap();
    assert_eq!(items.0, [("/sections/2".to_owned(), 1), ("/sections/1".to_owned(), 3)]);
}
