//! The steps of an advertisement's life: every step from every state.

use serde_json::json;

use super::{advertisement, cancel, change, decide, delete, make, read, refusal, submit, uri};
use crate::on_both_databases;
use crate::review::submission_of;
use crate::support::{Answer, World};

on_both_databases![
    every_step_from_every_state,
    a_submission_tells_what_it_is_of,
    a_rejected_advertisement_is_submitted_again,
    steps_are_for_the_hosts_administrators_and_the_staff,
];

/// The states of an advertisement; a Draft that was rejected has a submission, a new one has none.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    New,
    Rejected,
    UnderReview,
    Listed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Submit,
    Approve,
    Reject,
    Cancel,
    Update,
    Delete,
}

use State::*;
use Step::*;

impl State {
    fn text(self) -> &'static str {
        match self {
            New | Rejected => "Draft",
            UnderReview => "Under Review",
            Listed => "Listed",
            Cancelled => "Cancelled",
        }
    }

    /// The steps that lead there.
    fn way(self) -> &'static [Step] {
        match self {
            New => &[],
            Rejected => &[Submit, Reject],
            UnderReview => &[Submit],
            Listed => &[Submit, Approve],
            Cancelled => &[Submit, Approve, Cancel],
        }
    }
}

/// What a step leads to, or the status and the code of its refusal. There is no state after a removal.
fn outcome(state: State, step: Step) -> Result<(u16, Option<State>), (u16, &'static str)> {
    match (state, step) {
        (New | Rejected, Submit) => Ok((201, Some(UnderReview))),
        (_, Submit) => Err((409, "advertisement.not-draft")),
        (UnderReview, Approve) => Ok((200, Some(Listed))),
        (UnderReview, Reject) => Ok((200, Some(Rejected))),
        (New, Approve | Reject) => Err((404, "resource.not-found")),
        (_, Approve | Reject) => Err((409, "submission.decided")),
        (Listed, Cancel) => Ok((200, Some(Cancelled))),
        (_, Cancel) => Err((409, "advertisement.not-listed")),
        (Cancelled, Update) => Err((409, "advertisement.cancelled")),
        (_, Update) => Ok((200, Some(state))),
        (_, Delete) => Ok((204, None)),
    }
}

async fn take(world: &World, key: &str, uri: &str, step: Step) -> Answer {
    match step {
        Submit => submit(world, key, uri).await,
        Approve => decide(world, uri, true).await,
        Reject => decide(world, uri, false).await,
        Cancel => cancel(world, key, uri).await,
        Update => change(world, key, uri, json!({ "description": "Changed." })).await,
        Delete => delete(world, key, uri).await,
    }
}

async fn every_step_from_every_state(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let zone = world.zone(300, 250).await;
    for state in [New, Rejected, UnderReview, Listed, Cancelled] {
        for step in [Submit, Approve, Reject, Cancel, Update, Delete] {
            let about = format!("{state:?} {step:?}");
            let uri = uri(&make(&world, &kofi.key, &advertisement(&about, &event, &[&zone])).await);
            for step in state.way() {
                take(&world, &kofi.key, &uri, *step).await;
            }
            let before = read(&world, &kofi.key, &uri).await;
            assert_eq!(before.body["status"], state.text(), "{about}");

            let answer = take(&world, &kofi.key, &uri, step).await;

            let after = read(&world, &kofi.key, &uri).await;
            match outcome(state, step) {
                Ok((status, Some(next))) => {
                    assert_eq!((answer.status, &after.body["status"]), (status, &json!(next.text())), "{about}");
                    if matches!(step, Cancel | Update) {
                        assert_eq!(answer.body, after.body, "{about}");
                    }
                }
                Ok((status, None)) => assert_eq!((answer.status, after.status), (status, 404), "{about}"),
                Err(expected) => {
                    assert_eq!(refusal(&answer), expected, "{about}");
                    assert_eq!(after.body, before.body, "{about}");
                }
            }
        }
    }
}

async fn a_submission_tells_what_it_is_of(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let uri = uri(&make(&world, &kofi.key, &advertisement("Jazz", &event, &[&world.zone(300, 250).await])).await);

    let submitted = submit(&world, &kofi.key, &uri).await;

    assert_eq!((submitted.status, submitted.header("location")), (201, submission_of(&uri).as_str()));
    let expected = json!({
        "self": submission_of(&uri), "type": "advertisement", "content": uri, "status": "Pending",
        "submitted": submitted.body["submitted"], "submitter": format!("/accounts/{}", kofi.number), "reason": "",
    });
    assert_eq!(submitted.body, expected);
    let waiting = read(&world, &world.staff.key, "/submissions?type=advertisement").await;
    assert_eq!(waiting.body["entries"], json!([expected]));
    assert_eq!(refusal(&submit(&world, &kofi.key, "/advertisements/17637000000001").await), (404, "resource.not-found"));
}

async fn a_rejected_advertisement_is_submitted_again(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let uri = uri(&make(&world, &kofi.key, &advertisement("Jazz", &event, &[&world.zone(300, 250).await])).await);
    submit(&world, &kofi.key, &uri).await;

    let rejected = decide(&world, &uri, false).await;
    let again = submit(&world, &kofi.key, &uri).await;
    let approved = decide(&world, &uri, true).await;

    assert_eq!((&rejected.body["status"], &rejected.body["reason"]), (&json!("Rejected"), &json!("Because")));
    assert_eq!((again.status, &again.body["self"]), (201, &rejected.body["self"]));
    assert_eq!(approved.body["status"], "Approved");
    assert_eq!(read(&world, &world.public_key, &uri).await.body["status"], "Listed");
}

async fn steps_are_for_the_hosts_administrators_and_the_staff(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let uri = uri(&make(&world, &kofi.key, &advertisement("Jazz", &event, &[&world.zone(300, 250).await])).await);

    let submitted = submit(&world, &ama.key, &uri).await;
    let by_application = submit(&world, &world.public_key, &uri).await;
    super::publish(&world, &uri).await;
    let cancelled = cancel(&world, &ama.key, &uri).await;
    let listed = read(&world, &ama.key, &uri).await;
    let nothing = cancel(&world, &kofi.key, "/advertisements/17637000000001").await;
    let by_staff = cancel(&world, &world.staff.key, &uri).await;

    assert_eq!(refusal(&submitted), (403, "resource.not-yours"));
    assert_eq!(refusal(&by_application), (403, "key.refused"));
    assert_eq!((refusal(&cancelled), &listed.body["status"]), ((403, "resource.not-yours"), &json!("Listed")));
    assert_eq!(refusal(&nothing), (404, "resource.not-found"));
    assert_eq!((by_staff.status, &by_staff.body["status"]), (200, &json!("Cancelled")));
}
