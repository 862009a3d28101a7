//! Sections: rules, URIs, and counters.

use boxoffice::features::catalog::sections::{self, SectionUri};
use boxoffice::kernel::types::id::Id;
use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::{Event, Response, TestApp, partial_card_payment, rejection, section, test_on};

fn floor() -> Value {
    json!({
        "name": "Floor", "basePrice": 20.5, "capacity": 100, "salesStart": "2020-01-01T00:00",
        "salesEnd": "2998-12-20 20:00:30+01:00",
    })
}

async fn add(app: &TestApp, key: &str, event: &str, body: &Value) -> Response {
    app.post(key, &format!("{event}/sections"), body).await
}

/// Returns the capacity and the numbers of sold, remaining and reserved tickets.
fn places(section: &Value) -> [i64; 4] {
    ["capacity", "sold", "remaining", "reserved"].map(|name| section[name].as_i64().unwrap())
}

/// Returns a section with its long URI, as a GET returns it.
fn long(event: &Event, section: &Value) -> Value {
    let mut section = section.clone();
    section["self"] = format!("{}{}", event.uri, section["self"].as_str().unwrap()).into();
    section
}

#[test_on(sqlite, postgres)]
async fn new_section_is_active_and_empty(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;

    let created = add(&app, &kofi.key, &event.uri, &floor()).await;

    assert_eq!(created.status, 201);
    let uri = created.uri();
    assert!(uri.strip_prefix("/sections/").is_some_and(|id| id.len() == 14), "{uri}");
    assert_eq!(created.header("location"), uri);
    let expected = json!({
        "self": uri, "name": "Floor", "description": "", "price": { "base": 20.5, "current": 20.5, "expires": "2998-12-20T19:00" },
        "salesStart": "2020-01-01T00:00", "salesEnd": "2998-12-20T19:00", "active": true, "capacity": 100, "sold": 0,
        "remaining": 100, "reserved": 0, "maximumPerAccount": null, "groupPrices": [],
    });
    assert_eq!(created.body, expected);
    assert_eq!(app.get(&kofi.key, uri).await.body, long(&event, &expected));
    assert_eq!(app.get(&kofi.key, &event.uri).await.body["sections"], json!([expected]));
    let mut balcony = floor();
    balcony["name"] = "Balcony".into();
    balcony["description"] = "é".repeat(5000).into();
    balcony["active"] = false.into();
    let created = add(&app, &kofi.key, &event.uri, &balcony).await;
    assert_eq!((&created.body["description"], &created.body["active"]), (&json!("é".repeat(5000)), &json!(false)));
    let sections = app.get(&kofi.key, &event.uri).await.body["sections"].clone();
    assert_eq!((&sections[0]["name"], &sections[1]["name"]), (&json!("Floor"), &json!("Balcony")), "the oldest first");
}

#[test_on(sqlite, postgres)]
async fn sales_must_end_after_start(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let mut body = floor();
    let created = add(&app, &kofi.key, &event.uri, &body).await;
    body["name"] = "Balcony".into();
    body["salesEnd"] = body["salesStart"].clone();

    let empty = add(&app, &kofi.key, &event.uri, &body).await;
    let late = app.put(&kofi.key, created.uri(), json!({ "salesStart": "2999-01-01T00:00" })).await;

    assert_eq!(empty.invalid_arguments(), ["salesEnd"]);
    assert_eq!(late.invalid_arguments(), ["salesEnd"]);
}

#[test_on(sqlite, postgres)]
async fn section_has_two_uris(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10), section("Balcony", 30.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[]).await;
    let short = |long: &str| long.strip_prefix(&event.uri).unwrap().to_owned();
    let (long, balcony) = (&event.sections[0], &event.sections[1]);
    let elsewhere = format!("{}{}", other.uri, short(long));

    assert_eq!(app.get(&kofi.key, long).await.body, app.get(&kofi.key, &short(long)).await.body);
    assert_eq!(app.get(&kofi.key, &short(long)).await.body["self"], *long);
    assert_eq!(app.put(&kofi.key, long, json!({ "capacity": 20 })).await.body["capacity"], 20);
    assert_eq!(app.put(&kofi.key, &short(long), json!({ "capacity": 30 })).await.body["capacity"], 30);
    for nothing in [&elsewhere, "/sections/17637000000001", "/sections/floor"] {
        assert_eq!(rejection(&app.get(&kofi.key, nothing).await), (404, "resource.not-found"), "{nothing}");
        let changed = app.put(&kofi.key, nothing, json!({ "capacity": 40 })).await;
        assert_eq!(rejection(&changed), (404, "resource.not-found"), "{nothing}");
        assert_eq!(rejection(&app.delete(&kofi.key, nothing).await), (404, "resource.not-found"), "{nothing}");
    }
    assert_eq!(app.get(&kofi.key, long).await.body["capacity"], 30);
    assert_eq!(app.delete(&kofi.key, long).await.status, 204);
    assert_eq!(app.delete(&kofi.key, &short(balcony)).await.status, 204);
    assert_eq!(app.get(&kofi.key, &event.uri).await.body["sections"], json!([]));
}

