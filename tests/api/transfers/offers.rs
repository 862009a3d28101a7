//! Offers that are rejected.

use std::slice::from_ref;

use serde_json::json;

use super::{claim, create_fixture, offer, tables, wallet};
use crate::support::{TestApp, rejection, test_on};
use crate::tickets::set_status;

#[test_on(sqlite, postgres)]
async fn only_owner_offers_tickets(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let before = tables(&app).await;

    for key in [&app.staff.key, &fixture.kofi.key] {
        let rejected = offer(&app, key, &fixture.esi, &fixture.serials).await;
        assert_eq!(rejected.invalid_arguments(), ["tickets"], "neither staff nor the host");
    }
    assert_eq!(tables(&app).await, before);

    let staffs = app.staff.order_free_tickets(&fixture.event.sections[0], 1).await;
    let sent = offer(&app, &app.staff.key, &fixture.esi, &staffs).await;
    assert_eq!((sent.status, &sent.body["sender"]["number"]), (201, &json!(app.staff.number)));
    assert_eq!(claim(&app, &fixture.esi, sent.uri()).await.status, 200);
    assert_eq!(wallet(&app, &fixture.esi).await.len(), 1);
}

#[test_on(sqlite, postgres)]
async fn invalid_offer_names_all_errors_and_changes_nothing(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let kofis = fixture.kofi.order_free_tickets(&fixture.event.sections[0], 1).await.remove(0);
    let [good, other] = [0, 1].map(|ticket| fixture.serials[ticket].as_str());
    let (ama, esi, unknown) = (fixture.ama.number.as_str(), fixture.esi.number.as_str(), "ZZZZZZ-ZZZZZZZZZZZZ");
    let before = tables(&app).await;

    for (body, complaints) in [
        (json!({}), "-recipient -tickets"),
        (json!({ "recipient": " ", "tickets": null }), "-recipient -tickets"),
        (json!({ "recipient": "ama", "tickets": [] }), "recipient tickets"),
        (json!({ "recipient": esi, "tickets": [good, good] }), "tickets"),
        (json!({ "recipient": esi, "tickets": [good, "scribble"] }), "tickets"),
        (json!({ "recipient": esi, "tickets": good }), "tickets"),
        (
            json!({ "recipient": esi, "tickets": (10..61).map(|n| format!("ZZZZZZ-ZZZZZZZZZZ{n}")).collect::<Vec<_>>() }),
            "tickets",
        ),
        (json!({ "recipient": esi, "tickets": [good, unknown] }), "tickets"),
        (json!({ "recipient": esi, "tickets": [kofis, good] }), "tickets"),
        (json!({ "recipient": ama, "tickets": [good, other] }), "recipient"),
        (json!({ "recipient": "ZZ-ZZZZZZZZ", "tickets": [good] }), "recipient"),
        (json!({ "recipient": "ZZ-ZZZZZZZZ", "tickets": [unknown] }), "recipient tickets"),
        (json!({ "recipient": ama, "tickets": [good, unknown] }), "recipient tickets"),
    ] {
        let response = app.post(&fixture.ama.key, "/transfers", &body).await;
        assert_eq!((response.status, response.invalid_arguments().join(" ").as_str()), (400, complaints), "{body}");
        assert_eq!(tables(&app).await, before, "{body}");
    }

    // A rejection doesn't reveal the owner or the existence of a ticket.
    let body = json!({ "recipient": esi, "tickets": [unknown, good, kofis] });
    let response = app.post(&fixture.ama.key, "/transfers", &body).await;
    assert_eq!(response.body["fields"][0]["detail"], format!("names no ticket of yours (at {unknown}, {kofis})"));
    let response = app.post(&fixture.ama.key, "/transfers", json!({ "recipient": ama, "tickets": [good] })).await;
    assert_eq!(response.body["fields"][0]["detail"], "must be another account");
    assert_eq!(tables(&app).await, before);
}

#[test_on(sqlite, postgres)]
async fn unissued_tickets_are_named_and_none_is_offered(app: TestApp) {
    let fixture = create_fixture(&app, 4).await;
    let [issued, pending, redeemed, void] = [0, 1, 2, 3].map(|ticket| fixture.serials[ticket].clone());
    fixture.offer(&app, from_ref(&pending)).await;
    assert_eq!(fixture.admit(&app, from_ref(&redeemed)).await.status, 201);
    set_status(&app, &void, "Void").await;
    let before = tables(&app).await;

    for (serials, named) in [
        (vec![&issued, &pending], vec![&pending]),
        (vec![&redeemed], vec![&redeemed]),
        (vec![&void, &issued], vec![&void]),
        (vec![&pending, &redeemed, &issued, &void], vec![&pending, &redeemed, &void]),
    ] {
        let serials: Vec<String> = serials.into_iter().cloned().collect();
        let rejected = offer(&app, &fixture.ama.key, &fixture.esi, &serials).await;

        assert_eq!(rejection(&rejected), (409, "ticket.not-issued"), "{serials:?}");
        let text = rejected.body["error"].as_str().unwrap();
        for serial in &fixture.serials {
            assert_eq!(text.contains(serial), named.contains(&serial), "{text}");
        }
        assert_eq!(tables(&app).await, before);
    }
    // Invalid arguments take precedence.
    let both = offer(&app, &fixture.ama.key, &fixture.ama, &[void]).await;
    assert_eq!(both.invalid_arguments(), ["recipient"]);
}

#[test_on(sqlite, postgres)]
async fn recipient_must_be_active_account(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    app.execute("update accounts set activated = false where number = $1", fixture.esi.number.clone()).await;
    let before = tables(&app).await;

    let rejected = offer(&app, &fixture.ama.key, &fixture.esi, &fixture.serials).await;

    assert_eq!(rejected.invalid_arguments(), ["recipient"]);
    assert_eq!(rejected.body["fields"][0]["detail"], "names no active account", "as of an unknown one");
    assert_eq!(tables(&app).await, before);
}
