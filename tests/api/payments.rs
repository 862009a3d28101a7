//! Payments and refunds.

use std::sync::Arc;
use std::time::Duration;

use boxoffice::features::sales::payments;
use boxoffice::server::RunningApp;
use boxoffice::state::Ctx;
use futures::future::join3;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::failures::LogBuffer;
use crate::support::{
    ANY_PORT, RESERVATION_TTL, Rejection, TestApp, card_payment, fetch_url, id_of, paid, partial_card_payment, rejection,
    section, test_on, wait_until,
};

async fn status(app: &TestApp, order: &str) -> String {
    app.read(order).await["status"].as_str().unwrap().to_owned()
}

#[test_on(sqlite, postgres)]
async fn full_payment_fulfills_order(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;

    let paid = app.pay(&ama.key, &order, card_payment()).await;

    assert_eq!(paid.status, 201, "{}", paid.body);
    let payment = &paid.body;
    let number = payment["number"].as_str().unwrap();
    let uri = format!("{order}/payments/{number}");
    assert_eq!(paid.header("location"), uri);
    let reference = format!("SBX-{}", &number[6..]);
    let expected = json!({
        "self": uri, "number": number, "order": order, "method": "card", "amount": 203.98, "refunded": 0.0, "status": "Confirmed",
        "reference": reference, "placed": payment["placed"],
    });
    assert_eq!(*payment, expected);
    assert!(payment["placed"].as_str().unwrap().ends_with("+00:00"));
    assert_eq!(app.read(&uri).await, expected);
    assert_eq!(app.read(&format!("{order}/payments")).await["entries"], json!([expected]));

    assert_eq!(status(&app, &order).await, "Fulfilled");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
    assert_eq!(app.read(&event.uri).await["popularity"], 2);
    let tickets = app.read(&format!("/accounts/{}/tickets", ama.number)).await;
    assert_eq!(tickets["total"], 2);
    assert_eq!(tickets["entries"][0]["section"]["self"], event.sections[0]);
    assert_eq!(app.gateway.total(), 203.98);

    // The tickets stay sold after the reservation time.
    app.time_out_orders().await;
    assert_eq!(status(&app, &order).await, "Fulfilled");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
    assert_eq!(app.gateway.total(), 203.98);
}

#[test_on(sqlite, postgres)]
async fn order_is_paid_in_parts(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;

    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(3.98)).await.status, 201);
    let cash = json!({ "method": "external", "amount": 100.0, "reference": "Receipt 7" });
    assert_eq!(app.pay(&app.staff.key, &order, cash).await.status, 201);
    assert_eq!(status(&app, &order).await, "Placed");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 2));
    let rest = app.pay(&ama.key, &order, card_payment()).await;

    assert_eq!(rest.body["amount"], 100.0);
    assert_eq!(status(&app, &order).await, "Fulfilled");
    assert_eq!(app.payments(&order).await, [paid(3.98, "Confirmed"), paid(100.0, "Confirmed"), paid(100.0, "Confirmed")]);
    assert_eq!(app.gateway.total(), 103.98);
}

#[test_on(sqlite, postgres)]
async fn fiftieth_payment_pays_the_rest(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    for _ in 0..49 {
        assert_eq!(app.pay(&ama.key, &order, partial_card_payment(0.01)).await.status, 201);
    }

    let part = app.pay(&ama.key, &order, partial_card_payment(0.01)).await;
    let rest = app.pay(&ama.key, &order, card_payment()).await;

    assert_eq!((part.status, part.invalid_arguments()), (400, vec!["amount".to_owned()]));
    let detail = "must be 203.49, which is outstanding: an order has at most 50 payments";
    assert!(part.body.to_string().contains(detail), "{}", part.body);
    assert_eq!((rest.status, status(&app, &order).await.as_str()), (201, "Fulfilled"));
}