#[test_on(sqlite, postgres)]
async fn update_keeps_omitted_properties(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let created = add(&app, &kofi.key, &event.uri, &floor()).await;
    let uri = created.uri();

    let nothing = app.put(&kofi.key, uri, json!({})).await;
    let some = json!({
        "basePrice": 0, "active": false, "description": "Standing.", "salesEnd": "2998-12-19T12:00", "sold": 7,
    });
    let some = app.put(&kofi.key, uri, some).await;

    let mut expected = long(&event, &created.body);
    assert_eq!((nothing.status, &nothing.body), (200, &expected));
    expected["price"] = json!({ "base": 0.0, "current": 0.0, "expires": "2998-12-19T12:00" });
    expected["active"] = false.into();
    expected["description"] = "Standing.".into();
    expected["salesEnd"] = "2998-12-19T12:00".into();
    assert_eq!((some.status, &some.body), (200, &expected));
    assert_eq!(app.get(&kofi.key, uri).await.body, expected);
}

#[test_on(sqlite, postgres)]
async fn price_change_applies_to_later_orders(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let before = ama.order(&event.sections[0], 1).await.unwrap();

    app.put(&kofi.key, &event.sections[0], json!({ "basePrice": 40.0 })).await;

    let order = app.get(&ama.key, &before.self_).await;
    assert_eq!(order.body["subtotal"], 20.0);
    assert_eq!(ama.order(&event.sections[0], 1).await.unwrap().subtotal, 40.0);
}

#[test_on(sqlite, postgres)]
async fn capacity_covers_sold_and_reserved_tickets(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let uri = &event.sections[0];
    let sold = ama.order(uri, 2).await.unwrap();
    ama.pay(&sold).await.unwrap();
    ama.order(uri, 3).await.unwrap();

    let less = app.put(&kofi.key, uri, json!({ "capacity": 4 })).await;
    let just = app.put(&kofi.key, uri, json!({ "capacity": 5 })).await;
    app.advance_clock(app.state.settings.reservation);
    let later = app.put(&kofi.key, uri, json!({ "capacity": 2 })).await;
    let sold_only = app.put(&kofi.key, uri, json!({ "capacity": 1 })).await;

    assert_eq!(rejection(&less), (409, "section.capacity"));
    assert_eq!((just.status, places(&just.body)), (200, [5, 2, 0, 3]));
    assert_eq!((later.status, places(&later.body)), (200, [2, 2, 0, 0]));
    assert_eq!(rejection(&sold_only), (409, "section.capacity"));
}

#[test_on(sqlite, postgres)]
async fn reservation_holds_tickets_until_it_expires(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let counts = async || {
        let alone = places(&app.get(&ama.key, &event.sections[0]).await.body);
        let inside = places(&app.get(&ama.key, &event.uri).await.body["sections"][0]);
        assert_eq!(alone, inside);
        alone
    };

    ama.order(&event.sections[0], 4).await.unwrap();
    assert_eq!(counts().await, [10, 0, 6, 4]);
    app.advance_clock(app.state.settings.reservation / 2);
    ama.order(&event.sections[0], 1).await.unwrap();
    assert_eq!(counts().await, [10, 0, 5, 5]);
    app.advance_clock(app.state.settings.reservation / 2);
    assert_eq!(counts().await, [10, 0, 9, 1]);
    app.advance_clock(app.state.settings.reservation / 2);
    assert_eq!(counts().await, [10, 0, 10, 0]);
}

#[test_on(sqlite, postgres)]
async fn expired_reservation_is_released_once(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let uri = &event.sections[0];
    ama.order(uri, 4).await.unwrap();
    app.advance_clock(app.state.settings.reservation / 2);
    ama.order(uri, 3).await.unwrap();
    app.advance_clock(app.state.settings.reservation / 2);

    let changes = (20..28).map(|capacity| app.put(&kofi.key, uri, json!({ "capacity": capacity })));
    let changes = futures::future::join_all(changes).await;

    assert!(changes.iter().all(|change| change.status == 200 && change.body["reserved"] == 3), "{changes:?}");
    assert_eq!(app.scalar::<i64>("select reserved from sections").await, 3);
}

