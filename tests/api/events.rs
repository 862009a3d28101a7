//! Events: creation, visibility, updates and deletion.

mod attended;
mod cache;
mod calendar;
mod changes;
mod copies;
mod images;
mod lists;
mod search;
mod unlisting;
mod word_index;

use serde_json::{Value, json};

use crate::support::{Host, Rejection, Response, TestApp, id_of, rejection, section, test_on};

/// Builds an event of this host with all required properties, and times.
async fn event_body(app: &TestApp, host: &Host, title: &str) -> Value {
    json!({
        "host": host.uri, "title": title, "description": "Jazz, outdoors.", "type": "Standard", "public": true,
        "category": app.create_category().await, "subcategory": "Jazz", "venue": app.create_venue().await,
        "start": "2998-12-20T19:00", "end": "2998-12-20T23:00",
    })
}

async fn create(app: &TestApp, key: &str, body: &Value) -> Response {
    app.post(key, "/events", body).await
}

async fn remove_hosts(app: &TestApp) {
    app.execute_sql("update hosts set removed = true").await;
}

async fn cancel_events(app: &TestApp) {
    app.execute_sql("update events set status = 'Cancelled'").await;
}

/// Creates a pending venue as a customer.
async fn create_pending_venue(app: &TestApp, key: &str) -> String {
    let name = format!("Backyard {}", app.state.clock.next_id());
    let region = app.create_region().await;
    let venue = json!({ "name": name, "region": region, "address": "Ring Road", "longitude": -0.2, "latitude": 5.6 });
    let venue = app.post(key, "/venues", &venue).await;
    venue.uri().to_owned()
}

#[test_on(sqlite, postgres)]
async fn creates_draft(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let mut body = event_body(&app, &host, "Jazz Night").await;
    body["disclaimer"] = "No refunds.".into();
    body["admissionFrom"] = "2998-12-20T17:30".into();
    body["tags"] = json!(["jazz", "open air", "\"quoted\""]);

    let created = create(&app, &kofi.key, &body).await;

    assert_eq!(created.status, 201);
    let uri = created.uri().to_owned();
    assert_eq!(created.header("location"), uri);
    let mut expected = body.clone();
    expected["self"] = uri.as_str().into();
    expected["status"] = "Draft".into();
    expected["category"] = app.get(&kofi.key, body["category"].as_str().unwrap()).await.body;
    expected["venue"] = app.get(&kofi.key, body["venue"].as_str().unwrap()).await.body;
    expected["venue"]["region"] = app.get(&kofi.key, expected["venue"]["region"].as_str().unwrap()).await.body;
    for image in ["banner", "thumbnail"] {
        expected[image] = format!("https://boxoffice.example/media/{image}/{}", id_of(&uri)).into();
    }
    expected["published"] = "".into();
    expected["popularity"] = 0.into();
    expected["sections"] = json!([]);
    assert_eq!(created.body, expected);
    assert_eq!(app.get(&kofi.key, &uri).await.body, expected);
    let tokens = app.get(&kofi.key, &format!("{uri}/tokens")).await;
    assert_eq!((&tokens.body["total"], &tokens.body["entries"][0]["global"]), (&json!(1), &json!(true)));
}

#[test_on(sqlite, postgres)]
async fn default_times_are_now_and_never(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Open End").await;
    body["start"] = Value::Null;
    body.as_object_mut().unwrap().remove("end");

    let before = app.state.clock.now().format_minutes();
    let created = create(&app, &kofi.key, &body).await;
    let after = app.state.clock.now().format_minutes();

    let start = created.body["start"].as_str().unwrap().to_owned();
    assert!((before..=after).contains(&start), "{start}");
    assert_eq!(created.body["end"], "9999-12-31T23:59");
}

#[test_on(sqlite, postgres)]
async fn normalizes_times_to_utc(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    body["start"] = "2998-12-20 19:30:15.250+01:00".into();
    body["end"] = "2998-12-20T23:00:00Z".into();

    let created = create(&app, &kofi.key, &body).await;

    assert_eq!((&created.body["start"], &created.body["end"]), (&json!("2998-12-20T18:30"), &json!("2998-12-20T23:00")));
    body["start"] = "2998-13-20T19:00".into();
    body["end"] = "tomorrow".into();
    assert_eq!(create(&app, &kofi.key, &body).await.invalid_arguments(), ["start", "end"]);
}

#[test_on(sqlite, postgres)]
async fn only_host_administrators_create_event(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let body = event_body(&app, &host, "Jazz Night").await;
    let mut wrong = body.clone();
    wrong["category"] = "17637000000001".into();

    let stranger = create(&app, &ama.key, &wrong).await;
    let staff = create(&app, &app.staff.key, &body).await;

    assert_eq!(rejection(&stranger), (403, "resource.not-yours"), "before the category is looked up");
    assert_eq!((staff.status, &staff.body["host"]), (201, &json!(host.uri)));
}

