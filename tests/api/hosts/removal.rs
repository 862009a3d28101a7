//! Removal of hosts: effects, remaining data, and forbidden actions.

use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::{create, host, names};
use crate::support::{Event, Response, TestApp, User, card_payment, rejection, section, test_on};

/// Creates a host of Kofi, with a listed event that has ten tickets at 20.00.
async fn create_concert(app: &TestApp, kofi: &User) -> (String, Event) {
    let host = app.create_host(kofi).await;
    let event = app.create_listed_event(&host, &[section("Floor", 20.0, 10)]).await;
    (host.uri, event)
}

#[test_on(sqlite, postgres)]
async fn removed_host_is_not_found(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (uri, event) = create_concert(&app, &kofi).await;
    let before = app.request("GET", &event.uri).send().await.body;

    let removed = app.delete(&kofi.key, &uri).await;

    assert_eq!((removed.status, removed.body), (204, Value::Null));
    let administrators = format!("{uri}/administrators");
    let account = format!("{administrators}?account={}", kofi.number);
    for (method, path, body) in [
        ("GET", uri.clone(), Value::Null),
        ("PUT", uri.clone(), json!({ "phone": "1" })),
        ("DELETE", uri.clone(), Value::Null),
        ("GET", administrators.clone(), Value::Null),
        ("POST", administrators.clone(), json!({ "account": ama.number })),
        ("DELETE", account, Value::Null),
        ("GET", format!("{uri}/events"), Value::Null),
    ] {
        for key in [&kofi.key, &app.staff.key] {
            let response = app.send(method, key, &path, body.clone()).await;
            assert_eq!(rejection(&response), (404, "resource.not-found"), "{method} {path}");
        }
    }
    assert!(names(&app.request("GET", "/hosts").send().await).is_empty());
    assert!(names(&app.request("GET", &format!("/hosts?account={}", kofi.number)).send().await).is_empty());
    let after = app.request("GET", &event.uri).send().await;
    assert_eq!((after.status, after.body), (200, before), "its events stay as they are");
    assert_eq!(app.public_client.published_event_list().send().await.unwrap().total, 1);
}

#[test_on(sqlite, postgres)]
async fn staff_read_ledger_and_statistics_of_removed_host(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (uri, event) = create_concert(&app, &kofi).await;
    ama.pay(&ama.order(&event.sections[0], 2).await.unwrap()).await.unwrap();
    let reports = [format!("{uri}/statistics"), format!("{uri}/transactions")];
    let get = async |key: &str, path: &str| app.get(key, path).await;
    let before = join_all(reports.iter().map(|path| get(&app.staff.key, path))).await;

    assert_eq!(app.delete(&kofi.key, &uri).await.status, 204);

    for (path, before) in reports.iter().zip(before) {
        let staff = get(&app.staff.key, path).await;
        assert_eq!((staff.status, &staff.body), (200, &before.body), "{path}");
        for key in [&kofi.key, &ama.key] {
            assert_eq!(rejection(&get(key, path).await), (404, "resource.not-found"), "{path}");
        }
    }
    assert_eq!(app.transactions(&reports[1]).await, [("Sale".to_owned(), 41.98, 1.98)]);
}

#[test_on(sqlite, postgres)]
async fn sold_tickets_of_removed_host_stay_valid(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (uri, event) = create_concert(&app, &kofi).await;
    let paid = ama.order(&event.sections[0], 1).await.unwrap();
    ama.pay(&paid).await.unwrap();
    let open = ama.order(&event.sections[0], 1).await.unwrap();

    assert_eq!(app.delete(&kofi.key, &uri).await.status, 204);

    // Existing reservations can be paid.
    assert_eq!(app.pay(&ama.key, &open.self_, card_payment()).await.status, 201);
    let tickets = app.wallet(&ama).await;
    assert_eq!(tickets.len(), 2);
    let by_its_administrator = app.admit(&kofi.key, &event, [&tickets[0]["serial"]]).await;
    assert_eq!((by_its_administrator.status, by_its_administrator.body.as_array().unwrap().len()), (201, 1));
    let code = app.read(&format!("{}/tokens", event.uri)).await["entries"][0]["code"].as_str().unwrap().to_owned();
    let gate = app.public_client.token_authentication_get().code(code).send().await.unwrap().key.clone();
    let at_the_gate = app.admit(&gate, &event, [&tickets[1]["serial"]]).await;
    assert_eq!((at_the_gate.status, at_the_gate.body.as_array().unwrap().len()), (201, 1));
}

