//! Undoing admissions.

use std::time::Duration;

use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::admitted;
use crate::support::{Event, Response, TestApp, User, card_payment, rejection, section, test_on};
use crate::tokens::{create_token, global_token, redeemer_key};

/// Admits a ticket and returns the URI of the admission.
async fn admit_one(app: &TestApp, key: &str, event: &Event, serial: &str) -> String {
    let response = app.admit(key, event, [serial]).await;
    response.body[0]["self"].as_str().unwrap_or_else(|| panic!("{response:?}")).to_owned()
}

/// Returns the URI of an account's only order.
async fn only_order(app: &TestApp, account: &str) -> String {
    let orders = app.read(&format!("/accounts/{account}/orders")).await;
    assert_eq!(orders["total"], 1);
    orders["entries"][0]["self"].as_str().unwrap().to_owned()
}

/// Voids an order as a platform administrator.
async fn void(app: &TestApp, order: &str) -> Response {
    app.post(&app.staff.key, &format!("{order}/voids"), json!({ "reason": "Fraud." })).await
}

#[test_on(sqlite, postgres)]
async fn undone_ticket_admits_again(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let admission = admit_one(&app, &key, &event, &serials[0]).await;
    admit_one(&app, &key, &event, &serials[1]).await;

    let undone = app.delete(&key, &admission).await;

    assert_eq!((undone.status, &undone.body), (204, &Value::Null));
    assert_eq!(rejection(&app.delete(&key, &admission).await), (404, "resource.not-found"));
    let list = app.get(&key, &format!("{}/admissions", event.uri)).await;
    assert_eq!(admitted(&list), [&serials[1]], "the other admission stays");
    let ticket = &app.wallet(&ama).await[0];
    assert_eq!((&ticket["status"], &ticket["redeemed"]), (&json!("Issued"), &json!("N/A")));
    assert_eq!(app.read(&event.sections[0]).await["sold"], 2);
    let second = admit_one(&app, &key, &event, &serials[0]).await;
    assert_ne!(second, admission);
}

#[test_on(sqlite, postgres)]
async fn only_host_and_admitting_token_may_undo(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 4).await;
    let token = create_token(&event, &[&event.sections[0]]).await;
    let (key, colleague) = (redeemer_key(&app, &token).await, redeemer_key(&app, &token).await);
    let other = redeemer_key(&app, &global_token(&event).await).await;
    let by_host = admit_one(&app, &kofi.key, &event, &serials[0]).await;
    let mut by_token = Vec::new();
    for serial in &serials[1..] {
        by_token.push(admit_one(&app, &key, &event, serial).await);
    }

    for (key, admission) in [(&other, &by_token[0]), (&ama.key, &by_token[0]), (&key, &by_host)] {
        assert_eq!(rejection(&app.delete(key, admission).await), (403, "resource.not-yours"));
    }
    for (key, admission) in [(&colleague, &by_token[0]), (&kofi.key, &by_token[1]), (&app.staff.key, &by_token[2])] {
        assert_eq!(app.delete(key, admission).await.status, 204);
    }
    assert_eq!(app.delete(&kofi.key, &by_host).await.status, 204);
}

#[test_on(sqlite, postgres)]
async fn admission_is_undone_within_ten_minutes(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let first = admit_one(&app, &kofi.key, &event, &serials[0]).await;
    app.advance_clock(Duration::from_secs(60));
    let second = admit_one(&app, &kofi.key, &event, &serials[1]).await;

    app.advance_clock(Duration::from_secs(9 * 60 + 30));

    assert_eq!(rejection(&app.delete(&kofi.key, &first).await), (409, "admission.too-late"));
    assert_eq!(app.delete(&kofi.key, &second).await.status, 204);
    assert_eq!(app.read(&format!("{}/admissions", event.uri)).await["total"], 1);
}

#[test_on(sqlite, postgres)]
async fn ticket_of_voided_order_stays_redeemed(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let admission = admit_one(&app, &kofi.key, &event, &serials[0]).await;
    let order = only_order(&app, &ama.number).await;
    assert_eq!(void(&app, &order).await.status, 200);

    let rejected = app.delete(&kofi.key, &admission).await;

    assert_eq!(rejection(&rejected), (409, "admission.order-voided"));
    assert_eq!(app.read(&admission).await["ticket"], serials[0], "the admission stays");
    let again = app.admit(&kofi.key, &event, [&serials[0]]).await;
    assert_eq!(again.body["refused"][0]["reason"], "redeemed");
}

