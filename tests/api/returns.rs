//! Returns of tickets.

mod races;
mod voids;

use boxoffice::kernel::settings::{FeeSchedule, Settings};
use serde_json::{Value, json};

use crate::support::{
    Client, Event, TestApp, User, card_payment, entry, paid, partial_card_payment, rejection, section, test_on, types,
};

/// Ama's paid order of two tickets at 100.00 and one at 30.00: 234.97 with fees.
struct OrderFixture {
    kofi: User,
    ama: User,
    event: Event,
    order: String,
}

async fn create_order(app: &TestApp) -> OrderFixture {
    let sections = [section("Stalls", 100.0, 10), section("Balcony", 30.0, 10)];
    let (kofi, ama, event) = app.create_sale(&sections).await;
    let order = place(&ama, &event).await;
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
    OrderFixture { kofi, ama, event, order }
}

async fn place(ama: &User, event: &Event) -> String {
    let order = ama.order_items([(event.sections[0].as_str(), 2), (event.sections[1].as_str(), 1)]).await.unwrap();
    assert_eq!(order.total, 234.97);
    order.self_.clone()
}

/// Returns the serial and the status of each ticket in a wallet, most expensive section first.
async fn wallet(app: &TestApp, user: &User) -> Vec<(String, String)> {
    let mut tickets = app.wallet(user).await;
    let price = |ticket: &Value| ticket["section"]["price"]["base"].as_f64().unwrap();
    tickets.sort_by(|one, other| price(other).total_cmp(&price(one)));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    tickets.iter().map(|ticket| (text(&ticket["serial"]), text(&ticket["status"]))).collect()
}

async fn statuses(app: &TestApp, user: &User) -> Vec<String> {
    wallet(app, user).await.into_iter().map(|(_, status)| status).collect()
}

/// Returns the type, the number of tickets, the reason and the account of every revocation.
async fn revocations(app: &TestApp) -> Vec<(String, i64, String, Option<i64>)> {
    app.rows("select type, tickets, reason, account_id from revocations order by id").await
}

#[test_on(sqlite, postgres)]
async fn full_return_refunds_everything(app: TestApp) {
    let OrderFixture { kofi, ama, event, order } = create_order(&app).await;
    let before = app.read(&order).await;

    let returned = app.return_tickets(&kofi.key, &order, json!({ "reason": "The concert was moved." })).await;

    assert_eq!(returned.status, 200, "{}", returned.body);
    let mut expected = before;
    assert_eq!((&expected["refunded"], &expected["expires"]), (&json!(0.0), &Value::Null));
    expected["status"] = json!("Returned");
    expected["refunded"] = json!(234.97);
    assert_eq!(returned.body, expected, "its amounts stay as they were placed");
    assert_eq!(app.read(&order).await, expected);
    assert_eq!(statuses(&app, &ama).await, ["Void", "Void", "Void"]);
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0), (0, 0)], 0));
    assert_eq!(app.read(&event.uri).await["popularity"], 0);
    assert_eq!(app.read(&format!("{}/tickets", event.uri)).await["total"], 0);
    assert_eq!(app.payments(&order).await, [paid(234.97, "Refunded")]);
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.transactions("/transactions").await, [entry("Sale", 234.97, 4.97), entry("Refund", 234.97, 4.97)]);
    let actual = revocations(&app).await;
    assert_eq!(
        (actual.len(), actual[0].0.as_str(), actual[0].1, actual[0].2.as_str()),
        (1, "Return", 3, "The concert was moved.")
    );
    assert!(actual[0].3.is_some(), "the account is recorded");
}