#[test_on(sqlite, postgres)]
async fn declined_payments_are_limited(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    let declined = || app.pay(&ama.key, &order, json!({ "method": "card", "token": "tok_decline" }));
    // Approved payments don't count.
    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(3.98)).await.status, 201);
    for _ in 0..30 {
        assert_eq!(rejection(&declined().await), (402, "payment.declined"));
    }

    let limited = declined().await;

    assert_eq!(rejection(&limited), (429, "requests.too-many"));
    assert_eq!(limited.header("ratelimit-policy"), "\"payments\";q=30;w=3600");
    assert_eq!(rejection(&app.pay(&ama.key, &order, card_payment()).await), (429, "requests.too-many"));
    // Integrations pay with the cards of many customers.
    let kiosk = json!({ "name": "Kiosk", "role": "customer", "account": ama.number });
    let kiosk = app.post(&app.staff.key, "/integrations", kiosk).await.body["key"].as_str().unwrap().to_owned();
    assert_eq!(app.pay(&kiosk, &order, card_payment()).await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn rejects_more_than_outstanding_amount(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(3.98)).await.status, 201);

    let cash = json!({ "method": "external", "amount": 200.01, "reference": "Receipt 7" });
    for (key, body, missing) in [
        (&ama.key, json!({ "method": "card", "amount": 200.01 }), "-token"),
        (&app.staff.key, json!({ "method": "external", "amount": 200.01 }), "-reference"),
    ] {
        let rejected = app.pay(key, &order, body).await;
        assert_eq!(rejected.invalid_arguments(), ["amount", missing]);
    }
    for (key, body) in [(&ama.key, partial_card_payment(200.01)), (&app.staff.key, cash)] {
        let rejected = app.pay(key, &order, body).await;
        assert_eq!(rejected.invalid_arguments(), ["amount"]);
        assert!(rejected.body["fields"][0]["detail"].as_str().unwrap().contains("200.00"), "{}", rejected.body);
    }
    assert_eq!(app.gateway.total(), 3.98);
    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(200.0)).await.status, 201);
    assert_eq!(status(&app, &order).await, "Fulfilled");
}

#[test_on(sqlite, postgres)]
async fn declined_payment_keeps_order_open(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;

    let declined = app.pay(&ama.key, &order, json!({ "method": "card", "token": "tok_decline", "amount": 50 })).await;

    assert_eq!(rejection(&declined), (402, "payment.declined"));
    assert_eq!(app.payments(&order).await, [paid(50.0, "Declined")]);
    let payment = &app.read(&format!("{order}/payments")).await["entries"][0];
    assert_eq!(payment["reference"], "");
    assert_eq!(status(&app, &order).await, "Placed");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 2));
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.body["amount"], 203.98);
    assert_eq!(app.payments(&order).await, [paid(50.0, "Declined"), paid(203.98, "Confirmed")]);
}

#[test_on(sqlite, postgres)]
async fn gateway_failure_leaves_no_payment(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;

    let failed = app.pay(&ama.key, &order, json!({ "method": "card", "token": "tok_error" })).await;

    assert_eq!(rejection(&failed), (502, "payment.gateway"));
    assert_eq!(app.payments(&order).await, []);
    assert_eq!((app.gateway.charge_count(), status(&app, &order).await.as_str()), (0, "Placed"));
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.body["amount"], 203.98);
}

#[test_on(sqlite, postgres)]
async fn charge_with_lost_response_is_cancelled(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    app.gateway.fail_after_charge(true);

    let failed = app.pay(&ama.key, &order, card_payment()).await;

    assert_eq!(rejection(&failed), (502, "payment.gateway"));
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (1, 0.0));
    assert_eq!(app.payments(&order).await, []);
    app.gateway.fail_after_charge(false);
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
    assert_eq!(app.gateway.total(), 203.98);
}

#[test_on(sqlite, postgres)]
async fn failed_cancellation_is_retried(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    app.gateway.fail_after_charge(true);
    app.gateway.reject_refunds(true);
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.code(), "payment.gateway");
    assert_eq!(app.gateway.total(), 203.98, "the charge exists, and its cancellation fails");
    assert_eq!(app.payments(&order).await, []);
    app.gateway.fail_after_charge(false);

    // Meanwhile the order can be paid.
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
    assert_eq!(status(&app, &order).await, "Fulfilled");
    app.gateway.reject_refunds(false);
    app.expire_due().await;

    assert_eq!(app.gateway.total(), 203.98, "only one of two charges is kept");
    assert_eq!(app.payments(&order).await, [paid(203.98, "Confirmed")]);
}

