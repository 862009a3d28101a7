//! Every decision on the submission of a venue in every state. `steps` has those on events and advertisements.

use serde_json::Value;

use super::{add_venue, decide, rejection, submission_of};
use crate::support::{TestApp, test_on};

/// Returns the submission and its content as staff see them, and the content as another user sees it.
async fn load_state(app: &TestApp, content: &str) -> [Value; 3] {
    let staff = &app.staff.key;
    [
        app.get(staff, &submission_of(content)).await.body,
        app.get(staff, content).await.body,
        app.get(&app.public_key, content).await.body,
    ]
}

#[test_on(sqlite, postgres)]
async fn venue_submission_is_decided_once_and_approved_later(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    for (earlier, status) in [(None, "Pending"), (Some("approved=true"), "Approved"), (Some("approved=false"), "Rejected")] {
        for (decision, decided) in [("approved=true", "Approved"), ("approved=false", "Rejected")] {
            let content = add_venue(&app, &kofi.key, &format!("Backyard {}", app.state.clock.next_id())).await;
            if let Some(earlier) = earlier {
                assert_eq!(decide(&app, &content, earlier).await.status, 200);
            }
            let before = load_state(&app, &content).await;
            assert_eq!(before[0]["status"], status);

            let response = decide(&app, &content, decision).await;

            let after = load_state(&app, &content).await;
            if earlier.is_none() || (status, decided) == ("Rejected", "Approved") {
                assert_eq!((response.status, &response.body, &after[0]["status"]), (200, &after[0], &Value::from(decided)));
            } else {
                assert_eq!(rejection(&response), (409, "submission.decided"), "{decision} in status {status}");
                assert_eq!(after, before, "{decision} in status {status}");
            }
        }
    }
}
