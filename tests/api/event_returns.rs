//! Returns of all orders of a cancelled event: progress, money, repetition, and races with admissions, claims and single returns.

use std::sync::Arc;
use std::time::Duration;

use boxoffice::features::sales::{event_returns, mail};
use boxoffice::kernel::context::Context;
use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::{Event, Response, TestApp, entries_of, rejection, section, test_on};

/// Runs the jobs that report the cancellation and return orders, on every server at once until they have nothing to do.
async fn run_job(app: &TestApp) {
    let until_done = async |state: &Arc<_>| {
        while mail::report_events(&Context::immediate(Arc::clone(state))).await.unwrap() > 0 {}
        while event_returns::return_next(&Context::immediate(Arc::clone(state))).await.unwrap() > 0 {}
    };
    join_all(app.states().map(until_done)).await;
}

async fn cancel(app: &TestApp, event: &Event) {
    let cancelled = app.post_empty(&app.staff.key, &format!("{}/cancellations", event.uri)).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.body);
}

async fn start(app: &TestApp, key: &str, event: &Event) -> Response {
    app.post(key, &format!("{}/returns", event.uri), json!({ "reason": "A storm." })).await
}

/// Returns the status, the number of orders and tickets, the amount and the number of remaining orders of a run.
fn progress(run: &Value) -> Value {
    json!([run["status"], run["orders"], run["tickets"], run["amount"], run["remaining"]])
}

#[test_on(sqlite, postgres)]
async fn returns_all_orders_of_cancelled_event(app: TestApp) {
    app.stop_jobs().await;
    let sections = [section("Floor", 100.0, 100), section("Free", 0.0, 100)];
    let (kofi, ama, event) = app.create_sale(&sections).await;
    let yaw = app.sign_up("yaw").await;
    let (floor, free) = (event.sections[0].as_str(), event.sections[1].as_str());
    let orders = [ama.buy(&[(floor, 2), (free, 1)]).await.self_, yaw.buy(&[(floor, 1)]).await.self_];
    let used = yaw.order_free_tickets(free, 1).await;
    app.admit(&kofi.key, &event, used).await;
    let open = ama.order(floor, 1).await.unwrap().self_.clone();
    cancel(&app, &event).await;

    let started = start(&app, &kofi.key, &event).await;

    assert_eq!(started.status, 201, "{}", started.body);
    let uri = started.uri();
    assert_eq!((started.header("location"), progress(&started.body)), (uri, json!(["Running", 0, 0, 0.0, 3])));
    assert_eq!(app.read(uri).await, started.body);
    let context = Context::immediate(Arc::clone(&app.state));
    assert_eq!(event_returns::return_next(&context).await.unwrap(), 0, "the holders are told of the cancellation first");
    while mail::report_events(&context).await.unwrap() > 0 {}
    event_returns::return_next(&context).await.unwrap();
    assert_eq!(progress(&app.read(uri).await), json!(["Running", 1, 3, 203.98, 2]));
    run_job(&app).await;
    let done = app.read(uri).await;
    assert_eq!(progress(&done), json!(["Done", 2, 4, 305.97, 0]));
    assert!(done["finished"].is_string() && done["reason"] == "A storm.");
    let list = app.get(&kofi.key, &format!("{}/returns", event.uri)).await;
    assert_eq!(list.body["entries"], json!([done]));

    app.expire_due().await;
    for (order, amount) in orders.iter().zip([203.98, 101.99]) {
        let order = app.read(order).await;
        assert_eq!((&order["status"], &order["refunded"]), (&json!("Returned"), &json!(amount)));
        let returns = app.read(&format!("{}/returns", order["self"].as_str().unwrap())).await;
        assert_eq!((&returns["total"], &returns["entries"][0]["reason"]), (&json!(1), &json!("A storm.")));
    }
    assert_eq!(app.read(&open).await["status"], "Cancelled");
    assert_eq!(app.gateway.total(), 0.0);
    app.check_gateway_balance().await;
    app.assert_invariants().await;
    let statistics = app.read(&format!("{}/statistics", event.uri)).await;
    assert_eq!(statistics["tickets"], 1, "the used ticket");
}

#[test_on(sqlite, postgres)]
async fn tickets_of_other_events_stay_valid(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 100.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let other = app.create_listed_event(&app.create_host(&esi).await, &[section("Floor", 30.0, 10)]).await;
    let order = ama.buy(&[(&event.sections[0], 1), (&other.sections[0], 1)]).await.self_;
    cancel(&app, &event).await;
    let uri = start(&app, &kofi.key, &event).await.uri().to_owned();

    run_job(&app).await;

    assert_eq!(progress(&app.read(&uri).await), json!(["Done", 1, 1, 101.99, 0]));
    let order = app.read(&order).await;
    assert_eq!((&order["status"], &order["refunded"]), (&json!("Fulfilled"), &json!(101.99)));
    assert_eq!(app.sold_and_reserved(&other.sections[0]).await, (1, 0));
    let of_other = uri.replace(&event.uri, &other.uri);
    assert_eq!(rejection(&app.get(&esi.key, &of_other).await), (404, "resource.not-found"));
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres)]
async fn another_run_returns_tickets_that_became_valid(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Free", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 1).await;
    let admitted = app.admit(&kofi.key, &event, serials).await;
    cancel(&app, &event).await;
    start(&app, &kofi.key, &event).await;
    run_job(&app).await;

    let admission = admitted.body[0]["self"].as_str().unwrap();
    assert!(app.delete(&kofi.key, admission).await.status < 300);
    let again = start(&app, &kofi.key, &event).await.body;
    run_job(&app).await;

    assert_eq!(progress(&again), json!(["Running", 0, 0, 0.0, 1]));
    assert_eq!(progress(&app.read(again["self"].as_str().unwrap()).await), json!(["Done", 1, 1, 0.0, 0]));
    let runs = app.read(&format!("{}/returns", event.uri)).await;
    assert_eq!(entries_of(&runs).iter().map(|run| &run["tickets"]).collect::<Vec<_>>(), [&json!(0), &json!(1)]);
}