#[test_on(sqlite, postgres)]
async fn section_with_sales_or_reservations_cannot_be_deleted(app: TestApp) {
    let sections = [section("Free", 0.0, 10), section("Paid", 20.0, 10)];
    let (kofi, ama, event) = app.create_sale(&sections).await;
    let [free, paid] = [&event.sections[0], &event.sections[1]];
    ama.order_items([(free.as_str(), 1)]).await.unwrap();
    ama.order(paid, 1).await.unwrap();

    let sold = app.delete(&kofi.key, free).await;
    let reserved = app.delete(&kofi.key, paid).await;
    let shortly = app.delete(&kofi.key, free.strip_prefix(&event.uri).unwrap()).await;
    app.advance_clock(app.state.settings.reservation);
    let over = app.delete(&kofi.key, paid).await;

    for rejected in [sold, reserved, shortly] {
        assert_eq!(rejection(&rejected), (409, "section.in-use"));
    }
    assert_eq!((over.status, over.body), (204, Value::Null));
    assert_eq!(rejection(&app.delete(&kofi.key, paid).await), (404, "resource.not-found"));
    app.execute_sql("update sections set sold = 0").await;
    assert_eq!(rejection(&app.delete(&kofi.key, free).await), (409, "section.in-use"), "void tickets keep it too");
}

#[test_on(sqlite, postgres)]
async fn deleted_section_is_removed_from_tokens(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10), section("VIP", 90.0, 10)]).await;
    let token = kofi.client.event_token_create().event(event.id.as_str());
    let token = token.body_map(|body| body.sections(event.sections.clone())).send().await.unwrap();

    app.delete(&kofi.key, &event.sections[0]).await;

    let token = app.get(&kofi.key, &token.self_).await;
    assert_eq!(token.body["sections"], json!([event.sections[1]]));
}

#[test_on(sqlite, postgres)]
async fn cancelled_event_is_immutable(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Balcony", 20.0, 10)]).await;
    app.execute_sql("update events set status = 'Cancelled'").await;

    let added = add(&app, &kofi.key, &event.uri, &floor()).await;
    let changed = app.put(&kofi.key, &event.sections[0], json!({ "capacity": 5 })).await;

    assert_eq!(rejection(&added), (409, "event.cancelled"));
    assert_eq!(rejection(&changed), (409, "event.cancelled"));
}

#[test_on(sqlite, postgres)]
async fn deletes_event_while_section_is_added(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    for _ in 0..6 {
        let event = app.create_draft(&host).await;

        let (added, removed) = join(add(&app, &kofi.key, &event.uri, &floor()), app.delete(&kofi.key, &event.uri)).await;

        assert_eq!(removed.status, 204, "{}", removed.body);
        assert!([201, 404].contains(&added.status), "{}", added.body);
    }
}

#[test_on(sqlite, postgres)]
async fn event_has_at_most_hundred_sections(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (event, other) = (app.create_draft(&host).await, app.create_draft(&host).await);
    for number in 0..98 {
        app.add_section(&event, &section(&format!("Block {number}"), 20.0, 10)).await;
    }
    let more = ["A", "B", "C", "D", "E"].map(|name| {
        let mut body = floor();
        body["name"] = name.into();
        body
    });

    let at_once = join_all(more.iter().map(|body| add(&app, &kofi.key, &event.uri, body))).await;
    let elsewhere = add(&app, &kofi.key, &other.uri, &floor()).await;

    assert_eq!(at_once.iter().filter(|response| response.status == 201).count(), 2);
    assert_eq!(at_once.iter().filter(|response| rejection(response) == (409, "section.too-many")).count(), 3);
    let sections = app.get(&kofi.key, &event.uri).await.body["sections"].clone();
    assert_eq!((sections.as_array().unwrap().len(), elsewhere.status), (100, 201));
    let last = format!("{}{}", event.uri, sections[99]["self"].as_str().unwrap());
    assert_eq!(app.delete(&kofi.key, &last).await.status, 204);
    assert_eq!(add(&app, &kofi.key, &event.uri, &floor()).await.status, 201, "one went, one can come");
}

