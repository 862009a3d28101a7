//! The reasons for which tickets are not admitted.

use std::time::Duration;

use serde_json::{Value, json};

use super::{admitted, reasons};
use crate::support::{Event, Response, TestApp, rejection, section, test_on};
use crate::tickets::set_status;
use crate::tokens::{create_token, global_token, redeemer_key};

/// Scans these serials.
async fn scan(app: &TestApp, key: &str, event: &Event, serials: &[&str]) -> Response {
    app.post(key, &format!("{}/scans", event.uri), json!({ "serials": serials })).await
}

#[test_on(sqlite, postgres)]
async fn refusal_has_reason_for_each_serial(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 0.0, 10)]).await;
    let [pending, void, redeemed] = ama.order_free_tickets(&event.sections[0], 3).await.try_into().unwrap();
    let [floor, floor_redeemed] = ama.order_free_tickets(&event.sections[1], 2).await.try_into().unwrap();
    let other_event = ama.order_free_tickets(&other.sections[0], 1).await.remove(0);
    set_status(&app, &pending, "Pending").await;
    set_status(&app, &void, "Void").await;
    assert_eq!(app.admit(&kofi.key, &event, [&redeemed, &floor_redeemed]).await.status, 201);
    let key = redeemer_key(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    let serials = [&redeemed, &pending, &void, &floor, &floor_redeemed, &other_event, "scribble", &pending];

    let (by_admission, by_scan) = (app.admit(&key, &event, serials).await, scan(&app, &key, &event, &serials).await);

    let expected = [
        (redeemed.as_str(), "redeemed"),
        (&pending, "pending"),
        (&void, "void"),
        (&floor, "other-section"),
        (&floor_redeemed, "other-section"),
        (&other_event, "unknown"),
        ("scribble", "unknown"),
    ];
    for response in [by_admission, by_scan] {
        assert_eq!(rejection(&response), (400, "admission.none"));
        assert_eq!(reasons(&response), expected, "each once, in the order of the request");
        assert_eq!(response.body["error"], "None of these tickets can be admitted.");
        assert_eq!(response.body["fields"][0]["name"], "serials");
        assert!(response.body["refused"][4]["admission"].is_null(), "the admission to another section stays hidden");
    }
}

#[test_on(sqlite, postgres)]
async fn scan_reports_admitted_and_refused_tickets(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let [good, pending, other] = ama.order_free_tickets(&event.sections[0], 3).await.try_into().unwrap();
    set_status(&app, &pending, "Pending").await;
    let key = redeemer_key(&app, &global_token(&event).await).await;

    let response = scan(&app, &key, &event, &[&pending, &good, "scribble", &good]).await;

    assert_eq!(response.status, 200, "{response:?}");
    let serials: Vec<&Value> =
        response.body["admitted"].as_array().unwrap().iter().map(|admission| &admission["ticket"]).collect();
    assert_eq!(serials, [&json!(good)]);
    assert_eq!(reasons(&response), [(pending.as_str(), "pending"), ("scribble", "unknown")]);
    let list = app.read(&format!("{}/admissions", event.uri)).await;
    assert_eq!(list["entries"], response.body["admitted"]);
    // The other operation still returns a plain array.
    let plain = app.admit(&key, &event, [&pending, &other]).await;
    assert_eq!((plain.status, admitted(&plain)), (201, vec![other.as_str()]));
    let all = app.create_listed_event(&event.host, &[section("VIP", 0.0, 10)]).await;
    let ticket = ama.order_free_tickets(&all.sections[0], 1).await.remove(0);
    assert_eq!(scan(&app, &kofi.key, &all, &[&ticket]).await.body["refused"], json!([]));
}