#[test_on(sqlite, postgres)]
async fn partial_return_refunds_ticket_prices(app: TestApp) {
    let OrderFixture { kofi, ama, event, order } = create_order(&app).await;
    let tickets = wallet(&app, &ama).await;
    let modified: Vec<(i64,)> = app.rows("select modified from tickets order by id").await;

    // A repeated serial is one ticket.
    let returned = app.return_tickets(&kofi.key, &order, json!({ "tickets": [tickets[0].0, tickets[0].0] })).await;

    assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Fulfilled")), "{}", returned.body);
    assert_eq!(returned.body["refunded"], 101.99);
    assert_eq!(app.read(&order).await["refunded"], 101.99);
    assert_eq!(app.read(&format!("{order}/payments")).await["entries"][0]["refunded"], 101.99);
    assert_eq!(statuses(&app, &ama).await, ["Void", "Issued", "Issued"]);
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(1, 0), (1, 0)], 0));
    assert_eq!(app.read(&event.uri).await["popularity"], 2);
    assert_eq!(app.payments(&order).await, [paid(234.97, "Confirmed")], "not all of it is back");
    assert_eq!(app.gateway.total(), 132.98);
    assert_eq!(app.transactions("/transactions?type=Refund").await, [entry("Refund", 101.99, 1.99)]);
    let mut reader = app.state.db.read().await.unwrap();
    let later = reader.query("select count(*) from tickets where modified > $1").bind(modified[2].0);
    assert_eq!(later.scalar::<i64>().await.unwrap(), 1, "its change is dated");
    drop(reader);

    // The others, one by one and without a serial.
    assert_eq!(app.return_tickets(&app.staff.key, &order, json!({ "tickets": [tickets[2].0] })).await.status, 200);
    let returned = app.return_tickets(&kofi.key, &order, json!({ "tickets": null })).await;
    assert_eq!(returned.body["status"], "Returned");
    assert_eq!(app.payments(&order).await, [paid(234.97, "Refunded")]);
    assert_eq!(app.gateway.total(), 0.0);
    let refunds = [entry("Refund", 101.99, 1.99), entry("Refund", 30.99, 0.99), entry("Refund", 101.99, 1.99)];
    assert_eq!(app.transactions("/transactions?type=Refund").await, refunds);
    assert_eq!(revocations(&app).await.iter().map(|actual| actual.1).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test_on(sqlite, postgres)]
async fn newest_payments_are_refunded_first(app: TestApp) {
    let sections = [section("Stalls", 100.0, 10), section("Balcony", 30.0, 10)];
    let (kofi, ama, event) = app.create_sale(&sections).await;
    let order = place(&ama, &event).await;
    app.pay(&ama.key, &order, partial_card_payment(200.0)).await;
    app.pay(&app.staff.key, &order, json!({ "method": "external", "amount": 32, "reference": "Receipt 7" })).await;
    app.pay(&ama.key, &order, json!({ "method": "card", "token": "tok_decline" })).await;
    app.pay(&ama.key, &order, card_payment()).await;
    // Payments fill the prices before the fees.
    let sales = [entry("Sale", 200.0, 0.0), entry("Sale", 32.0, 2.0), entry("Sale", 2.97, 2.97)];
    assert_eq!(app.transactions("/transactions").await, sales);
    let tickets = wallet(&app, &ama).await;

    let returned = app.return_tickets(&kofi.key, &order, json!({ "tickets": [tickets[0].0] })).await;

    assert_eq!(returned.status, 200, "{}", returned.body);
    let payments = [paid(200.0, "Confirmed"), paid(32.0, "Refunded"), paid(2.97, "Declined"), paid(2.97, "Refunded")];
    assert_eq!(app.payments(&order).await, payments);
    // A refund of 101.99: payments outside the platform are refunded immediately, then the card payments through the gateway.
    let refunds = [entry("Refund", 32.0, 0.0), entry("Refund", 67.02, 0.0), entry("Refund", 2.97, 1.99)];
    let mut found = app.transactions("/transactions?type=Refund").await;
    found[1..].sort_by(|a, b| b.1.total_cmp(&a.1));
    assert_eq!(found, refunds);
    assert_eq!(app.gateway.total(), 132.98);

    assert_eq!(app.return_tickets(&kofi.key, &order, json!({})).await.body["status"], "Returned");
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.payments(&order).await[0], paid(200.0, "Refunded"));
    let fees: f64 = app.transactions("/transactions?type=Refund").await.iter().map(|entry| entry.2).sum();
    assert!((fees - 4.97).abs() < 0.001, "{fees}");
}

