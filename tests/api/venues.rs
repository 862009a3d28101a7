//! Venues: creation, visibility, updates and search.

use serde_json::{Value, json};

use crate::support::{Response, TestApp, rejection, test_on, types};

fn venue(name: &str, region: &str) -> Value {
    json!({ "name": name, "region": region, "address": "1 La Beach Road, Accra", "longitude": -0.1545, "latitude": 5.5593 })
}

async fn create(app: &TestApp, key: &str, body: &Value) -> Response {
    app.post(key, "/venues", body).await
}

/// Returns the names in a list of venues for this key.
async fn listed(app: &TestApp, key: &str, query: &str) -> Vec<String> {
    app.list(key, &format!("/venues?{query}"), "name").await
}

async fn decide(app: &TestApp, approved: bool) {
    let pending = app.staff.client.submission_list().type_(types::SubmissionType::Venue).send().await.unwrap();
    let submission = pending.entries[0].self_.strip_prefix("/submissions/").unwrap().to_owned();
    app.staff.client.submission_delete().submission(submission).approved(approved).send().await.unwrap();
}

#[test_on(sqlite, postgres)]
async fn venue_of_staff_is_approved_immediately(app: TestApp) {
    let region = app.create_region().await;
    let identifier = region.strip_prefix("/regions/").unwrap();

    let created = create(&app, &app.staff.key, &venue("Labadi Amphitheatre", identifier)).await;

    assert_eq!(created.status, 201);
    let uri = created.uri();
    assert_eq!(created.header("location"), uri);
    let mut expected = venue("Labadi Amphitheatre", &region);
    expected["self"] = uri.into();
    expected["map"] = "https://www.openstreetmap.org/?mlat=5.5593&mlon=-0.1545".into();
    assert_eq!(created.body, expected);
    assert_eq!(app.request("GET", uri).send().await.body, expected);
    assert_eq!(listed(&app, &app.public_key, "").await, ["Labadi Amphitheatre"]);
    assert_eq!(app.staff.client.submission_list().send().await.unwrap().total, 0);
}

#[test_on(sqlite, postgres)]
async fn venue_of_customer_is_private_until_approved(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);

    let created = create(&app, &ama.key, &venue("Alliance Garden", &app.create_region().await)).await;

    let uri = created.uri();
    let status = async |key| app.get(key, uri).await.status;
    assert_eq!((status(&ama.key).await, status(&app.staff.key).await), (200, 200));
    assert_eq!((status(&kofi.key).await, status(&app.public_key).await), (403, 403));
    for key in [&ama.key, &kofi.key, &app.staff.key] {
        assert!(listed(&app, key, "").await.is_empty(), "only approved venues are listed");
    }
    let submissions = app.staff.client.submission_list().send().await.unwrap();
    assert_eq!((submissions.total, submissions.entries[0].content.as_str()), (1, uri));
    assert_eq!(submissions.entries[0].submitter, format!("/accounts/{}", ama.number));

    decide(&app, true).await;

    assert_eq!((status(&kofi.key).await, status(&app.public_key).await), (200, 200));
    assert_eq!(listed(&app, &kofi.key, "").await, ["Alliance Garden"]);
}

#[test_on(sqlite, postgres)]
async fn pending_venue_is_visible_with_its_events(app: TestApp) {
    let (ama, kofi, efua) = (app.sign_up("ama").await, app.sign_up("kofi").await, app.sign_up("efua").await);
    let host = app.create_host(&ama).await;
    let event = app.create_draft(&host).await;
    let created = create(&app, &ama.key, &venue("Alliance Garden", &app.create_region().await)).await;
    let moved = app.put(&ama.key, &event.uri, json!({ "venue": created.uri() })).await;
    assert_eq!(moved.status, 200, "{}", moved.body);
    let added = app.post(&ama.key, &format!("{}/administrators", host.uri), json!({ "account": kofi.number })).await;
    assert_eq!(added.status, 201, "{}", added.body);
    let statuses = async || {
        let mut statuses = Vec::new();
        for key in [&kofi.key, &efua.key, &app.public_key] {
            statuses.push(app.get(key, created.uri()).await.status);
        }
        statuses
    };
    assert_eq!(statuses().await, [200, 403, 403], "a draft is visible to the administrators of its host");

    app.list_event(&event).await;

    assert_eq!(statuses().await, [200, 200, 200]);
    let others = app.create_draft(&app.create_host(&efua).await).await;
    let used = app.put(&efua.key, &others.uri, json!({ "venue": created.uri() })).await;
    assert_eq!(used.status, 400, "only its creator can use it: {}", used.body);
    assert!(!listed(&app, &efua.key, "").await.contains(&"Alliance Garden".to_owned()), "only approved venues are listed");
}

