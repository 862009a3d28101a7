//! Sales reports.

use std::time::Duration;

use boxoffice::kernel::types::clock::Timestamp;
use serde_json::{Value, json};

use crate::support::{Event, Host, TestApp, User, id_of, partial_card_payment, rejection, section, test_on};

/// Creates an event of Kofi: stalls at 100.00 with a fee of 1.99, a balcony at 20.00 with a fee of 0.99, a free lawn.
async fn create_concert(app: &TestApp, host: &Host) -> Event {
    app.create_listed_event(host, &[section("Stalls", 100.0, 50), section("Balcony", 20.0, 40), section("Lawn", 0.0, 30)]).await
}

/// Orders tickets of the stalls, the balcony and the lawn, and pays.
async fn buy(user: &User, event: &Event, tickets: [i64; 3]) {
    let items = event.sections.iter().map(String::as_str).zip(tickets).filter(|(_, tickets)| *tickets > 0);
    user.buy(&items.collect::<Vec<_>>()).await;
}

fn sales_figures(units: i64, sales: f64, fees: f64) -> Value {
    json!({ "units": units, "sales": sales, "fees": fees })
}

#[test_on(sqlite, postgres)]
async fn host_without_sales_has_zero_totals(app: TestApp) {
    let (kofi, empty) = app.sign_up_host_with_draft("kofi").await;
    let event = create_concert(&app, &empty.host).await;

    let of_host = format!("{}/statistics", empty.host.uri);
    let expected = json!({ "self": of_host, "events": 2, "orders": 0, "revenue": 0.0, "tickets": 0, "customers": 0 });
    assert_eq!(app.get(&kofi.key, &of_host).await.body, expected);
    for (event, capacity) in [(&empty, 0), (&event, 120)] {
        let of_event = format!("{}/statistics", event.uri);
        let expected = json!({ "self": of_event, "capacity": capacity, "orders": 0, "revenue": 0.0, "tickets": 0 });
        assert_eq!(app.get(&kofi.key, &of_event).await.body, expected);
    }
    let nothing = json!({ "units": 0, "sales": 0.0, "fees": 0.0, "breakdown": {} });
    assert_eq!(app.get(&kofi.key, &format!("{}/sales", empty.uri)).await.body, nothing);
    let sales = app.get(&kofi.key, &format!("{}/sales", event.uri)).await.body;
    let zeros = sales_figures(0, 0.0, 0.0);
    assert_eq!(sales["breakdown"], json!({ "Stalls": zeros, "Balcony": zeros, "Lawn": zeros }));
}

#[test_on(sqlite, postgres)]
async fn counts_fulfilled_orders_only(app: TestApp) {
    let (kofi, ama, yaw) = (app.sign_up("kofi").await, app.sign_up("ama").await, app.sign_up("yaw").await);
    let host = app.create_host(&kofi).await;
    let (first, second) = (create_concert(&app, &host).await, create_concert(&app, &host).await);
    buy(&ama, &first, [2, 0, 3]).await;
    buy(&ama, &first, [0, 1, 0]).await;
    buy(&yaw, &first, [1, 2, 0]).await;
    buy(&yaw, &second, [0, 0, 4]).await;
    // Open, partly paid, cancelled and expired orders.
    ama.order(&first.sections[0], 5).await.unwrap();
    let begun = ama.order(&first.sections[0], 5).await.unwrap();
    assert_eq!(app.pay(&ama.key, &begun.self_, partial_card_payment(500.0)).await.status, 201);
    let cancelled = ama.order(&first.sections[1], 5).await.unwrap();
    app.cancel_order(&ama.key, &cancelled.self_).await;

    for _ in 0..2 {
        let of_host = app.get(&kofi.key, &format!("{}/statistics", host.uri)).await.body;
        let counts = ["events", "orders", "revenue", "tickets", "customers"].map(|name| of_host[name].clone());
        assert_eq!(counts, [json!(2), json!(4), json!(360.0), json!(13), json!(2)]);
        let of_first = app.get(&kofi.key, &format!("{}/statistics", first.uri)).await.body;
        let counts = ["capacity", "orders", "revenue", "tickets"].map(|name| of_first[name].clone());
        assert_eq!(counts, [json!(120), json!(3), json!(360.0), json!(9)]);
        let sales = app.get(&kofi.key, &format!("{}/sales", first.uri)).await.body;
        let breakdown = json!({ "Stalls": sales_figures(3, 300.0, 5.97), "Balcony": sales_figures(3, 60.0, 2.97), "Lawn": sales_figures(3, 0.0, 0.0) });
        assert_eq!(sales, json!({ "units": 9, "sales": 360.0, "fees": 8.94, "breakdown": breakdown }));
        app.advance_clock(app.state.settings.reservation);
        app.expire_due().await;
    }
}

