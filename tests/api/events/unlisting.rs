//! Withdrawal and cancellation of events.

use std::time::Duration;

use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::rejection;
use crate::races::count_statuses;
use crate::review::submission_of;
use crate::support::{Event, RESERVATION_TTL, Response, TestApp, User, card_payment, partial_card_payment, section, test_on};

async fn unlist(app: &TestApp, key: &str, event: &Event, how: &str) -> Response {
    app.post_empty(key, &format!("{}/{how}", event.uri)).await
}

/// Creates a listed event of Kofi, with ten tickets at 100.00 and ten free ones.
async fn create_concert(app: &TestApp, kofi: &User) -> Event {
    app.create_listed_event(&app.create_host(kofi).await, &[section("Stalls", 100.0, 10), section("Lawn", 0.0, 10)]).await
}

#[test_on(sqlite, postgres)]
async fn withdrawn_event_is_draft_without_sales(app: TestApp) {
    let (kofi, ama, yaw) = (app.sign_up("kofi").await, app.sign_up("ama").await, app.sign_up("yaw").await);
    let event = create_concert(&app, &kofi).await;
    ama.order(&event.sections[1], 2).await.unwrap();
    let returned = yaw.order(&event.sections[1], 1).await.unwrap();
    assert_eq!(app.return_tickets(&app.staff.key, &returned.self_, json!({})).await.status, 200);
    let mut expected = app.get(&kofi.key, &event.uri).await.body;

    let withdrawn = unlist(&app, &kofi.key, &event, "withdrawals").await;

    expected["status"] = "Draft".into();
    assert_eq!((withdrawn.status, &withdrawn.body), (200, &expected));
    for key in [&kofi.key, &ama.key] {
        assert_eq!(app.get(key, &event.uri).await.body, expected);
        assert_eq!(app.get(key, &event.sections[1]).await.status, 200);
    }
    assert_ne!(expected["published"], "", "it has the time of publication");
    for key in [&yaw.key, &app.public_key] {
        assert_eq!(rejection(&app.get(key, &event.uri).await), (403, "resource.not-yours"));
        assert_eq!(rejection(&app.get(key, &event.sections[1]).await), (403, "resource.not-yours"));
    }
    assert_eq!(app.public_client.published_event_list().send().await.unwrap().total, 0);
    assert_eq!(app.public_client.event_list().send().await.unwrap().total, 0);
    for section in &event.sections {
        assert_eq!(rejection(&app.place_order(&ama.key, json!({ section.as_str(): 1 })).await), (409, "event.not-listed"));
    }
    assert_eq!(rejection(&app.delete(&kofi.key, &event.uri).await), (409, "event.sold"));
}

#[test_on(sqlite, postgres)]
async fn sold_tickets_of_withdrawn_event_stay_valid(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = create_concert(&app, &kofi).await;
    ama.order(&event.sections[1], 1).await.unwrap();
    let open = ama.order(&event.sections[0], 1).await.unwrap();
    app.pay(&ama.key, &open.self_, partial_card_payment(50.0)).await;

    assert_eq!(unlist(&app, &kofi.key, &event, "withdrawals").await.status, 200);

    assert_eq!(app.pay(&ama.key, &open.self_, card_payment()).await.status, 201, "existing reservations can be paid");
    assert_eq!(app.read(&open.self_).await["status"], "Fulfilled");
    let tickets = app.wallet(&ama).await;
    let serials: Vec<&Value> = tickets.iter().map(|ticket| &ticket["serial"]).collect();
    let admitted = app.admit(&kofi.key, &event, serials).await;
    assert_eq!((admitted.status, admitted.body.as_array().unwrap().len()), (201, 2));
}

