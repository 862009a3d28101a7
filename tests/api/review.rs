//! Review of submissions, and its effects.

mod states;
mod steps;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use boxoffice::features::catalog::review::{Content, SubmissionType};
use boxoffice::kernel::types::id::Id;
use serde_json::json;

use crate::advertisements;
use crate::support::{Response, TestApp, rejection, test_on};

/// Returns the URI of the submission of this content.
pub fn submission_of(content: &str) -> String {
    format!("/submissions/{}", STANDARD.encode(content))
}

async fn submit(app: &TestApp, key: &str, event: &str) -> Response {
    app.post_empty(key, &format!("{event}/submissions")).await
}

async fn decide(app: &TestApp, content: &str, decision: &str) -> Response {
    let uri = format!("{}?{decision}", submission_of(content));
    app.delete(&app.staff.key, &uri).await
}

async fn add_venue(app: &TestApp, key: &str, name: &str) -> String {
    let region = app.create_region().await;
    let venue = json!({ "name": name, "region": region, "address": "Ring Road", "longitude": -0.2, "latitude": 5.6 });
    let venue = app.post(key, "/venues", &venue).await;
    venue.uri().to_owned()
}

async fn contents(app: &TestApp, query: &str) -> Vec<String> {
    app.list(&app.staff.key, &format!("/submissions{query}"), "content").await
}

#[test_on(sqlite, postgres)]
async fn lists_pending_submissions_oldest_first(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (first, second, decided) = (app.create_draft(&host).await, app.create_draft(&host).await, app.create_draft(&host).await);
    submit(&app, &kofi.key, &second.uri).await;
    let venue = add_venue(&app, &kofi.key, "Backyard").await;
    submit(&app, &kofi.key, &first.uri).await;
    submit(&app, &kofi.key, &decided.uri).await;
    decide(&app, &decided.uri, "approved=false").await;

    assert_eq!(contents(&app, "").await, [second.uri.as_str(), &venue, &first.uri]);
    assert_eq!(contents(&app, "?type=event").await, [second.uri.as_str(), &first.uri]);
    assert_eq!(contents(&app, "?type=venue").await, [venue.as_str()]);
    assert!(contents(&app, "?type=advertisement").await.is_empty());
    assert_eq!(contents(&app, "?records=2&page=2").await, [first.uri.as_str()]);
}

#[test_on(sqlite, postgres)]
async fn submission_id_is_derived_from_content(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let submitted = submit(&app, &kofi.key, &event.uri).await;
    let venue = add_venue(&app, &kofi.key, "Backyard").await;
    let staff = &app.staff.key;

    let read_event = app.get(staff, &submission_of(&event.uri)).await;
    let read_escaped = app.get(staff, &submission_of(&event.uri).replace('=', "%3D")).await;
    let read_venue = app.get(staff, &submission_of(&venue)).await;

    assert_eq!((read_event.status, &read_event.body), (200, &submitted.body));
    assert_eq!(read_escaped.body, submitted.body);
    assert_eq!((&read_venue.body["type"], &read_venue.body["content"]), (&json!("venue"), &json!(venue)));
    assert_eq!(read_venue.body["submitter"], format!("/accounts/{}", kofi.number));
    let draft = app.create_draft(&app.create_host(&kofi).await).await;
    let unpadded = submission_of(&event.uri).trim_end_matches('=').to_owned();
    let nothing = ["/submissions/17637000000001", &unpadded, &submission_of(&draft.uri), &submission_of("/regions/1")];
    for nothing in nothing {
        assert_eq!(rejection(&app.get(staff, nothing).await), (404, "resource.not-found"), "{nothing}");
    }
}

#[test_on(sqlite, postgres)]
async fn approval_lists_event(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    submit(&app, &kofi.key, &event.uri).await;

    let before = app.state.clock.now().format_rfc3339();
    let decided = decide(&app, &event.uri, "approved=true").await;
    let after = app.state.clock.now().format_rfc3339();

    assert_eq!((decided.status, &decided.body["status"], &decided.body["reason"]), (200, &json!("Approved"), &json!("")));
    assert_eq!(app.get(&app.staff.key, &submission_of(&event.uri)).await.body, decided.body);
    let listed = app.get(&app.public_key, &event.uri).await;
    assert_eq!((listed.status, &listed.body["status"]), (200, &json!("Listed")));
    let published = listed.body["published"].as_str().unwrap().to_owned();
    assert!((before..=after).contains(&published), "{published}");
}