#[test_on(sqlite, postgres)]
async fn removed_host_cannot_create_submit_list_or_sell(app: TestApp) {
    let (kofi, listed) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10), section("Lawn", 0.0, 10)]).await;
    let (draft, reviewed) = (app.create_draft(&listed.host).await, app.create_draft(&listed.host).await);
    kofi.client.event_submission_create().event(&reviewed.id).send().await.unwrap();
    let event = json!({
        "host": listed.host.uri, "title": "One More", "description": "Jazz.", "type": "Standard", "public": true,
        "category": app.create_category().await, "subcategory": "Jazz", "venue": app.create_venue().await,
    });
    let before = app.read("/events").await;

    assert_eq!(app.delete(&kofi.key, &listed.host.uri).await.status, 204);

    let balcony = serde_json::to_value(section("Balcony", 5.0, 5)).unwrap();
    let approval = format!("{}?approved=true", crate::review::submission_of(&reviewed.uri));
    let staff = &app.staff.key;
    for (method, key, path, body) in [
        ("POST", &kofi.key, "/events".to_owned(), event.clone()),
        ("POST", staff, "/events".to_owned(), event),
        ("POST", &kofi.key, format!("{}/submissions", draft.uri), Value::Null),
        ("DELETE", staff, approval, Value::Null),
        ("POST", &kofi.key, format!("{}/sections", listed.uri), balcony.clone()),
        ("POST", &kofi.key, format!("{}/sections", draft.uri), balcony),
        ("POST", &kofi.key, format!("{}/modifiers", listed.sections[0]), json!({ "name": "Gate", "priceDelta": 5 })),
        ("POST", &kofi.key, "/orders".to_owned(), json!({ "items": { listed.sections[0].as_str(): 1 } })),
        ("POST", staff, "/orders".to_owned(), json!({ "items": { listed.sections[1].as_str(): 1 } })),
    ] {
        assert_eq!(rejection(&app.send(method, key, &path, body).await), (409, "host.removed"), "{method} {path}");
    }
    assert_eq!(app.read("/events").await, before, "nothing has changed");
    assert_eq!(app.read("/orders").await["total"], 0);
}

#[test_on(sqlite, postgres)]
async fn existing_events_of_removed_host_can_be_managed(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (first, second) =
        (create_concert(&app, &kofi).await, app.create_listed_event(&host, &[section("Floor", 20.0, 10)]).await);
    let (reviewed, draft) = (app.create_draft(&host).await, app.create_draft(&host).await);
    kofi.client.event_submission_create().event(&reviewed.id).send().await.unwrap();
    for uri in [&host.uri, &first.0] {
        assert_eq!(app.delete(&kofi.key, uri).await.status, 204);
    }
    let first = first.1;

    let rejection = format!("{}?approved=false", crate::review::submission_of(&reviewed.uri));
    for (method, key, path, body, status) in [
        ("PUT", &kofi.key, first.uri.clone(), json!({ "title": "An Hour Later" }), 200),
        ("PUT", &kofi.key, first.sections[0].clone(), json!({ "description": "By the sea" }), 200),
        ("GET", &kofi.key, format!("{}/statistics", first.uri), Value::Null, 200),
        ("GET", &kofi.key, format!("{}/sales", first.uri), Value::Null, 200),
        ("POST", &kofi.key, format!("{}/cancellations", first.uri), Value::Null, 200),
        ("POST", &kofi.key, format!("{}/withdrawals", second.uri), Value::Null, 200),
        ("DELETE", &kofi.key, second.sections[0].clone(), Value::Null, 204),
        ("DELETE", &app.staff.key, rejection, Value::Null, 200),
        ("DELETE", &kofi.key, draft.uri.clone(), Value::Null, 204),
    ] {
        let response = app.send(method, key, &path, body).await;
        assert_eq!(response.status, status, "{method} {path}: {}", response.body);
    }
}

#[test_on(sqlite, postgres)]
async fn name_of_removed_host_is_free(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let uri = |response: &Response| response.uri().to_owned();
    let first = create(&app, &ama.key, &host("Accra Live")).await;
    let other = create(&app, &kofi.key, &host("Kumasi Live")).await;
    assert_eq!(rejection(&create(&app, &kofi.key, &host("Accra Live")).await), (409, "host.taken"));

    assert_eq!(app.delete(&ama.key, &uri(&first)).await.status, 204);

    let second = create(&app, &ama.key, &host("Accra Live")).await;
    assert_eq!(second.status, 201);
    assert_eq!(rejection(&app.put(&kofi.key, &uri(&other), json!({ "name": "Accra Live" })).await), (409, "host.taken"));
    assert_eq!(app.delete(&ama.key, &uri(&second)).await.status, 204);
    assert_eq!(app.put(&kofi.key, &uri(&other), json!({ "name": "Accra Live" })).await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn host_is_removed_once(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let uri = app.create_host(&kofi).await.uri;

    let (one, other) = join(app.delete(&kofi.key, &uri), app.delete(&app.staff.key, &uri)).await;

    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 404]);
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_sales_and_removal_remove_host(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 100), section("Lawn", 0.0, 100)]).await;
    let [floor, lawn] = [event.sections[0].as_str(), event.sections[1].as_str()];
    let mut crowd = Vec::new();
    for number in 0..4 {
        crowd.push(app.sign_up(&format!("person-{number}")).await);
    }

    let wants = crowd.iter().flat_map(|user| [floor, lawn, floor, lawn].map(|section| (user, section)));
    let wants = join_all(wants.map(|(user, section)| app.place_order(&user.key, json!({ section: 1 }))));
    let (responses, removed) = join(wants, app.delete(&kofi.key, &event.host.uri)).await;

    assert_eq!(removed.status, 204);
    let sold = responses.iter().filter(|response| response.status == 201).count();
    let rejected = responses.iter().filter(|response| rejection(response) == (409, "host.removed")).count();
    assert_eq!(sold + rejected, 16, "{responses:?}");
    let ((sold_free, none), (also_none, reserved)) = (app.sold_and_reserved(lawn).await, app.sold_and_reserved(floor).await);
    assert_eq!((none, also_none, usize::try_from(sold_free + reserved).unwrap()), (0, 0, sold));
    assert_eq!(rejection(&app.place_order(&crowd[0].key, json!({ lawn: 1 })).await), (409, "host.removed"));
}
