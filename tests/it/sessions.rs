//! Sessions: who may open one, what it tells, and how it ends.

use std::time::Duration;

use boxoffice_client::Error;
use serde_json::json;

use crate::on_both_databases;
use crate::support::{PASSWORD, Person, Refusal, World, types};

on_both_databases![
    a_person_signs_in_by_username_or_email,
    a_new_session_is_answered_whole,
    who_cannot_sign_in_is_told_why,
    what_signing_in_needs_is_checked,
    a_session_is_read_with_its_key,
    an_ended_session_is_refused_and_others_stay,
    a_key_without_a_session_has_none_to_read_or_end,
    a_session_lives_thirty_days_after_its_last_use,
    a_deactivated_accounts_keys_are_refused,
];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl World {
    /// Opens a session.
    pub async fn sign_in(&self, identification: &str, password: &str) -> Result<types::Session, Error<types::Error>> {
        let session = self.anyone.session_create().body_map(|body| body.identification(identification).password(password));
        Ok(session.send().await?.into_inner())
    }

    /// Runs a statement with the number of an account: what no operation does yet.
    pub async fn execute(&self, sql: &'static str, number: &str) {
        let mut tx = self.app.db.begin().await.unwrap();
        assert_eq!(tx.query(sql).bind(number.to_owned()).execute().await.unwrap(), 1);
        tx.commit().await.unwrap();
    }

    async fn deactivate(&self, person: &Person) {
        self.execute("update accounts set activated = false where number = $1", &person.number).await;
    }
}

async fn a_person_signs_in_by_username_or_email(world: World) {
    let ama = world.person("ama").await;

    for identification in ["ama", "AMA", "ama@example.com", "Ama@Example.COM"] {
        let session = world.sign_in(identification, PASSWORD).await.unwrap();

        assert_eq!(*session.account.number, ama.number);
        let own = world.client(&session.key).account_get().number(ama.number.as_str()).send().await.unwrap();
        assert_eq!(own.username, "ama");
    }
}

async fn a_new_session_is_answered_whole(world: World) {
    let ama = world.person("ama").await;
    let account = world.request("GET", &format!("/accounts/{}", ama.number)).key(&ama.key).send().await.body;

    let body = json!({ "identification": "ama", "password": PASSWORD });
    let answer = world.request("POST", "/sessions").json(&body).send().await;

    let session = &answer.body;
    assert_eq!((answer.status, answer.header("location")), (201, "/sessions/active"));
    assert_eq!((&session["self"], &session["open"]), (&json!("/sessions/active"), &json!(true)));
    assert!(session["id"].as_i64().unwrap() > 10_000_000_000_000);
    let started = session["started"].as_str().unwrap().replace(' ', "T");
    assert!(world.app.clock.now().to_offset_seconds().starts_with(&started[..16]), "{started}");
    assert_eq!(session["account"], account);
}

async fn who_cannot_sign_in_is_told_why(world: World) {
    let ama = world.person("ama").await;
    let refusal = async |identification, password| world.sign_in(identification, password).await.refusal();

    assert_eq!(refusal("kofi", PASSWORD).await, (404, "account.unknown".to_owned()));
    assert_eq!(refusal("ama%", PASSWORD).await, (404, "account.unknown".to_owned()));
    assert_eq!(refusal("ama", "a wrong one").await, (401, "session.wrong-password".to_owned()));
    assert_eq!(refusal("ama", "Correct Horse Battery").await, (401, "session.wrong-password".to_owned()));
    world.deactivate(&ama).await;
    assert_eq!(refusal("ama", "a wrong one").await, (401, "session.wrong-password".to_owned()));
    assert_eq!(refusal("ama", PASSWORD).await, (403, "account.deactivated".to_owned()));
}

async fn what_signing_in_needs_is_checked(world: World) {
    let sign_in = |body| world.request("POST", "/sessions").json(&body).send();

    let nothing = sign_in(json!({ "password": " " })).await;
    let unreadable = sign_in(json!({ "identification": 7, "password": "x".repeat(129) })).await;

    assert_eq!((nothing.status, nothing.complaints()), (400, vec!["-identification".to_owned(), "-password".to_owned()]));
    assert_eq!(unreadable.complaints(), ["identification", "password"]);
}

async fn a_session_is_read_with_its_key(world: World) {
    world.person("ama").await;
    let opened = world.sign_in("ama", PASSWORD).await.unwrap();

    let read = world.client(&opened.key).session_active_get().send().await.unwrap().into_inner();

    assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&opened).unwrap());
}

async fn an_ended_session_is_refused_and_others_stay(world: World) {
    let ama = world.person("ama").await;
    let other = world.sign_in("ama", PASSWORD).await.unwrap();

    ama.client.session_active_delete().send().await.unwrap();

    assert_eq!(ama.client.session_active_get().send().await.refusal(), (403, "key.refused".to_owned()));
    assert_eq!(ama.client.session_active_delete().send().await.refusal(), (403, "key.refused".to_owned()));
    assert!(world.client(&other.key).session_active_get().send().await.is_ok());
}

async fn a_key_without_a_session_has_none_to_read_or_end(world: World) {
    for key in [&world.public_key, &world.staff.key] {
        for method in ["GET", "DELETE"] {
            let answer = world.request(method, "/sessions/active").key(key).send().await;

            assert_eq!((answer.status, answer.code()), (404, "resource.not-found"), "{method}");
        }
        assert_eq!(world.request("GET", "/time").key(key).send().await.status, 200, "the key still works");
    }
}

async fn a_session_lives_thirty_days_after_its_last_use(world: World) {
    let ama = world.person("ama").await;
    let used = async || ama.client.session_active_get().send().await;

    for _ in 0..3 {
        world.advance(DAY * 29);
        assert!(used().await.is_ok());
    }
    world.advance(DAY * 30);
    assert_eq!(used().await.refusal(), (403, "key.refused".to_owned()));
}

async fn a_deactivated_accounts_keys_are_refused(world: World) {
    let ama = world.person("ama").await;
    let till = world.integration_of(&ama).await;

    world.deactivate(&ama).await;

    for key in [&ama.key, &till] {
        let refused = world.request("GET", "/time").key(key).send().await;
        assert_eq!((refused.status, refused.code()), (403, "key.refused"));
    }
}