#[test_on(sqlite, postgres)]
async fn rejection_returns_event_to_draft(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let ama = app.sign_up("ama").await;
    submit(&app, &kofi.key, &event.uri).await;

    let decided = decide(&app, &event.uri, "approved=false&reason=Who%20performs%3F").await;

    assert_eq!((&decided.body["status"], &decided.body["reason"]), (&json!("Rejected"), &json!("Who performs?")));
    assert_eq!(app.get(&app.staff.key, &submission_of(&event.uri)).await.body, decided.body);
    let draft = app.get(&kofi.key, &event.uri).await;
    assert_eq!((&draft.body["status"], &draft.body["published"]), (&json!("Draft"), &json!("")));
    assert_eq!(app.get(&ama.key, &event.uri).await.status, 403);
}

#[test_on(sqlite, postgres)]
async fn resubmission_keeps_id(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let first = submit(&app, &kofi.key, &event.uri).await;
    decide(&app, &event.uri, "approved=false&reason=No").await;

    let second = submit(&app, &kofi.key, &event.uri).await;

    assert_eq!((second.status, &second.body["self"]), (201, &first.body["self"]));
    let latest = app.get(&app.staff.key, &submission_of(&event.uri)).await;
    assert_eq!((&latest.body["status"], &latest.body["reason"]), (&json!("Pending"), &json!("")));
    assert_eq!(contents(&app, "").await, [event.uri.as_str()]);
    decide(&app, &event.uri, "approved=true").await;
    assert_eq!(app.get(&kofi.key, &event.uri).await.body["status"], "Listed");
}

#[test_on(sqlite, postgres)]
async fn rejected_venue_stays_with_creator(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let venue = add_venue(&app, &kofi.key, "Backyard").await;

    let decided = decide(&app, &venue, "approved=false&reason=Private").await;

    assert_eq!((&decided.body["status"], &decided.body["reason"]), (&json!("Rejected"), &json!("Private")));
    assert_eq!(app.get(&ama.key, &venue).await.status, 403);
    assert_eq!(app.get(&kofi.key, &venue).await.status, 200);
    assert_eq!(app.get(&kofi.key, "/venues").await.body["entries"], json!([]));
}

#[test_on(sqlite, postgres)]
async fn events_of_removed_host_cannot_be_approved(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    submit(&app, &kofi.key, &event.uri).await;
    assert_eq!(app.delete(&kofi.key, &event.host.uri).await.status, 204);

    let approved = decide(&app, &event.uri, "approved=true").await;
    let waiting = contents(&app, "").await;
    let rejected = decide(&app, &event.uri, "approved=false").await;

    assert_eq!(rejection(&approved), (409, "host.removed"));
    assert_eq!(waiting, [event.uri.as_str()]);
    assert_eq!((rejected.status, &rejected.body["status"]), (200, &json!("Rejected")));
}

#[test_on(sqlite, postgres)]
async fn submitter_is_mailed_decision_and_reason(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let submission = submission_of(&event.uri);
    let submit = async || app.post_empty(&kofi.key, &format!("{}/submissions", event.uri)).await;
    let decide = async |query: &str| app.delete(&app.staff.key, &format!("{submission}?{query}")).await;

    submit().await;
    decide("approved=false&reason=Who+performs%3F").await;
    let rejected = app.mail_to("kofi@example.com", 1).await;
    submit().await;
    decide("approved=true").await;
    let approved = app.mail_to("kofi@example.com", 2).await;

    assert!(rejected.contains("rejected") && rejected.contains("Who performs?") && rejected.contains(&event.id), "{rejected}");
    assert!(approved.contains("approved") && !approved.contains("Reason"), "{approved}");
}