#[test_on(sqlite, postgres)]
async fn withdrawn_event_can_be_published_again(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Lawn", 0.0, 10)]).await;
    let first = app.read(&event.uri).await["published"].clone();
    unlist(&app, &kofi.key, &event, "withdrawals").await;
    app.advance_clock(Duration::from_secs(3600));

    app.list_event(&event).await;

    let again = app.get(&app.public_key, &event.uri).await.body;
    assert_eq!(again["status"], "Listed");
    assert!(again["published"].as_str().unwrap() > first.as_str().unwrap(), "{again}");
    ama.order(&event.sections[0], 1).await.unwrap();
}

#[test_on(sqlite, postgres)]
async fn withdrawn_event_with_sold_tickets_is_cancelled(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = create_concert(&app, &kofi).await;
    ama.order(&event.sections[1], 2).await.unwrap();
    assert_eq!(unlist(&app, &kofi.key, &event, "withdrawals").await.status, 200);
    assert_eq!(app.delete(&kofi.key, &event.host.uri).await.status, 204, "its events can't be published any more");

    let cancelled = unlist(&app, &kofi.key, &event, "cancellations").await;

    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("Cancelled")), "{cancelled:?}");
    assert_eq!(app.get(&app.public_key, &event.uri).await.body, cancelled.body);
    let returns = app.post(&kofi.key, &format!("{}/returns", event.uri), json!({})).await;
    assert_eq!((returns.status, &returns.body["remaining"]), (201, &json!(1)), "{returns:?}");
    assert_eq!(rejection(&unlist(&app, &kofi.key, &event, "cancellations").await), (409, "event.not-listed"));
}

#[test_on(sqlite, postgres)]
async fn withdrawn_event_that_cannot_be_deleted_is_cancelled(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let [returned, open, expired] =
        [create_concert(&app, &kofi).await, create_concert(&app, &kofi).await, create_concert(&app, &kofi).await];
    ama.order(&expired.sections[0], 1).await.unwrap();
    app.advance_clock(RESERVATION_TTL);
    let order = ama.order(&returned.sections[1], 2).await.unwrap();
    assert_eq!(app.return_tickets(&app.staff.key, &order.self_, json!({})).await.status, 200);
    let order = ama.order(&open.sections[0], 1).await.unwrap();
    for event in [&returned, &open, &expired] {
        assert_eq!(unlist(&app, &kofi.key, event, "withdrawals").await.status, 200);
    }

    for event in [&returned, &open] {
        assert_eq!(rejection(&app.delete(&kofi.key, &event.uri).await), (409, "event.sold"));
        let cancelled = unlist(&app, &kofi.key, event, "cancellations").await;
        assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("Cancelled")), "{cancelled:?}");
    }
    assert_eq!(rejection(&app.pay(&ama.key, &order.self_, card_payment()).await), (409, "event.cancelled"));
    assert_eq!(rejection(&unlist(&app, &kofi.key, &expired, "cancellations").await), (409, "event.not-listed"));
    assert_eq!(app.delete(&kofi.key, &expired.uri).await.status, 204);
}

#[test_on(sqlite, postgres)]
async fn cancellation_of_event_under_review_cancels_its_submission(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = create_concert(&app, &kofi).await;
    ama.order(&event.sections[1], 2).await.unwrap();
    assert_eq!(unlist(&app, &kofi.key, &event, "withdrawals").await.status, 200);
    assert_eq!(unlist(&app, &kofi.key, &event, "submissions").await.status, 201);

    let cancelled = unlist(&app, &kofi.key, &event, "cancellations").await;

    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("Cancelled")), "{cancelled:?}");
    let submission = submission_of(&event.uri);
    assert_eq!(app.read(&submission).await["status"], "Cancelled");
    assert_eq!(app.read("/submissions").await["total"], 0);
    for approved in [true, false] {
        let decided = app.delete(&app.staff.key, &format!("{submission}?approved={approved}")).await;
        assert_eq!(rejection(&decided), (409, "submission.decided"));
    }
    assert_eq!(app.read(&event.uri).await["status"], "Cancelled");
    let returns = app.post(&kofi.key, &format!("{}/returns", event.uri), json!({})).await;
    assert_eq!((returns.status, &returns.body["remaining"]), (201, &json!(1)), "{returns:?}");
}

