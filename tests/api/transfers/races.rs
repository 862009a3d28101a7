//! What happens to tickets at the same moment: exactly one thing, and the tickets agree with it.

use std::collections::BTreeMap;
use std::slice::from_ref;

use futures::future::{join, join_all};
use serde_json::Value;

use super::{Scene, all, cancel, claim, offer, read, reject, scene, tables, wallet};
use crate::race_tests;
use crate::races::tally;
use crate::support::{TestApp, User};

race_tests![
    concurrent_claims_succeed_once,
    concurrent_claim_and_cancellation_leave_one,
    concurrent_claim_and_rejection_leave_one,
    concurrent_cancellations_cancel_once,
    concurrent_offer_and_admission_leave_one,
    ticket_offered_twice_is_in_one_transfer,
    transfers_of_same_tickets_do_not_deadlock,
    ticket_admitted_during_claim_belongs_to_recipient,
    claims_and_admissions_do_not_deadlock,
];

/// Times that two requests are sent together.
const ROUNDS: usize = 8;

/// Holds the tickets to what has become of their transfer.
async fn assert_settled(app: &TestApp, scene: &Scene, transfer: &str, state: &str) {
    assert_eq!(read(app, &scene.ama, transfer).await["status"], state);
    let (owner, other) = if state == "Claimed" { (&scene.esi, &scene.ama) } else { (&scene.ama, &scene.esi) };
    assert_eq!(wallet(app, owner).await, all(&scene.serials, "Issued"));
    assert_eq!(wallet(app, other).await, []);
}

/// Brings what Esi has claimed back to Ama.
async fn give_back(app: &TestApp, scene: &Scene) {
    if wallet(app, &scene.ama).await.is_empty() {
        let back = offer(app, &scene.esi.key, &scene.ama, &scene.serials).await;
        assert_eq!(claim(app, &scene.ama, back.body["self"].as_str().unwrap()).await.status, 200);
    }
}

async fn concurrent_claims_succeed_once(app: TestApp) {
    let scene = scene(&app, 3).await;
    let transfer = scene.offer(&app, &scene.serials).await;

    let answers = join_all((0..8).map(|_| claim(&app, &scene.esi, &transfer))).await;

    assert_eq!(tally(&answers, [200, 409]), [1, 7]);
    assert!(answers.iter().filter(|answer| answer.status == 409).all(|answer| answer.code() == "transfer.not-open"));
    assert_settled(&app, &scene, &transfer, "Claimed").await;
}

async fn concurrent_claim_and_cancellation_leave_one(app: TestApp) {
    let scene = scene(&app, 2).await;
    for _ in 0..ROUNDS {
        let transfer = scene.offer(&app, &scene.serials).await;

        let (claimed, cancelled) = join(claim(&app, &scene.esi, &transfer), cancel(&app, &scene.ama, &transfer)).await;

        match (claimed.status, cancelled.status) {
            (200, 409) => assert_settled(&app, &scene, &transfer, "Claimed").await,
            (409, 204) => assert_settled(&app, &scene, &transfer, "Cancelled").await,
            other => panic!("{other:?}"),
        }
        give_back(&app, &scene).await;
    }
}

async fn concurrent_claim_and_rejection_leave_one(app: TestApp) {
    let scene = scene(&app, 2).await;
    for _ in 0..ROUNDS {
        let transfer = scene.offer(&app, &scene.serials).await;

        let (claimed, rejected) = join(claim(&app, &scene.esi, &transfer), reject(&app, &scene.esi, &transfer)).await;

        match (claimed.status, rejected.status) {
            (200, 409) => assert_settled(&app, &scene, &transfer, "Claimed").await,
            (409, 200) => assert_settled(&app, &scene, &transfer, "Rejected").await,
            other => panic!("{other:?}"),
        }
        give_back(&app, &scene).await;
    }
}

async fn concurrent_cancellations_cancel_once(app: TestApp) {
    let scene = scene(&app, 2).await;
    let transfer = scene.offer(&app, &scene.serials).await;

    let sides = [&scene.ama, &scene.esi, &scene.ama, &scene.esi];
    let answers = join_all(sides.map(|side| cancel(&app, side, &transfer))).await;

    assert_eq!(tally(&answers, [204, 409]), [1, 3]);
    assert_settled(&app, &scene, &transfer, "Cancelled").await;
}

async fn concurrent_offer_and_admission_leave_one(app: TestApp) {
    let scene = scene(&app, ROUNDS).await;
    for ticket in scene.serials.iter().map(from_ref) {
        let (offered, admitted) = join(offer(&app, &scene.ama.key, &scene.esi, ticket), scene.admit(&app, ticket)).await;

        let (tickets, ..) = tables(&app).await;
        let (_, state, ..) = tickets.iter().find(|(serial, ..)| *serial == ticket[0]).unwrap();
        match (offered.status, admitted.status) {
            (201, 400) => assert_eq!(state, "Pending"),
            (409, 201) => assert_eq!((state.as_str(), offered.code()), ("Redeemed", "ticket.not-issued")),
            other => panic!("{other:?}"),
        }
    }
}

