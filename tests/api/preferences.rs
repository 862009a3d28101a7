//! Preferences: an account's preferred region.

use serde_json::{Value, json};

use crate::on_both_databases;
use crate::support::{Response, TestApp};

on_both_databases![
    new_account_has_no_preferences,
    region_is_given_by_id_or_uri,
    rejects_unknown_region,
    deleted_region_is_removed_from_preferences,
    preferences_require_owner_or_staff,
];

async fn put(app: &TestApp, key: &str, number: &str, body: Value) -> Response {
    app.request("PUT", &format!("/accounts/{number}/preferences")).key(key).json(&body).send().await
}

async fn get(app: &TestApp, key: &str, number: &str) -> Response {
    app.request("GET", &format!("/accounts/{number}/preferences")).key(key).send().await
}

fn id(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap()
}

async fn new_account_has_no_preferences(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let account = ama.client.account_get().number(ama.number.as_str()).send().await.unwrap();

    let read = app.request("GET", &account.preferences).key(&ama.key).send().await;
    let unchanged = put(&app, &ama.key, &ama.number, json!({})).await;

    assert_eq!((read.status, &read.body), (200, &json!({ "self": account.preferences, "region": null })));
    assert_eq!((unchanged.status, unchanged.body), (200, read.body));
}

async fn region_is_given_by_id_or_uri(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (accra, volta) = (app.create_region().await, app.create_region().await);

    for (region, named) in [(&accra, id(&accra)), (&volta, volta.as_str()), (&accra, &format!("/v3{accra}"))] {
        let changed = put(&app, &ama.key, &ama.number, json!({ "region": named })).await;

        let expected = json!({ "self": format!("/accounts/{}/preferences", ama.number), "region": id(region) });
        assert_eq!((changed.status, &changed.body), (200, &expected), "{named}");
        assert_eq!(get(&app, &ama.key, &ama.number).await.body, expected);
        assert_eq!(put(&app, &ama.key, &ama.number, json!({ "city": "Ho" })).await.body, expected, "omitted properties stay");
    }
}

async fn rejects_unknown_region(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let accra = app.create_region().await;
    put(&app, &ama.key, &ama.number, json!({ "region": accra })).await;

    for unknown in ["17637000000001", "/regions/17637000000001", "accra"] {
        let rejected = put(&app, &ama.key, &ama.number, json!({ "region": unknown })).await;
        assert_eq!((rejected.status, rejected.invalid_arguments()), (400, vec!["region".to_owned()]), "{unknown}");
    }
    let blank = put(&app, &ama.key, &ama.number, json!({ "region": " " })).await;
    assert_eq!((blank.status, blank.invalid_arguments()), (400, vec!["-region".to_owned()]));
    assert_eq!(get(&app, &ama.key, &ama.number).await.body["region"], id(&accra), "nothing was changed");
}

async fn deleted_region_is_removed_from_preferences(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let (accra, volta) = (app.create_region().await, app.create_region().await);
    put(&app, &ama.key, &ama.number, json!({ "region": accra })).await;
    put(&app, &kofi.key, &kofi.number, json!({ "region": volta })).await;

    let removed = app.request("DELETE", &accra).key(&app.staff.key).send().await;

    assert_eq!(removed.status, 204);
    assert_eq!(get(&app, &ama.key, &ama.number).await.body["region"], Value::Null);
    assert_eq!(get(&app, &kofi.key, &kofi.number).await.body["region"], id(&volta));
    assert_eq!(put(&app, &ama.key, &ama.number, json!({ "region": volta })).await.body["region"], id(&volta));
}

async fn preferences_require_owner_or_staff(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let accra = app.create_region().await;
    let body = json!({ "region": accra });

    let staffs = put(&app, &app.staff.key, &ama.number, body.clone()).await;
    assert_eq!((staffs.status, &staffs.body["region"]), (200, &json!(id(&accra))));
    assert_eq!(get(&app, &app.staff.key, &ama.number).await.body, staffs.body);

    for (key, number, expected) in [
        (&kofi.key, ama.number.as_str(), (403, "resource.not-yours")),
        (&app.public_key, &ama.number, (403, "key.refused")),
        (&ama.key, "ZZ-00000000", (404, "resource.not-found")),
        (&app.staff.key, "ZZ-00000000", (404, "resource.not-found")),
    ] {
        for response in [get(&app, key, number).await, put(&app, key, number, body.clone()).await] {
            assert_eq!((response.status, response.code()), expected, "{number}");
        }
    }
}
