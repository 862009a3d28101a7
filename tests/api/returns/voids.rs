//! Voided orders.

use serde_json::json;

use super::{OrderFixture, create_order, offer, revocations, statuses, wallet};
use crate::support::{TestApp, entry, paid, rejection, test_on};

#[test_on(sqlite, postgres)]
async fn void_refunds_nothing(app: TestApp) {
    let OrderFixture { ama, event, order, .. } = create_order(&app).await;
    let transfer = offer(&app, &ama, &app.sign_up("esi").await, &[&wallet(&app, &ama).await[0].0]).await;
    let mut expected = app.read(&order).await;

    let voided = app.void_order(&app.staff.key, &order, json!({ "reason": "A stolen card." })).await;

    expected["status"] = json!("Voided");
    assert_eq!((voided.status, voided.body), (200, expected.clone()));
    assert_eq!(app.read(&order).await, expected);
    assert_eq!(app.read(&transfer).await["status"], "Cancelled");
    assert_eq!(statuses(&app, &ama).await, ["Void", "Void", "Void"]);
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0), (0, 0)], 0));
    assert_eq!(app.read(&event.uri).await["popularity"], 0);
    app.expire_due().await;
    assert_eq!(app.payments(&order).await, [paid(234.97, "Confirmed")]);
    assert_eq!(app.transactions("/transactions").await, [entry("Sale", 234.97, 4.97)]);
    assert_eq!(app.gateway.total(), 234.97);
    let actual = revocations(&app).await;
    assert_eq!((actual.len(), actual[0].0.as_str(), actual[0].1, actual[0].2.as_str()), (1, "Void", 3, "A stolen card."));
}

#[test_on(sqlite, postgres)]
async fn reason_of_void_is_readable(app: TestApp) {
    let OrderFixture { kofi, ama, order, .. } = create_order(&app).await;
    let serial = &wallet(&app, &ama).await[0].0;
    app.return_tickets(&kofi.key, &order, json!({ "tickets": [serial], "reason": "Ill." })).await;
    let list = async |key: &str| app.get(key, &format!("{order}/voids")).await;
    assert_eq!(list(&ama.key).await.body["entries"], json!([]));

    let before = app.state.clock.now().format_rfc3339();
    app.void_order(&app.staff.key, &order, json!({ "reason": "A stolen card.\nReported by the bank." })).await;

    for key in [&ama.key, &kofi.key, &app.staff.key] {
        let voids = list(key).await;
        assert_eq!((voids.status, &voids.body["total"]), (200, &json!(1)), "{}", voids.body);
        let void = &voids.body["entries"][0];
        assert_eq!((&void["order"], &void["tickets"]), (&json!(order), &json!(2)));
        assert_eq!(void["reason"], "A stolen card.\nReported by the bank.");
        assert!((&*before..=&*app.state.clock.now().format_rfc3339()).contains(&void["voided"].as_str().unwrap()), "{void}");
    }
    assert_eq!(app.read(&format!("{order}/returns")).await["total"], 1, "the void is not among them");
    assert_eq!(app.read(&format!("{order}/history")).await["voids"]["entries"], list(&kofi.key).await.body["entries"]);
}

#[test_on(sqlite, postgres)]
async fn used_tickets_stay_redeemed_in_void_order(app: TestApp) {
    let OrderFixture { kofi, ama, event, order } = create_order(&app).await;
    let tickets = wallet(&app, &ama).await;
    app.admit(&kofi.key, &event, [&tickets[2].0]).await;

    assert_eq!(app.void_order(&app.staff.key, &order, json!({ "reason": "x" })).await.body["status"], "Voided");

    assert_eq!(statuses(&app, &ama).await, ["Void", "Void", "Redeemed"]);
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0), (1, 0)], 0));
    assert_eq!(app.read(&event.uri).await["popularity"], 1);
    let refused = app.admit(&kofi.key, &event, [&tickets[0].0]).await;
    assert_eq!(rejection(&refused), (400, "admission.none"), "a void ticket is not admitted");
    app.assert_invariants().await;
}