#[test_on(sqlite, postgres)]
async fn refusal_shows_earlier_admission(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let [by_gate, by_host] = ama.order_free_tickets(&event.sections[0], 2).await.try_into().unwrap();
    let token = global_token(&event).await;
    let key = redeemer_key(&app, &token).await;
    let body = json!({ "serials": [by_gate], "redeemer": "Yaw", "device": "Gate A" });
    let first = app.post(&key, &format!("{}/admissions", event.uri), &body).await;
    let second = app.admit(&kofi.key, &event, [&by_host]).await;
    app.advance_clock(Duration::from_secs(60));

    let again = app.admit(&key, &event, [&by_gate, &by_host]).await;

    let earlier = |of: &Response, redeemer: &str, device: &str, token: Value| {
        json!({
            "self": of.body[0]["self"], "admitted": of.body[0]["admitted"], "redeemer": redeemer, "device": device, "token": token,
            "tokenName": "",
        })
    };
    assert_eq!(reasons(&again), [(by_gate.as_str(), "redeemed"), (by_host.as_str(), "redeemed")]);
    assert_eq!(again.body["refused"][0]["admission"], earlier(&first, "Yaw", "Gate A", json!(token.self_)));
    assert_eq!(again.body["refused"][1]["admission"], earlier(&second, &kofi.number, "", Value::Null));
}

#[test_on(sqlite, postgres)]
async fn replaced_ticket_is_void(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let copy = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let transfer = app.post(&ama.key, "/transfers", json!({ "recipient": esi.number, "tickets": [copy] })).await;
    assert_eq!(reasons(&app.admit(&kofi.key, &event, [&copy]).await), [(copy.as_str(), "pending")]);

    let claim = format!("{}/claims", transfer.uri());
    assert_eq!(app.post_empty(&esi.key, &claim).await.status, 200);

    assert_eq!(reasons(&app.admit(&kofi.key, &event, [&copy]).await), [(copy.as_str(), "void")]);
}

#[test_on(sqlite, postgres)]
async fn cancelled_event_is_reason_for_each_serial(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let ticket = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let key = redeemer_key(&app, &global_token(&event).await).await;
    assert_eq!(app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await.status, 200);

    for response in [app.admit(&key, &event, [&ticket, "x", "x"]).await, scan(&app, &key, &event, &[&ticket, "x"]).await] {
        assert_eq!(rejection(&response), (400, "admission.none"));
        assert_eq!(reasons(&response), [(ticket.as_str(), "event-cancelled"), ("x", "event-cancelled")]);
    }
}

#[test_on(sqlite, postgres)]
async fn serials_are_compared_without_case(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let ticket = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let lower = ticket.to_lowercase();

    let response = scan(&app, &kofi.key, &event, &[&format!(" {lower} "), &ticket, "scribble"]).await;
    let again = app.admit(&kofi.key, &event, [&lower, &ticket]).await;

    assert_eq!(response.body["admitted"][0]["ticket"], ticket);
    assert_eq!(reasons(&response), [("scribble", "unknown")], "both are the same ticket");
    assert_eq!(reasons(&again), [(lower.as_str(), "redeemed")], "as the client sent it");
    let list = app.get(&kofi.key, &format!("{}/admissions?ticket={lower}", event.uri)).await;
    assert_eq!(admitted(&list), [&ticket]);
}

#[test_on(sqlite, postgres)]
async fn serials_of_requests_are_compared_without_case(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let [offered, returned] = ama.order_free_tickets(&event.sections[0], 2).await.try_into().unwrap();

    let offer = async |serials: &[&str]| {
        let body = json!({ "recipient": esi.number, "tickets": serials });
        app.post(&ama.key, "/transfers", &body).await
    };
    let repeated = offer(&[&offered.to_lowercase(), &offered]).await;
    let transfer = offer(&[&offered.to_lowercase()]).await;
    let order = app.read(&format!("/accounts/{}/orders", ama.number)).await["entries"][0]["self"].as_str().unwrap().to_owned();
    let returned = app.return_tickets(&kofi.key, &order, json!({ "tickets": [returned.to_lowercase()] })).await;

    assert_eq!(repeated.invalid_arguments(), ["tickets"]);
    let tickets = transfer.body["tickets"].as_array().unwrap();
    assert_eq!((transfer.status, tickets.len(), &tickets[0]["serial"]), (201, 1, &json!(offered)));
    assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Fulfilled")), "{returned:?}");
}

#[test_on(sqlite, postgres)]
async fn code_is_compared_without_case(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("VIP", 0.0, 10)]).await;
    let token = global_token(&event).await;

    let response = app.request("GET", &format!("/tokens/{}", token.code.to_lowercase())).send().await;

    assert_eq!((response.status, &response.body["event"]), (200, &json!(event.uri)));
}