#[test_on(sqlite, postgres)]
async fn host_is_mailed_decision_on_what_staff_submitted(app: TestApp) {
    let (_, event) = app.sign_up_host_with_draft("kofi").await;

    let submitted = app.post_empty(&app.staff.key, &format!("{}/submissions", event.uri)).await;
    let decided = decide(&app, &event.uri, "approved=false&reason=Who+performs%3F").await;
    let mail = app.mail_to("kofi@example.com", 1).await;

    assert_eq!((submitted.status, decided.status), (201, 200));
    assert!(mail.contains("rejected") && mail.contains("Who performs?") && mail.contains(&event.id), "{mail}");
}

#[test_on(sqlite, postgres)]
async fn decision_mail_names_content(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let title = app.get(&kofi.key, &event.uri).await.body["title"].as_str().unwrap().to_owned();
    submit(&app, &kofi.key, &event.uri).await;
    let venue = add_venue(&app, &kofi.key, "Backyard").await;
    let zone = app.create_zone(300, 250).await;
    let advertisement = advertisements::advertisement_body("Jazz by the sea", &event, &[&zone]);
    let advertisement = advertisements::create(&app, &kofi.key, &advertisement).await.uri().to_owned();
    submit(&app, &kofi.key, &advertisement).await;

    let mut count = 0;
    for (uri, named, decision, outcome) in [
        (&event.uri, format!("event “{title}”"), "approved=false&reason=Who%20performs%3F", "rejected"),
        (&venue, "venue “Backyard”".to_owned(), "approved=true", "approved"),
        (&advertisement, "advertisement “Jazz by the sea”".to_owned(), "approved=false", "rejected"),
    ] {
        assert_eq!(decide(&app, uri, decision).await.status, 200);
        count += 1;
        let mail = app.mail_to("kofi@example.com", count).await;
        assert!(mail.contains(&format!("Subject: Your {named} was {outcome}")), "{mail}");
        assert!(mail.contains(&format!("your {named} is done: it was {outcome}.")), "{mail}");
        assert!(mail.contains(&format!("https://boxoffice.example/open?to={uri}")), "{mail}");
        assert_eq!(mail.contains("Reason: Who performs?"), *uri == event.uri, "{mail}");
    }
}

#[test_on(sqlite, postgres)]
async fn submission_during_removal_is_created_or_not_found(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (category, venue) = (app.create_category().await, app.create_venue().await);
    for round in 0..10 {
        let event = json!({
            "host": host.uri, "title": format!("Night {round}"), "description": "Jazz.", "type": "Standard", "public": true,
            "category": category, "subcategory": "Jazz", "venue": venue,
        });
        let event = app.post(&kofi.key, "/events", &event).await;
        let event = event.uri();
        let removal = app.request("DELETE", event).key(&kofi.key);

        let (submitted, removed) = futures::future::join(submit(&app, &kofi.key, event), removal.send()).await;

        assert_eq!(removed.status, 204);
        assert!([201, 404].contains(&submitted.status), "{submitted:?}");
        assert_eq!(contents(&app, "").await, [""; 0], "round {round}");
    }
}

#[test]
fn submission_identifier_encodes_content_uri() {
    let event = Content { kind: SubmissionType::Event, id: Id(17_637_000_000_051) };
    let venue = Content { kind: SubmissionType::Venue, id: Id(17_637_000_000_032) };
    for (content, name) in [(event, "L2V2ZW50cy8xNzYzNzAwMDAwMDA1MQ=="), (venue, "L3ZlbnVlcy8xNzYzNzAwMDAwMDAzMg==")] {
        assert_eq!(content.submission(), name);
        assert_eq!(Content::parse(name), Some(content));
    }
    for text in ["L2V2ZW50cy8xNzYzNzAwMDAwMDA1MQ", "/events/17637000000051", "", "===="] {
        assert_eq!(Content::parse(text), None, "{text}");
    }
    assert_eq!(Content::parse(&STANDARD.encode("/regions/17637000000051")), None);
    assert_eq!(Content::parse(&STANDARD.encode("/events/1763700000005")), None);
}
