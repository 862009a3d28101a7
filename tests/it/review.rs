//! Review: what waits for the staff, and what their decision does.

mod states;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::on_both_databases;
use crate::support::{Answer, World, refusal};

on_both_databases![
    what_waits_is_listed_the_oldest_first,
    a_submission_is_named_by_its_content,
    approval_lists_an_event,
    rejection_makes_an_event_a_draft_again,
    what_is_submitted_again_keeps_its_name,
    approval_makes_a_venue_everyones,
    rejection_leaves_a_venue_to_its_creator,
    a_submission_is_decided_once,
    a_decision_says_what_it_is,
    review_is_for_the_staff,
    a_removed_host_lists_no_events,
    who_submitted_is_mailed_the_decision_and_its_reason,
];

/// The URI of the submissions of this content.
pub fn submission_of(content: &str) -> String {
    format!("/submissions/{}", STANDARD.encode(content))
}

async fn read(world: &World, key: &str, uri: &str) -> Answer {
    world.request("GET", uri).key(key).send().await
}

async fn submit(world: &World, key: &str, event: &str) -> Answer {
    world.request("POST", &format!("{event}/submissions")).key(key).send().await
}

async fn decide(world: &World, content: &str, decision: &str) -> Answer {
    let uri = format!("{}?{decision}", submission_of(content));
    world.request("DELETE", &uri).key(&world.staff.key).send().await
}

async fn add_venue(world: &World, key: &str, name: &str) -> String {
    let region = world.region().await;
    let venue = json!({ "name": name, "region": region, "address": "Ring Road", "longitude": -0.2, "latitude": 5.6 });
    let venue = world.request("POST", "/venues").key(key).json(&venue).send().await;
    venue.body["self"].as_str().unwrap().to_owned()
}

async fn contents(world: &World, query: &str) -> Vec<String> {
    let page = read(world, &world.staff.key, &format!("/submissions{query}")).await;
    let entries = page.body["entries"].as_array().unwrap_or_else(|| panic!("{page:?}"));
    entries.iter().map(|submission| submission["content"].as_str().unwrap().to_owned()).collect()
}

async fn what_waits_is_listed_the_oldest_first(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let (first, second, decided) = (world.draft(&host).await, world.draft(&host).await, world.draft(&host).await);
    submit(&world, &kofi.key, &second.uri).await;
    let venue = add_venue(&world, &kofi.key, "Backyard").await;
    submit(&world, &kofi.key, &first.uri).await;
    submit(&world, &kofi.key, &decided.uri).await;
    decide(&world, &decided.uri, "approved=false").await;

    assert_eq!(contents(&world, "").await, [second.uri.as_str(), &venue, &first.uri]);
    assert_eq!(contents(&world, "?type=event").await, [second.uri.as_str(), &first.uri]);
    assert_eq!(contents(&world, "?type=venue").await, [venue.as_str()]);
    assert!(contents(&world, "?type=advertisement").await.is_empty());
    assert_eq!(contents(&world, "?records=2&page=2").await, [first.uri.as_str()]);
    assert_eq!(refusal(&read(&world, &world.staff.key, "/submissions?page=2").await), (404, "page.past-end"));
    assert_eq!(read(&world, &world.staff.key, "/submissions?type=host").await.complaints(), ["type"]);
}

async fn a_submission_is_named_by_its_content(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    let submitted = submit(&world, &kofi.key, &event.uri).await;
    let venue = add_venue(&world, &kofi.key, "Backyard").await;
    let staff = &world.staff.key;

    let read_event = read(&world, staff, &submission_of(&event.uri)).await;
    let read_escaped = read(&world, staff, &submission_of(&event.uri).replace('=', "%3D")).await;
    let read_venue = read(&world, staff, &submission_of(&venue)).await;

    assert_eq!((read_event.status, &read_event.body), (200, &submitted.body));
    assert_eq!(read_escaped.body, submitted.body);
    assert_eq!((&read_venue.body["type"], &read_venue.body["content"]), (&json!("venue"), &json!(venue)));
    assert_eq!(read_venue.body["submitter"], format!("/accounts/{}", kofi.number));
    let draft = world.draft(&world.host_of(&kofi).await).await;
    let unpadded = submission_of(&event.uri).trim_end_matches('=').to_owned();
    let nothing = ["/submissions/17637000000001", &unpadded, &submission_of(&draft.uri), &submission_of("/regions/1")];
    for nothing in nothing {
        assert_eq!(refusal(&read(&world, staff, nothing).await), (404, "resource.not-found"), "{nothing}");
    }
}

async fn approval_lists_an_event(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    submit(&world, &kofi.key, &event.uri).await;

    let before = world.app.clock.now().to_offset_seconds();
    let decided = decide(&world, &event.uri, "approved=true").await;
    let after = world.app.clock.now().to_offset_seconds();

    assert_eq!((decided.status, &decided.body["status"], &decided.body["reason"]), (200, &json!("Approved"), &json!("")));
    assert_eq!(read(&world, &world.staff.key, &submission_of(&event.uri)).await.body, decided.body);
    let listed = read(&world, &world.public_key, &event.uri).await;
    assert_eq!((listed.status, &listed.body["status"]), (200, &json!("Listed")));
    let published = listed.body["published"].as_str().unwrap().to_owned();
    assert!((before..=after).contains(&published), "{published}");
}

