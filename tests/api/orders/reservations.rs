//! The reservations of open orders, and their end.

use std::time::Duration;

use serde_json::{Value, json};

use super::{create_concert, short};
use crate::support::{RESERVATION_TTL, Rejection, TestApp, rejection, section, test_on};

#[test_on(sqlite, postgres)]
async fn open_order_has_end_of_its_reservation(app: TestApp) {
    let event = create_concert(&app, &[120.0, 0.0]).await;
    let ama = app.sign_up("ama").await;
    let open = app.place_order(&ama.key, json!({ &event.sections[0]: 1 })).await.body;

    let time = |key: &str| chrono::DateTime::parse_from_rfc3339(open[key].as_str().unwrap()).unwrap();
    assert_eq!((time("expires") - time("placed")).to_std().unwrap(), RESERVATION_TTL);
    assert_eq!(open["refunded"], 0.0);
    assert_eq!(app.read(open["self"].as_str().unwrap()).await, open);

    let free = app.place_order(&ama.key, json!({ &event.sections[1]: 1 })).await.body;
    assert_eq!((&free["status"], &free["expires"]), (&json!("Fulfilled"), &Value::Null));
    assert_eq!(app.wallet(&ama).await[0]["order"], free["self"]);

    app.advance_clock(RESERVATION_TTL);
    let over = app.read(open["self"].as_str().unwrap()).await;
    assert_eq!((&over["status"], &over["expires"]), (&json!("Timed Out"), &Value::Null));
}

#[test_on(sqlite, postgres)]
async fn order_reserves_tickets(app: TestApp) {
    let event = create_concert(&app, &[120.0, 0.0, 30.5]).await;
    let (stalls, standing, balcony) = (&event.sections[0], &event.sections[1], &event.sections[2]);
    let ama = app.sign_up("ama").await;

    // Sections are named in every accepted form.
    let items = json!({ format!("/v3{balcony}"): 1, stalls: 2, short(standing): 3 });
    let placed = app.place_order(&ama.key, items).await;

    assert_eq!(placed.status, 201, "{}", placed.body);
    let order = &placed.body;
    let uri = format!("/orders/{}", order["number"].as_str().unwrap());
    assert_eq!(placed.header("location"), uri);
    assert_eq!(order["self"], uri);
    assert_eq!(order["payments"], format!("{uri}/payments"));
    assert_eq!(order["status"], "Placed");
    assert_eq!(order["customer"], app.get(&ama.key, &format!("/accounts/{}", ama.number)).await.body);
    assert!(order["placed"].as_str().unwrap().ends_with("+00:00"));
    let item = |section: &str, quantity: i64, price: f64| json!({ "event": event.uri, "section": section, "quantity": quantity, "unitPrice": price, "modifier": null, "modifiers": [] });
    assert_eq!(order["items"], json!([item(balcony, 1, 30.5), item(stalls, 2, 120.0), item(standing, 3, 0.0)]));
    let amounts = (&order["subtotal"], &order["fees"], &order["total"]);
    assert_eq!(amounts, (&json!(270.5), &json!(6.97), &json!(277.47)));
    assert_eq!(app.get(&ama.key, &uri).await.body, *order);

    for (section, reserved) in [(stalls, 2), (standing, 3), (balcony, 1)] {
        assert_eq!(app.sold_and_reserved(section).await, (0, reserved), "{section}");
    }
}

#[test_on(sqlite, postgres)]
async fn expired_reservation_frees_tickets_immediately(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("VIP", 10.0, 3)]).await;
    let vip = event.sections[0].as_str();
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let order = ama.order(vip, 3).await.unwrap();
    app.advance_clock(RESERVATION_TTL - Duration::from_secs(60));
    assert_eq!(yaw.order(vip, 1).await.rejection(), (409, "section.sold-out".to_owned()));
    assert_eq!(app.get(&ama.key, &order.self_).await.body["status"], "Placed");

    // No job times the order out before the next one takes its places.
    app.stop_jobs().await;
    app.advance_clock(Duration::from_secs(60));

    assert_eq!(app.get(&ama.key, &order.self_).await.body["status"], "Timed Out");
    assert_eq!(rejection(&app.cancel_order(&ama.key, &order.self_).await), (409, "order.not-open"));
    assert_eq!(app.sold_and_reserved(vip).await, (0, 0));
    yaw.order(vip, 3).await.unwrap();
    assert_eq!(app.sold_and_reserved(vip).await, (0, 3));
    assert_eq!(ama.pay(&order).await.rejection(), (409, "order.not-open".to_owned()));
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres)]
async fn job_expires_orders_and_releases_reservations(app: TestApp) {
    let event = create_concert(&app, &[10.0, 20.0]).await;
    let (stalls, balcony) = (event.sections[0].as_str(), event.sections[1].as_str());
    for number in 0..13 {
        let user = app.sign_up(&format!("person-{number}")).await;
        for _ in 0..4 {
            user.order_items([(stalls, 1), (balcony, 1)]).await.unwrap();
        }
    }
    let ama = app.sign_up("ama").await;
    let paid = ama.order(stalls, 5).await.unwrap();
    ama.pay(&paid).await.unwrap();
    app.advance_clock(RESERVATION_TTL - Duration::from_secs(60));
    let young = ama.order(balcony, 1).await.unwrap();

    app.advance_clock(Duration::from_secs(60));
    app.expire_due().await;

    assert_eq!(app.stored_sold_and_reserved().await, (vec![(5, 0), (0, 1)], 1), "stored counters");
    assert_eq!(app.scalar::<i64>("select count(*) from orders where status = 'Timed Out'").await, 52);
    assert_eq!(app.get(&ama.key, &young.self_).await.body["status"], "Placed");
    assert_eq!(app.get(&ama.key, &paid.self_).await.body["status"], "Fulfilled");
}

#[test_on(sqlite, postgres)]
async fn cancellation_releases_reservation(app: TestApp) {
    let event = create_concert(&app, &[10.0, 20.0]).await;
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let items = [(event.sections[0].as_str(), 2), (event.sections[1].as_str(), 1)];
    let order = ama.order_items(items).await.unwrap();
    yaw.order(&event.sections[0], 1).await.unwrap();

    let cancelled = app.cancel_order(&ama.key, &order.self_).await;

    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("Cancelled")));
    assert_eq!(cancelled.body["items"].as_array().unwrap().len(), 2);
    assert_eq!(app.get(&ama.key, &order.self_).await.body, cancelled.body);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 1));
    assert_eq!(app.sold_and_reserved(&event.sections[1]).await, (0, 0));
    app.time_out_orders().await;
    assert_eq!(app.get(&ama.key, &order.self_).await.body["status"], "Cancelled");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 0));
}