#[test_on(sqlite, postgres)]
async fn maximum_per_account_is_readable_and_changeable(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("VIP", 20.0, 10)]).await;
    let mut limited = floor();
    limited["maximumPerAccount"] = 4.into();
    let created = add(&app, &kofi.key, &event.uri, &limited).await;
    assert_eq!((created.status, &created.body["maximumPerAccount"]), (201, &json!(4)));
    let uri = created.uri();
    let shown = async || {
        let section = app.get(&kofi.key, uri).await.body["maximumPerAccount"].clone();
        // The event may come from the cache.
        assert_eq!(app.request("GET", &event.uri).send().await.body["sections"][1]["maximumPerAccount"], section);
        let published = app.request("GET", "/published-events").send().await.body["entries"][0].clone();
        assert_eq!(published["sections"][1]["maximumPerAccount"], section);
        section
    };
    assert_eq!(shown().await, 4);

    for (change_to, expected) in [
        (json!({ "maximumPerAccount": 6 }), json!(6)),
        (json!({ "description": "By the sea" }), json!(6)),
        (json!({ "maximumPerAccount": null }), Value::Null),
        (json!({ "maximumPerAccount": 1_000_000 }), json!(1_000_000)),
    ] {
        let changed = app.put(&kofi.key, uri, change_to.clone()).await;
        assert_eq!((changed.status, &changed.body["maximumPerAccount"]), (200, &expected), "{change_to}");
        assert_eq!(shown().await, expected, "{change_to}");
    }
    for wrong in [json!(0), json!(-1), json!(1.5), json!("four"), json!(1_000_001)] {
        let rejected = app.put(&kofi.key, uri, json!({ "maximumPerAccount": wrong })).await;
        assert_eq!(rejected.invalid_arguments(), ["maximumPerAccount"], "{wrong}");
    }
}

#[test_on(sqlite, postgres)]
async fn amounts_may_have_noise_of_floating_point_numbers(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Stalls", 141.99, 10)]).await;
    let stalls = &event.sections[0];
    let set_price = async |price: f64| app.put(&kofi.key, stalls, json!({ "basePrice": price })).await;

    for (sent, price) in [(1.1 * 3.0, 3.3), (f64::from(143.98_f32), 143.98), (0.1 + 0.2, 0.3), (1e-9, 0.0), (1e6 - 1e-9, 1e6)] {
        let changed = set_price(sent).await;
        assert_eq!((changed.status, &changed.body["price"]["base"]), (200, &json!(price)), "{sent}");
    }
    let large = [(f64::from(65_535.99_f32), 65_535.99), (100_000.1 * 3.0, 300_000.3)];
    for (sent, price) in large {
        assert_eq!(set_price(sent).await.body["price"]["base"], json!(price), "{sent}");
    }
    let between = [65_535.985, 65_536.005, 83_886.085, 100_000.005, 150_000.005, f64::from(150_000.01_f32), 999_999.999];
    for sent in [1.005, 0.001, 19.994, 99.999, -0.001].into_iter().chain(between) {
        assert_eq!(rejection(&set_price(sent).await), (400, "arguments.invalid"), "{sent}");
    }
    assert_eq!(set_price(141.99).await.status, 200);
    let discount = json!({ "name": "Matinee", "priceDelta": 15.99 - 19.99 });
    let discount = app.post(&kofi.key, &format!("{stalls}/modifiers"), &discount).await;
    assert_eq!((discount.status, &discount.body["priceDelta"]), (201, &json!(-4.0)));

    let order = ama.order(stalls, 1).await.unwrap();
    assert_eq!(order.total, 140.98);
    for (sent, amount) in [(100.0, 100.0), (140.98 - 100.0, 40.98)] {
        let paid = app.pay(&ama.key, &order.self_, partial_card_payment(sent)).await;
        assert_eq!((paid.status, &paid.body["amount"]), (201, &json!(amount)), "{sent}");
    }
    assert_eq!(app.read(&order.self_).await["status"], "Fulfilled");
}

#[test]
fn parses_long_and_short_uris() {
    let (event, section) = (Id(17_637_000_000_051), Id(17_637_000_000_061));
    let long = Some(SectionUri { event: Some(event), section });
    let short = Some(SectionUri { event: None, section });
    for (text, expected) in [
        ("/events/17637000000051/sections/17637000000061", long),
        ("/v3/events/17637000000051/sections/17637000000061", long),
        ("/sections/17637000000061", short),
        ("/v3/sections/17637000000061", short),
        ("17637000000061", None),
        ("/sections/1763700000006", None),
        ("/events/17637000000051/sections/", None),
        ("/events/x/sections/17637000000061", None),
        ("/venues/17637000000051/sections/17637000000061", None),
    ] {
        assert_eq!(SectionUri::parse(text), expected, "{text}");
    }
    assert_eq!(SectionUri::parse(&sections::uri(event, section).0), long);
}