#[test_on(sqlite, postgres)]
async fn used_tickets_cannot_be_returned(app: TestApp) {
    let OrderFixture { kofi, ama, event, order } = create_order(&app).await;
    let tickets = wallet(&app, &ama).await;
    assert_eq!(app.admit(&kofi.key, &event, [&tickets[0].0]).await.status, 201);

    for serials in [vec![&tickets[0].0], vec![&tickets[1].0, &tickets[0].0]] {
        let rejected = app.return_tickets(&kofi.key, &order, json!({ "tickets": serials })).await;
        assert_eq!(rejection(&rejected), (409, "ticket.not-issued"));
        let text = rejected.body["error"].as_str().unwrap();
        assert!(text.contains(&tickets[0].0) && !text.contains(&tickets[1].0), "{text}");
    }
    assert_eq!(statuses(&app, &ama).await, ["Redeemed", "Issued", "Issued"]);
    assert_eq!((app.gateway.total(), revocations(&app).await.len()), (234.97, 0));

    let returned = app.return_tickets(&kofi.key, &order, json!({})).await;
    assert_eq!(returned.body["status"], "Fulfilled", "a ticket of it was used");
    assert_eq!(statuses(&app, &ama).await, ["Redeemed", "Void", "Void"]);
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(1, 0), (0, 0)], 0));
    assert_eq!(app.gateway.total(), 101.99);
    for body in [json!({}), json!({ "tickets": [tickets[1].0] })] {
        assert_eq!(rejection(&app.return_tickets(&kofi.key, &order, body).await), (409, "ticket.not-issued"));
    }
    assert_eq!(app.gateway.total(), 101.99);
}

#[test_on(sqlite, postgres)]
async fn ticket_in_open_transfer_can_be_returned(app: TestApp) {
    let OrderFixture { kofi, ama, order, .. } = create_order(&app).await;
    let esi = app.sign_up("esi").await;
    let tickets = wallet(&app, &ama).await;
    let both = offer(&app, &ama, &esi, &[&tickets[0].0, &tickets[1].0]).await;

    assert_eq!(app.return_tickets(&kofi.key, &order, json!({ "tickets": [tickets[0].0] })).await.body["status"], "Fulfilled");
    assert_eq!(app.read(&both).await["status"], "Cancelled");
    assert_eq!(statuses(&app, &ama).await, ["Void", "Issued", "Issued"], "the other ticket of the transfer belongs to Ama again");

    let one = offer(&app, &ama, &esi, &[&tickets[2].0]).await;
    assert_eq!(app.return_tickets(&kofi.key, &order, json!({ "tickets": [tickets[1].0] })).await.body["status"], "Fulfilled");
    assert_eq!(app.read(&one).await["status"], "Pending", "no ticket of it was returned");
    assert_eq!(app.return_tickets(&kofi.key, &order, json!({})).await.body["status"], "Returned");
    assert_eq!(app.read(&one).await["status"], "Cancelled");
    assert_eq!(statuses(&app, &ama).await, ["Void", "Void", "Void"]);
    assert_eq!(app.gateway.total(), 0.0);
}

/// Creates a transfer of these tickets, and returns its URI.
async fn offer(app: &TestApp, from: &User, to: &User, serials: &[&str]) -> String {
    let body = json!({ "recipient": to.number, "tickets": serials });
    let created = app.post(&from.key, "/transfers", &body).await;
    assert_eq!(created.status, 201, "{}", created.body);
    created.uri().to_owned()
}

