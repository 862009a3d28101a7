//! The state machine of events and advertisements: every step from every state.

use serde_json::{Value, json};

use super::{decide, rejection, submission_of, submit};
use crate::advertisements;
use crate::support::{Response, TestApp, section, test_on};

/// The states. A rejected or withdrawn draft has a submission, a new one has none.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    New,
    Rejected,
    UnderReview,
    Listed,
    Withdrawn,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Submit,
    Approve,
    Reject,
    Withdraw,
    Cancel,
    Update,
    Delete,
    Sell,
}

use State::*;
use Step::*;

/// The steps of an advertisement. An event has all.
const ADVERTISEMENT_STEPS: [Step; 6] = [Submit, Approve, Reject, Cancel, Update, Delete];
const EVENT_STEPS: [Step; 8] = [Submit, Approve, Reject, Withdraw, Cancel, Update, Delete, Sell];

impl State {
    fn text(self) -> &'static str {
        match self {
            New | Rejected | Withdrawn => "Draft",
            UnderReview => "Under Review",
            Listed => "Listed",
            Cancelled => "Cancelled",
        }
    }

    /// Returns the steps that lead to the state.
    fn way(self) -> &'static [Step] {
        match self {
            New => &[],
            Rejected => &[Submit, Reject],
            UnderReview => &[Submit],
            Listed => &[Submit, Approve],
            Withdrawn => &[Submit, Approve, Withdraw],
            Cancelled => &[Submit, Approve, Cancel],
        }
    }
}

/// Returns the status and the new state after a step, or the error. Deleted content has no state.
fn outcome(kind: &str, state: State, step: Step) -> Result<(u16, Option<State>), (u16, String)> {
    let conflict = |problem: &str| Err((409, format!("{kind}.{problem}")));
    match (state, step) {
        (New | Rejected | Withdrawn, Submit) => Ok((201, Some(UnderReview))),
        (_, Submit) => conflict("not-draft"),
        (UnderReview, Approve) => Ok((200, Some(Listed))),
        (UnderReview, Reject) => Ok((200, Some(Rejected))),
        (New, Approve | Reject) => Err((404, "resource.not-found".to_owned())),
        (_, Approve | Reject) => Err((409, "submission.decided".to_owned())),
        (Listed, Withdraw) => Ok((200, Some(Withdrawn))),
        (Listed, Cancel) => Ok((200, Some(Cancelled))),
        (Listed, Sell) => Ok((201, Some(Listed))),
        (_, Withdraw | Cancel | Sell) => conflict("not-listed"),
        (Cancelled, Update) => conflict("cancelled"),
        (_, Update) => Ok((200, Some(state))),
        (_, Delete) => Ok((204, None)),
    }
}

async fn perform(app: &TestApp, key: &str, uri: &str, step: Step) -> Response {
    match step {
        Submit => submit(app, key, uri).await,
        Approve => decide(app, uri, "approved=true").await,
        Reject => decide(app, uri, "approved=false").await,
        Withdraw => app.post_empty(key, &format!("{uri}/withdrawals")).await,
        Cancel => app.post_empty(key, &format!("{uri}/cancellations")).await,
        Update => app.put(key, uri, json!({ "description": "Changed." })).await,
        Delete => app.delete(key, uri).await,
        Sell => {
            let event = app.get(key, uri).await.body;
            app.place_order(key, json!({ event["sections"][0]["self"].as_str().unwrap(): 1 })).await
        }
    }
}

/// Returns the content, its submission and the number of orders.
async fn load_state(app: &TestApp, content: &str) -> [Value; 3] {
    let submission = app.get(&app.staff.key, &submission_of(content)).await.body;
    [app.get(&app.staff.key, content).await.body, submission, app.read("/orders").await["total"].clone()]
}

/// Performs each step on new content in each state. `create` creates the content, and the key belongs to its host.
async fn perform_all(app: &TestApp, key: &str, kind: &str, steps: &[Step], create: impl AsyncFn() -> String) {
    for state in [New, Rejected, UnderReview, Listed, Withdrawn, Cancelled] {
        if !state.way().iter().all(|step| steps.contains(step)) {
            continue;
        }
        for step in steps.iter().copied() {
            let about = format!("{step:?} of an {kind} that is {state:?}");
            let uri = create().await;
            for step in state.way() {
                let response = perform(app, key, &uri, *step).await;
                assert!(response.status < 300, "{about}: {response:?}");
            }
            let before = load_state(app, &uri).await;
            assert_eq!(before[0]["status"], state.text(), "{about}");

            let response = perform(app, key, &uri, step).await;

            let after = load_state(app, &uri).await;
            match outcome(kind, state, step) {
                Ok((status, Some(next))) => {
                    assert_eq!((response.status, &after[0]["status"]), (status, &json!(next.text())), "{about}");
                    assert_ne!(after, before, "{about}");
                    match step {
                        Withdraw | Cancel | Update => assert_eq!(response.body, after[0], "{about}"),
                        Submit | Approve | Reject => assert_eq!(response.body, after[1], "{about}"),
                        Delete | Sell => {}
                    }
                }
                Ok((status, None)) => {
                    assert_eq!((response.status, &after[0]["code"]), (status, &json!("resource.not-found")), "{about}");
                }
                Err((status, code)) => {
                    assert_eq!(rejection(&response), (status, code.as_str()), "{about}");
                    assert_eq!(after, before, "{about}");
                }
            }
        }
    }
}

#[test_on(sqlite, postgres)]
async fn every_step_of_an_event(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    perform_all(&app, &kofi.key, "event", &EVENT_STEPS, async || {
        let event = app.create_draft(&host).await;
        app.add_section(&event, &section("Lawn", 0.0, 10)).await;
        event.uri
    })
    .await;
}

#[test_on(sqlite, postgres)]
async fn every_step_of_an_advertisement(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let zone = app.create_zone(300, 250).await;
    perform_all(&app, &kofi.key, "advertisement", &ADVERTISEMENT_STEPS, async || {
        let name = format!("Jazz {}", app.state.clock.next_id());
        let body = advertisements::advertisement_body(&name, &event, &[&zone]);
        advertisements::create(&app, &kofi.key, &body).await.uri().to_owned()
    })
    .await;
}
