//! Complimentary orders.

use serde_json::{Value, json};

use crate::support::{Event, Response, TestApp, rejection, section};

on_both_databases![
    host_issues_complimentary_tickets,
    complimentary_tickets_count_for_capacity_and_maximum,
    complimentary_order_is_rejected_with_reasons,
    deactivated_account_gets_no_tickets,
];

race_tests![complimentary_tickets_and_orders_never_oversell];

async fn issue(app: &TestApp, key: &str, event: &Event, body: Value) -> Response {
    app.post(key, &format!("{}/complimentary-orders", event.uri), &body).await
}

async fn host_issues_complimentary_tickets(app: TestApp) {
    let mut later = section("Later", 50.0, 10);
    later.sales_start = "2998-01-01T00:00".to_owned();
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 100.0, 10), later]).await;
    let items = json!({ &event.sections[0]: 2, &event.sections[1]: 1 });

    let issued = issue(&app, &kofi.key, &event, json!({ "account": ama.number, "items": items })).await;

    assert_eq!(issued.status, 201, "{}", issued.body);
    let order = issued.header("location").to_owned();
    assert_eq!((&issued.body["status"], &issued.body["complimentary"]), (&json!("Fulfilled"), &json!(true)));
    let amounts = ["subtotal", "fees", "total", "refunded"].map(|name| issued.body[name].as_f64().unwrap());
    assert_eq!((amounts, &issued.body["items"][0]["unitPrice"]), ([0.0; 4], &json!(0.0)));
    assert_eq!((&issued.body["customer"]["username"], &issued.body["customer"]["phone"]), (&json!("ama"), &json!("")));
    assert_eq!(app.get(&kofi.key, &order).await.body, issued.body);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
    let wallet = app.get(&ama.key, &format!("/accounts/{}/tickets", ama.number)).await.body;
    assert_eq!((&wallet["total"], &wallet["entries"][0]["order"]), (&json!(3), &json!(order)));

    let by_email = json!({ "email": "AMA@example.com", "items": { &event.sections[0]: 1 } });
    let by_email = issue(&app, &app.staff.key, &event, by_email).await;
    assert_eq!((by_email.status, &by_email.body["customer"]["number"]), (201, &json!(ama.number)));
    let bought = ama.order(&event.sections[0], 1).await.unwrap();
    assert!(!bought.complimentary && bought.total > 100.0);
    let returned = app.return_tickets(&kofi.key, &order, json!({})).await;
    assert_eq!((&returned.body["status"], &returned.body["complimentary"]), (&json!("Returned"), &json!(true)));
    assert_eq!(app.transactions("/transactions").await, []);
}

async fn complimentary_tickets_count_for_capacity_and_maximum(app: TestApp) {
    let mut limited = section("Floor", 10.0, 4);
    limited.maximum_per_account = serde_json::from_value(json!(2)).unwrap();
    let (kofi, ama, event) = app.create_sale(&[limited]).await;
    let yaw = app.sign_up("yaw").await;
    let give = async |number: &str, quantity: i64| {
        issue(&app, &kofi.key, &event, json!({ "account": number, "items": { &event.sections[0]: quantity } })).await
    };

    assert_eq!(rejection(&give(&ama.number, 3).await), (409, "section.account-maximum"));
    assert_eq!(give(&ama.number, 2).await.status, 201);
    let order = app.place_order(&ama.key, json!({ &event.sections[0]: 1 })).await;
    assert_eq!(rejection(&order), (409, "section.account-maximum"));
    yaw.order(&event.sections[0], 1).await.unwrap();
    assert_eq!(rejection(&give(&kofi.number, 2).await), (409, "section.sold-out"));
    assert_eq!(give(&kofi.number, 1).await.status, 201);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (3, 1));
}

async fn complimentary_order_is_rejected_with_reasons(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 100)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 10.0, 100)]).await;
    let floor = event.sections[0].as_str();
    let items = json!({ floor: 1 });

    for (body, invalid) in [
        (json!({ "items": items }), &["-account"][..]),
        (json!({ "account": ama.number, "email": "ama@example.com", "items": items }), &["email"]),
        (json!({ "account": "ZZ-00000000", "items": items }), &["account"]),
        (json!({ "email": "nobody@example.com", "items": { &other.sections[0]: 1 } }), &["items", "email"]),
        (json!({ "account": ama.number, "items": { "/sections/17637000000001": 1 } }), &["items"]),
        (json!({ "account": ama.number, "items": { floor: 1, super::short(floor): 1 } }), &["items"]),
        (json!({ "account": ama.number, "items": {} }), &["items"]),
    ] {
        let rejected = issue(&app, &kofi.key, &event, body.clone()).await;
        assert_eq!(rejected.invalid_arguments(), *invalid, "{body}");
    }
    let body = json!({ "account": ama.number, "items": items });
    assert_eq!(rejection(&issue(&app, &ama.key, &event, body.clone()).await), (403, "resource.not-yours"));
    for (change, code) in [
        ("update hosts set removed = true", "host.removed"),
        ("update events set ends = 1, starts = 0", "event.over"),
        ("update events set status = 'Draft'", "event.not-listed"),
    ] {
        app.execute_sql(change).await;
        assert_eq!(rejection(&issue(&app, &app.staff.key, &event, body.clone()).await), (409, code));
    }
}

/// Nobody could use the places.
async fn deactivated_account_gets_no_tickets(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 100)]).await;
    let toggled = app.post_empty(&app.staff.key, &format!("/accounts/{}/toggles", ama.number)).await;
    assert_eq!(toggled.status, 200);
    let items = json!({ event.sections[0].as_str(): 1 });

    let given = issue(&app, &kofi.key, &event, json!({ "account": ama.number, "items": items })).await;
    let by_email = issue(&app, &kofi.key, &event, json!({ "email": "ama@example.com", "items": items })).await;
    let body = json!({ "customer": ama.number, "items": items });
    let ordered = app.post(&app.staff.key, "/orders", &body).await;

    for (rejected, argument) in [(given, "account"), (by_email, "email"), (ordered, "customer")] {
        assert_eq!(rejected.invalid_arguments(), [argument], "{}", rejected.body);
        assert!(rejected.body["error"].as_str().unwrap().contains("active account"), "{}", rejected.body);
    }
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 0));
}

async fn complimentary_tickets_and_orders_never_oversell(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Free", 0.0, 5)]).await;
    let body = json!({ "account": ama.number, "items": { &event.sections[0]: 1 } });

    let given = futures::future::join_all((0..6).map(|_| issue(&app, &kofi.key, &event, body.clone())));
    let ordered = futures::future::join_all((0..6).map(|_| app.place_order(&ama.key, json!({ &event.sections[0]: 1 }))));
    let (given, ordered) = futures::future::join(given, ordered).await;

    let all: Vec<u16> = given.iter().chain(&ordered).map(|response| response.status).collect();
    assert_eq!(
        (all.iter().filter(|status| **status == 201).count(), all.iter().filter(|status| **status == 409).count()),
        (5, 7)
    );
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (5, 0));
}