#[test_on(sqlite, postgres)]
async fn rejects_tickets_of_other_orders(app: TestApp) {
    let OrderFixture { kofi, ama, event, order } = create_order(&app).await;
    let first = wallet(&app, &ama).await;
    let other = place(&ama, &event).await;
    let serials = json!([first[0].0, "AAAAAA-AAAAAAAAAAAA", "BBBBBB-BBBBBBBBBBBB"]);

    // Invalid arguments take precedence over the order's status.
    let rejected = app.return_tickets(&kofi.key, &other, json!({ "tickets": [first[0].0] })).await;
    assert_eq!(rejected.invalid_arguments(), ["tickets"]);
    assert_eq!(rejection(&app.return_tickets(&kofi.key, &other, json!({})).await), (409, "order.not-fulfilled"));
    let rejected = app.return_tickets(&kofi.key, &order, json!({ "tickets": serials })).await;
    assert_eq!(rejected.invalid_arguments(), ["tickets"]);
    let detail = rejected.body["fields"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("AAAAAA") && detail.contains("BBBBBB") && !detail.contains(&first[0].0), "{detail}");
    assert_eq!(statuses(&app, &ama).await, ["Issued", "Issued", "Issued"]);
    assert_eq!(app.gateway.total(), 234.97);
}

#[test_on(sqlite, postgres)]
async fn only_hosts_of_all_events_and_staff_return_tickets(app: TestApp) {
    let OrderFixture { kofi, ama, event, order } = create_order(&app).await;
    let (esi, elsewhere) = app.sign_up_host("esi", &[section("Floor", 20.0, 10)]).await;
    let yaw = app.sign_up("yaw").await;
    let own = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 20.0, 10)]).await;
    let mixed = [event.sections[0].as_str(), elsewhere.sections[0].as_str(), own.sections[0].as_str()];
    let of_both = ama.order_items([(mixed[0], 1), (mixed[1], 1)]).await.unwrap();
    let of_one = ama.order_items([(mixed[0], 1), (mixed[2], 1)]).await.unwrap();
    for order in [&of_both, &of_one] {
        ama.pay(order).await.unwrap();
    }

    for (key, order) in [
        (&ama.key, order.as_str()),
        (&yaw.key, order.as_str()),
        (&esi.key, order.as_str()),
        (&kofi.key, of_both.self_.as_str()),
        (&esi.key, of_both.self_.as_str()),
    ] {
        assert_eq!(rejection(&app.return_tickets(key, order, json!({})).await), (403, "resource.not-yours"), "{order}");
    }
    assert_eq!(statuses(&app, &ama).await, vec!["Issued"; 7]);

    // An administrator of both hosts, and staff.
    assert_eq!(app.return_tickets(&kofi.key, &of_one.self_, json!({})).await.body["status"], "Returned");
    assert_eq!(app.return_tickets(&app.staff.key, &of_both.self_, json!({})).await.body["status"], "Returned");
    assert_eq!(app.read(&elsewhere.uri).await["popularity"], 0);
}

#[test_on(sqlite, postgres)]
async fn order_of_deleted_event_cannot_be_returned(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    app.cancel_order(&ama.key, &order).await;
    kofi.client.event_delete().event(&event.id).send().await.unwrap();

    for key in [&kofi.key, &app.staff.key] {
        assert_eq!(rejection(&app.return_tickets(key, &order, json!({})).await), (409, "order.not-fulfilled"));
    }
    assert_eq!(rejection(&app.return_tickets(&ama.key, &order, json!({})).await), (403, "resource.not-yours"));
}

#[test_on(sqlite, postgres)]
async fn return_of_free_order_refunds_nothing(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Standing", 0.0, 10)]).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();

    assert_eq!(app.return_tickets(&kofi.key, &order, json!({})).await.body["status"], "Returned");

    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0)], 0));
    assert_eq!(app.transactions("/transactions").await, []);
}

#[test_on(sqlite, postgres)]
async fn returned_tickets_are_sold_again(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Box", 100.0, 2)]).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap();
    ama.pay(&order).await.unwrap();
    let yaw = app.sign_up("yaw").await;
    assert!(yaw.order(&event.sections[0], 1).await.is_err());

    app.return_tickets(&kofi.key, &order.self_, json!({ "tickets": [wallet(&app, &ama).await[0].0] })).await;

    yaw.pay(&yaw.order(&event.sections[0], 1).await.unwrap()).await.unwrap();
    assert!(yaw.order(&event.sections[0], 1).await.is_err());
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
}