async fn rejection_makes_an_event_a_draft_again(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = world.draft(&world.host_of(&kofi).await).await;
    submit(&world, &kofi.key, &event.uri).await;

    let decided = decide(&world, &event.uri, "approved=false&reason=Who%20performs%3F").await;

    assert_eq!((&decided.body["status"], &decided.body["reason"]), (&json!("Rejected"), &json!("Who performs?")));
    assert_eq!(read(&world, &world.staff.key, &submission_of(&event.uri)).await.body, decided.body);
    let draft = read(&world, &kofi.key, &event.uri).await;
    assert_eq!((&draft.body["status"], &draft.body["published"]), (&json!("Draft"), &json!("")));
    assert_eq!(read(&world, &ama.key, &event.uri).await.status, 403);
}

async fn what_is_submitted_again_keeps_its_name(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    let first = submit(&world, &kofi.key, &event.uri).await;
    decide(&world, &event.uri, "approved=false&reason=No").await;

    let second = submit(&world, &kofi.key, &event.uri).await;

    assert_eq!((second.status, &second.body["self"]), (201, &first.body["self"]));
    let latest = read(&world, &world.staff.key, &submission_of(&event.uri)).await;
    assert_eq!((&latest.body["status"], &latest.body["reason"]), (&json!("Pending"), &json!("")));
    assert_eq!(contents(&world, "").await, [event.uri.as_str()]);
    decide(&world, &event.uri, "approved=true").await;
    assert_eq!(read(&world, &kofi.key, &event.uri).await.body["status"], "Listed");
}

async fn approval_makes_a_venue_everyones(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let venue = add_venue(&world, &kofi.key, "Backyard").await;
    let before = read(&world, &ama.key, &venue).await;

    let decided = decide(&world, &venue, "approved=true").await;

    assert_eq!(before.status, 403);
    assert_eq!((decided.status, &decided.body["status"]), (200, &json!("Approved")));
    assert_eq!(read(&world, &ama.key, &venue).await.status, 200);
    assert!(contents(&world, "").await.is_empty());
}

async fn rejection_leaves_a_venue_to_its_creator(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let venue = add_venue(&world, &kofi.key, "Backyard").await;

    let decided = decide(&world, &venue, "approved=false&reason=Private").await;

    assert_eq!((&decided.body["status"], &decided.body["reason"]), (&json!("Rejected"), &json!("Private")));
    assert_eq!(read(&world, &ama.key, &venue).await.status, 403);
    assert_eq!(read(&world, &kofi.key, &venue).await.status, 200);
}

async fn a_submission_is_decided_once(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let (listed, rejected) = (world.listed_event(&host, &[]).await, world.draft(&host).await);
    submit(&world, &kofi.key, &rejected.uri).await;
    decide(&world, &rejected.uri, "approved=false").await;

    for content in [&listed.uri, &rejected.uri] {
        for decision in ["approved=true", "approved=false"] {
            assert_eq!(refusal(&decide(&world, content, decision).await), (409, "submission.decided"), "{content} {decision}");
        }
    }
    assert_eq!(read(&world, &kofi.key, &listed.uri).await.body["status"], "Listed");
    assert_eq!(read(&world, &kofi.key, &rejected.uri).await.body["status"], "Draft");
    assert_eq!(refusal(&decide(&world, "/events/17637000000001", "approved=true").await), (404, "resource.not-found"));
}

async fn a_decision_says_what_it_is(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    submit(&world, &kofi.key, &event.uri).await;

    let silent = decide(&world, &event.uri, "reason=Because").await;
    let vague = decide(&world, &event.uri, &format!("approved=perhaps&reason={}", "x".repeat(2001))).await;

    assert_eq!((silent.status, silent.complaints()), (400, vec!["-approved".to_owned()]));
    assert_eq!(vague.complaints(), ["approved", "reason"]);
    assert_eq!(contents(&world, "").await, [event.uri.as_str()]);
}

async fn review_is_for_the_staff(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    submit(&world, &kofi.key, &event.uri).await;
    let submission = submission_of(&event.uri);

    for key in [&kofi.key, &world.public_key] {
        assert_eq!(refusal(&read(&world, key, "/submissions").await), (403, "key.refused"));
        assert_eq!(refusal(&read(&world, key, &submission).await), (403, "key.refused"));
        let decided = world.request("DELETE", &format!("{submission}?approved=true")).key(key).send().await;
        assert_eq!((refusal(&decided), decided.body["self"].clone()), ((403, "key.refused"), Value::Null));
    }
    assert_eq!(contents(&world, "").await, [event.uri.as_str()]);
}

async fn a_removed_host_lists_no_events(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let event = world.draft(&host).await;
    submit(&world, &kofi.key, &event.uri).await;
    assert_eq!(world.request("DELETE", &host.uri).key(&kofi.key).send().await.status, 204);

    let approved = decide(&world, &event.uri, "approved=true").await;
    let waiting = contents(&world, "").await;
    let rejected = decide(&world, &event.uri, "approved=false").await;

    assert_eq!(refusal(&approved), (409, "host.removed"));
    assert_eq!(waiting, [event.uri.as_str()]);
    assert_eq!((rejected.status, &rejected.body["status"]), (200, &json!("Rejected")));
}

async fn who_submitted_is_mailed_the_decision_and_its_reason(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let event = world.draft(&host).await;
    let submission = submission_of(&event.uri);
    let submit = async || world.request("POST", &format!("{}/submissions", event.uri)).key(&kofi.key).send().await;
    let decide = async |query: &str| world.request("DELETE", &format!("{submission}?{query}")).key(&world.staff.key).send().await;

    submit().await;
    decide("approved=false&reason=Who+performs%3F").await;
    let rejected = world.letter_to("kofi@example.com", 1).await;
    submit().await;
    decide("approved=true").await;
    let approved = world.letter_to("kofi@example.com", 2).await;

    assert!(rejected.contains("rejected") && rejected.contains("Who performs?") && rejected.contains(&event.id), "{rejected}");
    assert!(approved.contains("approved") && !approved.contains("reason"), "{approved}");
}