#[test_on(sqlite, postgres)]
async fn cancelled_event_is_visible_without_sales(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = create_concert(&app, &kofi).await;
    ama.order(&event.sections[1], 2).await.unwrap();
    let mut expected = app.get(&kofi.key, &event.uri).await.body;

    let cancelled = unlist(&app, &kofi.key, &event, "cancellations").await;

    expected["status"] = "Cancelled".into();
    assert_eq!((cancelled.status, &cancelled.body), (200, &expected));
    assert_eq!(app.get(&app.public_key, &event.uri).await.body, expected);
    assert_eq!(app.public_client.published_event_list().send().await.unwrap().total, 0);
    for section in &event.sections {
        assert_eq!(rejection(&app.place_order(&ama.key, json!({ section.as_str(): 1 })).await), (409, "event.not-listed"));
    }
}

#[test_on(sqlite, postgres)]
async fn open_order_of_cancelled_event_cannot_be_paid(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = create_concert(&app, &kofi).await;
    let [first, second] = [ama.order(&event.sections[0], 2).await.unwrap(), ama.order(&event.sections[0], 1).await.unwrap()];
    for order in [&first, &second] {
        assert_eq!(app.pay(&ama.key, &order.self_, partial_card_payment(50.0)).await.status, 201);
    }

    assert_eq!(unlist(&app, &kofi.key, &event, "cancellations").await.status, 200);

    for (key, payment) in [
        (&ama.key, card_payment()),
        (&ama.key, partial_card_payment(1.0)),
        (&app.staff.key, json!({ "method": "external", "reference": "Receipt 7" })),
    ] {
        assert_eq!(rejection(&app.pay(key, &first.self_, payment).await), (409, "event.cancelled"));
    }
    // The job cancels the orders and refunds their payments.
    app.expire_due().await;
    for order in [&first, &second] {
        assert_eq!(app.read(&order.self_).await["status"], "Cancelled");
        assert_eq!(app.payments(&order.self_).await, [(50.0, "Refunded".to_owned())]);
        assert_eq!(rejection(&app.pay(&ama.key, &order.self_, card_payment()).await), (409, "event.cancelled"));
    }
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 0));
}

#[test_on(sqlite, postgres)]
async fn open_orders_of_cancelled_event_do_not_count(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let off = create_concert(&app, &kofi).await;
    let on = app.create_listed_event(&app.create_host(&kofi).await, &[section("Stalls", 100.0, 100)]).await;
    for _ in 0..9 {
        ama.order(&off.sections[0], 1).await.unwrap();
    }
    let both = ama.order_items([(on.sections[0].as_str(), 1), (off.sections[0].as_str(), 1)]).await.unwrap();
    assert_eq!(rejection(&app.place_order(&ama.key, json!({ on.sections[0].as_str(): 1 })).await), (409, "order.too-many"));

    unlist(&app, &kofi.key, &off, "cancellations").await;

    let orders = join_all((0..11).map(|_| app.place_order(&ama.key, json!({ on.sections[0].as_str(): 1 })))).await;
    assert_eq!(count_statuses(&orders, [201, 409]), [10, 1]);
    app.expire_due().await;
    assert_eq!(app.read(&both.self_).await["status"], "Cancelled", "the whole order, because it can't be paid");
    assert_eq!(app.sold_and_reserved(&on.sections[0]).await, (0, 10));
    let open = app.read(&format!("/accounts/{}/orders?status=Placed", ama.number)).await;
    assert_eq!(open["total"], 10);
}

