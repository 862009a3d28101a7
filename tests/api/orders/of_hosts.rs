//! Orders as hosts see them, their returns and payments, and quotes.

use serde_json::{Value, json};

use crate::support::{Event, TestApp, User, entries_of, partial_card_payment, rejection, section, test_on};

async fn event_of(app: &TestApp, user: &User) -> Event {
    app.create_listed_event(&app.create_host(user).await, &[section("Floor", 100.0, 100), section("Free", 0.0, 100)]).await
}

async fn host_of(app: &TestApp, event: &Event) -> String {
    app.read(&event.uri).await["host"].as_str().unwrap().to_owned()
}

#[test_on(sqlite, postgres)]
async fn hosts_list_and_filter_orders_of_their_events(app: TestApp) {
    let (kofi, esi) = (app.sign_up("kofi").await, app.sign_up("esi").await);
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let (event, other) = (event_of(&app, &kofi).await, event_of(&app, &esi).await);
    let (floor, free) = (event.sections[0].as_str(), event.sections[1].as_str());
    let first = ama.buy(&[(floor, 2), (free, 1)]).await;
    ama.buy(&[(&other.sections[1], 1)]).await;
    let second = yaw.buy(&[(free, 1)]).await;
    let open = ama.order(floor, 1).await.unwrap();
    let [first, second, open] = [first, second, open].map(|order| order.number.to_string());
    let all = [first.clone(), second.clone(), open.clone()];
    let serial = app.wallet(&yaw).await[0]["serial"].as_str().unwrap().to_lowercase();
    let placed = app.read(&format!("/orders/{second}")).await["placed"].as_str().unwrap()[..19].to_owned();

    let host = host_of(&app, &event).await;
    for list in [format!("{}/orders", event.uri), format!("{host}/orders")] {
        for (filter, expected) in [
            (String::new(), &all[..]),
            ("sort=date&order=desc&records=1".to_owned(), &all[2..]),
            ("records=2&page=2".to_owned(), &all[2..]),
            ("status=Placed".to_owned(), &all[2..]),
            ("status=Voided".to_owned(), &[]),
            (format!("customer={}", ama.number), &[first.clone(), open.clone()]),
            (format!("customer={}&status=Fulfilled", ama.number), &all[..1]),
            ("customer=ZZ-00000000".to_owned(), &[]),
            (format!("number={second}"), &all[1..2]),
            ("number=17637000000001".to_owned(), &[]),
            (format!("ticket={serial}"), &all[1..2]),
            ("from=2999-01-01T00:00".to_owned(), &[]),
            (format!("from={placed}&number={second}"), &all[1..2]),
            ("to=2020-01-01T00:00".to_owned(), &[]),
        ] {
            assert_eq!(app.list(&kofi.key, &format!("{list}?{filter}"), "number").await, expected, "{list}?{filter}");
        }
        let entry = &app.get(&kofi.key, &format!("{list}?number={first}")).await.body["entries"][0];
        assert_eq!(entry, &app.get(&kofi.key, &format!("/orders/{first}")).await.body);
        assert_eq!((&entry["total"], &entry["customer"]["phone"]), (&json!(203.98), &json!("")));
        assert_eq!(entry["customer"]["username"], "ama");
        let reversed = app.get(&kofi.key, &format!("{list}?from=2026-02-01T00:00&to=2026-01-01T00:00")).await;
        assert_eq!(reversed.invalid_arguments(), ["to"]);
    }
}

