//! Concurrent orders and payments: no ticket is sold twice, and no money is taken twice or kept without a ticket.

use std::time::Duration;

use futures::future::{join, join_all};
use serde_json::json;

use crate::orders::limited_section;
use crate::support::{
    Event, RESERVATION_TTL, Response, TestApp, User, card_payment, partial_card_payment, rejection, section, test_on,
};

async fn create_concert(app: &TestApp, sections: &[(f64, i64)]) -> Event {
    let kofi = app.sign_up("kofi").await;
    let sections =
        sections.iter().enumerate().map(|(number, (price, places))| section(&format!("Block {number}"), *price, *places));
    app.create_listed_event(&app.create_host(&kofi).await, &sections.collect::<Vec<_>>()).await
}

/// Signs up this many users.
async fn sign_up_users(app: &TestApp, count: usize) -> Vec<User> {
    let mut users = Vec::new();
    for number in 0..count {
        users.push(app.sign_up(&format!("person-{number}")).await);
    }
    users
}

/// Creates an order of two tickets for each user.
async fn create_orders(users: &[User], section: &str) -> Vec<String> {
    let mut orders = Vec::new();
    for user in users {
        orders.push(user.order(section, 2).await.unwrap().self_.clone());
    }
    orders
}

/// Counts the responses by status. Panics on any other status.
pub fn count_statuses<const N: usize>(responses: &[Response], statuses: [u16; N]) -> [usize; N] {
    let counts = statuses.map(|status| responses.iter().filter(|response| response.status == status).count());
    let others: Vec<_> = responses.iter().filter(|response| !statuses.contains(&response.status)).collect();
    assert!(others.is_empty(), "{others:?}");
    counts
}

#[test_on(sqlite, postgres, two_servers)]
async fn last_tickets_are_sold_once(app: TestApp) {
    let event = create_concert(&app, &[(10.0, 7)]).await;
    let users = sign_up_users(&app, 6).await;
    let vip = event.sections[0].as_str();

    let wants = users.iter().flat_map(|user| [user; 4]).map(|user| app.place_order(&user.key, json!({ vip: 1 })));
    let responses = join_all(wants).await;

    assert_eq!(count_statuses(&responses, [201, 409]), [7, 17]);
    assert!(responses.iter().filter(|response| response.status == 409).all(|response| response.code() == "section.sold-out"));
    assert_eq!(app.sold_and_reserved(vip).await, (0, 7));
}

#[test_on(sqlite, postgres, two_servers)]
async fn free_tickets_are_issued_once(app: TestApp) {
    let event = create_concert(&app, &[(0.0, 7)]).await;
    let users = sign_up_users(&app, 6).await;
    let standing = event.sections[0].as_str();

    let wants = users.iter().flat_map(|user| [user; 4]).map(|user| app.place_order(&user.key, json!({ standing: 2 })));
    let responses = join_all(wants).await;

    assert_eq!(count_statuses(&responses, [201, 409]), [3, 21]);
    assert_eq!(app.sold_and_reserved(standing).await, (6, 0));
    assert_eq!(app.read(&event.uri).await["popularity"], 6);
    assert_eq!(app.scalar::<i64>("select count(*) from tickets").await, 6);
}

/// Concurrent orders are committed in one transaction.
#[test_on(sqlite, postgres, two_servers)]
async fn failing_order_does_not_fail_its_batch(app: TestApp) {
    app.allow_server_errors();
    let event = create_concert(&app, &[(10.0, 100)]).await;
    let users = sign_up_users(&app, 6).await;
    let floor = event.sections[0].as_str();
    app.execute_sql("create unique index one_order_of_thirteen on order_items (quantity) where quantity = 13").await;

    let wanted = users.iter().flat_map(|user| [user; 4]).zip([1, 1, 13, 1, 1, 1, 1, 13].into_iter().chain([1; 16]));
    let responses = join_all(wanted.map(|(user, tickets)| app.place_order(&user.key, json!({ floor: tickets })))).await;

    assert_eq!(count_statuses(&responses, [201, 500]), [23, 1]);
    assert_eq!(app.sold_and_reserved(floor).await, (0, 22 + 13));
}