#[test_on(sqlite, postgres)]
async fn names_all_unknown_references(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    let whole = body.clone();

    for (name, nothing) in [("host", "17637000000001"), ("category", "/categories/17637000000001"), ("venue", "nowhere")] {
        body[name] = nothing.into();
    }
    body["end"] = body["start"].clone();
    body["banner"] = "aGVsbG8=".into();
    let response = create(&app, &kofi.key, &body).await;
    let mut other = whole.clone();
    other["subcategory"] = "Poetry".into();
    other["end"] = "2998-12-20T18:59".into();
    let subcategory = create(&app, &kofi.key, &other).await;

    assert_eq!(rejection(&response), (400, "arguments.invalid"));
    assert_eq!(response.invalid_arguments(), ["host", "category", "venue", "end", "banner"]);
    assert_eq!(subcategory.invalid_arguments(), ["subcategory", "end"]);
    assert_eq!(create(&app, &kofi.key, &whole).await.status, 201, "nothing was made before");
}

#[test_on(sqlite, postgres)]
async fn pending_venue_is_usable_by_creator_only(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (kofis, amas) = (app.create_host(&kofi).await, app.create_host(&ama).await);
    let venue = create_pending_venue(&app, &ama.key).await;
    let (mut his, mut hers) = (event_body(&app, &kofis, "His Night").await, event_body(&app, &amas, "Her Night").await);
    his["venue"] = venue.as_str().into();
    hers["venue"] = venue.as_str().into();

    let not_his = create(&app, &kofi.key, &his).await;
    let own = create(&app, &ama.key, &hers).await;

    assert_eq!(not_his.invalid_arguments(), ["venue"]);
    assert_eq!((own.status, &own.body["venue"]["self"]), (201, &json!(venue)));
}

#[test_on(sqlite, postgres)]
async fn redeemer_reads_event_of_own_token_only(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (event, other) = (app.create_draft(&host).await, app.create_listed_event(&host, &[]).await);
    let tokens = kofi.client.event_token_list().event(event.id.as_str()).send().await.unwrap();
    let code = tokens.entries[0].code.to_string();
    let yaw = app.public_client.token_authentication_get().code(code).send().await.unwrap().key.to_string();

    let own = app.get(&yaw, &event.uri).await;
    let others = app.get(&yaw, &other.uri).await;
    let list = app.get(&yaw, "/events").await;

    assert_eq!((own.status, &own.body["status"]), (200, &json!("Draft")));
    assert_eq!(rejection(&others), (403, "resource.not-yours"));
    assert_eq!(rejection(&list), (403, "key.refused"));
}

#[test_on(sqlite, postgres)]
async fn deletes_event_without_sales(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let tokens = kofi.client.event_token_list().event(event.id.as_str()).send().await.unwrap();
    let code = tokens.entries[0].code.to_string();
    let yaw = app.public_client.token_authentication_get().code(code.as_str()).send().await.unwrap().key.to_string();

    let removed = app.delete(&kofi.key, &event.uri).await;

    assert_eq!((removed.status, removed.body), (204, Value::Null));
    for gone in [&event.uri, &event.sections[0]] {
        assert_eq!(rejection(&app.get(&kofi.key, gone).await), (404, "resource.not-found"), "{gone}");
    }
    assert_eq!(rejection(&app.delete(&kofi.key, &event.uri).await), (404, "resource.not-found"));
    assert_eq!(rejection(&app.get(&yaw, &event.uri).await), (403, "key.refused"), "its tokens' keys have ended");
    let unknown = app.public_client.token_authentication_get().code(code).send().await;
    assert_eq!(unknown.rejection(), (404, "resource.not-found".to_owned()));
    let submission = crate::review::submission_of(&event.uri);
    assert_eq!(app.get(&app.staff.key, &submission).await.status, 404);
}

#[test_on(sqlite, postgres)]
async fn event_with_sold_tickets_cannot_be_deleted(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    ama.order(&event.sections[0], 2).await.unwrap();

    let response = app.delete(&kofi.key, &event.uri).await;

    assert_eq!(rejection(&response), (409, "event.sold"));
    let event = app.get(&ama.key, &event.uri).await.body;
    assert_eq!((&event["popularity"], &event["sections"][0]["sold"]), (&json!(2), &json!(2)));
}

#[test_on(sqlite, postgres)]
async fn event_with_open_orders_cannot_be_deleted(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    ama.order(&event.sections[0], 2).await.unwrap();

    let reserved = app.delete(&kofi.key, &event.uri).await;
    app.advance_clock(app.state.settings.reservation);
    let over = app.delete(&kofi.key, &event.uri).await;

    assert_eq!(rejection(&reserved), (409, "event.sold"));
    assert_eq!(over.status, 204);
}

#[test_on(sqlite, postgres)]
async fn draft_is_submitted_once(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let submit = || app.request("POST", &format!("{}/submissions", event.uri)).key(&kofi.key).send();

    let submitted = submit().await;
    let again = submit().await;

    let submission = crate::review::submission_of(&event.uri);
    assert_eq!((submitted.status, submitted.header("location")), (201, submission.as_str()));
    let at = submitted.body["submitted"].as_str().unwrap();
    let expected = json!({
        "self": submission, "type": "event", "content": event.uri, "status": "Pending", "submitted": at,
        "submitter": format!("/accounts/{}", kofi.number), "reason": "",
    });
    assert_eq!(submitted.body, expected);
    assert_eq!(rejection(&again), (409, "event.not-draft"));
    assert_eq!(app.get(&kofi.key, &event.uri).await.body["status"], "Under Review");
}
