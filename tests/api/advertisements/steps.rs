//! The state machine of advertisements.

use serde_json::json;

use super::{advertisement_body, cancel, create, decide, rejection, submit, uri};
use crate::review::submission_of;
use crate::support::{Response, TestApp};

on_both_databases![
    every_transition_from_every_state,
    submission_describes_its_content,
    rejected_advertisement_can_be_resubmitted,
];

/// The states. A rejected draft has a submission, a new one has none.
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

    /// Returns the transitions that lead to the state.
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

/// Returns the status and new state after a transition, or the error. A deleted advertisement has no state.
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

async fn take(app: &TestApp, key: &str, uri: &str, step: Step) -> Response {
    match step {
        Submit => submit(app, key, uri).await,
        Approve => decide(app, uri, true).await,
        Reject => decide(app, uri, false).await,
        Cancel => cancel(app, key, uri).await,
        Update => app.put(key, uri, json!({ "description": "Changed." })).await,
        Delete => app.delete(key, uri).await,
    }
}

async fn every_transition_from_every_state(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let zone = app.create_zone(300, 250).await;
    for state in [New, Rejected, UnderReview, Listed, Cancelled] {
        for step in [Submit, Approve, Reject, Cancel, Update, Delete] {
            let about = format!("{state:?} {step:?}");
            let uri = uri(&create(&app, &kofi.key, &advertisement_body(&about, &event, &[&zone])).await);
            for step in state.way() {
                take(&app, &kofi.key, &uri, *step).await;
            }
            let before = app.get(&kofi.key, &uri).await;
            assert_eq!(before.body["status"], state.text(), "{about}");

            let response = take(&app, &kofi.key, &uri, step).await;

            let after = app.get(&kofi.key, &uri).await;
            match outcome(state, step) {
                Ok((status, Some(next))) => {
                    assert_eq!((response.status, &after.body["status"]), (status, &json!(next.text())), "{about}");
                    if matches!(step, Cancel | Update) {
                        assert_eq!(response.body, after.body, "{about}");
                    }
                }
                Ok((status, None)) => assert_eq!((response.status, after.status), (status, 404), "{about}"),
                Err(expected) => {
                    assert_eq!(rejection(&response), expected, "{about}");
                    assert_eq!(after.body, before.body, "{about}");
                }
            }
        }
    }
}

async fn submission_describes_its_content(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let uri = uri(&create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&app.create_zone(300, 250).await])).await);

    let submitted = submit(&app, &kofi.key, &uri).await;

    assert_eq!((submitted.status, submitted.header("location")), (201, submission_of(&uri).as_str()));
    let expected = json!({
        "self": submission_of(&uri), "type": "advertisement", "content": uri, "status": "Pending",
        "submitted": submitted.body["submitted"], "submitter": format!("/accounts/{}", kofi.number), "reason": "",
    });
    assert_eq!(submitted.body, expected);
    let waiting = app.get(&app.staff.key, "/submissions?type=advertisement").await;
    assert_eq!(waiting.body["entries"], json!([expected]));
}

async fn rejected_advertisement_can_be_resubmitted(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let uri = uri(&create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&app.create_zone(300, 250).await])).await);
    submit(&app, &kofi.key, &uri).await;

    let rejected = decide(&app, &uri, false).await;
    let again = submit(&app, &kofi.key, &uri).await;
    let approved = decide(&app, &uri, true).await;

    assert_eq!((&rejected.body["status"], &rejected.body["reason"]), (&json!("Rejected"), &json!("Because")));
    assert_eq!((again.status, &again.body["self"]), (201, &rejected.body["self"]));
    assert_eq!(approved.body["status"], "Approved");
    assert_eq!(app.get(&app.public_key, &uri).await.body["status"], "Listed");
}
