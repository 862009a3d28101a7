//! Sessions: login, access, expiry and logout.

use boxoffice_client::Error;
use serde_json::json;

use crate::support::{DAY, PASSWORD, Rejection, TestApp, User, entries_of, id_of, rejection, test_on, types};

impl TestApp {
    /// Logs in.
    pub async fn sign_in(&self, identification: &str, password: &str) -> Result<types::Session, Error<types::Error>> {
        let session = self.public_client.session_create().body_map(|body| body.identification(identification).password(password));
        Ok(session.send().await?.into_inner())
    }

    async fn deactivate(&self, user: &User) {
        assert_eq!(self.toggle(&user.number).await.body["activated"], false);
    }
}

#[test_on(sqlite, postgres)]
async fn logs_in_by_username_or_email(app: TestApp) {
    let ama = app.sign_up("ama").await;

    for identification in ["ama", "AMA", " ama ", "ama@example.com", "Ama@Example.COM "] {
        let session = app.sign_in(identification, PASSWORD).await.unwrap();

        assert_eq!(*session.account.number, ama.number);
        let own = app.client(&session.key).account_get().number(ama.number.as_str()).send().await.unwrap();
        assert_eq!(own.username, "ama");
    }
}

#[test_on(sqlite, postgres)]
async fn new_session_is_returned_in_full(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let account = app.get(&ama.key, &format!("/accounts/{}", ama.number)).await.body;

    let body = json!({ "identification": "ama", "password": PASSWORD });
    let before = app.state.clock.now().format_minutes();
    let response = app.request("POST", "/sessions").json(&body).send().await;
    let after = app.state.clock.now().format_minutes();

    let session = &response.body;
    let uri = format!("/accounts/{}/sessions/{}", ama.number, session["id"]);
    assert_eq!((response.status, response.header("location")), (201, uri.as_str()));
    assert_eq!((&session["self"], &session["open"]), (&json!(uri), &json!(true)));
    assert!(session["id"].as_i64().unwrap() > 10_000_000_000_000);
    let started = session["started"].as_str().unwrap().replace(' ', "T");
    assert!((before..=after).contains(&started[..16].to_owned()), "{started}");
    assert_eq!(session["account"], account);
}

#[test_on(sqlite, postgres)]
async fn rejected_login_states_reason(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let rejection = async |identification, password| app.sign_in(identification, password).await.rejection();

    assert_eq!(rejection("kofi", PASSWORD).await, (404, "account.unknown".to_owned()));
    assert_eq!(rejection("ama%", PASSWORD).await, (404, "account.unknown".to_owned()));
    assert_eq!(rejection("ama", "a wrong one").await, (401, "session.wrong-password".to_owned()));
    assert_eq!(rejection("ama", "Correct Horse Battery").await, (401, "session.wrong-password".to_owned()));
    app.deactivate(&ama).await;
    assert_eq!(rejection("ama", "a wrong one").await, (401, "session.wrong-password".to_owned()));
    let deactivated = app.post(&app.public_key, "/sessions", json!({ "identification": "ama", "password": PASSWORD })).await;
    assert_eq!(crate::support::rejection(&deactivated), (403, "account.deactivated"));
    let text = "This account is deactivated.";
    assert_eq!((&deactivated.body["error"], &deactivated.body["message"]), (&json!(text), &json!(text)));
}

#[test_on(sqlite, postgres)]
async fn session_is_readable_with_its_key(app: TestApp) {
    app.sign_up("ama").await;
    let opened = app.sign_in("ama", PASSWORD).await.unwrap();

    let read = app.client(&opened.key).session_active_get().send().await.unwrap().into_inner();

    assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&opened).unwrap());
}

