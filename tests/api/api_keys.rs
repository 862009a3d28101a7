//! API keys: the time of the last use, and revocation on all servers.

use std::time::Duration;

use futures::future::join;
use serde_json::{Value, json};

use crate::support::{PASSWORD, Response, TestApp, rejection, test_on};

const HOUR: Duration = Duration::from_secs(60 * 60);

impl TestApp {
    async fn use_key(&self, key: &str) -> Response {
        self.get(key, "/time").await
    }

    async fn last_used(&self, uri: &str) -> Value {
        self.read(uri).await["lastUsed"].clone()
    }
}

#[test_on(sqlite, postgres)]
async fn integration_shows_last_use(app: TestApp) {
    let body = json!({ "name": "Kiosk", "role": "public" });
    let created = app.post(&app.staff.key, "/integrations", &body).await.body;
    let (uri, key) = (created["self"].as_str().unwrap(), created["key"].as_str().unwrap());
    assert_eq!((&created["lastUsed"], app.last_used(uri).await), (&Value::Null, Value::Null));

    app.use_key(key).await;
    let first = app.last_used(uri).await;
    app.advance_clock(HOUR - Duration::from_secs(60));
    app.use_key(key).await;
    let within_the_hour = app.last_used(uri).await;
    app.advance_clock(Duration::from_secs(120));
    app.use_key(key).await;
    let after_it = app.last_used(uri).await;

    let now = app.state.clock.now();
    assert_eq!(first, within_the_hour, "a request that reads doesn't write each time");
    assert!(first.as_str().unwrap() <= now.minus(HOUR).format_rfc3339().as_str(), "{first}");
    assert!(after_it.as_str().unwrap() > now.minus(HOUR).format_rfc3339().as_str(), "{after_it}");
}

#[test_on(sqlite, postgres)]
async fn session_shows_last_use(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let sessions = format!("/accounts/{}/sessions", ama.number);
    let entry = async || app.read(&sessions).await["entries"][0].clone();
    let opened = entry().await;

    app.advance_clock(HOUR * 2);
    app.use_key(&ama.key).await;

    let started = opened["started"].as_str().unwrap().replace(' ', "T");
    assert_eq!(opened["lastUsed"], format!("{started}+00:00"), "to sign in is to use it");
    let used = entry().await;
    assert!(used["lastUsed"].as_str() > opened["lastUsed"].as_str(), "{used}");
    assert_eq!(app.last_used(used["self"].as_str().unwrap()).await, used["lastUsed"]);
}

#[test_on(sqlite, postgres)]
async fn revoked_key_is_rejected_by_every_server(app: TestApp) {
    let second_server = app.start_second_server(app.state.settings.clone()).await;
    let status = async |key: &str| {
        let here = app.use_key(key).await.status;
        (here, app.request("GET", "/time").at(second_server.address).key(key).send().await.status)
    };
    let (ama, kofi, yaa) = (app.sign_up("ama").await, app.sign_up("kofi").await, app.sign_up("yaa").await);
    let integration = app.create_integration_key(&ama).await;
    let tills = app.read("/integrations").await["entries"][1]["self"].as_str().unwrap().to_owned();
    for key in [&ama.key, &kofi.key, &yaa.key, &integration] {
        assert_eq!(status(key).await, (200, 200));
    }

    // By logout, by a password change, by deactivation.
    ama.client.session_active_delete().send().await.unwrap();
    let new = json!({ "password": "an entirely new one" });
    app.put(&app.staff.key, &format!("/accounts/{}", kofi.number), &new).await;
    app.toggle(&yaa.number).await;
    app.delete(&app.staff.key, &tills).await;

    for key in [&ama.key, &kofi.key, &yaa.key, &integration] {
        assert_eq!(status(key).await, (403, 403));
    }
    second_server.stop().await;
}

