//! Returns at the same time as other changes of the tickets.

use futures::future::{join, join_all};
use serde_json::json;

use super::{OrderFixture, create_order, offer, place, statuses, wallet};
use crate::support::{TestApp, card_payment, rejection, section, test_on};

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_return_and_claim_agree_on_tickets(app: TestApp) {
    let OrderFixture { kofi, ama, event, .. } = create_order(&app).await;
    let esi = app.sign_up("esi").await;
    for _ in 0..5 {
        let order = place(&ama, &event).await;
        assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
        let tickets = wallet(&app, &ama).await;
        let issued = tickets.iter().filter(|(_, status)| status == "Issued").map(|(serial, _)| serial.as_str());
        let transfer = offer(&app, &ama, &esi, &issued.collect::<Vec<_>>()).await;

        let claim = app.request("POST", &format!("{transfer}/claims")).key(&esi.key).send();
        let (claimed, returned) = join(claim, app.return_tickets(&kofi.key, &order, json!({}))).await;

        assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Returned")));
        let expected = if claimed.status == 200 { "Claimed" } else { "Cancelled" };
        assert!(claimed.status == 200 || rejection(&claimed) == (409, "transfer.not-open"), "{}", claimed.body);
        assert_eq!(app.read(&transfer).await["status"], expected);
    }
    let orders = app.read(&format!("/accounts/{}/orders?status=Returned", ama.number)).await;
    assert_eq!(orders["total"], 5);
    assert_eq!(app.stored_sold_and_reserved().await.0, vec![(2, 0), (1, 0)], "the first order's places alone are sold");
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_return_and_transfers_leave_no_valid_ticket(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 100)]).await;
    let esi = app.sign_up("esi").await;
    for _ in 0..6 {
        let order = ama.order(&event.sections[0], 3).await.unwrap().self_.clone();
        let tickets = wallet(&app, &ama).await;
        let issued: Vec<_> = tickets.iter().filter(|(_, status)| status == "Issued").map(|(serial, _)| serial.clone()).collect();

        // A transfer may begin and be claimed while the tickets are being returned.
        let transfers = issued.iter().map(async |serial| {
            let body = json!({ "recipient": esi.number, "tickets": [serial] });
            let created = app.post(&ama.key, "/transfers", &body).await;
            if created.status == 201 {
                let claims = format!("{}/claims", created.uri());
                app.post_empty(&esi.key, &claims).await;
            }
        });
        let (_, returned) = join(join_all(transfers), app.return_tickets(&kofi.key, &order, json!({}))).await;

        assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Returned")));
        for user in [&ama, &esi] {
            assert!(statuses(&app, user).await.iter().all(|status| status == "Void"), "{}", user.username);
        }
    }
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_returns_refund_once(app: TestApp) {
    let OrderFixture { kofi, order, .. } = create_order(&app).await;

    let (one, other) =
        join(app.return_tickets(&kofi.key, &order, json!({})), app.return_tickets(&app.staff.key, &order, json!({}))).await;

    let mut responses = [rejection(&one), rejection(&other)];
    responses.sort();
    assert_eq!(responses, [(200, ""), (409, "order.not-fulfilled")]);
    app.expire_due().await;
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0), (0, 0)], 0));
    assert_eq!(app.transactions("/transactions").await.len(), 2);
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_return_and_admission_agree_on_tickets(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 100)]).await;
    for _ in 0..8 {
        let order = ama.order(&event.sections[0], 4).await.unwrap();
        ama.pay(&order).await.unwrap();
        let tickets = wallet(&app, &ama).await;
        let serials: Vec<&str> =
            tickets.iter().filter(|(_, status)| status == "Issued").map(|(serial, _)| serial.as_str()).collect();

        let (returned, admitted) =
            join(app.return_tickets(&kofi.key, &order.self_, json!({})), app.admit(&kofi.key, &event, &serials)).await;
        let admitted = admitted.body.as_array().map_or(0, Vec::len);

        match returned.status {
            200 => assert_eq!((admitted, &returned.body["status"]), (0, &json!("Returned"))),
            409 => assert_eq!((admitted, returned.code()), (4, "ticket.not-issued")),
            other => panic!("{other}: {}", returned.body),
        }
    }
    let valid = statuses(&app, &ama).await.iter().filter(|status| *status == "Redeemed").count();
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (valid as i64, 0));
    assert!((app.gateway.total() - valid as f64 * 10.99).abs() < 0.001);
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_return_and_void_leave_one(app: TestApp) {
    let OrderFixture { kofi, order, .. } = create_order(&app).await;

    let void = app.void_order(&app.staff.key, &order, json!({ "reason": "x" }));
    let (returned, voided) = join(app.return_tickets(&kofi.key, &order, json!({})), void).await;

    let (expected, kept) = if returned.status == 200 { ("Returned", 0.0) } else { ("Voided", 234.97) };
    assert_eq!(returned.status + voided.status, 609, "one of the two");
    assert_eq!(app.read(&order).await["status"], expected);
    assert_eq!(app.gateway.total(), kept);
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0), (0, 0)], 0));
}
