//! The prices of orders and sections with modifiers.

use std::time::Duration;

use serde_json::{Value, json};

use super::{create_concert, modifier};
use crate::support::{TestApp, rejection, test_on, types};

#[test_on(sqlite, postgres)]
async fn order_names_applied_modifiers(app: TestApp) {
    let (kofi, event) = create_concert(&app).await;
    let [floor, balcony] = [&event.sections[0], &event.sections[1]];
    let dear = modifier(&app, &kofi.key, balcony, json!({ "name": "Gate", "priceDelta": 15.5 })).await;
    modifier(&app, &kofi.key, balcony, json!({ "name": "Off", "priceDelta": 7, "active": false })).await;
    let past = json!({ "name": "Past", "priceDelta": -7, "availableTo": "2021-01-01T00:00" });
    modifier(&app, &kofi.key, balcony, past).await;
    let cheap = modifier(&app, &kofi.key, balcony, json!({ "name": "Early bird", "priceDelta": -5 })).await;
    let ama = app.sign_up("ama").await;

    let placed = app.place_order(&ama.key, json!({ floor.as_str(): 1, balcony.as_str(): 2 })).await;

    assert_eq!(placed.status, 201, "{}", placed.body);
    let items = json!([
        { "event": event.uri, "section": floor, "quantity": 1, "unitPrice": 20.0, "modifier": null, "modifiers": [] },
        { "event": event.uri, "section": balcony, "quantity": 2, "unitPrice": 50.5, "modifier": dear, "modifiers": [dear, cheap] },
    ]);
    assert_eq!(placed.body["items"], items);
    // The fee depends on the modified price: above 50.
    let amounts = (&placed.body["subtotal"], &placed.body["fees"], &placed.body["total"]);
    assert_eq!(amounts, (&json!(121.0), &json!(4.97), &json!(125.97)));
    let uri = placed.uri();
    assert_eq!(app.get(&ama.key, uri).await.body, placed.body);
    assert_eq!(app.read("/orders").await["entries"], json!([placed.body]));
    let order = ama.client.order_get().order(placed.body["number"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(ama.pay(&order).await.unwrap().amount, 125.97);
}

#[test_on(sqlite, postgres)]
async fn quantity_bound_counts_tickets_of_section(app: TestApp) {
    let (kofi, event) = create_concert(&app).await;
    let [floor, balcony] = [&event.sections[0], &event.sections[1]];
    modifier(&app, &kofi.key, floor, json!({ "name": "Groups", "priceDelta": -4, "minOrder": 3, "maxOrder": 5 })).await;
    let ama = app.sign_up("ama").await;
    let shown = app.get(&ama.key, floor).await.body["price"].clone();
    assert_eq!(shown, json!({ "base": 20.0, "current": 20.0, "expires": "2999-01-01T00:00" }), "for one ticket");

    for (quantities, price) in [((2, 1), 20.0), ((3, 1), 16.0), ((5, 0), 16.0), ((6, 0), 20.0), ((2, 3), 20.0)] {
        let items = [(floor.as_str(), quantities.0), (balcony.as_str(), quantities.1)];
        let order = ama.order_items(items.into_iter().filter(|(_, quantity)| *quantity > 0)).await.unwrap();

        let item = order.items.iter().find(|item| item.section == *floor).unwrap();
        assert_eq!(item.unit_price, price, "{quantities:?}");
    }
}

#[test_on(sqlite, postgres)]
async fn price_does_not_fall_below_zero(app: TestApp) {
    let (kofi, event) = create_concert(&app).await;
    let floor = &event.sections[0];
    let gift = modifier(&app, &kofi.key, floor, json!({ "name": "Gift", "priceDelta": -30 })).await;
    let ama = app.sign_up("ama").await;
    assert_eq!(app.get(&ama.key, floor).await.body["price"]["current"], 0.0);

    let order = ama.order(floor, 2).await.unwrap();
    let mixed = ama.order_items([(floor.as_str(), 1), (event.sections[1].as_str(), 1)]).await.unwrap();

    assert_eq!((order.status, order.subtotal, order.fees), (types::OrderStatus::Fulfilled, 0.0, 0.0));
    assert_eq!(order.items[0].modifiers, [gift]);
    assert_eq!(app.sold_and_reserved(floor).await, (2, 1));
    let tickets = app.read(&format!("/accounts/{}/tickets", ama.number)).await;
    assert_eq!(tickets["total"], 2);
    assert_eq!((mixed.status, mixed.total), (types::OrderStatus::Placed, 40.99));
}

#[test_on(sqlite, postgres)]
async fn order_keeps_its_price(app: TestApp) {
    let (kofi, event) = create_concert(&app).await;
    let floor = &event.sections[0];
    let uri = modifier(&app, &kofi.key, floor, json!({ "name": "Early bird", "priceDelta": -5 })).await;
    let ama = app.sign_up("ama").await;
    let placed = app.place_order(&ama.key, json!({ floor.as_str(): 2 })).await.body;
    let price = async || app.get(&ama.key, floor).await.body["price"]["current"].as_f64().unwrap();

    app.put(&kofi.key, &uri, json!({ "priceDelta": -10 })).await;
    assert_eq!(price().await, 10.0);
    app.put(&kofi.key, &uri, json!({ "active": false })).await;
    assert_eq!(price().await, 20.0);
    app.put(&kofi.key, &uri, json!({ "active": true })).await;
    let removed = app.delete(&kofi.key, &uri).await;

    assert_eq!((removed.status, removed.body), (204, Value::Null));
    assert_eq!(rejection(&app.get(&kofi.key, &uri).await), (404, "resource.not-found"));
    assert_eq!(price().await, 20.0);
    assert_eq!((&placed["subtotal"], &placed["items"][0]["modifiers"]), (&json!(30.0), &json!([uri])));
    assert_eq!(app.get(&ama.key, placed["self"].as_str().unwrap()).await.body, placed);
    let later = ama.order(floor, 1).await.unwrap();
    assert_eq!((later.subtotal, later.items[0].modifiers.len(), later.items[0].modifier.clone()), (20.0, 0, None));
}

#[test_on(sqlite, postgres)]
async fn price_is_same_in_every_representation(app: TestApp) {
    let (kofi, event) = create_concert(&app).await;
    let floor = &event.sections[0];
    let ends = app.state.clock.now().plus(Duration::from_secs(1800));
    let early = json!({ "name": "Early bird", "priceDelta": -20, "availableTo": ends.format_rfc3339() });
    modifier(&app, &kofi.key, floor, early).await;
    let gate = json!({ "name": "Gate", "priceDelta": 3, "availableFrom": ends.format_rfc3339() });
    modifier(&app, &kofi.key, floor, gate).await;
    let ama = app.sign_up("ama").await;
    ama.order(floor, 1).await.unwrap();
    let tickets = format!("/accounts/{}/tickets", ama.number);
    let ticket = app.read(&tickets).await["entries"][0].clone();
    let admitted = app.admit(&kofi.key, &event, [&ticket["serial"]]).await;
    let shown = async || {
        let at = async |path: &str, pointer: &str| app.read(path).await.pointer(pointer).unwrap()["price"].clone();
        [
            at(floor, "").await,
            at(&floor[event.uri.len()..], "").await,
            at(&event.uri, "/sections/0").await,
            at("/events", "/entries/0/sections/0").await,
            at("/published-events", "/entries/0/sections/0").await,
            at(ticket["self"].as_str().unwrap(), "/section").await,
            at(&tickets, "/entries/0/section").await,
            at(&format!("{}/tickets", event.uri), "/entries/0/section").await,
            at(&format!("{}/admissions", event.uri), "/entries/0/section").await,
        ]
    };

    let early = json!({ "base": 20.0, "current": 0.0, "expires": ends.format_minutes() });
    assert_eq!(admitted.body[0]["section"]["price"], early);
    for price in shown().await {
        assert_eq!(price, early);
    }
    let changed = app.put(&kofi.key, floor, json!({ "description": "Standing." })).await;
    assert_eq!(changed.body["price"], early);
    app.advance_clock(Duration::from_secs(1800));
    for price in shown().await {
        assert_eq!(price, json!({ "base": 20.0, "current": 23.0, "expires": "2999-01-01T00:00" }));
    }
}