#[test_on(sqlite, postgres)]
async fn order_with_one_cancelled_event_cannot_be_paid(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (off, on) = (create_concert(&app, &kofi).await, create_concert(&app, &kofi).await);
    let both = ama.order_items([(on.sections[0].as_str(), 1), (off.sections[1].as_str(), 1)]).await.unwrap();
    let other = ama.order(&on.sections[0], 1).await.unwrap();

    unlist(&app, &kofi.key, &off, "cancellations").await;

    assert_eq!(rejection(&app.pay(&ama.key, &both.self_, card_payment()).await), (409, "event.cancelled"));
    assert_eq!(app.pay(&ama.key, &other.self_, card_payment()).await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn cancellation_refunds_payment_in_progress(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = create_concert(&app, &kofi).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
    let meanwhile = async || {
        assert_eq!(unlist(&app, &kofi.key, &event, "cancellations").await.status, 200);
    };

    let (paid, ()) = app.pay_during(&ama, &order, card_payment(), meanwhile).await;

    assert_eq!(rejection(&paid), (409, "event.cancelled"));
    app.assert_refunded(&order, 203.98).await;
    assert_eq!(app.read(&event.uri).await["popularity"], 0);
    app.expire_due().await;
    assert_eq!(app.read(&order).await["status"], "Cancelled");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 0));
}

#[test_on(sqlite, postgres)]
async fn cancellation_refunds_partial_payment_in_progress(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = create_concert(&app, &kofi).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
    let meanwhile = async || {
        assert_eq!(unlist(&app, &app.staff.key, &event, "cancellations").await.status, 200);
    };

    let (paid, ()) = app.pay_during(&ama, &order, partial_card_payment(20.0), meanwhile).await;

    assert_eq!(rejection(&paid), (409, "event.cancelled"));
    app.assert_refunded(&order, 20.0).await;
}

#[test_on(sqlite, postgres)]
async fn event_is_unlisted_once(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    for _ in 0..4 {
        let event = create_concert(&app, &kofi).await;

        let withdrawn = unlist(&app, &kofi.key, &event, "withdrawals");
        let (withdrawn, cancelled) = join(withdrawn, unlist(&app, &kofi.key, &event, "cancellations")).await;

        let (done, rejected) = if withdrawn.status == 200 { (withdrawn, cancelled) } else { (cancelled, withdrawn) };
        assert_eq!((done.status, rejection(&rejected)), (200, (409, "event.not-listed")));
        assert_eq!(app.read(&event.uri).await["status"], done.body["status"]);
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_cancellation_and_payment_keep_or_refund_money(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let mut kept = 0;
    for _ in 0..6 {
        let event = create_concert(&app, &kofi).await;
        let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();

        let paid = app.pay(&ama.key, &order, card_payment());
        let (paid, cancelled) = join(paid, unlist(&app, &kofi.key, &event, "cancellations")).await;

        assert_eq!(cancelled.status, 200);
        if paid.status == 201 {
            kept += 1;
            assert_eq!(app.read(&order).await["status"], "Fulfilled");
            assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
        } else {
            assert_eq!(rejection(&paid), (409, "event.cancelled"));
            app.expire_due().await;
            assert_eq!(app.read(&order).await["status"], "Cancelled");
        }
    }
    assert!((app.gateway.total() - f64::from(kept) * 203.98).abs() < 0.001, "{} is kept for {kept}", app.gateway.total());
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_cancellation_and_free_orders_count_every_ticket(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    for _ in 0..4 {
        let event = create_concert(&app, &kofi).await;
        let lawn = event.sections[1].as_str();

        let taken = join_all((0..4).map(|_| app.place_order(&ama.key, json!({ lawn: 1 }))));
        let (taken, cancelled) = join(taken, unlist(&app, &kofi.key, &event, "cancellations")).await;

        assert_eq!(cancelled.status, 200);
        let given = taken.iter().filter(|response| response.status == 201).count();
        assert_eq!(taken.iter().filter(|response| rejection(response) == (409, "event.not-listed")).count(), 4 - given);
        let actual = app.read(&event.uri).await;
        assert_eq!((&actual["popularity"], &actual["status"]), (&json!(given), &json!("Cancelled")));
        assert_eq!(app.sold_and_reserved(lawn).await, (i64::try_from(given).unwrap(), 0));
    }
}
