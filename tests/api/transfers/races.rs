//! Concurrent actions on tickets in transfers: exactly one succeeds, and the tickets are consistent with it.

use std::collections::BTreeMap;
use std::slice::from_ref;

use futures::future::{join, join_all};
use serde_json::Value;

use super::{Fixture, all, claim, create_fixture, offer, read, reject, serials_of, tables, wallet};
use crate::races::count_statuses;
use crate::support::{TestApp, User, rejection, test_on};

/// The number of repetitions.
const ROUNDS: usize = 8;

/// Asserts that the tickets match the status of their transfer.
async fn assert_settled(app: &TestApp, fixture: &Fixture, transfer: &str, state: &str) {
    assert_eq!(read(app, &fixture.ama, transfer).await["status"], state);
    let (owner, other) = if state == "Claimed" { (&fixture.esi, &fixture.ama) } else { (&fixture.ama, &fixture.esi) };
    let held = serials_of(app, owner).await;
    assert_eq!(held.len(), fixture.serials.len());
    assert_eq!(wallet(app, owner).await, all(&held, "Issued"));
    assert_eq!(wallet(app, other).await, []);
}

/// Transfers the tickets from Esi back to Ama, with other serials.
async fn give_back(app: &TestApp, fixture: &mut Fixture) {
    if wallet(app, &fixture.ama).await.is_empty() {
        let back = offer(app, &fixture.esi.key, &fixture.ama, &serials_of(app, &fixture.esi).await).await;
        assert_eq!(claim(app, &fixture.ama, back.uri()).await.status, 200);
        fixture.serials = serials_of(app, &fixture.ama).await;
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_claims_succeed_once(app: TestApp) {
    let fixture = create_fixture(&app, 3).await;
    let transfer = fixture.offer(&app, &fixture.serials).await;

    let responses = join_all((0..8).map(|_| claim(&app, &fixture.esi, &transfer))).await;

    assert_eq!(count_statuses(&responses, [200, 409]), [1, 7]);
    assert!(responses.iter().filter(|response| response.status == 409).all(|response| response.code() == "transfer.not-open"));
    assert_settled(&app, &fixture, &transfer, "Claimed").await;
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_claim_and_cancellation_leave_one(app: TestApp) {
    let mut fixture = create_fixture(&app, 2).await;
    for _ in 0..ROUNDS {
        let transfer = fixture.offer(&app, &fixture.serials).await;

        let (claimed, cancelled) = join(claim(&app, &fixture.esi, &transfer), app.delete(&fixture.ama.key, &transfer)).await;

        match (claimed.status, cancelled.status) {
            (200, 409) => assert_settled(&app, &fixture, &transfer, "Claimed").await,
            (409, 204) => assert_settled(&app, &fixture, &transfer, "Cancelled").await,
            other => panic!("{other:?}"),
        }
        give_back(&app, &mut fixture).await;
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_claim_and_rejection_leave_one(app: TestApp) {
    let mut fixture = create_fixture(&app, 2).await;
    for _ in 0..ROUNDS {
        let transfer = fixture.offer(&app, &fixture.serials).await;

        let (claimed, rejected) = join(claim(&app, &fixture.esi, &transfer), reject(&app, &fixture.esi, &transfer)).await;

        match (claimed.status, rejected.status) {
            (200, 409) => assert_settled(&app, &fixture, &transfer, "Claimed").await,
            (409, 200) => assert_settled(&app, &fixture, &transfer, "Rejected").await,
            other => panic!("{other:?}"),
        }
        give_back(&app, &mut fixture).await;
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_cancellations_cancel_once(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let transfer = fixture.offer(&app, &fixture.serials).await;

    let sides = [&fixture.ama, &fixture.esi, &fixture.ama, &fixture.esi];
    let responses = join_all(sides.map(|side| app.delete(&side.key, &transfer))).await;

    assert_eq!(count_statuses(&responses, [204, 409]), [1, 3]);
    assert_settled(&app, &fixture, &transfer, "Cancelled").await;
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_offer_and_admission_leave_one(app: TestApp) {
    let fixture = create_fixture(&app, ROUNDS).await;
    for ticket in fixture.serials.iter().map(from_ref) {
        let (offered, admitted) = join(offer(&app, &fixture.ama.key, &fixture.esi, ticket), fixture.admit(&app, ticket)).await;

        let (tickets, ..) = tables(&app).await;
        let (_, state, ..) = tickets.iter().find(|(serial, ..)| *serial == ticket[0]).unwrap();
        match (offered.status, admitted.status) {
            (201, 400) => assert_eq!(state, "Pending"),
            (409, 201) => assert_eq!((state.as_str(), offered.code()), ("Redeemed", "ticket.not-issued")),
            other => panic!("{other:?}"),
        }
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn ticket_offered_twice_is_in_one_transfer(app: TestApp) {
    let fixture = create_fixture(&app, ROUNDS).await;
    let yaw = app.sign_up("yaw").await;
    for ticket in fixture.serials.iter().map(from_ref) {
        let to = [&fixture.esi, &yaw, &fixture.esi, &yaw];
        let responses = join_all(to.map(|recipient| offer(&app, &fixture.ama.key, recipient, ticket))).await;

        assert_eq!(count_statuses(&responses, [201, 409]), [1, 3]);
        assert!(
            responses.iter().filter(|response| response.status == 409).all(|response| response.code() == "ticket.not-issued")
        );
    }
    assert_eq!(wallet(&app, &fixture.ama).await, all(&fixture.serials, "Pending"));
    let (_, transfers, held) = tables(&app).await;
    assert_eq!((transfers.len(), held), (ROUNDS, i64::try_from(ROUNDS).unwrap()), "rejected requests have changed nothing");
}

#[test_on(sqlite, postgres, two_servers)]
async fn transfers_of_same_tickets_do_not_deadlock(app: TestApp) {
    let fixture = create_fixture(&app, 12).await;
    let yaw = app.sign_up("yaw").await;
    let forth = fixture.serials.clone();
    let back: Vec<String> = forth.iter().rev().cloned().collect();
    let wanted =
        [forth.clone(), back.clone(), forth[..6].to_vec(), back[..6].to_vec(), forth[3..9].to_vec(), back[3..9].to_vec()];

    let offers = wanted.iter().flat_map(|serials| [&fixture.esi, &yaw].map(|recipient| (recipient, serials)));
    let responses = join_all(offers.map(|(recipient, serials)| offer(&app, &fixture.ama.key, recipient, serials))).await;

    let [created, _] = count_statuses(&responses, [201, 409]);
    assert!(created > 0);
    let mut transfers_of: BTreeMap<&str, usize> = BTreeMap::new();
    for transfer in responses.iter().filter(|response| response.status == 201) {
        for ticket in transfer.body["tickets"].as_array().unwrap() {
            *transfers_of.entry(ticket["serial"].as_str().unwrap()).or_default() += 1;
        }
    }
    assert!(transfers_of.values().all(|transfers| *transfers == 1), "{transfers_of:?}");
    for (serial, state) in wallet(&app, &fixture.ama).await {
        let expected = if transfers_of.contains_key(serial.as_str()) { "Pending" } else { "Issued" };
        assert_eq!(state, expected, "{serial}");
    }

    // The created transfers are ended concurrently, in different ways.
    let ends = responses.iter().filter(|response| response.status == 201).map(|created| {
        let (app, fixture, yaw) = (&app, &fixture, &yaw);
        async move {
            let uri = created.uri();
            let recipient: &User = if created.body["recipient"]["number"] == yaw.number.as_str() { yaw } else { &fixture.esi };
            join(claim(app, recipient, uri), app.delete(&fixture.ama.key, uri)).await
        }
    });
    for (claimed, cancelled) in join_all(ends).await {
        assert!(matches!((claimed.status, cancelled.status), (200, 409) | (409, 204)), "{claimed:?} {cancelled:?}");
    }
    let (tickets, ..) = tables(&app).await;
    // A claimed ticket is Void and replaced by an Issued one.
    assert!(tickets.iter().all(|(_, state, ..)| state == "Issued" || state == "Void"), "{tickets:?}");
    assert_eq!(tickets.iter().filter(|(_, state, ..)| state == "Issued").count(), forth.len(), "{tickets:?}");
}

#[test_on(sqlite, postgres, two_servers)]
async fn sender_is_not_admitted_during_claim(app: TestApp) {
    let fixture = create_fixture(&app, ROUNDS).await;
    for ticket in fixture.serials.iter().map(from_ref) {
        let transfer = fixture.offer(&app, ticket).await;

        let (claimed, admitted) = join(claim(&app, &fixture.esi, &transfer), fixture.admit(&app, ticket)).await;

        assert_eq!(claimed.status, 200, "{}", claimed.body);
        assert_eq!(rejection(&admitted), (400, "admission.none"));
    }
    assert_eq!(wallet(&app, &fixture.ama).await, []);
    let received = serials_of(&app, &fixture.esi).await;
    assert_eq!(wallet(&app, &fixture.esi).await, all(&received, "Issued"));
    assert_eq!(received.len(), ROUNDS);
}

#[test_on(sqlite, postgres, two_servers)]
async fn claims_and_admissions_do_not_deadlock(app: TestApp) {
    let fixture = create_fixture(&app, 40).await;
    let back: Vec<String> = fixture.serials.iter().rev().cloned().collect();
    let mut transfers = Vec::new();
    // Every second ticket stays with the sender, who is admitted meanwhile.
    let (offered, kept): (Vec<_>, Vec<_>) = back.iter().cloned().enumerate().partition(|(at, _)| at % 2 == 0);
    let offered: Vec<String> = offered.into_iter().map(|(_, serial)| serial).collect();
    for tickets in offered.chunks(5) {
        transfers.push(fixture.offer(&app, tickets).await);
    }

    let claims = join_all(transfers.iter().map(|transfer| claim(&app, &fixture.esi, transfer)));
    let gates = join_all([&fixture.serials, &back, &fixture.serials, &back].map(|serials| fixture.admit(&app, serials)));
    let (claims, gates) = join(claims, gates).await;

    assert_eq!(count_statuses(&claims, [200]), [4]);
    count_statuses(&gates, [201, 400]);
    let admitted = gates.iter().filter(|gate| gate.status == 201).flat_map(|gate| gate.body.as_array().unwrap());
    let admitted: Vec<&Value> =
        admitted.inspect(|created| assert_eq!(created["patron"]["number"], fixture.ama.number.as_str())).collect();
    assert_eq!(admitted.len(), kept.len());
    let received = serials_of(&app, &fixture.esi).await;
    assert_eq!(wallet(&app, &fixture.esi).await, all(&received, "Issued"));
    assert_eq!(received.len(), 20);
}