#[test_on(sqlite, postgres)]
async fn ended_session_is_rejected_and_others_stay(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let other = app.sign_in("ama", PASSWORD).await.unwrap();

    ama.client.session_active_delete().send().await.unwrap();

    assert_eq!(ama.client.session_active_get().send().await.rejection(), (403, "key.refused".to_owned()));
    assert_eq!(ama.client.session_active_delete().send().await.rejection(), (403, "key.refused".to_owned()));
    assert!(app.client(&other.key).session_active_get().send().await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn key_without_session_has_no_current_session(app: TestApp) {
    for key in [&app.public_key, &app.staff.key] {
        for method in ["GET", "DELETE"] {
            let response = app.request(method, "/sessions/active").key(key).send().await;

            assert_eq!(rejection(&response), (404, "resource.not-found"), "{method}");
        }
        assert_eq!(app.get(key, "/time").await.status, 200, "the key still works");
    }
}

#[test_on(sqlite, postgres)]
async fn session_expires_thirty_days_after_last_use(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let used = async || ama.client.session_active_get().send().await;

    for _ in 0..3 {
        app.advance_clock(DAY * 29);
        assert!(used().await.is_ok());
    }
    app.advance_clock(DAY * 30);
    assert_eq!(used().await.rejection(), (403, "key.refused".to_owned()));
}

#[test_on(sqlite, postgres)]
async fn keys_of_deactivated_account_are_rejected(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let integration = app.create_integration_key(&ama).await;

    app.deactivate(&ama).await;

    for key in [&ama.key, &integration] {
        assert_eq!(rejection(&app.get(key, "/time").await), (403, "key.refused"));
    }
}

#[test_on(sqlite, postgres)]
async fn lists_sessions_without_keys(app: TestApp) {
    let ama = app.sign_up("ama").await;
    app.sign_up("kofi").await;
    app.create_integration_key(&ama).await;
    let (second, third) = (app.sign_in("ama", PASSWORD).await.unwrap(), app.sign_in("ama", PASSWORD).await.unwrap());
    app.client(&second.key).session_active_delete().send().await.unwrap();
    let path = format!("/accounts/{}/sessions", ama.number);
    let list = |query: &str, key: &str| app.request("GET", &format!("{path}?{query}")).key(key).send();

    let page = list("", &ama.key).await;

    assert_eq!((page.status, &page.body["total"]), (200, &json!(3)));
    let sessions = entries_of(&page.body);
    assert_eq!(sessions.iter().map(|session| &session["open"]).collect::<Vec<_>>(), [&json!(true), &json!(false), &json!(true)]);
    let mut whole = serde_json::to_value(&third).unwrap();
    whole.as_object_mut().unwrap().remove("key");
    whole["lastUsed"] = json!(format!("{}+00:00", third.started.replace(' ', "T")));
    assert_eq!(sessions[2], whole, "the newest comes last");
    for session in sessions {
        let read = app.get(&ama.key, session["self"].as_str().unwrap()).await;
        assert_eq!((read.status, &read.body), (200, session));
        assert!(session.get("key").is_none());
    }
    assert_eq!(list("", &app.staff.key).await.body, page.body);
    let last = list("records=2&page=2", &ama.key).await;
    assert_eq!(last.body["entries"], json!([sessions[2]]));
}

#[test_on(sqlite, postgres)]
async fn session_is_open_until_it_expires(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let uri = ama.client.session_active_get().send().await.unwrap().self_.clone();

    app.advance_clock(DAY * 29);
    assert_eq!(app.read(&uri).await["open"], true);
    app.advance_clock(DAY);

    assert_eq!(app.read(&uri).await["open"], false);
    assert_eq!(rejection(&app.delete(&app.staff.key, &uri).await), (409, "session.ended"));
}

#[test_on(sqlite, postgres)]
async fn session_is_ended_by_owner_and_staff(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (second, third) = (app.sign_in("ama", PASSWORD).await.unwrap(), app.sign_in("ama", PASSWORD).await.unwrap());
    let end = |key: &str, uri: &str| app.request("DELETE", uri).key(key).send();

    for (key, session) in [(&ama.key, &second), (&app.staff.key, &third)] {
        let ended = end(key, &session.self_).await;

        assert_eq!((ended.status, ended.body), (204, serde_json::Value::Null));
        let rejected = app.client(&session.key).session_active_get().send().await;
        assert_eq!(rejected.rejection(), (403, "key.refused".to_owned()));
        assert_eq!(app.read(&session.self_).await["open"], false);
        assert_eq!(rejection(&end(key, &session.self_).await), (409, "session.ended"));
    }
    let own = ama.client.session_active_get().send().await.unwrap().self_.clone();
    assert_eq!(end(&ama.key, &own).await.status, 204, "the one whose key is used, too");
    assert_eq!(end(&ama.key, &own).await.code(), "key.refused");
}

#[test_on(sqlite, postgres)]
async fn unknown_session_is_not_found(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let kofis = kofi.client.session_active_get().send().await.unwrap().id;
    let integration = json!({ "name": "Kiosk", "role": "customer", "account": ama.number });
    let integration = app.post(&app.staff.key, "/integrations", &integration).await;
    let integration = id_of(integration.uri()).to_owned();
    let own = format!("/accounts/{}/sessions", ama.number);

    let none = ["17637000000001", "nothing", &integration, &kofis.to_string()].map(|id| format!("{own}/{id}"));
    let unknown = [format!("/accounts/ZZ-00000000/sessions/{kofis}")];
    for path in none.iter().chain(&unknown) {
        for (method, key) in [("GET", &ama.key), ("DELETE", &ama.key), ("DELETE", &app.staff.key)] {
            let response = app.request(method, path).key(key).send().await;
            assert_eq!(rejection(&response), (404, "resource.not-found"), "{method} {path}");
        }
    }
    assert_eq!(rejection(&app.get(&ama.key, "/accounts/ZZ-00000000/sessions").await), (404, "resource.not-found"));
    assert!(kofi.client.session_active_get().send().await.is_ok());
}
