//! A complete purchase, from sign-up to admission.

use crate::support::{Rejection, TestApp, section, test_on, types};

#[test_on(sqlite, postgres)]
async fn purchase_from_sign_up_to_admission(app: TestApp) {
    // Kofi creates an event with free and paid sections.
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let mut event = app.create_draft(&host).await;
    let standing = app.add_section(&event, &section("Standing", 0.0, 100)).await;
    let seats = app.add_section(&event, &section("Seats", 120.0, 50)).await;
    event.sections = vec![standing.clone(), seats.clone()];

    // The event is hidden until staff have approved it.
    let ama = app.sign_up("ama").await;
    assert_eq!(ama.client.event_get().event(&event.id).send().await.rejection(), (403, "resource.not-yours".to_owned()));
    app.list_event(&event).await;
    let published = ama.client.published_event_list().send().await.unwrap();
    assert_eq!(published.entries.iter().map(|event| event.self_.as_str()).collect::<Vec<_>>(), [event.uri.as_str()]);

    // Ama orders one free and two paid tickets, and pays.
    let order = ama.order_items([(standing.as_str(), 1), (seats.as_str(), 2)]).await.unwrap();
    assert_eq!(order.status, types::OrderStatus::Placed);
    assert_eq!((order.subtotal, order.fees, order.total), (240.0, 5.98, 245.98));
    let payment = ama.pay(&order).await.unwrap();
    assert_eq!(payment.amount, 245.98);
    let order = ama.client.order_get().order(order.number.as_str()).send().await.unwrap();
    assert_eq!(order.status, types::OrderStatus::Fulfilled);

    // Her wallet contains three tickets.
    let tickets = ama.client.account_ticket_list().number(ama.number.as_str()).send().await.unwrap();
    let serials: Vec<_> = tickets.entries.iter().map(|ticket| ticket.serial.clone()).collect();
    assert_eq!(serials.len(), 3);

    // Yaw has a token for the paid section.
    let token = kofi.client.event_token_create().event(&event.id).body_map(|body| body.sections(vec![seats]));
    let code = token.send().await.unwrap().code.clone();
    let key = app.public_client.token_authentication_get().code(code).send().await.unwrap().key.clone();
    let yaw = app.client(&key);
    let admit = || yaw.event_admission_create().event(&event.id).body_map(|body| body.serials(serials.clone()));
    let admitted = admit().send().await.unwrap();
    assert_eq!(admitted.len(), 2, "the standing ticket is for another gate");

    // A second scan admits no ticket.
    assert_eq!(admit().send().await.rejection(), (400, "admission.none".to_owned()));
    let tickets = ama.client.account_ticket_list().number(ama.number.as_str()).send().await.unwrap();
    let redeemed = tickets.entries.iter().filter(|ticket| ticket.status == types::TicketStatus::Redeemed).count();
    assert_eq!(redeemed, 2);
}
