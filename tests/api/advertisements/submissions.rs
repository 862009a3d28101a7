//! Submissions of advertisements.

use serde_json::json;

use super::{create_draft, decide, submit};
use crate::review::submission_of;
use crate::support::{TestApp, test_on};

#[test_on(sqlite, postgres)]
async fn submission_describes_its_content(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let uri = create_draft(&app, &kofi, "Jazz", &event, &[&app.create_zone(300, 250).await]).await;

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

#[test_on(sqlite, postgres)]
async fn rejected_advertisement_can_be_resubmitted(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let uri = create_draft(&app, &kofi, "Jazz", &event, &[&app.create_zone(300, 250).await]).await;
    submit(&app, &kofi.key, &uri).await;

    let rejected = decide(&app, &uri, false).await;
    let again = submit(&app, &kofi.key, &uri).await;
    let approved = decide(&app, &uri, true).await;

    assert_eq!((&rejected.body["status"], &rejected.body["reason"]), (&json!("Rejected"), &json!("Because")));
    assert_eq!((again.status, &again.body["self"]), (201, &rejected.body["self"]));
    assert_eq!(approved.body["status"], "Approved");
    assert_eq!(app.get(&app.public_key, &uri).await.body["status"], "Listed");
}
