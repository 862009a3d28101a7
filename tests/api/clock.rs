//! Steps of the system clock by an hour.

use std::time::Duration;

use boxoffice_http::log;
use serde_json::json;

use crate::on_both_databases;
use crate::support::{RESERVATION_TTL, TestApp, card_payment, check_invariants, section, wait_until};

on_both_databases![
    ids_increase_after_clock_steps_back,
    ids_increase_after_restart_with_earlier_clock,
    expired_order_stays_expired_after_clock_steps_back,
    due_jobs_run_after_clock_steps_back,
    clock_step_forward_expires_everything_once,
];

const HOUR: Duration = Duration::from_secs(3600);

async fn ids_increase_after_clock_steps_back(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 20.0, 10)]).await;

    let before = ama.order(&event.sections[0], 1).await.unwrap();
    app.state.clock.rewind(HOUR);
    let after = ama.order(&event.sections[0], 1).await.unwrap();

    assert!(before.number < after.number, "{} {}", before.number.as_str(), after.number.as_str());
    assert!(before.placed <= after.placed);
}

async fn ids_increase_after_restart_with_earlier_clock(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 20.0, 10)]).await;
    app.advance_clock(HOUR);
    let before = ama.order(&event.sections[0], 1).await.unwrap();

    let restarted = app.start_second_server(app.state.settings.clone(), log::silent()).await;
    let body = json!({ "items": { event.sections[0].as_str(): 1 } });
    let after = app.request("POST", "/orders").at(restarted.address).key(&ama.key).json(&body).send().await;

    assert_eq!(after.status, 201, "{}", after.body);
    assert!(before.number.as_str() < after.body["number"].as_str().unwrap(), "{} {}", before.number.as_str(), after.body);
}

async fn expired_order_stays_expired_after_clock_steps_back(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 20.0, 10)]).await;
    let floor = event.sections[0].as_str();
    let (verification, code) = app.request_code("/verifications", "ama@example.com", 1).await;
    let order = ama.order(floor, 3).await.unwrap().self_;
    app.advance_clock(RESERVATION_TTL);
    let expired = (app.read(&order).await["status"].clone(), app.sold_and_reserved(floor).await);

    app.state.clock.rewind(HOUR);
    app.expire_due().await;
    let paid = app.pay(&ama.key, &order, card_payment()).await;
    let verified = app.submit_code(&verification, json!({ "code": code })).await;
    let next = ama.order(floor, 2).await.unwrap().self_;
    app.advance_clock(HOUR + RESERVATION_TTL);
    app.expire_due().await;

    assert_eq!(expired, (json!("Timed Out"), (0, 0)));
    assert_eq!((paid.status, paid.code()), (409, "order.not-open"));
    assert_eq!((verified.status, verified.code()), (409, "verification.closed"));
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0)], 0), "its reservation was released once");
    assert_eq!(app.read(&next).await["status"], "Timed Out");
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(check_invariants(&mut app.state.db.read().await.unwrap()).await, [""; 0]);

    app.advance_clock(Duration::from_secs(31 * 24 * 3600));
    let late = app.request("GET", "/sessions/active").key(&ama.key).send().await;
    app.state.clock.rewind(2 * HOUR);
    let later = app.request("GET", "/sessions/active").key(&ama.key).send().await;
    assert_eq!((late.status, later.status), (403, 403), "a session that has ended doesn't come back");
}

async fn due_jobs_run_after_clock_steps_back(app: TestApp) {
    app.sign_up("ama").await;
    let asked = app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    app.state.clock.rewind(HOUR);
    let again = app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;

    assert_eq!((asked.status, again.status), (201, 201));
    app.mail_to("ama@example.com", 2).await;
    let now = async || app.request("GET", "/time").send().await.body["utc"].as_i64().unwrap();
    let before = now().await;
    wait_until(async || now().await > before).await;
}

async fn clock_step_forward_expires_everything_once(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 20.0, 10)]).await;
    let floor = event.sections[0].as_str();
    let paid = ama.order(floor, 2).await.unwrap();
    ama.pay(&paid).await.unwrap();
    let part = ama.order(floor, 3).await.unwrap().self_;
    assert_eq!(app.pay(&ama.key, &part, crate::support::partial_card_payment(5.0)).await.status, 201);

    app.advance_clock(HOUR);
    app.expire_due().await;
    app.state.clock.rewind(HOUR);
    app.advance_clock(HOUR);
    app.expire_due().await;

    assert_eq!(app.stored_sold_and_reserved().await, (vec![(2, 0)], 0));
    assert_eq!(app.payments(&part).await, [(5.0, "Refunded".to_owned())]);
    assert_eq!(check_invariants(&mut app.state.db.read().await.unwrap()).await, [""; 0]);
    app.check_gateway_balance().await;
}