#[test_on(sqlite, postgres)]
async fn hosts_see_their_part_of_orders_of_several_hosts(app: TestApp) {
    let (kofi, esi, ama) = (app.sign_up("kofi").await, app.sign_up("esi").await, app.sign_up("ama").await);
    let (event, other) = (event_of(&app, &kofi).await, event_of(&app, &esi).await);
    let order = &ama.buy(&[(&event.sections[0], 2), (&other.sections[0], 1)]).await.self_;
    let joint = app.get(&ama.key, order).await.body;
    assert_eq!((&joint["subtotal"], &joint["fees"], &joint["total"]), (&json!(300.0), &json!(5.97), &json!(305.97)));
    let tickets = app.read(&format!("{}/tickets", event.uri)).await;
    let serial = &tickets["entries"][0]["serial"];

    app.return_tickets(&app.staff.key, order, json!({ "tickets": [serial] })).await;

    let kofis = app.get(&kofi.key, order).await.body;
    let esis = app.get(&esi.key, order).await.body;
    for (part, own, [subtotal, fees, total, refunded], section) in [
        (&kofis, &event, [200.0, 3.98, 203.98, 101.99], &event.sections[0]),
        (&esis, &other, [100.0, 1.99, 101.99, 0.0], &other.sections[0]),
    ] {
        let amounts = ["subtotal", "fees", "total", "refunded"].map(|name| part[name].as_f64().unwrap());
        assert_eq!(amounts, [subtotal, fees, total, refunded]);
        assert_eq!((part["items"].as_array().unwrap().len(), &part["items"][0]["section"]), (1, &json!(section)));
        let list = app.read(&format!("{}/orders", own.uri)).await;
        assert_eq!(list["entries"][0]["items"], part["items"], "also for platform administrators");
    }
    assert_eq!(app.get(&esi.key, &format!("{}/orders", other.uri)).await.body["entries"], json!([esis]));
    // An administrator of both hosts sees all of it.
    let administrators = format!("{}/administrators", host_of(&app, &other).await);
    app.post(&esi.key, &administrators, json!({ "account": kofi.number })).await;
    assert_eq!(app.get(&kofi.key, order).await.body["total"], 305.97);
    assert_eq!(app.get(&kofi.key, &format!("{order}/payments")).await.body["entries"][0]["refunded"], 101.99);
}

/// Events that have sold no tickets can be deleted, although their ended orders may have payments.
#[test_on(sqlite, postgres)]
async fn hosts_see_ended_orders_of_deleted_events(app: TestApp) {
    let (kofi, esi, ama) = (app.sign_up("kofi").await, app.sign_up("esi").await, app.sign_up("ama").await);
    let event = event_of(&app, &kofi).await;
    let deleted = app.create_listed_event(&event.host, &[section("Floor", 50.0, 100)]).await;
    let other = event_of(&app, &esi).await;
    let mut orders = Vec::new();
    for sections in
        [&[&event.sections[0], &deleted.sections[0]][..], &[&deleted.sections[0]], &[&deleted.sections[0], &other.sections[0]]]
    {
        let items: serde_json::Map<String, Value> = sections.iter().map(|section| (section.to_string(), json!(1))).collect();
        let order = app.place_order(&ama.key, items.into()).await.uri().to_owned();
        app.pay(&ama.key, &order, partial_card_payment(30.0)).await;
        assert_eq!(app.cancel_order(&ama.key, &order).await.status, 200);
        orders.push(order);
    }
    let host = host_of(&app, &event).await;
    let read = async || {
        let mut seen = Vec::new();
        for order in &orders {
            for path in [order.clone(), format!("{order}/payments"), format!("{order}/returns")] {
                let response = app.get(&kofi.key, &path).await;
                seen.push((path, response.status, response.body));
            }
        }
        let list = app.get(&kofi.key, &format!("{host}/orders")).await;
        seen.push((host.clone(), list.status, list.body));
        seen
    };
    let before = read().await;
    let statuses: Vec<u16> = before.iter().map(|(_, status, _)| *status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 403, 403, 200], "{before:?}");

    assert_eq!(app.delete(&kofi.key, &deleted.uri).await.status, 204);

    assert_eq!(read().await, before);
    assert_eq!(rejection(&app.get(&esi.key, &orders[0]).await), (403, "resource.not-yours"));
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres)]
async fn returns_are_listed_with_reasons(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = event_of(&app, &kofi).await;
    let order = &ama.buy(&[(&event.sections[0], 2), (&event.sections[1], 1)]).await.self_;
    let tickets = app.read(&format!("{}/tickets", event.uri)).await;
    let paid = entries_of(&tickets).iter().find(|ticket| ticket["section"]["name"] == "Floor").unwrap();
    assert_eq!(app.get(&ama.key, &format!("{order}/returns")).await.body["total"], 0);

    app.return_tickets(&kofi.key, order, json!({ "tickets": [paid["serial"]], "reason": "Ill.\nSorry." })).await;
    app.return_tickets(&kofi.key, order, json!({})).await;

    let page = app.get(&ama.key, &format!("{order}/returns")).await.body;
    let entries = entries_of(&page);
    let facts: Vec<Value> =
        entries.iter().map(|entry| json!([entry["order"], entry["tickets"], entry["amount"], entry["reason"]])).collect();
    assert_eq!(facts, [json!([order, 1, 101.99, "Ill.\nSorry."]), json!([order, 2, 101.99, ""])]);
    let uri = entries[0]["self"].as_str().unwrap();
    for key in [&ama.key, &kofi.key, &app.staff.key] {
        assert_eq!(app.get(key, uri).await.body, entries[0]);
        assert_eq!(app.get(key, &format!("{order}/returns?records=1&page=2")).await.body["entries"], json!([entries[1]]));
    }
    let of_another = uri.replace(order, &ama.buy(&[(&event.sections[1], 1)]).await.self_);
    assert_eq!(rejection(&app.get(&ama.key, &of_another).await), (404, "resource.not-found"));
}

