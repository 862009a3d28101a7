//! Every step in every state: those that the life cycles have succeed, and all others change nothing.

use std::slice::from_ref;

use super::{Scene, cancel, claim, offer, read, reject, scene, tables, wallet};
use crate::on_both_databases;
use crate::support::{Response, TestApp};
use crate::tickets::set_status;

on_both_databases![transfer_ends_once, tickets_follow_state_machine];

/// What can be asked of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Claim,
    Reject,
    CancelBySender,
    CancelByRecipient,
}

impl Step {
    const ALL: [Self; 4] = [Self::Claim, Self::Reject, Self::CancelBySender, Self::CancelByRecipient];

    async fn take(self, app: &TestApp, scene: &Scene, transfer: &str) -> Response {
        match self {
            Self::Claim => claim(app, &scene.esi, transfer).await,
            Self::Reject => reject(app, &scene.esi, transfer).await,
            Self::CancelBySender => cancel(app, &scene.ama, transfer).await,
            Self::CancelByRecipient => cancel(app, &scene.esi, transfer).await,
        }
    }

    /// The status of the answer and the state of the transfer, where it is Pending.
    fn outcome(self) -> (u16, &'static str) {
        match self {
            Self::Claim => (200, "Claimed"),
            Self::Reject => (200, "Rejected"),
            Self::CancelBySender | Self::CancelByRecipient => (204, "Cancelled"),
        }
    }
}

async fn transfer_ends_once(app: TestApp) {
    let scene = scene(&app, 4).await;

    for (first, serial) in Step::ALL.into_iter().zip(&scene.serials) {
        let transfer = scene.offer(&app, from_ref(serial)).await;
        let (status, state) = first.outcome();

        assert_eq!(first.take(&app, &scene, &transfer).await.status, status, "{first:?}");

        assert_eq!(read(&app, &scene.ama, &transfer).await["status"], state);
        let owner = if first == Step::Claim { &scene.esi } else { &scene.ama };
        assert!(wallet(&app, owner).await.contains(&(serial.clone(), "Issued".to_owned())), "{first:?}");
        let before = tables(&app).await;
        for second in Step::ALL {
            let refused = second.take(&app, &scene, &transfer).await;
            assert_eq!((refused.status, refused.code()), (409, "transfer.not-open"), "{second:?} after {first:?}");
            assert_eq!(tables(&app).await, before, "{second:?} after {first:?}");
        }
    }
}

async fn tickets_follow_state_machine(app: TestApp) {
    const STEPS: [&str; 5] = ["transfer", "admit", "claim", "reject", "cancel"];
    let scene = scene(&app, 4 * STEPS.len()).await;

    for (state, tickets) in ["Issued", "Pending", "Redeemed", "Void"].into_iter().zip(scene.serials.chunks(STEPS.len())) {
        for (step, ticket) in STEPS.into_iter().zip(tickets.iter().map(from_ref)) {
            let transfer = scene.offer(&app, ticket).await;
            if state != "Pending" {
                reject(&app, &scene.esi, &transfer).await;
            }
            match state {
                "Redeemed" => assert_eq!(scene.admit(&app, ticket).await.status, 201),
                "Void" => set_status(&app, &ticket[0], "Void").await,
                _ => {}
            }
            let before = tables(&app).await;

            let answer = match step {
                "transfer" => offer(&app, &scene.ama.key, &scene.esi, ticket).await,
                "admit" => scene.admit(&app, ticket).await,
                "claim" => claim(&app, &scene.esi, &transfer).await,
                "reject" => reject(&app, &scene.esi, &transfer).await,
                _ => cancel(&app, &scene.ama, &transfer).await,
            };

            let expected = match (state, step) {
                ("Issued", "transfer") => (201, "", "Pending"),
                ("Issued", "admit") => (201, "", "Redeemed"),
                ("Pending", "claim" | "reject") => (200, "", "Issued"),
                ("Pending", "cancel") => (204, "", "Issued"),
                (state, "transfer") => (409, "ticket.not-issued", state),
                (state, "admit") => (400, "admission.none", state),
                // It is in no open transfer: the one that there was has been rejected.
                (state, _) => (409, "transfer.not-open", state),
            };
            let after = tables(&app).await;
            let (_, now, ..) = after.0.iter().find(|(serial, ..)| *serial == ticket[0]).unwrap();
            assert_eq!((answer.status, answer.code(), now.as_str()), expected, "{step} of a ticket that is {state}");
            assert_eq!(after == before, answer.status >= 400, "{step} of a ticket that is {state}");
        }
    }
}
