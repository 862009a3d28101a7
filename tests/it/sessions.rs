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
    an_account_lists_its_sessions_without_their_keys,
    a_session_is_open_until_it_expires,
    a_session_is_ended_by_its_account_and_by_staff,
    sessions_are_their_accounts_and_the_staffs,
    what_is_no_session_of_the_account_is_not_found,
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
        assert_eq!(self.toggle(&person.number).await.body["activated"], false);
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
    let uri = format!("/accounts/{}/sessions/{}", ama.number, session["id"]);
    assert_eq!((answer.status, answer.header("location")), (201, uri.as_str()));
    assert_eq!((&session["self"], &session["open"]), (&json!(uri), &json!(true)));
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

async fn an_account_lists_its_sessions_without_their_keys(world: World) {
    let ama = world.person("ama").await;
    world.person("kofi").await;
    world.integration_of(&ama).await;
    let (second, third) = (world.sign_in("ama", PASSWORD).await.unwrap(), world.sign_in("ama", PASSWORD).await.unwrap());
    world.client(&second.key).session_active_delete().send().await.unwrap();
    let path = format!("/accounts/{}/sessions", ama.number);
    let list = |query: &str, key: &str| world.request("GET", &format!("{path}?{query}")).key(key).send();

    let page = list("", &ama.key).await;

    assert_eq!((page.status, &page.body["total"]), (200, &json!(3)));
    let sessions = page.body["entries"].as_array().unwrap();
    assert_eq!(sessions.iter().map(|session| &session["open"]).collect::<Vec<_>>(), [&json!(true), &json!(false), &json!(true)]);
    let mut whole = serde_json::to_value(&third).unwrap();
    whole.as_object_mut().unwrap().remove("key");
    whole["lastUsed"] = json!(format!("{}+00:00", third.started.replace(' ', "T")));
    assert_eq!(sessions[2], whole, "the newest comes last");
    for session in sessions {
        let read = world.request("GET", session["self"].as_str().unwrap()).key(&ama.key).send().await;
        assert_eq!((read.status, &read.body), (200, session));
        assert!(session.get("key").is_none());
    }
    assert_eq!(list("", &world.staff.key).await.body, page.body);
    let last = list("records=2&page=2", &ama.key).await;
    assert_eq!(last.body["entries"], json!([sessions[2]]));
    let past = list("records=2&page=3", &ama.key).await;
    assert_eq!((past.status, past.code()), (404, "page.past-end"));
}

async fn a_session_is_open_until_it_expires(world: World) {
    let ama = world.person("ama").await;
    let uri = ama.client.session_active_get().send().await.unwrap().self_.clone();

    world.advance(DAY * 29);
    assert_eq!(world.read(&uri).await["open"], true);
    world.advance(DAY);

    assert_eq!(world.read(&uri).await["open"], false);
    let ended = world.request("DELETE", &uri).key(&world.staff.key).send().await;
    assert_eq!((ended.status, ended.code()), (409, "session.ended"));
}

async fn a_session_is_ended_by_its_account_and_by_staff(world: World) {
    let ama = world.person("ama").await;
    let (second, third) = (world.sign_in("ama", PASSWORD).await.unwrap(), world.sign_in("ama", PASSWORD).await.unwrap());
    let end = |key: &str, uri: &str| world.request("DELETE", uri).key(key).send();

    for (key, session) in [(&ama.key, &second), (&world.staff.key, &third)] {
        let ended = end(key, &session.self_).await;

        assert_eq!((ended.status, ended.body), (204, serde_json::Value::Null));
        let refused = world.client(&session.key).session_active_get().send().await;
        assert_eq!(refused.refusal(), (403, "key.refused".to_owned()));
        assert_eq!(world.read(&session.self_).await["open"], false);
        let again = end(key, &session.self_).await;
        assert_eq!((again.status, again.code()), (409, "session.ended"));
    }
    let own = ama.client.session_active_get().send().await.unwrap().self_.clone();
    assert_eq!(end(&ama.key, &own).await.status, 204, "the one whose key is used, too");
    assert_eq!(end(&ama.key, &own).await.code(), "key.refused");
}

async fn sessions_are_their_accounts_and_the_staffs(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);
    let session = ama.client.session_active_get().send().await.unwrap().self_.clone();
    let list = format!("/accounts/{}/sessions", ama.number);

    for (method, path) in [("GET", &list), ("GET", &session), ("DELETE", &session)] {
        for (key, code) in [(&kofi.key, "resource.not-yours"), (&world.public_key, "key.refused")] {
            let refused = world.request(method, path).key(key).send().await;
            assert_eq!((refused.status, refused.code()), (403, code), "{method} {path}");
        }
    }
    assert!(ama.client.session_active_get().send().await.is_ok());
}

async fn what_is_no_session_of_the_account_is_not_found(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);
    let kofis = kofi.client.session_active_get().send().await.unwrap().id;
    let till = json!({ "name": "Till", "role": "customer", "account": ama.number });
    let till = world.request("POST", "/integrations").key(&world.staff.key).json(&till).send().await;
    let till = till.body["self"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let own = format!("/accounts/{}/sessions", ama.number);

    let none = ["17637000000001", "nothing", &till, &kofis.to_string()].map(|id| format!("{own}/{id}"));
    let unknown = [format!("/accounts/ZZ-00000000/sessions/{kofis}")];
    for path in none.iter().chain(&unknown) {
        for (method, key) in [("GET", &ama.key), ("DELETE", &ama.key), ("DELETE", &world.staff.key)] {
            let answer = world.request(method, path).key(key).send().await;
            assert_eq!((answer.status, answer.code()), (404, "resource.not-found"), "{method} {path}");
        }
    }
    let list = world.request("GET", "/accounts/ZZ-00000000/sessions").key(&ama.key).send().await;
    assert_eq!((list.status, list.code()), (404, "resource.not-found"));
    assert!(kofi.client.session_active_get().send().await.is_ok());
}
