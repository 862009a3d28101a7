//! Account lookups.

use serde_json::{Value, json};

use crate::support::{TestApp, test_on, types};

impl TestApp {
    async fn is_found(&self, identification: &str, role: Value) -> bool {
        let body = json!({ "identification": identification, "role": role });
        let response = self.request("POST", "/lookups").json(&body).send().await;
        assert_eq!(response.status, 200, "{}", response.body);
        response.body["found"].as_bool().unwrap()
    }
}

#[test_on(sqlite, postgres)]
async fn finds_account_by_username_or_email(app: TestApp) {
    app.sign_up("ama").await;

    for (identification, found) in [
        ("ama", true),
        ("AMA", true),
        (" ama", true),
        ("a ma", false),
        ("ama@example.com", true),
        ("Ama@Example.COM", true),
        ("am", false),
        ("ama%", false),
        ("ama@example.org", false),
        ("kofi", false),
    ] {
        assert_eq!(app.is_found(identification, Value::Null).await, found, "{identification}");
    }
}

#[test_on(sqlite, postgres)]
async fn role_restricts_lookup(app: TestApp) {
    app.sign_up("ama").await;

    for (identification, role, found) in [
        ("ama", "customer", true),
        ("ama", "administrator", false),
        (app.staff.username.as_str(), "administrator", true),
        (&app.staff.username, "customer", false),
        ("kofi", "customer", false),
        ("ama", "public", false),
    ] {
        assert_eq!(app.is_found(identification, json!(role)).await, found, "{identification} as {role}");
    }
}

#[test_on(sqlite, postgres)]
async fn response_echoes_request(app: TestApp) {
    let ama = app.sign_up("ama").await;

    let requested =
        ama.client.lookup_create().body_map(|body| body.identification("Ama@example.com").role(Some(types::Role::Customer)));
    let response = requested.send().await.unwrap().into_inner();
    let without = app.request("POST", "/lookups").json(&json!({ "identification": "kofi" })).send().await;

    assert_eq!(
        serde_json::to_value(&response).unwrap(),
        json!({
            "identification": "Ama@example.com", "role": "customer", "found": true
        })
    );
    assert_eq!(without.body, json!({ "identification": "kofi", "role": null, "found": false }));
}

#[test_on(sqlite, postgres)]
async fn finds_deactivated_account(app: TestApp) {
    let ama = app.sign_up("ama").await;
    app.execute("update accounts set activated = false where number = $1", ama.number.clone()).await;

    assert!(app.is_found("ama", json!("customer")).await);
}