#[test_on(sqlite, postgres)]
async fn audit_log_keeps_admission_and_undo(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serial = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let admission = admit_one(&app, &kofi.key, &event, &serial).await;

    assert_eq!(app.delete(&kofi.key, &admission).await.status, 204);

    for (operation, resource, status) in
        [("event_admission_create", format!("{}/admissions", event.uri), 201), ("event_admission_delete", admission, 204)]
    {
        let log = app.read(&format!("/audit?operation={operation}")).await;
        let entry = &log["entries"][0];
        assert_eq!((&log["total"], &entry["resource"], &entry["status"]), (&json!(1), &json!(resource), &json!(status)), "{log}");
    }
}

#[test_on(sqlite, postgres)]
async fn gate_sees_undone_ticket(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let admission = admit_one(&app, &kofi.key, &event, &serials[0]).await;
    app.advance_clock(Duration::from_secs(120));
    let since = app.read("/time").await["utc"].as_i64().unwrap();

    assert_eq!(app.delete(&kofi.key, &admission).await.status, 204);

    let since = chrono::DateTime::from_timestamp(since - 1, 0).unwrap().format("%Y-%m-%dT%H:%M:%SZ");
    let changed = app.read(&format!("{}/tickets?modified_since={since}", event.uri)).await;
    assert_eq!((&changed["total"], &changed["entries"][0]["serial"]), (&json!(1), &json!(serials[0])));
    assert_eq!(changed["entries"][0]["status"], "Issued");
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_undo_and_admission_agree(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 8).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let (app, event, key, kofi) = (&app, &event, &key, &kofi);

    let rounds = serials.iter().map(|serial| async move {
        let admission = admit_one(app, key, event, serial).await;
        let (undone, again) =
            join(join_all([app.delete(key, &admission), app.delete(&kofi.key, &admission)]), app.admit(key, event, [serial]))
                .await;
        let mut statuses: Vec<u16> = undone.iter().map(|response| response.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 404], "it is undone once");
        assert!(again.status == 201 || again.body["refused"][0]["reason"] == "redeemed", "{again:?}");
        i64::from(again.status == 201)
    });
    let admitted_again: i64 = join_all(rounds).await.into_iter().sum();

    assert_eq!(app.read(&format!("{}/admissions", event.uri)).await["total"], admitted_again);
}

/// Has Ama buy a ticket, which is admitted. Returns the order, the serial and the admission.
async fn buy_and_admit(app: &TestApp, kofi: &User, ama: &User, event: &Event) -> (String, String, String) {
    let order = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
    let serial = app.wallet(ama).await.last().unwrap()["serial"].as_str().unwrap().to_owned();
    let admission = admit_one(app, &kofi.key, event, &serial).await;
    (order, serial, admission)
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_undo_and_return_agree(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 10.0, 10)]).await;
    for _ in 0..5 {
        let (order, _, admission) = buy_and_admit(&app, &kofi, &ama, &event).await;

        let (undone, returned) = join(app.delete(&kofi.key, &admission), app.return_tickets(&kofi.key, &order, json!({}))).await;

        assert_eq!(undone.status, 204, "a used ticket is not returned");
        assert!(returned.status == 200 || returned.code() == "ticket.not-issued", "{returned:?}");
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_undo_and_void_agree(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 10.0, 10)]).await;
    for _ in 0..5 {
        let (order, serial, admission) = buy_and_admit(&app, &kofi, &ama, &event).await;

        let (undone, voided) = join(app.delete(&kofi.key, &admission), void(&app, &order)).await;

        assert_eq!(voided.status, 200, "{voided:?}");
        assert!(undone.status == 204 || undone.code() == "admission.order-voided", "{undone:?}");
        let again = app.admit(&kofi.key, &event, [&serial]).await;
        let reason = if undone.status == 204 { "void" } else { "redeemed" };
        assert_eq!(again.body["refused"][0]["reason"], reason, "no ticket of a voided order admits");
    }
}
