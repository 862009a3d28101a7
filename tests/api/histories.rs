//! Histories of orders and accounts, and sales by day.

use serde_json::{Value, json};

use crate::support::{DAY, TestApp, card_payment, entries_of, section, test_on};

#[test_on(sqlite, postgres)]
async fn staff_read_histories(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 100.0, 10)]).await;
    let yaw = app.sign_up("yaw").await;
    let order = ama.order(&event.sections[0], 3).await.unwrap();
    app.pay(&ama.key, &order.self_, json!({ "method": "card", "token": "tok_decline" })).await;
    assert_eq!(app.pay(&ama.key, &order.self_, card_payment()).await.status, 201);
    let tickets = app.read(&format!("{}/tickets", event.uri)).await;
    let serial = |index: usize| tickets["entries"][index]["serial"].clone();
    let transfer = app.post(&ama.key, "/transfers", json!({ "recipient": yaw.number, "tickets": [serial(0)] })).await.body;
    app.post_empty(&yaw.key, &format!("{}/claims", transfer["self"].as_str().unwrap())).await;
    app.return_tickets(&kofi.key, &order.self_, json!({ "tickets": [serial(1)], "reason": "Ill." })).await;
    ama.order(&event.sections[0], 1).await.unwrap();

    let history = app.read(&format!("{}/history", order.self_)).await;

    assert_eq!(history["order"], app.read(&order.self_).await);
    let column = |list: &str, name: &str| -> Vec<Value> {
        history[list]["entries"].as_array().unwrap().iter().map(|entry| entry[name].clone()).collect()
    };
    assert_eq!(column("payments", "status"), ["Declined", "Confirmed"]);
    assert_eq!(column("returns", "reason"), ["Ill."]);
    assert_eq!(column("transactions", "type"), ["Sale", "Refund"]);
    // The ticket that was transferred is replaced by the recipient's.
    assert_eq!(column("tickets", "status"), ["Void", "Issued", "Issued"]);
    assert_eq!(
        (column("transfers", "self"), column("transfers", "status")),
        (vec![transfer["self"].clone()], vec![json!("Claimed")])
    );
    let operations = ["order_return_create", "order_payment_create", "order_payment_create"];
    assert_eq!(column("audit", "operation"), operations);
    assert_eq!((&history["payments"]["total"], &history["audit"]["records"]), (&json!(2), &json!(50)));

    let account = app.read(&format!("/accounts/{}/history", ama.number)).await;
    assert_eq!(account["account"], app.read(&format!("/accounts/{}", ama.number)).await);
    let numbers: Vec<&Value> = entries_of(&account["orders"]).iter().map(|order| &order["number"]).collect();
    assert_eq!((numbers.len(), numbers[1]), (2, &json!(order.number)), "the newest first");
    assert_eq!((&account["tickets"]["total"], &account["transfers"]["total"]), (&json!(2), &json!(1)));
    assert_eq!(account["audit"]["entries"][0]["operation"], "order_create");
}

#[test_on(sqlite, postgres)]
async fn sales_are_listed_by_day(app: TestApp) {
    let sections = [section("Floor", 100.0, 10), section("Free", 0.0, 10)];
    let (kofi, ama, event) = app.create_sale(&sections).await;
    let day = || app.state.clock.now().format_date();
    let first = day();
    ama.order_items([(event.sections[1].as_str(), 2)]).await.unwrap();
    app.advance_clock(2 * DAY);
    let third = day();
    let order = ama.order_items([(event.sections[0].as_str(), 2), (event.sections[1].as_str(), 1)]).await.unwrap();
    app.pay(&ama.key, &order.self_, card_payment()).await;
    ama.order(&event.sections[1], 1).await.unwrap();
    let list = async |query: &str| app.get(&kofi.key, &format!("{}/sales/days{query}", event.uri)).await;

    let all = list("").await;

    let expected = [
        json!({ "date": first, "orders": 1, "units": 2, "sales": 0.0, "fees": 0.0 }),
        json!({ "date": third, "orders": 2, "units": 4, "sales": 200.0, "fees": 3.98 }),
    ];
    assert_eq!((all.status, &all.body["entries"]), (200, &json!(expected)), "{}", all.body);
    let sales = app.read(&format!("{}/sales", event.uri)).await;
    assert_eq!((&sales["units"], &sales["sales"], &sales["fees"]), (&json!(6), &json!(200.0), &json!(3.98)));
    assert_eq!(list("?records=1&page=2").await.body["entries"], json!([expected[1]]));
    assert_eq!(list(&format!("?from={third}T00:00")).await.body["entries"], json!([expected[1]]));
    assert_eq!(list(&format!("?to={first}T23:59:59")).await.body["entries"], json!([expected[0]]));
    assert_eq!(list("?from=2026-02-01T00:00&to=2026-01-01T00:00").await.invalid_arguments(), ["to"]);
    // The sums of whole days are kept, those of other periods are computed.
    let within_days = format!("?from={first}T00:00:00.000001&to={third}T23:59:59");
    let sales_within_days = format!("{}/sales{within_days}", event.uri);
    assert_eq!(list(&within_days).await.body, all.body);
    assert_eq!(app.read(&sales_within_days).await, sales);

    app.return_tickets(&kofi.key, &order.self_, json!({})).await;

    let rest = list("").await.body;
    assert_eq!(rest["entries"][1]["units"], 1, "returned tickets don't count");
    assert_eq!(list(&within_days).await.body, rest);
    assert_eq!(app.read(&sales_within_days).await, app.read(&format!("{}/sales", event.uri)).await);
    app.assert_invariants().await;
}
