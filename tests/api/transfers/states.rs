//! Every action on transfers and tickets in every state: allowed ones succeed, all others change nothing.

use std::slice::from_ref;

use super::{Fixture, claim, create_fixture, offer, read, reject, serials_of, tables, wallet};
use crate::support::{Response, TestApp, rejection, test_on};
use crate::tickets::set_status;

/// An action on a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Claim,
    Reject,
    CancelBySender,
    CancelByRecipient,
}

impl Step {
    const ALL: [Self; 4] = [Self::Claim, Self::Reject, Self::CancelBySender, Self::CancelByRecipient];

    async fn take(self, app: &TestApp, fixture: &Fixture, transfer: &str) -> Response {
        match self {
            Self::Claim => claim(app, &fixture.esi, transfer).await,
            Self::Reject => reject(app, &fixture.esi, transfer).await,
            Self::CancelBySender => app.delete(&fixture.ama.key, transfer).await,
            Self::CancelByRecipient => app.delete(&fixture.esi.key, transfer).await,
        }
    }

    /// Returns the status of the response and of the transfer, if the transfer is Pending.
    fn outcome(self) -> (u16, &'static str) {
        match self {
            Self::Claim => (200, "Claimed"),
            Self::Reject => (200, "Rejected"),
            Self::CancelBySender | Self::CancelByRecipient => (204, "Cancelled"),
        }
    }
}

#[test_on(sqlite, postgres)]
async fn transfer_ends_once(app: TestApp) {
    let fixture = create_fixture(&app, 4).await;

    for (first, serial) in Step::ALL.into_iter().zip(&fixture.serials) {
        let transfer = fixture.offer(&app, from_ref(serial)).await;
        let (status, state) = first.outcome();

        assert_eq!(first.take(&app, &fixture, &transfer).await.status, status, "{first:?}");

        assert_eq!(read(&app, &fixture.ama, &transfer).await["status"], state);
        if first == Step::Claim {
            assert_eq!(serials_of(&app, &fixture.esi).await.len(), 1);
            assert!(!serials_of(&app, &fixture.ama).await.contains(serial));
        } else {
            assert!(wallet(&app, &fixture.ama).await.contains(&(serial.clone(), "Issued".to_owned())), "{first:?}");
        }
        let before = tables(&app).await;
        for second in Step::ALL {
            let rejected = second.take(&app, &fixture, &transfer).await;
            assert_eq!(rejection(&rejected), (409, "transfer.not-open"), "{second:?} after {first:?}");
            assert_eq!(tables(&app).await, before, "{second:?} after {first:?}");
        }
    }
}

#[test_on(sqlite, postgres)]
async fn tickets_follow_state_machine(app: TestApp) {
    const STEPS: [&str; 5] = ["transfer", "admit", "claim", "reject", "cancel"];
    let fixture = create_fixture(&app, 4 * STEPS.len()).await;

    for (state, tickets) in ["Issued", "Pending", "Redeemed", "Void"].into_iter().zip(fixture.serials.chunks(STEPS.len())) {
        for (step, ticket) in STEPS.into_iter().zip(tickets.iter().map(from_ref)) {
            let transfer = fixture.offer(&app, ticket).await;
            if state != "Pending" {
                reject(&app, &fixture.esi, &transfer).await;
            }
            match state {
                "Redeemed" => assert_eq!(fixture.admit(&app, ticket).await.status, 201),
                "Void" => set_status(&app, &ticket[0], "Void").await,
                _ => {}
            }
            let before = tables(&app).await;

            let response = match step {
                "transfer" => offer(&app, &fixture.ama.key, &fixture.esi, ticket).await,
                "admit" => fixture.admit(&app, ticket).await,
                "claim" => claim(&app, &fixture.esi, &transfer).await,
                "reject" => reject(&app, &fixture.esi, &transfer).await,
                _ => app.delete(&fixture.ama.key, &transfer).await,
            };

            let expected = match (state, step) {
                ("Issued", "transfer") => (201, "", "Pending"),
                ("Issued", "admit") => (201, "", "Redeemed"),
                ("Pending", "claim") => (200, "", "Void"),
                ("Pending", "reject") => (200, "", "Issued"),
                ("Pending", "cancel") => (204, "", "Issued"),
                (state, "transfer") => (409, "ticket.not-issued", state),
                (state, "admit") => (400, "admission.none", state),
                // The ticket is in no open transfer: its transfer was rejected.
                (state, _) => (409, "transfer.not-open", state),
            };
            let after = tables(&app).await;
            let (_, now, ..) = after.0.iter().find(|(serial, ..)| *serial == ticket[0]).unwrap();
            assert_eq!((response.status, response.code(), now.as_str()), expected, "{step} of a ticket that is {state}");
            assert_eq!(after == before, response.status >= 400, "{step} of a ticket that is {state}");
        }
    }
}
