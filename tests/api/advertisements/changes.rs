//! Updates of advertisements.

use serde_json::json;

use super::{advertisement_body, create, create_draft, publish, rejection};
use crate::support::{TestApp, test_on};

#[test_on(sqlite, postgres)]
async fn update_keeps_omitted_properties(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let before = create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&app.create_zone(300, 250).await])).await;
    let uri = before.uri().to_owned();

    let nothing = app.put(&kofi.key, &uri, json!({ "x-parsed-md-description": { "result": [] } })).await;
    let some = json!({
        "name": "Rock", "description": "- loud\n- long", "status": "Listed", "artwork_id": 1,
        "schedule": [{ "start": "2998-12-20T01:00+01:00", "end": "2998-12-20T01:00" }],
    });
    let after = app.put(&kofi.key, &uri, some).await;

    assert_eq!((nothing.status, &nothing.body), (200, &before.body));
    let mut expected = before.body;
    expected["name"] = "Rock".into();
    expected["description"] = "- loud\n- long".into();
    expected["schedule"] = json!([{ "start": "2998-12-20 00:00", "end": "2998-12-20 01:00" }]);
    expected["x-parsed-md-description"] = json!({ "result": [{ "type": "list", "items": ["loud", "long"] }] });
    assert_eq!((after.status, &after.body), (200, &expected));
    assert_eq!(app.get(&kofi.key, &uri).await.body, expected);
}

#[test_on(sqlite, postgres)]
async fn accepts_own_representation(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let mut new = advertisement_body("Jazz", &event, &[&app.create_zone(300, 250).await]);
    new["description"] = "Play:\n\n```\nla();\n\tla();\n```".into();
    let created = create(&app, &kofi.key, &new).await;

    let parsed = &created.body["x-parsed-md-description"];
    assert_eq!(parsed["result"][1]["text"], "la();\n\tla();");
    let sent = json!({ "description": created.body["description"], "x-parsed-md-description": parsed });
    let same = app.put(&kofi.key, created.uri(), sent).await;
    new["name"] = "Another".into();
    new["x-parsed-md-description"] = parsed.clone();
    let copy = create(&app, &kofi.key, &new).await;

    assert_eq!((same.status, &same.body), (200, &created.body));
    assert_eq!((copy.status, &copy.body["x-parsed-md-description"]), (201, parsed), "{}", copy.body);
}

#[test_on(sqlite, postgres)]
async fn update_follows_creation_rules(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let created = create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&app.create_zone(300, 250).await])).await;
    let uri = created.uri().to_owned();
    let backward = json!([{ "start": "2998-12-20 00:00", "end": "2998-12-19 00:00" }]);

    for (body, complaints) in [
        (json!({ "name": " ", "zones": "", "schedule": null, "event": "" }), vec!["-name", "-event", "-zones", "-schedule"]),
        (json!({ "zones": [], "schedule": [], "event": event.uri }), vec!["event", "zones", "schedule"]),
        (json!({ "event": "17637000000001" }), vec!["event"]),
        (json!({ "artwork": "*", "zones": ["17637000000001"], "schedule": backward }), vec!["artwork", "zones", "schedule"]),
    ] {
        let response = app.put(&kofi.key, &uri, body.clone()).await;
        assert_eq!(response.invalid_arguments(), complaints, "{body}");
    }
    assert_eq!(app.get(&kofi.key, &uri).await.body, created.body);
}

#[test_on(sqlite, postgres)]
async fn update_of_listed_advertisement_keeps_status(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let (zone, other) = (app.create_zone(300, 250).await, app.create_zone(300, 250).await);
    let uri = create_draft(&app, &kofi, "Jazz", &event, &[&zone]).await;
    publish(&app, &uri).await;

    let changed = app.put(&kofi.key, &uri, json!({ "name": "Rock", "zones": [other] })).await;

    assert_eq!((&changed.body["name"], &changed.body["status"]), (&json!("Rock"), &json!("Listed")));
    assert_eq!(app.get(&app.public_key, &uri).await.body, changed.body);
    let shown = async |zone: &str| app.get(&app.public_key, &format!("{zone}/advertisements")).await.body["entries"].clone();
    assert_eq!((shown(&zone).await, shown(&other).await), (json!([]), json!([changed.body])));
}

#[test_on(sqlite, postgres)]
async fn moves_to_event_of_other_host_with_both_permissions(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (his, hers) = (app.create_host(&kofi).await, app.create_host(&ama).await);
    let (event, other, foreign) =
        (app.create_draft(&his).await, app.create_draft(&his).await, app.create_listed_event(&hers, &[]).await);
    let created = create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&app.create_zone(300, 250).await])).await;
    let uri = created.uri().to_owned();

    let stolen = app.put(&kofi.key, &uri, json!({ "event": foreign.id, "zones": ["nowhere"] })).await;
    let moved = app.put(&kofi.key, &uri, json!({ "event": other.id })).await;
    let given = app.put(&app.staff.key, &uri, json!({ "event": foreign.id })).await;

    assert_eq!(rejection(&stolen), (403, "resource.not-yours"));
    assert_eq!((moved.status, &moved.body["event"]["self"]), (200, &json!(other.uri)));
    assert_eq!((given.status, &given.body["event"]["host"]), (200, &json!(hers.uri)));
    assert_eq!((app.get(&kofi.key, &uri).await.status, app.get(&ama.key, &uri).await.status), (403, 200));
}