#[test_on(sqlite, postgres)]
async fn failed_refund_is_retried(app: TestApp) {
    let OrderFixture { kofi, order, .. } = create_order(&app).await;
    app.gateway.reject_refunds(true);

    let returned = app.return_tickets(&kofi.key, &order, json!({})).await;

    assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Returned")));
    app.expire_due().await;
    assert_eq!(app.payments(&order).await, [paid(234.97, "Confirmed")], "it is not back yet");
    assert_eq!(app.transactions("/transactions").await, [entry("Sale", 234.97, 4.97)]);
    app.gateway.reject_refunds(false);
    app.expire_due().await;
    assert_eq!(app.payments(&order).await, [paid(234.97, "Refunded")]);
    assert_eq!(app.transactions("/transactions").await, [entry("Sale", 234.97, 4.97), entry("Refund", 234.97, 4.97)]);
    assert_eq!(app.gateway.total(), 0.0);
}

#[test_on(sqlite, postgres)]
async fn refund_with_lost_response_is_made_once(app: TestApp) {
    let OrderFixture { kofi, ama, order, .. } = create_order(&app).await;
    let tickets = wallet(&app, &ama).await;
    app.gateway.fail_after_refund(true);

    // Two refunds of the same amount are distinct, and each is made once.
    for (serial, _) in &tickets[..2] {
        assert_eq!(app.return_tickets(&kofi.key, &order, json!({ "tickets": [serial] })).await.status, 200);
    }
    app.expire_due().await;
    assert_eq!(app.gateway.total(), 30.99);
    assert_eq!(app.transactions("/transactions?type=Refund").await, []);
    app.gateway.fail_after_refund(false);
    app.expire_due().await;

    assert_eq!(app.gateway.total(), 30.99);
    assert_eq!(
        app.transactions("/transactions?type=Refund").await,
        [entry("Refund", 101.99, 1.99), entry("Refund", 101.99, 1.99)]
    );
    assert_eq!(app.payments(&order).await, [paid(234.97, "Confirmed")]);
}

/// The second server has other fees.
#[test_on(sqlite, postgres)]
async fn return_refunds_fees_at_time_of_order(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10), section("Box", 20.01, 10)]).await;
    let fee_steps = "20:1.50,7.25".parse::<FeeSchedule>().unwrap();
    let settings = Settings { fee_steps, ..app.state.settings.clone() };
    let other = app.start_second_server(settings).await;
    let at_other = Client::connect(&format!("http://{}", other.address), &ama.key).unwrap();

    let items = event.sections.iter().map(|section| (section.clone(), 2)).collect::<std::collections::HashMap<_, _>>();
    let order = at_other.order_create().body_map(|body| body.items(items)).send().await.unwrap();
    assert_eq!((order.subtotal, order.fees, order.total), (80.02, 17.5, 97.52));
    let pay = at_other.order_payment_create().order(order.number.as_str());
    let pay = pay.body_map(|body| body.method(types::PaymentMethod::Card).token("tok_approve".to_owned()));
    assert_eq!(pay.send().await.unwrap().amount, 97.52);

    // The current fee is 0.99, but the fee of the order is refunded.
    let dear = wallet(&app, &ama).await.swap_remove(0).0;
    assert_eq!(app.return_tickets(&kofi.key, &order.self_, json!({ "tickets": [dear] })).await.status, 200);
    assert_eq!(app.transactions("/transactions?type=Refund").await, [entry("Refund", 27.26, 7.25)]);
    assert_eq!(app.return_tickets(&kofi.key, &order.self_, json!({})).await.body["status"], "Returned");
    let fees: f64 = app.transactions("/transactions?type=Refund").await.iter().map(|entry| entry.2).sum();
    assert!((fees - 17.5).abs() < 0.001, "{fees}");
    other.stop().await;
}