#[test_on(sqlite, postgres)]
async fn order_of_several_hosts_counts_for_each(app: TestApp) {
    let (kofi, esi, ama) = (app.sign_up("kofi").await, app.sign_up("esi").await, app.sign_up("ama").await);
    let (his, hers) = (app.create_host(&kofi).await, app.create_host(&esi).await);
    let (jazz, play) = (create_concert(&app, &his).await, create_concert(&app, &hers).await);
    let both = [(jazz.sections[0].as_str(), 1), (jazz.sections[1].as_str(), 1), (play.sections[1].as_str(), 2)];
    let order = ama.order_items(both).await.unwrap();
    ama.pay(&order).await.unwrap();

    for (host, event, tickets, revenue) in [(&his, &jazz, 2, 120.0), (&hers, &play, 2, 40.0)] {
        let of_host = app.get(&host.owner.key, &format!("{}/statistics", host.uri)).await.body;
        let expected = json!({
            "self": format!("{}/statistics", host.uri), "events": 1, "orders": 1, "revenue": revenue, "tickets": tickets,
            "customers": 1,
        });
        assert_eq!(of_host, expected);
        let of_event = app.get(&host.owner.key, &format!("{}/statistics", event.uri)).await.body;
        assert_eq!(
            (&of_event["orders"], &of_event["revenue"], &of_event["tickets"]),
            (&json!(1), &json!(revenue), &json!(tickets))
        );
    }
}

#[test_on(sqlite, postgres)]
async fn excludes_returned_and_void_tickets(app: TestApp) {
    let (kofi, ama, yaw) = (app.sign_up("kofi").await, app.sign_up("ama").await, app.sign_up("yaw").await);
    let host = app.create_host(&kofi).await;
    let event = create_concert(&app, &host).await;
    buy(&ama, &event, [2, 0, 0]).await;
    buy(&yaw, &event, [0, 3, 0]).await;
    let counts = async || {
        let of_host = app.read(&format!("{}/statistics", host.uri)).await;
        let sales = app.read(&format!("{}/sales", event.uri)).await;
        let parts = [&of_host["orders"], &of_host["revenue"], &of_host["tickets"], &of_host["customers"], &sales["fees"]];
        parts.map(|part| part.as_f64().unwrap())
    };
    assert_eq!(counts().await, [2.0, 260.0, 5.0, 2.0, 6.95]);

    // Returns one of Ama's tickets.
    app.execute_sql("update tickets set status = 'Void' where id = (select min(id) from tickets)").await;
    assert_eq!(counts().await, [2.0, 160.0, 4.0, 2.0, 4.96]);
    // Returns all tickets of an order: then it counts for nothing.
    app.execute_sql("update tickets set status = 'Void' where order_id = (select min(id) from orders)").await;
    assert_eq!(counts().await, [1.0, 60.0, 3.0, 1.0, 2.97]);
    // Voids the other order, whose tickets are still valid.
    app.execute_sql("update orders set status = 'Voided' where id = (select max(id) from orders)").await;
    assert_eq!(counts().await, [0.0; 5]);
}