#[test_on(sqlite, postgres)]
async fn hosts_return_tickets_found_by_serial_number(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = event_of(&app, &kofi).await;
    let serials = ama.order_free_tickets(&event.sections[1], 2).await;

    let found = app.get(&kofi.key, &format!("{}/orders?ticket={}", event.uri, serials[1])).await.body;
    let order = found["entries"][0]["self"].as_str().unwrap();
    let returned = app.return_tickets(&kofi.key, order, json!({ "tickets": [serials[1]] })).await;

    assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Fulfilled")));
    assert_eq!(app.sold_and_reserved(&event.sections[1]).await, (1, 0));
}

#[test_on(sqlite, postgres)]
async fn quote_is_rejected_like_order(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let mut inactive = section("Inactive", 20.0, 10);
    inactive.active = Some(false);
    let mut over = section("Over", 20.0, 10);
    over.sales_end = "2020-02-01T00:00".to_owned();
    let sections = [section("Floor", 20.0, 10), inactive, over];
    let event = app.create_listed_event(&host, &sections).await;
    let draft = app.create_draft(&host).await;
    let hidden = app.add_section(&draft, &section("Floor", 20.0, 10)).await;
    ama.order(&event.sections[0], 6).await.unwrap();

    let short = super::short(&event.sections[0]);
    for items in [
        json!({ &event.sections[0]: 5 }),
        json!({ &event.sections[1]: 1 }),
        json!({ &event.sections[2]: 1 }),
        json!({ hidden: 1 }),
        json!({ &event.sections[0]: 1, short: 1 }),
        json!({ "/sections/17637000000001": 1 }),
        json!({ &event.sections[0]: 50, &event.sections[1]: 1 }),
        json!({}),
    ] {
        let quote = app.request("POST", "/quotes").json(&json!({ "items": items })).send().await;
        let order = app.place_order(&ama.key, items.clone()).await;
        assert!(quote.status >= 400, "{items}");
        assert_eq!((quote.status, &quote.body), (order.status, &order.body), "{items}");
    }
    let quote = app.request("POST", "/quotes").json(&json!({ "items": { &event.sections[0]: 4 } })).send().await;
    assert_eq!((quote.status, &quote.body["total"]), (200, &json!(83.96)));
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 6));

    for (change, code) in
        [("update hosts set removed = true", "host.removed"), ("update events set ends = 1, starts = 0", "event.over")]
    {
        app.execute_sql(change).await;
        let quote = app.request("POST", "/quotes").json(&json!({ "items": { &event.sections[0]: 1 } })).send().await;
        assert_eq!(rejection(&quote), (409, code));
    }
}
