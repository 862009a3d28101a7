//! Passwords: forbidden passwords, hashes, and the limit of concurrent hashing.

use std::sync::Arc;
use std::time::Duration;

use boxoffice::bootstrap;
use boxoffice::config::Settings;
use boxoffice::kernel::auth::{PasswordSettings, Passwords};
use boxoffice::server::RunningApp;
use boxoffice::state::App;
use boxoffice_http::log;
use boxoffice_openapi::Scope;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{ANY_PORT, PASSWORD, Response, SecondServer, TestApp, User, rejection};

on_both_databases![
    rejects_common_passwords,
    rejects_own_names_as_password,
    rejects_password_together_with_other_fields,
    rejected_password_counts_as_reset_attempt,
    outdated_hash_is_upgraded_at_login,
    concurrent_logins_succeed_during_hash_upgrade,
    overloaded_hashing_returns_unavailable,
    rejected_change_is_not_hashed,
    common_passwords_are_configurable,
];

impl TestApp {
    async fn sign_up_with(&self, password: &str) -> Response {
        let body = json!({ "username": "kwame", "email": "kwame@example.com", "password": password });
        self.request("POST", "/accounts").json(&body).send().await
    }

    async fn change(&self, user: &User, change: Value) -> Response {
        self.request("PUT", &format!("/accounts/{}", user.number)).key(&user.key).json(&change).send().await
    }

    async fn hash_of(&self, user: &User) -> String {
        let mut tx = self.state.db.read().await.unwrap();
        let find = tx.query("select password_hash from accounts where number = $1");
        find.bind(user.number.clone()).scalar().await.unwrap()
    }

    /// Starts a second server with the default cost of hashes, which is higher than that of the test's own server.
    async fn start_server_with_default_cost(&self) -> SecondServer {
        let settings = Settings { passwords: PasswordSettings::default(), ..self.state.settings.clone() };
        self.start_second_server(settings).await
    }

    async fn sign_in_at(&self, server: &SecondServer, password: &str) -> Response {
        let body = json!({ "identification": "ama", "password": password });
        self.request("POST", "/sessions").at(server.address).json(&body).send().await
    }
}

fn assert_refused(response: &Response, detail: &str) {
    assert_eq!(response.invalid_arguments(), ["password"], "{}", response.body);
    assert_eq!(response.body["fields"][0]["detail"], detail);
}

async fn rejects_common_passwords(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (reset, code) = app.request_code("/resets", "ama@example.com", 1).await;

    for common in ["password1", "PassWord1", "123456789", "Qwertyuiop", "ILOVEYOU"] {
        let rejections = [
            app.sign_up_with(common).await,
            app.change(&ama, json!({ "password": common })).await,
            app.submit_code(&reset, json!({ "code": code, "password": common })).await,
        ];
        for rejected in &rejections {
            assert_refused(rejected, "is among the most common passwords: choose another one");
        }
        let by_command = bootstrap::create_account(&app.state, "esi", "esi@example.com", common, Scope::Customer).await;
        assert!(by_command.unwrap_err().to_string().contains("most common"));
    }

    assert!(app.sign_in("ama", PASSWORD).await.is_ok(), "nothing was changed");
    assert_eq!(app.sign_up_with("password1 and more").await.status, 201);
}

async fn rejects_own_names_as_password(app: TestApp) {
    let ama = app.sign_up("ama.mensah").await;
    let own = "must not be the account's own username or e-mail address: choose another one";

    assert_refused(&app.sign_up_with("Kwame@Example.com").await, own);
    for password in ["AMA.mensah", "ama.mensah@example.com"] {
        assert_refused(&app.change(&ama, json!({ "password": password })).await, own);
    }
    let both = json!({ "username": "Ama.Owusu", "password": "ama.OWUSU" });
    assert_refused(&app.change(&ama, both).await, own);
    let renamed = json!({ "username": "ama.owusu", "password": "ama.mensah" });
    assert_eq!(app.change(&ama, renamed).await.status, 200, "it is her name no more");
}

async fn rejected_password_counts_as_reset_attempt(app: TestApp) {
    let ama = app.sign_up("ama.mensah").await;
    let (reset, code) = app.request_code("/resets", "ama.mensah@example.com", 1).await;

    for _ in 0..4 {
        let rejected = app.submit_code(&reset, json!({ "code": code, "password": "ama.mensah" })).await;
        assert_eq!(rejected.invalid_arguments(), ["password"]);
    }

    assert_eq!(app.submit_code(&reset, json!({ "code": code, "password": "a third horse" })).await.status, 200);
    assert!(app.sign_in(&ama.username, "a third horse").await.is_ok());
    // The response reveals that the digits are right.
    // The second mail reports the change.
    let (reset, code) = app.request_code("/resets", "ama.mensah@example.com", 3).await;
    for status in [400, 400, 400, 400, 400, 409] {
        assert_eq!(app.submit_code(&reset, json!({ "code": code, "password": "ama.mensah" })).await.status, status);
    }
}