#[test_on(two_servers)]
async fn key_revoked_by_lost_commit_is_rejected_by_both_servers(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    kofi.client.session_active_delete().send().await.unwrap();
    for _ in 0..2 {
        assert_eq!(app.use_key(&ama.key).await.status, 200);
    }
    // Simulates a failover to a standby that lacks the last change.
    app.execute_sql("update key_changes set count = count - 1").await;

    ama.client.session_active_delete().send().await.unwrap();

    for _ in 0..2 {
        assert_eq!(app.use_key(&ama.key).await.status, 403);
    }
}

#[test_on(sqlite, postgres)]
async fn stores_no_secret_in_plain_text(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let integration = app.create_integration_key(&ama).await;
    let (uri, code) = app.request_code("/resets", "ama@example.com", 1).await;
    let identifier = uri.strip_prefix("/resets/").unwrap();

    let keys: Vec<(String,)> = app.rows("select hash from api_keys").await;
    let codes: Vec<(String, String)> = app.rows("select hash, code_hash from codes").await;
    let kept = format!("{keys:?}{codes:?}");

    assert!(keys.len() >= 4 && codes.len() == 1);
    let is_hash = |kept: &str| kept.len() == 64 && kept.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(keys.iter().all(|(hash,)| is_hash(hash)) && is_hash(&codes[0].0) && is_hash(&codes[0].1), "{kept}");
    for secret in [&ama.key, &integration, &app.staff.key, &app.public_key, identifier] {
        assert!(!kept.contains(secret), "{secret}");
    }
    // The digits of a code may occur in a hash by chance.
    assert!(!codes[0].1.ends_with(&code), "{kept}");
}

/// Changes of credentials and of roles, and what can't be undone.
#[test_on(sqlite, postgres)]
async fn key_that_is_revoked_while_a_request_waits_is_rejected(app: TestApp) {
    app.stop_jobs().await;
    let (esi, event) = app.sign_up_host("esi", &[]).await;
    let yaw = app.sign_up("yaw").await;
    app.execute_sql("update accounts set role = 'administrator' where username = 'esi'").await;
    let account = format!("/accounts/{}", esi.number);
    let new = json!({ "username": "kwame", "email": "kwame@example.com", "password": "correct horse", "role": "administrator" });
    let administrators = format!("{}/administrators", event.host.uri);

    for (method, path, body) in [
        ("PUT", account.clone(), json!({ "password": "correct horse" })),
        ("POST", "/accounts".to_owned(), new),
        ("POST", "/integrations".to_owned(), json!({ "name": "Kiosk", "role": "customer" })),
        ("POST", format!("{account}/toggles"), Value::Null),
        ("POST", format!("{account}/deletions"), Value::Null),
        ("DELETE", account.clone(), Value::Null),
        ("POST", administrators, json!({ "account": yaw.number })),
        ("DELETE", event.uri.clone(), Value::Null),
        ("DELETE", event.host.uri.clone(), Value::Null),
    ] {
        let session = app.sign_in("esi", PASSWORD).await.unwrap();
        let mut revocation = app.state.db.begin().await.unwrap();
        let revoke = "update api_keys set ended = 1 where kind = 'session' and ended is null
            and account_id = (select id from accounts where username = 'esi')";
        revocation.query(revoke).execute().await.unwrap();

        let request = app.request(method, &path).key(&session.key);
        let request = if body.is_null() { request } else { request.json(&body) };
        let (response, ()) = join(request.send(), app.commit_when_awaited(revocation, 1)).await;

        assert_eq!(rejection(&response), (403, "key.refused"), "{method} {path}: {}", response.body);
    }
    assert!(app.sign_in("esi", PASSWORD).await.is_ok());
    assert_eq!(app.get(&app.staff.key, &event.uri).await.status, 200);
}

/// PostgreSQL would keep the locks of a server whose machine was lost for two hours.
#[test_on(sqlite, postgres)]
async fn connections_of_a_lost_server_end(app: TestApp) {
    let mut tx = app.state.db.begin().await.unwrap();
    if !tx.is_postgres() {
        return;
    }
    let timeout = "select current_setting('idle_in_transaction_session_timeout')";
    assert_eq!(tx.query(timeout).scalar::<String>().await.unwrap(), "8s");
}
