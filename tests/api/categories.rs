//! Categories and subcategories, and the events that prevent their changes.

use serde_json::{Value, json};

use crate::support::{TestApp, rejection, test_on};

async fn made(app: &TestApp, name: &str, subcategories: &[&str]) -> String {
    let created = app.post(&app.staff.key, "/categories", json!({ "name": name, "subcategories": subcategories })).await;
    assert_eq!(created.status, 201);
    created.uri().to_owned()
}

#[test_on(sqlite, postgres)]
async fn preserves_order_of_subcategories(app: TestApp) {
    let music = json!({ "name": "Music", "subcategories": ["Jazz", "Highlife", "Afro \"beat\" ü"] });

    let response = app.post(&app.staff.key, "/categories", music).await;
    made(&app, "Art", &["Painting"]).await;

    assert_eq!(response.status, 201);
    let uri = response.uri();
    assert_eq!(response.header("location"), uri);
    let music = json!({ "self": uri, "name": "Music", "subcategories": ["Jazz", "Highlife", "Afro \"beat\" ü"] });
    assert_eq!(response.body, music);
    assert_eq!(app.request("GET", uri).send().await.body, music);
    let page = app.request("GET", "/categories").send().await;
    assert_eq!((&page.body["total"], &page.body["entries"][0]), (&json!(2), &music));
    assert_eq!(page.body["entries"][1]["subcategories"], json!(["Painting"]));
}

#[test_on(sqlite, postgres)]
async fn rejects_duplicate_subcategories(app: TestApp) {
    let music = made(&app, "Music", &["Jazz"]).await;

    made(&app, "Dance", &["Jazz"]).await;
    for subcategories in
        [json!(["Rock", "Rock"]), json!(["Rock", " ｒock"]), json!([]), json!([""]), json!(["Rock", "\u{200d}"]), json!([7])]
    {
        let new = app.post(&app.staff.key, "/categories", json!({ "name": "Film", "subcategories": subcategories })).await;
        let changed = app.put(&app.staff.key, &music, json!({ "name": "Dance", "subcategories": subcategories })).await;

        assert_eq!(new.invalid_arguments(), ["subcategories"], "{subcategories}");
        assert_eq!(changed.invalid_arguments(), ["subcategories"], "{subcategories}");
    }
}

#[test_on(sqlite, postgres)]
async fn update_replaces_subcategories(app: TestApp) {
    let music = made(&app, "Music", &["Jazz", "Highlife", "Gospel"]).await;
    let dance = made(&app, "Dance", &["Jazz", "Ballet"]).await;

    let changed = app.put(&app.staff.key, &music, json!({ "subcategories": ["Rock", "Gospel", "Jazz"] })).await;

    let expected = json!({ "self": music, "name": "Music", "subcategories": ["Rock", "Gospel", "Jazz"] });
    assert_eq!((changed.status, &changed.body), (200, &expected));
    assert_eq!(app.request("GET", &music).send().await.body, expected);
    assert_eq!(app.request("GET", &dance).send().await.body["subcategories"], json!(["Jazz", "Ballet"]));
}

#[test_on(sqlite, postgres)]
async fn update_keeps_omitted_properties(app: TestApp) {
    let music = made(&app, "Music", &["Jazz", "Gospel"]).await;

    let renamed = app.put(&app.staff.key, &music, json!({ "name": "Concerts" })).await;

    assert_eq!(renamed.body, json!({ "self": music, "name": "Concerts", "subcategories": ["Jazz", "Gospel"] }));
}

#[test_on(sqlite, postgres)]
async fn subcategory_in_use_cannot_be_removed(app: TestApp) {
    let (ama, event) = app.sign_up_host_with_draft("ama").await;
    let event = ama.client.event_get().event(event.id.as_str()).send().await.unwrap();
    let category = &event.category.self_;
    let before = app.request("GET", category).send().await.body;

    let without = app.put(&app.staff.key, category, json!({ "name": "Concerts", "subcategories": ["Rock", "Gospel"] })).await;
    let removed = app.delete(&app.staff.key, category).await;

    assert_eq!(rejection(&without), (409, "category.in-use"));
    assert_eq!(rejection(&removed), (409, "category.in-use"));
    assert_eq!(app.request("GET", category).send().await.body, before, "nothing is changed, not even the name");
    let with = app.put(&app.staff.key, category, json!({ "subcategories": ["Gospel", "Jazz"] })).await;
    assert_eq!((with.status, &with.body["subcategories"]), (200, &json!(["Gospel", "Jazz"])));
}

#[test_on(sqlite, postgres)]
async fn deletes_category_without_events(app: TestApp) {
    let music = made(&app, "Music", &["Jazz"]).await;
    let remove = || app.request("DELETE", &music).key(&app.staff.key).send();

    let removed = remove().await;
    let again = remove().await;

    assert_eq!((removed.status, removed.body), (204, Value::Null));
    assert_eq!(rejection(&again), (404, "resource.not-found"));
    assert_eq!(app.request("GET", &music).send().await.status, 404);
    made(&app, "Music", &["Jazz"]).await;
}