async fn ticket_offered_twice_is_in_one_transfer(app: TestApp) {
    let scene = scene(&app, ROUNDS).await;
    let yaw = app.sign_up("yaw").await;
    for ticket in scene.serials.iter().map(from_ref) {
        let to = [&scene.esi, &yaw, &scene.esi, &yaw];
        let answers = join_all(to.map(|recipient| offer(&app, &scene.ama.key, recipient, ticket))).await;

        assert_eq!(tally(&answers, [201, 409]), [1, 3]);
        assert!(answers.iter().filter(|answer| answer.status == 409).all(|answer| answer.code() == "ticket.not-issued"));
    }
    assert_eq!(wallet(&app, &scene.ama).await, all(&scene.serials, "Pending"));
    let (_, transfers, held) = tables(&app).await;
    assert_eq!((transfers.len(), held), (ROUNDS, i64::try_from(ROUNDS).unwrap()), "what was refused left nothing behind");
}

async fn transfers_of_same_tickets_do_not_deadlock(app: TestApp) {
    let scene = scene(&app, 12).await;
    let yaw = app.sign_up("yaw").await;
    let forth = scene.serials.clone();
    let back: Vec<String> = forth.iter().rev().cloned().collect();
    let wanted =
        [forth.clone(), back.clone(), forth[..6].to_vec(), back[..6].to_vec(), forth[3..9].to_vec(), back[3..9].to_vec()];

    let offers = wanted.iter().flat_map(|serials| [&scene.esi, &yaw].map(|recipient| (recipient, serials)));
    let answers = join_all(offers.map(|(recipient, serials)| offer(&app, &scene.ama.key, recipient, serials))).await;

    let [made, _] = tally(&answers, [201, 409]);
    assert!(made > 0);
    let mut transfers_of: BTreeMap<&str, usize> = BTreeMap::new();
    for transfer in answers.iter().filter(|answer| answer.status == 201) {
        for ticket in transfer.body["tickets"].as_array().unwrap() {
            *transfers_of.entry(ticket["serial"].as_str().unwrap()).or_default() += 1;
        }
    }
    assert!(transfers_of.values().all(|transfers| *transfers == 1), "{transfers_of:?}");
    for (serial, state) in wallet(&app, &scene.ama).await {
        let expected = if transfers_of.contains_key(serial.as_str()) { "Pending" } else { "Issued" };
        assert_eq!(state, expected, "{serial}");
    }

    // Those that were made end at the same moment, in different ways.
    let ends = answers.iter().filter(|answer| answer.status == 201).map(|made| {
        let (app, scene, yaw) = (&app, &scene, &yaw);
        async move {
            let uri = made.body["self"].as_str().unwrap();
            let recipient: &User = if made.body["recipient"]["number"] == yaw.number.as_str() { yaw } else { &scene.esi };
            join(claim(app, recipient, uri), cancel(app, &scene.ama, uri)).await
        }
    });
    for (claimed, cancelled) in join_all(ends).await {
        assert!(matches!((claimed.status, cancelled.status), (200, 409) | (409, 204)), "{claimed:?} {cancelled:?}");
    }
    let (tickets, ..) = tables(&app).await;
    assert!(tickets.iter().all(|(_, state, ..)| state == "Issued"), "{tickets:?}");
}

async fn ticket_admitted_during_claim_belongs_to_recipient(app: TestApp) {
    let scene = scene(&app, ROUNDS).await;
    for ticket in scene.serials.iter().map(from_ref) {
        let transfer = scene.offer(&app, ticket).await;

        let (claimed, admitted) = join(claim(&app, &scene.esi, &transfer), scene.admit(&app, ticket)).await;

        assert_eq!(claimed.status, 200, "{}", claimed.body);
        let state = match admitted.status {
            201 => {
                assert_eq!(admitted.body[0]["patron"]["number"], scene.esi.number.as_str());
                "Redeemed"
            }
            400 => "Issued",
            other => panic!("{other}"),
        };
        let held = wallet(&app, &scene.esi).await;
        assert!(held.contains(&(ticket[0].clone(), state.to_owned())), "{held:?}");
    }
    assert_eq!(wallet(&app, &scene.ama).await, []);
}

async fn claims_and_admissions_do_not_deadlock(app: TestApp) {
    let scene = scene(&app, 40).await;
    let back: Vec<String> = scene.serials.iter().rev().cloned().collect();
    let mut transfers = Vec::new();
    for tickets in back.chunks(10) {
        transfers.push(scene.offer(&app, tickets).await);
    }

    let claims = join_all(transfers.iter().map(|transfer| claim(&app, &scene.esi, transfer)));
    let gates = join_all([&scene.serials, &back, &scene.serials, &back].map(|serials| scene.admit(&app, serials)));
    let (claims, gates) = join(claims, gates).await;

    assert_eq!(tally(&claims, [200]), [4]);
    tally(&gates, [201, 400]);
    let admitted = gates.iter().filter(|gate| gate.status == 201).flat_map(|gate| gate.body.as_array().unwrap());
    let admitted: Vec<&Value> =
        admitted.inspect(|made| assert_eq!(made["patron"]["number"], scene.esi.number.as_str())).collect();
    let held = wallet(&app, &scene.esi).await;
    assert_eq!(held.len(), 40);
    assert_eq!(held.iter().filter(|(_, state)| state == "Redeemed").count(), admitted.len());
}