#[test_on(sqlite, postgres)]
async fn includes_redeemed_and_transferred_tickets(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let event = create_concert(&app, &host).await;
    buy(&ama, &event, [2, 0, 0]).await;
    let before = app.read(&format!("{}/sales", event.uri)).await;

    let serial = &app.wallet(&ama).await[0]["serial"];
    assert_eq!(app.admit(&kofi.key, &event, [serial]).await.status, 201);
    app.execute_sql("update tickets set status = 'Pending' where status = 'Issued'").await;
    app.execute_sql("update tickets set owner_id = (select min(id) from accounts)").await;

    assert_eq!(before["units"], 2);
    assert_eq!(app.read(&format!("{}/sales", event.uri)).await, before);
    assert_eq!(app.read(&format!("{}/statistics", host.uri)).await["customers"], 1);
}

/// Returns a time with microseconds, as a request writes it.
fn exactly(time: Timestamp) -> String {
    format!("{}.{:06}Z", time.format_rfc3339().trim_end_matches("+00:00"), time.0 % 1_000_000)
}

#[test_on(sqlite, postgres)]
async fn groups_sales_by_fulfillment_time(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = create_concert(&app, &app.create_host(&kofi).await).await;
    buy(&ama, &event, [1, 0, 0]).await;
    // Placed before the second time and paid after it.
    let late = ama.order(&event.sections[1], 1).await.unwrap();
    app.advance_clock(Duration::from_secs(300));
    ama.pay(&late).await.unwrap();
    app.advance_clock(Duration::from_secs(300));
    buy(&ama, &event, [0, 0, 1]).await;
    let moments: Vec<(Timestamp,)> = app.rows("select fulfilled from orders order by fulfilled").await;
    let [first, second, third] = [0, 1, 2].map(|index| moments[index].0);
    let tick_after = |time: Timestamp| Timestamp(time.0 + 1);
    // `to` includes its whole second, because orders show no fractions.
    let second_before = |time: Timestamp| Timestamp(time.0 - 1_000_000);

    for (from, to, expected) in [
        (None, None, [1, 1, 1]),
        (Some(first), Some(third), [1, 1, 1]),
        (Some(second), None, [0, 1, 1]),
        (None, Some(second), [1, 1, 0]),
        (Some(second), Some(second), [0, 1, 0]),
        (Some(tick_after(first)), Some(second_before(third)), [0, 1, 0]),
        (Some(tick_after(second)), Some(second_before(third)), [0, 0, 0]),
        (Some(tick_after(third)), None, [0, 0, 0]),
        (None, Some(second_before(first)), [0, 0, 0]),
        (None, Some(Timestamp(second.0 / 1_000_000 * 1_000_000)), [1, 1, 0]),
        (Some(tick_after(second)), Some(Timestamp(third.0 / 1_000_000 * 1_000_000)), [0, 0, 1]),
    ] {
        let from = from.map(|time| format!("from={}&", exactly(time))).unwrap_or_default();
        let to = to.map(|time| format!("to={}", exactly(time))).unwrap_or_default();
        let sales = app.get(&kofi.key, &format!("{}/sales?{from}{to}", event.uri)).await.body;

        let units = ["Stalls", "Balcony", "Lawn"].map(|name| sales["breakdown"][name]["units"].as_i64().unwrap());
        assert_eq!(units, expected, "{from}{to}");
        assert_eq!(sales["units"], expected.iter().sum::<i64>(), "{from}{to}");
    }
}

#[test_on(sqlite, postgres)]
async fn accepts_period_with_or_without_zone(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = create_concert(&app, &app.create_host(&kofi).await).await;
    buy(&ama, &event, [1, 0, 0]).await;

    for (query, units) in [
        ("from=2020-01-01T00:00:00Z&to=2999-01-01T00:00:00Z", 1),
        ("from=2020-01-01T00:00:00&to=2999-01-01T00:00:00", 1),
        ("from=2020-01-01T00:00&to=2999-01-01%2000:00", 1),
        ("from=2020-01-01T00:00:00.5%2B05:30&to=2999-01-01T00:00:00-08:00", 1),
        ("to=2020-01-01T00:00:00%2B00:00", 0),
        ("from=&to=", 1),
    ] {
        let sales = app.get(&kofi.key, &format!("{}/sales?{query}", event.uri)).await;
        assert_eq!((sales.status, &sales.body["units"]), (200, &json!(units)), "{query}");
    }
}