#[test_on(sqlite, postgres)]
async fn response_is_sent_while_gateway_hangs(app: TestApp) {
    app.stop_jobs().await;
    let (ama, _, order) = app.create_order(10).await;
    app.gateway.fail_after_charge(true);
    app.gateway.block_cancellations(true);

    // Sooner than the gateway's own timeout of 30 seconds.
    let failed = timeout(Duration::from_secs(20), app.pay(&ama.key, &order, card_payment())).await.unwrap();

    assert_eq!(rejection(&failed), (502, "payment.gateway"));
    assert_eq!(app.gateway.total(), 203.98, "the charge exists, and its cancellation hangs");
    app.gateway.fail_after_charge(false);
    app.gateway.block_cancellations(false);
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
    app.expire_due().await;
    assert_eq!(app.gateway.total(), 203.98, "only one of two charges is kept");
    assert_eq!(app.payments(&order).await, [paid(203.98, "Confirmed")]);
}

#[test_on(sqlite, postgres)]
async fn card_payment_requires_gateway_token(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;

    for (body, complaint) in [
        (json!({ "method": "card" }), "-token"),
        (json!({ "method": "card", "token": null }), "-token"),
        (json!({ "method": "card", "token": " " }), "-token"),
        (json!({ "method": "card", "token": "tok_unknown" }), "token"),
        (json!({ "method": "card", "reference": "Receipt 7" }), "-token"),
    ] {
        let rejected = app.pay(&ama.key, &order, body.clone()).await;
        assert_eq!(rejected.invalid_arguments(), [complaint], "{body}");
    }
    assert_eq!((app.payments(&order).await, app.gateway.charge_count()), (vec![], 0));
}

#[test_on(sqlite, postgres)]
async fn only_staff_record_external_payments(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;
    let cash = json!({ "method": "external", "reference": "Receipt 7" });

    assert_eq!(rejection(&app.pay(&ama.key, &order, cash.clone()).await), (403, "resource.not-yours"));
    assert_eq!(app.pay(&ama.key, &order, json!({ "method": "external" })).await.status, 403);
    for body in [json!({ "method": "external" }), json!({ "method": "external", "reference": " ", "token": "tok_approve" })] {
        let rejected = app.pay(&app.staff.key, &order, body).await;
        assert_eq!(rejected.invalid_arguments(), ["-reference"]);
    }

    let recorded = app.pay(&app.staff.key, &order, cash).await;
    assert_eq!(recorded.status, 201, "{}", recorded.body);
    let actual = (&recorded.body["method"], &recorded.body["amount"], &recorded.body["status"], &recorded.body["reference"]);
    assert_eq!(actual, (&json!("external"), &json!(203.98), &json!("Confirmed"), &json!("Receipt 7")));
    assert_eq!(status(&app, &order).await, "Fulfilled");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
    assert_eq!(app.gateway.charge_count(), 0);
}

#[test_on(sqlite, postgres)]
async fn order_above_one_million_is_paid_by_amount(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Stalls", 1_000_000.0, 100)]).await;
    let surcharge = json!({ "name": "Door", "priceDelta": 999_999.99 });
    let modifiers = format!("{}/modifiers", event.sections[0]);
    assert_eq!(app.post(&kofi.key, &modifiers, surcharge).await.status, 201);
    let order = ama.order(&event.sections[0], 50).await.unwrap();
    assert_eq!(order.total, 100_000_249.0);

    let too_much = app.pay(&ama.key, &order.self_, partial_card_payment(100_000_249.01)).await;
    assert_eq!(too_much.invalid_arguments(), ["amount"]);
    let part = app.pay(&ama.key, &order.self_, partial_card_payment(98_999_999.99)).await;
    assert_eq!((part.status, &part.body["amount"]), (201, &json!(98_999_999.99)));
    let rest = app.pay(&ama.key, &order.self_, partial_card_payment(1_000_249.01)).await;

    assert_eq!((rest.status, &rest.body["amount"]), (201, &json!(1_000_249.01)));
    assert_eq!(status(&app, &order.self_).await, "Fulfilled");
}

