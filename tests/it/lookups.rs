//! Lookups: whether there is an account.

use serde_json::{Value, json};

use crate::on_both_databases;
use crate::support::{World, types};

on_both_databases![
    an_account_is_found_by_username_or_email,
    a_role_narrows_the_lookup,
    the_answer_repeats_what_was_asked,
    a_deactivated_account_is_found,
];

impl World {
    async fn is_found(&self, identification: &str, role: Value) -> bool {
        let body = json!({ "identification": identification, "role": role });
        let answer = self.request("POST", "/lookups").json(&body).send().await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body["found"].as_bool().unwrap()
    }
}

async fn an_account_is_found_by_username_or_email(world: World) {
    world.person("ama").await;

    for (identification, found) in [
        ("ama", true),
        ("AMA", true),
        ("ama@example.com", true),
        ("Ama@Example.COM", true),
        ("am", false),
        ("ama%", false),
        ("ama@example.org", false),
        ("kofi", false),
    ] {
        assert_eq!(world.is_found(identification, Value::Null).await, found, "{identification}");
    }
}

async fn a_role_narrows_the_lookup(world: World) {
    world.person("ama").await;

    for (identification, role, found) in [
        ("ama", "customer", true),
        ("ama", "administrator", false),
        (world.staff.username.as_str(), "administrator", true),
        (&world.staff.username, "customer", false),
        ("kofi", "customer", false),
    ] {
        assert_eq!(world.is_found(identification, json!(role)).await, found, "{identification} as {role}");
    }
    let body = json!({ "identification": "ama", "role": "public" });
    assert_eq!(world.request("POST", "/lookups").json(&body).send().await.complaints(), ["role"]);
}

async fn the_answer_repeats_what_was_asked(world: World) {
    let ama = world.person("ama").await;

    let asked = ama
        .client
        .lookup_create()
        .body_map(|body| body.identification("Ama@example.com").role(Some(types::LookupCreateRole::Customer)));
    let answer = asked.send().await.unwrap().into_inner();
    let without = world.request("POST", "/lookups").json(&json!({ "identification": "kofi" })).send().await;

    assert_eq!(
        serde_json::to_value(&answer).unwrap(),
        json!({
            "identification": "Ama@example.com", "role": "customer", "found": true
        })
    );
    assert_eq!(without.body, json!({ "identification": "kofi", "role": null, "found": false }));
}

async fn a_deactivated_account_is_found(world: World) {
    let ama = world.person("ama").await;
    world.execute("update accounts set activated = false where number = $1", &ama.number).await;

    assert!(world.is_found("ama", json!("customer")).await);
}
