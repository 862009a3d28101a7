//! The state machines of orders and payments, as tables: an allowed transition succeeds, any other is rejected and changes
//! nothing.

use serde_json::{Value, json};

use crate::support::{Event, Response, TestApp, User, card_payment, partial_card_payment, section, test_on};

const ORDER_STATES: [&str; 6] = ["Placed", "Cancelled", "Timed Out", "Fulfilled", "Voided", "Returned"];
const ORDER_STEPS: [&str; 5] = ["pay", "cancel", "time out", "return", "void"];

/// Returns the state after a transition, or the error code.
fn outcome(state: &str, step: &str) -> Result<&'static str, &'static str> {
    match (state, step) {
        ("Placed", "pay") => Ok("Fulfilled"),
        ("Placed", "cancel") => Ok("Cancelled"),
        ("Placed", "time out") => Ok("Timed Out"),
        ("Fulfilled", "return") => Ok("Returned"),
        ("Fulfilled", "void") => Ok("Voided"),
        (_, "return" | "void") => Err("order.not-fulfilled"),
        (_, "time out") => Err(""),
        _ => Err("order.not-open"),
    }
}

/// Triggers a transition as staff. The expiry has no response.
async fn trigger(app: &TestApp, order: &str, step: &str) -> Option<Response> {
    let key = &app.staff.key;
    match step {
        "pay" => Some(app.pay(key, order, card_payment()).await),
        "cancel" => Some(app.cancel_order(key, order).await),
        "return" => Some(app.return_tickets(key, order, json!({})).await),
        "void" => Some(app.void_order(key, order, json!({ "reason": "x" })).await),
        _ => {
            app.time_out_orders().await;
            None
        }
    }
}

/// Creates Ama's order of a ticket at 100.00, of which 50.00 are paid, in this state.
async fn order_in(app: &TestApp, ama: &User, event: &Event, state: &str) -> String {
    let order = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(50.0)).await.status, 201);
    let steps: &[&str] = match state {
        "Placed" => &[],
        "Cancelled" => &["cancel"],
        "Timed Out" => &["time out"],
        "Fulfilled" => &["pay"],
        "Voided" => &["pay", "void"],
        _ => &["pay", "return"],
    };
    for taken in steps {
        assert!(trigger(app, &order, taken).await.is_none_or(|response| response.status < 300));
    }
    order
}

/// Returns everything that a transition could change.
async fn snapshot(app: &TestApp, order: &str) -> Vec<Value> {
    let tickets: Vec<(String, String, i64)> = app.rows("select serial, status, modified from tickets order by id").await;
    let events: Vec<(i64,)> = app.rows("select popularity from events order by id").await;
    let refunds: Vec<(i64, String)> = app.rows("select amount, status from refunds order by id").await;
    vec![
        app.read(order).await,
        app.read(&format!("{order}/payments")).await,
        app.read("/transactions?records=100").await,
        json!([tickets, events, refunds]),
        json!(app.stored_sold_and_reserved().await),
        json!(app.gateway.total()),
    ]
}

#[test_on(sqlite, postgres)]
async fn orders_follow_state_machine(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 100.0, 100)]).await;
    for state in ORDER_STATES {
        for taken in ORDER_STEPS {
            let order = order_in(&app, &ama, &event, state).await;
            assert_eq!(app.read(&order).await["status"], state);
            let before = snapshot(&app, &order).await;

            let response = trigger(&app, &order, taken).await;

            let after = snapshot(&app, &order).await;
            match outcome(state, taken) {
                Ok(next) => {
                    assert!(response.is_none_or(|response| response.status < 300), "{state}: {taken}");
                    assert_eq!(after[0]["status"], next, "{state}: {taken}");
                    let kept = ["Fulfilled", "Voided"].contains(&next);
                    let expected = if kept { "Confirmed" } else { "Refunded" };
                    let payments = after[1]["entries"].as_array().unwrap();
                    assert!(payments.iter().all(|payment| payment["status"] == expected), "{state}: {taken}");
                }
                Err(code) => {
                    let rejected = response.map(|response| (response.status, response.code().to_owned()));
                    assert_eq!(rejected, (taken != "time out").then(|| (409, code.to_owned())), "{state}: {taken}");
                    assert_eq!(after, before, "{state}: {taken}");
                }
            }
            // An account may have ten open orders only.
            if app.read(&order).await["status"] == "Placed" {
                app.cancel_order(&ama.key, &order).await;
            }
        }
    }
}

#[test_on(sqlite, postgres)]
async fn payments_follow_state_machine(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 100.0, 100)]).await;
    let states = async |order: &str| app.payments(order).await.into_iter().map(|payment| payment.1).collect::<Vec<_>>();

    // A refund changes Confirmed payments to Refunded, and keeps Declined ones.
    for ends in ["cancel", "time out", "return"] {
        let order = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
        app.pay(&ama.key, &order, json!({ "method": "card", "token": "tok_decline" })).await;
        app.pay(&ama.key, &order, partial_card_payment(50.0)).await;
        app.pay(&app.staff.key, &order, json!({ "method": "external", "amount": 1, "reference": "Receipt 7" })).await;
        assert_eq!(states(&order).await, ["Declined", "Confirmed", "Confirmed"]);
        if ends == "return" {
            app.pay(&ama.key, &order, card_payment()).await;
        }
        trigger(&app, &order, ends).await;
        let refunded = states(&order).await;
        assert_eq!(app.gateway.total(), 0.0, "{ends}");
        assert!(refunded[0] == "Declined" && refunded[1..].iter().all(|state| state == "Refunded"), "{ends}: {refunded:?}");

        // No transition leads out of these states.
        let before = snapshot(&app, &order).await;
        for taken in ORDER_STEPS {
            assert!(trigger(&app, &order, taken).await.is_none_or(|response| response.status == 409), "{ends}: {taken}");
            assert_eq!(snapshot(&app, &order).await, before, "{ends}: {taken}");
        }
    }

    // Transitions without a refund keep Confirmed payments.
    let order = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    app.pay(&ama.key, &order, card_payment()).await;
    trigger(&app, &order, "void").await;
    for taken in ORDER_STEPS {
        trigger(&app, &order, taken).await;
        assert_eq!(states(&order).await, ["Confirmed"], "{taken}");
    }
}
