//! Every action on an event in every status.

use serde_json::{Value, json};

use super::rejection;
use crate::review::submission_of;
use crate::support::{Event, Host, Response, TestApp, section};

on_both_databases![
    every_action_on_draft,
    every_action_on_submitted_event,
    every_action_on_listed_event,
    every_action_on_cancelled_event,
];

/// The result of an action: the new status, a deletion, or an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Now(&'static str),
    Gone,
    Refused(u16, &'static str),
}

use Expected::{Gone, Now, Refused};

const NOT_DRAFT: Expected = Refused(409, "event.not-draft");
const NOT_LISTED: Expected = Refused(409, "event.not-listed");
const DECIDED: Expected = Refused(409, "submission.decided");
const NEVER_SUBMITTED: Expected = Refused(404, "resource.not-found");

/// Creates an event in this status, with a free section.
async fn event_in(app: &TestApp, host: &Host, status: &str) -> Event {
    let mut event = app.create_draft(host).await;
    event.sections.push(app.add_section(&event, &section("Lawn", 0.0, 10)).await);
    match status {
        "Under Review" => assert_eq!(perform(app, host, &event, "submit").await.status, 201),
        "Listed" | "Cancelled" => app.list_event(&event).await,
        _ => {}
    }
    if status == "Cancelled" {
        assert_eq!(perform(app, host, &event, "cancel").await.status, 200);
    }
    assert_eq!(app.read(&event.uri).await["status"], status);
    event
}

async fn perform(app: &TestApp, host: &Host, event: &Event, action: &str) -> Response {
    let key = &host.owner.key;
    let post = |path: &str| app.request("POST", &format!("{}/{path}", event.uri)).key(key).send();
    let decide = |approved: bool| {
        let uri = format!("{}?approved={approved}", submission_of(&event.uri));
        app.request("DELETE", &uri).key(&app.staff.key).send()
    };
    match action {
        "submit" => post("submissions").await,
        "withdraw" => post("withdrawals").await,
        "cancel" => post("cancellations").await,
        "approve" => decide(true).await,
        "reject" => decide(false).await,
        "update" => app.put(key, &event.uri, json!({ "description": "More jazz." })).await,
        "delete" => app.delete(key, &event.uri).await,
        "sell" => app.place_order(key, json!({ event.sections[0].as_str(): 1 })).await,
        other => panic!("unknown action {other}"),
    }
}

/// Tries every action on a new event in this status.
async fn try_all(app: &TestApp, status: &'static str, expected: [(&str, Expected); 8]) {
    let kofi = app.sign_up("kofi").await;
    let host = app.create_host(&kofi).await;
    for (action, outcome) in expected {
        let event = event_in(app, &host, status).await;
        let before = load_state(app, &event).await;

        let response = perform(app, &host, &event, action).await;

        let after = load_state(app, &event).await;
        let about = format!("{action} of an event that is {status}: {response:?}");
        match outcome {
            Refused(code, name) => {
                assert_eq!(rejection(&response), (code, name), "{about}");
                assert_eq!(after, before, "{about}");
            }
            Gone => assert_eq!((response.status, &after[0]["code"]), (204, &json!("resource.not-found")), "{about}"),
            Now(status) => {
                assert!(matches!(response.status, 200 | 201), "{about}");
                assert_eq!(after[0]["status"], status, "{about}");
                assert_ne!(after, before, "{about}");
            }
        }
    }
}

/// Returns the event, its latest submission and the number of orders.
async fn load_state(app: &TestApp, event: &Event) -> [Value; 3] {
    let orders = app.read("/orders").await["total"].clone();
    let submission = app.get(&app.staff.key, &submission_of(&event.uri)).await.body;
    [app.get(&app.staff.key, &event.uri).await.body, submission, orders]
}

async fn every_action_on_draft(app: TestApp) {
    let expected = [
        ("submit", Now("Under Review")),
        ("approve", NEVER_SUBMITTED),
        ("reject", NEVER_SUBMITTED),
        ("withdraw", NOT_LISTED),
        ("cancel", NOT_LISTED),
        ("update", Now("Draft")),
        ("delete", Gone),
        ("sell", NOT_LISTED),
    ];
    try_all(&app, "Draft", expected).await;
}

async fn every_action_on_submitted_event(app: TestApp) {
    let expected = [
        ("submit", NOT_DRAFT),
        ("approve", Now("Listed")),
        ("reject", Now("Draft")),
        ("withdraw", NOT_LISTED),
        ("cancel", NOT_LISTED),
        ("update", Now("Under Review")),
        ("delete", Gone),
        ("sell", NOT_LISTED),
    ];
    try_all(&app, "Under Review", expected).await;
}

async fn every_action_on_listed_event(app: TestApp) {
    let expected = [
        ("submit", NOT_DRAFT),
        ("approve", DECIDED),
        ("reject", DECIDED),
        ("withdraw", Now("Draft")),
        ("cancel", Now("Cancelled")),
        ("update", Now("Listed")),
        ("delete", Gone),
        ("sell", Now("Listed")),
    ];
    try_all(&app, "Listed", expected).await;
}

async fn every_action_on_cancelled_event(app: TestApp) {
    let expected = [
        ("submit", NOT_DRAFT),
        ("approve", DECIDED),
        ("reject", DECIDED),
        ("withdraw", NOT_LISTED),
        ("cancel", NOT_LISTED),
        ("update", Refused(409, "event.cancelled")),
        ("delete", Gone),
        ("sell", NOT_LISTED),
    ];
    try_all(&app, "Cancelled", expected).await;
}