#[test_on(sqlite, postgres)]
async fn name_is_unique_even_while_pending(app: TestApp) {
    let (ama, region) = (app.sign_up("ama").await, app.create_region().await);
    create(&app, &ama.key, &venue("Alliance Garden", &region)).await;
    let other = create(&app, &app.staff.key, &venue("Labadi Amphitheatre", &region)).await;
    let other = other.uri();

    let same = create(&app, &app.staff.key, &venue("Alliance Garden", &region)).await;
    let renamed = app.put(&app.staff.key, other, json!({ "name": "Alliance Garden" })).await;

    assert_eq!(rejection(&same), (409, "venue.taken"));
    assert_eq!(rejection(&renamed), (409, "venue.taken"));
}

#[test_on(sqlite, postgres)]
async fn unknown_region_is_named(app: TestApp) {
    let staff = &app.staff.key;
    let created = create(&app, staff, &venue("Labadi Amphitheatre", &app.create_region().await)).await;
    let uri = created.uri();

    for region in ["/regions/17637000000001", "nowhere", "/v3/regions/00000000000000"] {
        let created = create(&app, staff, &venue("Labadi Amphitheatre", region)).await;
        let changed = app.put(staff, uri, json!({ "region": region })).await;
        let unknown = app.put(staff, "/venues/17637000000001", json!({ "region": region })).await;

        assert_eq!(created.invalid_arguments(), ["region"], "{region}, before the name that is taken");
        assert_eq!(changed.invalid_arguments(), ["region"], "{region}");
        assert_eq!(rejection(&unknown), (404, "resource.not-found"), "{region}");
    }
}

#[test_on(sqlite, postgres)]
async fn finds_venues_by_region_and_name(app: TestApp) {
    let (coast, north) = (app.create_region().await, app.create_region().await);
    for (name, region) in [("Labadi Amphitheatre", &coast), ("The 100% Club_Accra", &coast), ("Tamale Theatre", &north)] {
        create(&app, &app.staff.key, &venue(name, region)).await;
    }
    let (identifier, coast_uri) = (coast.strip_prefix("/regions/").unwrap(), format!("/v3{coast}"));

    for (query, expected) in [
        (format!("region={coast}"), vec!["Labadi Amphitheatre", "The 100% Club_Accra"]),
        (format!("region={coast_uri}"), vec!["Labadi Amphitheatre", "The 100% Club_Accra"]),
        (format!("region={identifier}&name=club"), vec!["The 100% Club_Accra"]),
        (format!("region={north}"), vec!["Tamale Theatre"]),
        ("region=nowhere".to_owned(), vec![]),
        ("name=THEATRE".to_owned(), vec!["Labadi Amphitheatre", "Tamale Theatre"]),
        ("name=%25".to_owned(), vec!["The 100% Club_Accra"]),
        ("name=club_a".to_owned(), vec!["The 100% Club_Accra"]),
        ("name=t_eatre".to_owned(), vec![]),
        ("name=%5C".to_owned(), vec![]),
        ("name=theatre&records=1&page=2".to_owned(), vec!["Tamale Theatre"]),
    ] {
        assert_eq!(listed(&app, &app.public_key, &query).await, expected, "{query}");
    }
}

#[test_on(sqlite, postgres)]
async fn staff_update_venue(app: TestApp) {
    let (ama, region) = (app.sign_up("ama").await, app.create_region().await);
    let created = create(&app, &ama.key, &venue("Alliance Garden", &region)).await;
    let uri = created.uri();
    let moved = app.create_region().await;

    let staff = app.put(&app.staff.key, uri, json!({ "latitude": 6.25, "region": moved, "unknown": null })).await;

    let mut expected = created.body.clone();
    expected["latitude"] = 6.25.into();
    expected["region"] = moved.into();
    expected["map"] = "https://www.openstreetmap.org/?mlat=6.25&mlon=-0.1545".into();
    assert_eq!((staff.status, &staff.body), (200, &expected));
    assert!(listed(&app, &app.public_key, "").await.is_empty(), "a change is no approval");
}

#[test_on(sqlite, postgres)]
async fn staff_delete_venue_and_its_submission(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let created = create(&app, &ama.key, &venue("Alliance Garden", &app.create_region().await)).await;

    let staff = app.delete(&app.staff.key, created.uri()).await;
    let again = app.delete(&app.staff.key, created.uri()).await;

    assert_eq!((staff.status, staff.body), (204, Value::Null));
    assert_eq!(rejection(&again), (404, "resource.not-found"));
    assert_eq!(app.staff.client.submission_list().send().await.unwrap().total, 0);
    let same = create(&app, &ama.key, &venue("Alliance Garden", &app.create_region().await)).await;
    assert_eq!(same.status, 201, "its name is free again");
}

#[test_on(sqlite, postgres)]
async fn venue_with_events_cannot_be_deleted(app: TestApp) {
    let (ama, event) = app.sign_up_host_with_draft("ama").await;
    let event = ama.client.event_get().event(event.id.as_str()).send().await.unwrap();

    let removed = app.delete(&app.staff.key, &event.venue.self_).await;

    assert_eq!(rejection(&removed), (409, "venue.in-use"));
    assert_eq!(app.request("GET", &event.venue.self_).send().await.status, 200);
}