#[test_on(sqlite, postgres, two_servers)]
async fn orders_of_same_sections_do_not_deadlock(app: TestApp) {
    let event = create_concert(&app, &[(10.0, 12), (10.0, 12), (10.0, 12)]).await;
    let users = sign_up_users(&app, 6).await;
    let [a, b, c] = [0, 1, 2].map(|section| event.sections[section].as_str());
    let wanted =
        [json!({ a: 1, b: 1, c: 1 }), json!({ c: 1, b: 1, a: 1 }), json!({ b: 1, c: 1, a: 1 }), json!({ c: 1, a: 1, b: 1 })];

    let wants = users.iter().flat_map(|user| wanted.clone().map(|items| (user, items)));
    let responses = join_all(wants.map(|(user, items)| app.place_order(&user.key, items))).await;

    assert_eq!(count_statuses(&responses, [201, 409]), [12, 12]);
    for section in [a, b, c] {
        assert_eq!(app.sold_and_reserved(section).await, (0, 12), "rejected orders reserve nothing");
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn expired_reservations_are_sold_once(app: TestApp) {
    let event = create_concert(&app, &[(10.0, 6), (10.0, 6)]).await;
    let [a, b] = [0, 1].map(|section| event.sections[section].as_str());
    let users = sign_up_users(&app, 6).await;
    for user in &users {
        assert_eq!(app.place_order(&user.key, json!({ a: 1, b: 1 })).await.status, 201);
    }
    app.advance_clock(RESERVATION_TTL);

    // All users order again while the jobs of two servers release the expired reservations.
    let wants = users.iter().flat_map(|user| [json!({ a: 1, b: 1 }), json!({ b: 1, a: 1 })].map(|items| (user, items)));
    let wants = join_all(wants.map(|(user, items)| app.place_order(&user.key, items)));
    let (responses, _) = join(wants, join(app.expire_due(), app.expire_due())).await;

    assert_eq!(count_statuses(&responses, [201, 409]), [6, 6]);
    app.expire_due().await;
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 6), (0, 6)], 12), "stored counters");
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_orders_respect_open_order_limit(app: TestApp) {
    let event = create_concert(&app, &[(10.0, 100)]).await;
    let ama = app.sign_up("ama").await;
    let section = event.sections[0].as_str();

    let responses = join_all((0..15).map(|_| app.place_order(&ama.key, json!({ section: 1 })))).await;

    assert_eq!(count_statuses(&responses, [201, 409]), [10, 5]);
    assert!(responses.iter().filter(|response| response.status == 409).all(|response| response.code() == "order.too-many"));
    assert_eq!(app.sold_and_reserved(section).await, (0, 10));
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_orders_respect_maximum_per_account(app: TestApp) {
    let sections = [limited_section("Paid", 10.0, 5), limited_section("Free", 0.0, 3)];
    let (_, event) = app.sign_up_host("kofi", &sections).await;
    let [paid, free] = [0, 1].map(|section| event.sections[section].as_str());
    let users = sign_up_users(&app, 2).await;

    let wants = users.iter().flat_map(|user| [paid, free, paid, free, paid, free, paid, free].map(|section| (user, section)));
    let responses = join_all(wants.map(|(user, section)| app.place_order(&user.key, json!({ section: 2 })))).await;

    // Each account has two orders of two tickets of the first section, and one of the second.
    assert_eq!(count_statuses(&responses, [201, 409]), [6, 10]);
    let rejected = responses.iter().filter(|response| response.status == 409);
    assert!(rejected.map(Response::code).all(|code| code == "section.account-maximum"));
    assert_eq!(app.sold_and_reserved(paid).await, (0, 8));
    assert_eq!(app.sold_and_reserved(free).await, (4, 0));
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_payments_pay_order_once(app: TestApp) {
    let (ama, event, order) = app.create_order(2).await;
    // The second payment starts while the gateway processes the first.
    let pay_again = async || app.pay(&ama.key, &order, card_payment()).await;

    let (first, second) = app.pay_during(&ama, &order, card_payment(), pay_again).await;

    assert_eq!(first.status, 201, "{}", first.body);
    assert_eq!(rejection(&second), (409, "order.not-open"));
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (1, 203.98));
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_partial_payments_do_not_exceed_total(app: TestApp) {
    let (ama, event, order) = app.create_order(2).await;
    let responses = join_all((0..8).map(|_| app.pay(&ama.key, &order, partial_card_payment(50.0)))).await;

    assert_eq!(count_statuses(&responses, [201, 400]), [4, 4]);
    assert_eq!(app.gateway.total(), 200.0);
    let responses = join_all((0..4).map(|_| app.pay(&ama.key, &order, card_payment()))).await;
    assert_eq!(count_statuses(&responses, [201, 409]), [1, 3]);
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (5, 203.98));
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
    assert_eq!(app.read(&format!("/accounts/{}/tickets", ama.number)).await["total"], 2);
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_payments_have_independent_outcomes(app: TestApp) {
    let event = create_concert(&app, &[(10.0, 40)]).await;
    let users = sign_up_users(&app, 8).await;
    let orders = create_orders(&users, &event.sections[0]).await;
    app.gateway.block();

    let declined = json!({ "method": "card", "token": "tok_decline" });
    let wanted = [
        (0, 0, card_payment(), (201, "")),
        (1, 1, card_payment(), (201, "")),
        (2, 2, declined, (402, "payment.declined")),
        (3, 0, card_payment(), (403, "resource.not-yours")),
        (4, 4, partial_card_payment(50.0), (400, "arguments.invalid")),
        (5, 5, card_payment(), (409, "order.not-open")),
        // Two partial payments of one order.
        (6, 6, partial_card_payment(20.0), (201, "")),
        (6, 6, partial_card_payment(1.98), (201, "")),
        (7, 7, card_payment(), (201, "")),
    ];
    let pays = wanted.iter().map(|(user, order, body, _)| app.pay(&users[*user].key, &orders[*order], body.clone()));
    let meanwhile = async {
        app.gateway.wait_for_charges(6).await;
        assert_eq!(app.cancel_order(&users[5].key, &orders[5]).await.status, 200);
        app.gateway.unblock();
    };
    let (paid, ()) = join(join_all(pays), meanwhile).await;

    for ((.., expected), response) in wanted.iter().zip(&paid) {
        assert_eq!(rejection(response), *expected, "{}", response.body);
    }
    for (user, tickets) in users.iter().zip([2, 2, 0, 0, 0, 0, 2, 2]) {
        assert_eq!(app.read(&format!("/accounts/{}/tickets", user.number)).await["total"], tickets);
    }
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (8, 6));
    assert_eq!(app.gateway.total(), 4.0 * 21.98);
    app.check_gateway_balance().await;
}

#[test_on(sqlite, postgres, two_servers)]
async fn failing_payment_does_not_fail_its_batch(app: TestApp) {
    app.allow_server_errors();
    let event = create_concert(&app, &[(10.0, 40)]).await;
    let users = sign_up_users(&app, 6).await;
    let orders = create_orders(&users, &event.sections[0]).await;
    app.execute_sql("create unique index one_payment_of_thirteen on payments (amount) where amount = 1300").await;

    let buyers = users.iter().zip(&orders).flat_map(|buyer| [buyer; 4]);
    let amounts = [1.0, 1.0, 13.0, 1.0, 1.0, 1.0, 1.0, 13.0].into_iter().chain([1.0; 16]);
    let pays = buyers.zip(amounts).map(|((user, order), amount)| app.pay(&user.key, order, partial_card_payment(amount)));
    let paid = join_all(pays).await;

    assert_eq!(count_statuses(&paid, [201, 500]), [23, 1]);
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (23, 35.0));
    app.check_gateway_balance().await;
}