#[test_on(sqlite, postgres)]
async fn reports_sales_of_section(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let event = create_concert(&app, &host).await;
    buy(&ama, &event, [2, 1, 0]).await;
    let long = event.sections[0].clone();
    let id = id_of(&long).to_owned();
    // An identifier takes precedence over an equal name.
    app.add_section(&event, &section(&id, 5.0, 5)).await;

    let uris = [&format!("/sections/{id}"), &format!("/v3/sections/{id}"), &long, &format!("/v3{long}")];
    for section in [[id.as_str(), "Stalls", "stalls", "%20STALLS+"], uris.map(String::as_str)].concat() {
        let sales = app.get(&kofi.key, &format!("{}/sales?section={section}", event.uri)).await;
        let expected =
            json!({ "units": 2, "sales": 200.0, "fees": 3.98, "breakdown": { "Stalls": sales_figures(2, 200.0, 3.98) } });
        assert_eq!((sales.status, sales.body), (200, expected), "{section}");
    }
    let lawn = app.get(&kofi.key, &format!("{}/sales?section=Lawn", event.uri)).await.body;
    assert_eq!(lawn, json!({ "units": 0, "sales": 0.0, "fees": 0.0, "breakdown": { "Lawn": sales_figures(0, 0.0, 0.0) } }));
}

#[test_on(sqlite, postgres)]
async fn rejects_invalid_queries(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (event, other) = (create_concert(&app, &host).await, app.create_listed_event(&host, &[section("Gallery", 5.0, 5)]).await);
    let foreign = other.sections[0].clone();
    let id = id_of(&event.sections[0]);

    for (query, complaints) in [
        ("section=Gallery".to_owned(), vec!["section"]),
        ("section=stall".to_owned(), vec!["section"]),
        ("section=17637000000001".to_owned(), vec!["section"]),
        (format!("section={foreign}"), vec!["section"]),
        (format!("section={}/sections/{id}", other.uri), vec!["section"]),
        ("from=2026-01-02T00:00&to=2026-01-01T23:59:59".to_owned(), vec!["to"]),
        ("from=2026-01-02T00:00&to=2026-01-01T00:00&section=Gallery".to_owned(), vec!["to", "section"]),
        ("from=yesterday&to=2026-02-30T00:00".to_owned(), vec!["from", "to"]),
    ] {
        let rejected = app.get(&kofi.key, &format!("{}/sales?{query}", event.uri)).await;
        assert_eq!(rejection(&rejected), (400, "arguments.invalid"), "{query}");
        assert_eq!(rejected.invalid_arguments(), complaints, "{query}");
    }
    let stranger = app.get(&app.sign_up("ama").await.key, &format!("{}/sales?section=nowhere", event.uri)).await;
    assert_eq!(rejection(&stranger), (403, "resource.not-yours"), "before the section is looked up");
    let same = "from=2026-01-02T00:00&to=2026-01-02T00:00Z";
    assert_eq!(app.get(&kofi.key, &format!("{}/sales?{same}", event.uri)).await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn events_of_removed_host_are_reported(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let event = create_concert(&app, &host).await;
    buy(&ama, &event, [2, 0, 0]).await;
    let reports = [format!("{}/statistics", event.uri), format!("{}/sales", event.uri)];
    let before = [app.read(&reports[0]).await, app.read(&reports[1]).await];

    assert_eq!(app.delete(&kofi.key, &host.uri).await.status, 204);

    for (report, before) in reports.iter().zip(before) {
        assert_eq!(app.get(&kofi.key, report).await.body, before);
    }
    assert_eq!(rejection(&app.get(&kofi.key, &format!("{}/statistics", host.uri)).await), (404, "resource.not-found"));
}