#[test_on(sqlite, postgres)]
async fn only_open_order_is_paid(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;
    let cash = json!({ "method": "external", "reference": "Receipt 7" });

    let cancelled = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    app.cancel_order(&ama.key, &cancelled).await;
    let timed_out = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    app.pay(&ama.key, &order, card_payment()).await;
    app.advance_clock(RESERVATION_TTL);
    for order in [&order, &cancelled, &timed_out] {
        for body in [card_payment(), partial_card_payment(1.0), cash.clone()] {
            assert_eq!(rejection(&app.pay(&app.staff.key, order, body.clone()).await), (409, "order.not-open"), "{order} {body}");
        }
    }
    assert_eq!(app.gateway.total(), 203.98);

    // Staff may pay for any account.
    let last = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    assert_eq!(app.pay(&app.staff.key, &last, card_payment()).await.status, 201);
    assert_eq!(app.read(&format!("/accounts/{}/tickets", ama.number)).await["total"], 3);
}

#[test_on(sqlite, postgres)]
async fn payment_belongs_to_one_order(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;
    let other = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    let number = app.pay(&ama.key, &order, partial_card_payment(1.0)).await.body["number"].as_str().unwrap().to_owned();

    for path in
        [format!("{other}/payments/{number}"), format!("{order}/payments/17637000000001"), format!("{order}/payments/none")]
    {
        assert_eq!(rejection(&app.get(&ama.key, &path).await), (404, "resource.not-found"), "{path}");
    }
}

#[test_on(sqlite, postgres)]
async fn expiry_refunds_payments(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;
    app.pay(&ama.key, &order, partial_card_payment(50.0)).await;
    app.advance_clock(RESERVATION_TTL);
    // Another user takes the tickets before the job runs.
    app.sign_up("yaw").await.order(&event.sections[0], 10).await.unwrap();

    app.expire_due().await;

    assert_eq!(status(&app, &order).await, "Timed Out");
    assert_eq!(app.payments(&order).await, [paid(50.0, "Refunded")]);
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 10));
}

#[test_on(sqlite, postgres)]
async fn failed_refund_is_retried(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    app.pay(&ama.key, &order, partial_card_payment(50.0)).await;
    app.stop_jobs().await;
    let step = async || payments::process_due(&Ctx::immediate(Arc::clone(&app.state))).await.unwrap();
    app.gateway.reject_refunds(true);

    let cancelled = app.cancel_order(&ama.key, &order).await;

    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("Cancelled")));
    assert_eq!(step().await, 0);
    assert_eq!(app.payments(&order).await, [paid(50.0, "Confirmed")], "it is not back yet");
    assert_eq!(app.gateway.total(), 50.0);
    app.gateway.reject_refunds(false);
    assert_eq!((step().await, step().await), (1, 0));
    assert_eq!(app.payments(&order).await, [paid(50.0, "Refunded")]);
    assert_eq!(app.gateway.total(), 0.0);
}

#[test_on(sqlite, postgres)]
async fn failed_refund_is_logged(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    let payment = app.pay(&ama.key, &order, partial_card_payment(50.0)).await.body["number"].clone();
    app.gateway.reject_refunds(true);
    app.cancel_order(&ama.key, &order).await;
    let buffer = LogBuffer::default();

    let _server = app.start_second_server_on(app.state.settings.clone(), buffer.logger(), ANY_PORT).await;

    let is_failure = |line: &Value| line["msg"] == "a refund or cancellation failed and will be retried";
    wait_until(async || buffer.lines().iter().any(is_failure)).await;
    let failure = buffer.lines().into_iter().find(is_failure).unwrap();
    let facts = ["level", "order", "payment", "cause"].map(|name| failure[name].clone());
    assert_eq!(
        facts,
        [json!("WARN"), json!(order.trim_start_matches("/orders/")), payment, json!("the gateway rejects refunds")]
    );
}