#[test_on(sqlite, postgres, two_servers)]
async fn failing_admission_does_not_fail_its_batch(app: TestApp) {
    app.allow_server_errors();
    let event = create_concert(&app, &[(0.0, 40)]).await;
    let ama = app.sign_up("ama").await;
    let serials = ama.order_free_tickets(&event.sections[0], 24).await;
    app.execute_sql("create unique index one_admission_at_gate_13 on admissions (device) where device = '13'").await;

    let gates = ["1", "1", "13", "1", "1", "1", "1", "13"].into_iter().chain(["1"; 16]);
    let scans = serials.iter().zip(gates).map(|(serial, gate)| {
        let request = app.request("POST", &format!("{}/admissions", event.uri)).key(&app.staff.key);
        request.json(&json!({ "serials": [serial], "device": gate })).send()
    });
    let responses = join_all(scans.collect::<Vec<_>>()).await;

    assert_eq!(count_statuses(&responses, [201, 500]), [23, 1]);
    let admissions = app.read(&format!("{}/admissions", event.uri)).await;
    assert_eq!(admissions["total"], 23);
}

#[test_on(sqlite, postgres, two_servers)]
async fn payment_of_order_cancelled_meanwhile_is_refunded(app: TestApp) {
    let (ama, event, order) = app.create_order(2).await;
    let meanwhile = async || {
        assert_eq!(app.cancel_order(&ama.key, &order).await.status, 200);
        assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 0));
    };

    let (paid, ()) = app.pay_during(&ama, &order, card_payment(), meanwhile).await;

    assert_eq!(rejection(&paid), (409, "order.not-open"));
    app.assert_refunded(&order, 203.98).await;
    assert_eq!(app.read(&order).await["status"], "Cancelled");
    assert_eq!(app.read(&format!("/accounts/{}/tickets", ama.number)).await["total"], 0);
}