async fn outdated_hash_is_upgraded_at_login(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let server = app.start_server_with_default_cost().await;
    let weak = app.hash_of(&ama).await;

    assert_eq!(app.sign_in_at(&server, "a wrong one").await.status, 401);
    assert_eq!(app.hash_of(&ama).await, weak, "the password was wrong");
    let session = app.sign_in_at(&server, PASSWORD).await;

    let strong = app.hash_of(&ama).await;
    assert!(weak.contains("$m=8,t=1,p=1$") && strong.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{weak} {strong}");
    assert!(app.client(session.body["key"].as_str().unwrap()).session_active_get().send().await.is_ok());
    assert!(app.client(&ama.key).session_active_get().send().await.is_ok(), "the password is the same");
    assert_eq!(app.sign_in_at(&server, PASSWORD).await.status, 201);
    assert_eq!(app.hash_of(&ama).await, strong, "once is enough");
}

async fn concurrent_logins_succeed_during_hash_upgrade(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let server = app.start_server_with_default_cost().await;

    let sessions = join_all((0..6).map(|_| app.sign_in_at(&server, PASSWORD))).await;

    assert!(sessions.iter().all(|session| session.status == 201), "{sessions:?}");
    assert!(app.hash_of(&ama).await.contains("m=19456"));
}

async fn overloaded_hashing_returns_unavailable(app: TestApp) {
    app.sign_up("ama").await;
    let platform = start_without_hashing(&app).await;
    let sign_in = async |name: &str| {
        let body = json!({ "identification": name, "password": PASSWORD });
        let response = app.request("POST", "/sessions").at(platform.address()).json(&body).send();
        // A request that is queued would wait forever.
        timeout(Duration::from_secs(30), response).await.expect("an answer")
    };

    let rejected = sign_in("ama").await;
    let nobody = sign_in("nobody").await;
    let time = app.request("GET", "/time").at(platform.address()).send().await;

    assert_eq!((rejected.status, rejected.code()), (503, "server.unavailable"));
    assert!(rejected.header("retry-after").parse::<u32>().is_ok(), "{:?}", rejected.headers);
    assert_eq!(rejection(&nobody), (503, "server.unavailable"), "an unknown name costs the same time");
    assert_eq!(time.status, 200, "other requests don't wait");
    platform.stop().await.unwrap();
    assert!(app.sign_in("ama", PASSWORD).await.is_ok(), "and no other server has to");
}

/// Starts another server that can't compute any hash, so no request may wait for one.
async fn start_without_hashing(app: &TestApp) -> RunningApp {
    let mut state = App::open(&app.database_url, app.state.settings.clone(), log::silent()).await.unwrap();
    Arc::get_mut(&mut state).unwrap().passwords = Passwords::new(0, PasswordSettings::default());
    RunningApp::start(state, ANY_PORT).unwrap()
}

async fn rejected_change_is_not_hashed(app: TestApp) {
    let ama = app.sign_up("ama").await;
    app.sign_up("kofi").await;
    let platform = start_without_hashing(&app).await;
    let path = format!("/accounts/{}", ama.number);
    let change = |body: Value| app.request("PUT", &path).at(platform.address()).key(&ama.key).json(&body);
    let sign_up = |body: Value| app.request("POST", "/accounts").at(platform.address()).json(&body);

    for (request, rejected) in [
        (change(json!({ "password": "another horse", "username": "kofi" })), (409, "account.taken")),
        (change(json!({ "password": "another horse", "email": "kofi@example.com" })), (409, "account.taken")),
        (change(json!({ "password": "password1" })), (400, "arguments.invalid")),
        (change(json!({ "password": "another horse" })).header("If-Match", "\"other\""), (412, "resource.changed")),
        (change(json!({ "password": "another horse" })), (503, "server.unavailable")),
        (sign_up(json!({ "username": "kofi", "email": "k@example.com", "password": PASSWORD })), (409, "account.taken")),
        (sign_up(json!({ "username": "esi", "email": "esi@example.com", "password": PASSWORD })), (503, "server.unavailable")),
    ] {
        assert_eq!(rejection(&request.send().await), rejected);
    }
    platform.stop().await.unwrap();
    assert!(app.sign_in("ama", PASSWORD).await.is_ok(), "nothing was changed");
}

async fn common_passwords_are_configurable(app: TestApp) {
    let passwords = PasswordSettings { allow_common: true, ..app.state.settings.passwords };
    let server = app.start_second_server(Settings { passwords, ..app.state.settings.clone() }).await;
    let sign_up = async |username: &str, password: &str| {
        let body = json!({ "username": username, "email": format!("{username}@example.com"), "password": password });
        app.request("POST", "/accounts").at(server.address).json(&body).send().await
    };

    assert_eq!(sign_up("ama", "password1").await.status, 201);
    assert_eq!(sign_up("ama.mensah", "ama.mensah").await.invalid_arguments(), ["password"], "own names are never allowed");
}

async fn rejects_password_together_with_other_fields(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let change = json!({ "password": "password1", "dateOfBirth": "2999-01-01" });
    let mut new = change.clone();
    (new["username"], new["email"]) = (json!("kwame"), json!("kwame@example.com"));

    let responses = [app.change(&ama, change).await, app.request("POST", "/accounts").json(&new).send().await];

    assert_eq!(
        responses.map(|response| response.invalid_arguments()),
        [["password", "dateOfBirth"], ["password", "dateOfBirth"]]
    );
}