#[test_on(sqlite, postgres)]
async fn event_must_be_cancelled_and_has_one_run_at_a_time(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, event) = app.sign_up_host("kofi", &[section("Free", 0.0, 10)]).await;

    assert_eq!(rejection(&start(&app, &kofi.key, &event).await), (409, "event.not-cancelled"));
    cancel(&app, &event).await;
    let several = join_all((0..4).map(|_| start(&app, &kofi.key, &event))).await;
    let mut statuses: Vec<u16> = several.iter().map(|response| response.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409]);
    assert_eq!(rejection(&start(&app, &kofi.key, &event).await), (409, "event.returning"));
    run_job(&app).await;
    assert_eq!(start(&app, &kofi.key, &event).await.status, 201);
    // The event has no tickets, so it can be deleted with its runs.
    assert_eq!(app.delete(&kofi.key, &event.uri).await.status, 204);
}

#[test_on(sqlite, postgres)]
async fn order_that_cannot_be_returned_does_not_stop_the_others(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Free", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let later = ama.order(&event.sections[0], 1).await.unwrap();
    app.post(&ama.key, "/transfers", json!({ "recipient": esi.number, "tickets": serials })).await;
    cancel(&app, &event).await;
    let uri = start(&app, &kofi.key, &event).await.uri().to_owned();
    // A ticket of an open transfer that is not Pending is a failure of the server.
    app.execute("update tickets set status = 'Issued' where serial = $1", serials[0].clone()).await;

    run_job(&app).await;

    let run = app.read(&uri).await;
    assert_eq!((progress(&run), &run["failed"]), (json!(["Running", 1, 1, 0.0, 1]), &json!(1)));
    assert_eq!(app.read(&later.self_).await["status"], "Returned");
    app.advance_clock(Duration::from_secs(10 * 60));
    run_job(&app).await;
    assert_eq!(app.read(&uri).await, run, "it fails again");

    app.execute("update tickets set status = 'Pending' where serial = $1", serials[0].clone()).await;
    run_job(&app).await;
    assert_eq!(app.read(&uri).await, run, "it has a pause");
    app.advance_clock(Duration::from_secs(10 * 60));
    run_job(&app).await;

    let run = app.read(&uri).await;
    assert_eq!((progress(&run), &run["failed"]), (json!(["Done", 2, 3, 0.0, 0]), &json!(0)));
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_run_and_other_changes_refund_once(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 100)]).await;
    let yaw = app.sign_up("yaw").await;
    let mut orders = Vec::new();
    for _ in 0..6 {
        orders.push(ama.buy(&[(&event.sections[0], 2)]).await.self_);
    }
    let tickets = app.read(&format!("{}/tickets?records=100", event.uri)).await;
    let serial = |index: usize| tickets["entries"][index]["serial"].clone();
    let mut transfers = Vec::new();
    for index in [4, 6] {
        let transfer =
            app.post(&ama.key, "/transfers", json!({ "recipient": yaw.number, "tickets": [serial(index)] })).await.body;
        transfers.push(transfer["self"].as_str().unwrap().to_owned());
    }
    let admitted = app.admit(&kofi.key, &event, [serial(0)]).await;
    let admission = admitted.body[0]["self"].as_str().unwrap().to_owned();
    cancel(&app, &event).await;
    start(&app, &kofi.key, &event).await;

    let others = async {
        let undo = app.request("DELETE", &admission).key(&kofi.key).send();
        let single = app.return_tickets(&kofi.key, &orders[1], json!({}));
        let void = app.void_order(&app.staff.key, &orders[5], json!({ "reason": "Fraud." }));
        let claims = transfers.iter().map(|transfer| app.request("POST", &format!("{transfer}/claims")).key(&yaw.key).send());
        let (responses, claims) = join(join(undo, join(single, void)), join_all(claims)).await;
        let (undo, (single, void)) = responses;
        let all = [undo, single, void].into_iter().chain(claims);
        assert!(all.into_iter().all(|response| response.status < 500), "no failure");
    };
    join(run_job(&app), others).await;
    // The undo may have been later than the run.
    start(&app, &kofi.key, &event).await;
    run_job(&app).await;
    app.expire_due().await;

    let mut refunded = Vec::new();
    for order in &orders {
        let order = app.read(order).await;
        refunded.push((order["status"].as_str().unwrap().to_owned(), order["refunded"].as_f64().unwrap()));
    }
    for (status, amount) in &refunded[..5] {
        assert_eq!((status.as_str(), *amount), ("Returned", 21.98), "{refunded:?}");
    }
    // The order was either voided without a refund, or returned before.
    assert!([("Voided".to_owned(), 0.0), ("Returned".to_owned(), 21.98)].contains(&refunded[5]), "{refunded:?}");
    app.check_gateway_balance().await;
    app.assert_invariants().await;
}