#[test_on(sqlite, postgres)]
async fn payment_of_crashed_server_is_cancelled(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    // A server began a payment and crashed after the gateway had taken the money.
    let (payment, id): (i64, i64) = (app.state.clock.next_id().0, id_of(&order).parse().unwrap());
    let mut tx = app.state.db.begin().await.unwrap();
    let begun = tx.query(
        "insert into payments (id, order_id, method, amount, status, reference, placed)
         values ($1, $2, 'card', 20000, 'Pending', '', $3)",
    );
    begun.bind(payment).bind(id).bind(app.state.clock.now()).execute().await.unwrap();
    tx.commit().await.unwrap();
    app.gateway.record_charge(payment, 20000);

    // While the payment may be in progress, it counts and is not visible.
    app.expire_due().await;
    assert_eq!(app.payments(&order).await, []);
    let shown = ama.client.order_payment_get().order(id_of(&order)).payment(payment.to_string());
    assert_eq!(shown.send().await.rejection(), (404, "resource.not-found".to_owned()));
    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(4.0)).await.invalid_arguments(), ["amount"]);
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.body["amount"], 3.98);
    let rejected = app.pay(&ama.key, &order, card_payment()).await;
    assert_eq!(rejection(&rejected), (409, "order.not-open"), "all that is outstanding is being paid");

    // After the timeout the charge is cancelled, and the order can be paid again.
    app.advance_clock(Duration::from_secs(180));
    app.expire_due().await;
    assert_eq!(app.gateway.total(), 3.98);
    assert_eq!(app.payments(&order).await, [paid(3.98, "Confirmed")]);
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.body["amount"], 200.0);
    assert_eq!(status(&app, &order).await, "Fulfilled");
}

#[test_on(sqlite, postgres)]
async fn cancellation_after_refund_returns_nothing(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    app.gateway.block();
    app.gateway.block_cancellations(true);

    // The job abandons the payment. The charge's response and its refund precede the job's cancellation.
    let pays = async {
        let late = app.pay(&ama.key, &order, card_payment()).await;
        app.gateway.block_cancellations(false);
        late
    };
    let gives_up = async {
        app.gateway.wait_for_charges(1).await;
        app.advance_clock(Duration::from_secs(180));
        app.expire_due().await;
    };
    let responses = async {
        app.gateway.wait_for_cancellation().await;
        app.gateway.unblock();
    };
    let (late, (), ()) = join3(pays, gives_up, responses).await;

    assert_eq!(rejection(&late), (409, "order.not-open"));
    assert_eq!((app.gateway.total(), app.payments(&order).await), (0.0, vec![paid(203.98, "Refunded")]));
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
    assert_eq!((app.gateway.total(), status(&app, &order).await), (203.98, "Fulfilled".into()));
}

#[test_on(sqlite, postgres)]
async fn failing_refunds_do_not_block_others(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    // More than one batch of the job.
    for _ in 0..25 {
        assert_eq!(app.pay(&ama.key, &order, partial_card_payment(1.0)).await.status, 201);
    }
    app.gateway.fail_all_refunds();
    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(2.0)).await.status, 201);

    app.advance_clock(RESERVATION_TTL);
    for _ in 0..4 {
        app.expire_due().await;
    }

    assert_eq!(app.gateway.total(), 25.0, "the last payment was refunded");
}

#[test_on(sqlite, postgres)]
async fn payment_completes_after_client_disconnects(app: TestApp) {
    let platform = RunningApp::start_with_admin(Arc::clone(&app.state), ANY_PORT, Some(ANY_PORT.into())).unwrap();
    let admin = platform.admin_address().unwrap();
    let metrics = async || fetch_url(&format!("http://{admin}/metrics")).await.text().await.unwrap();
    let (ama, _, order) = app.create_order(10).await;
    app.gateway.block();
    let body = card_payment().to_string();
    let head = format!(
        "POST /v3{order}/payments HTTP/1.1\r\nHost: boxoffice.example\r\nX-Client-Version: 3.0.0\r\nX-API-Key: {}",
        ama.key
    );
    let request = format!("{head}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());

    let mut connection = TcpStream::connect(platform.address()).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    app.gateway.wait_for_charges(1).await;
    assert!(metrics().await.contains("boxoffice_connections 1\n"));
    drop(connection);
    wait_until(async || metrics().await.contains("boxoffice_connections 0\n")).await;
    app.gateway.unblock();

    wait_until(async || status(&app, &order).await == "Fulfilled").await;
    assert_eq!((app.gateway.charge_count(), app.payments(&order).await), (1, vec![paid(203.98, "Confirmed")]));
}