#[test_on(sqlite, postgres, two_servers)]
async fn payment_of_order_expired_meanwhile_is_refunded(app: TestApp) {
    let (ama, event, order) = app.create_order(2).await;
    let yaw = app.sign_up("yaw").await;
    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(3.98)).await.status, 201);
    let meanwhile = async || {
        app.advance_clock(RESERVATION_TTL);
        yaw.order(&event.sections[0], 2).await.unwrap();
    };

    let (paid, ()) = app.pay_during(&ama, &order, card_payment(), meanwhile).await;

    assert_eq!(rejection(&paid), (409, "order.not-open"));
    assert_eq!(app.read(&order).await["status"], "Timed Out");
    app.expire_due().await;
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.payments(&order).await, [(3.98, "Refunded".to_owned()), (200.0, "Refunded".to_owned())]);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 2), "they are Yaw's");
}

#[test_on(sqlite, postgres, two_servers)]
async fn payment_abandoned_by_job_is_refunded(app: TestApp) {
    let (ama, event, order) = app.create_order(2).await;
    let meanwhile = async || {
        app.advance_clock(Duration::from_secs(180));
        app.expire_due().await;
    };

    let (paid, ()) = app.pay_during(&ama, &order, card_payment(), meanwhile).await;

    assert_eq!(rejection(&paid), (409, "order.not-open"));
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (1, 0.0));
    assert_eq!(app.read(&order).await["status"], "Placed");
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
    assert_eq!(app.gateway.total(), 203.98);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_cancellation_and_payment_leave_one(app: TestApp) {
    let event = create_concert(&app, &[(10.0, 20)]).await;
    let ama = app.sign_up("ama").await;
    let mut fulfilled = 0;

    for _ in 0..10 {
        let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
        let (paid, cancelled) = join(app.pay(&ama.key, &order, card_payment()), app.cancel_order(&ama.key, &order)).await;

        match app.read(&order).await["status"].as_str().unwrap() {
            "Fulfilled" => {
                assert_eq!((paid.status, cancelled.status), (201, 409));
                fulfilled += 1;
            }
            "Cancelled" => assert_eq!((paid.status, cancelled.status), (409, 200)),
            other => panic!("an order is {other}"),
        }
    }

    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2 * fulfilled, 0));
    let expected = f64::from(i32::try_from(fulfilled).unwrap()) * 21.98;
    assert!((app.gateway.total() - expected).abs() < 0.001, "{} is kept for {fulfilled} orders", app.gateway.total());
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_expiry_and_payment_leave_one(app: TestApp) {
    let event = create_concert(&app, &[(10.0, 20)]).await;
    let users = sign_up_users(&app, 4).await;
    let orders = create_orders(&users, &event.sections[0]).await;
    app.gateway.block();

    let pays = join_all(users.iter().zip(&orders).map(|(user, order)| app.pay(&user.key, order, card_payment())));
    let meanwhile = async {
        app.gateway.wait_for_charges(4).await;
        app.gateway.unblock();
        app.time_out_orders().await;
    };
    let (paid, ()) = join(pays, meanwhile).await;
    app.expire_due().await;

    let [kept, lost] = count_statuses(&paid, [201, 409]);
    assert_eq!(kept + lost, 4);
    let kept = i32::try_from(kept).unwrap();
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (i64::from(kept) * 2, 0));
    assert!((app.gateway.total() - f64::from(kept) * 21.98).abs() < 0.001);
}
