//! Passwords: forbidden passwords, hashes, and the limit of concurrent hashing.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::PasswordHasher;
use argon2::{Algorithm, Argon2, Params, Version};
use boxoffice::bootstrap;
use boxoffice::kernel::auth::Passwords;
use boxoffice::server::RunningApp;
use boxoffice::state::App;
use boxoffice_http::log;
use boxoffice_openapi::Scope;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::on_both_databases;
use crate::support::{ANY_PORT, PASSWORD, Response, TestApp, User, rejection};

on_both_databases![
    rejects_common_passwords,
    rejects_own_names_as_password,
    rejected_password_counts_as_reset_attempt,
    outdated_hash_is_upgraded_at_login,
    concurrent_logins_succeed_during_hash_upgrade,
    overloaded_hashing_returns_unavailable,
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

    /// Stores this user's password with the parameters of an earlier version.
    async fn store_weak_hash(&self, user: &User) -> String {
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8, 1, 1, None).unwrap());
        let hash = argon2.hash_password(PASSWORD.as_bytes()).unwrap().to_string();
        let mut tx = self.state.db.begin().await.unwrap();
        let update = tx.query("update accounts set password_hash = $1 where number = $2");
        assert_eq!(update.bind(hash.clone()).bind(user.number.clone()).execute().await.unwrap(), 1);
        tx.commit().await.unwrap();
        hash
    }
}

fn assert_refused(response: &Response, detail: &str) {
    assert_eq!((response.status, response.invalid_arguments()), (400, vec!["password".to_owned()]), "{}", response.body);
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
        assert_eq!((rejected.status, rejected.invalid_arguments()), (400, vec!["password".to_owned()]));
    }

    let changed = app.submit_code(&reset, json!({ "code": code, "password": "a third horse" })).await;
    assert_eq!(changed.status, 200);
    assert!(app.sign_in(&ama.username, "a third horse").await.is_ok());
    // The response reveals that the digits are right.
    let (reset, code) = app.request_code("/resets", "ama.mensah@example.com", 2).await;
    for status in [400, 400, 400, 400, 400, 409] {
        let rejected = app.submit_code(&reset, json!({ "code": code, "password": "ama.mensah" })).await;
        assert_eq!(rejected.status, status);
    }
}

async fn outdated_hash_is_upgraded_at_login(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let weak = app.store_weak_hash(&ama).await;

    assert!(app.sign_in("ama", "a wrong one").await.is_err());
    assert_eq!(app.hash_of(&ama).await, weak, "the password was wrong");
    let session = app.sign_in("ama", PASSWORD).await.unwrap();

    let strong = app.hash_of(&ama).await;
    assert!(strong.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{strong}");
    assert!(app.client(&session.key).session_active_get().send().await.is_ok());
    assert!(app.client(&ama.key).session_active_get().send().await.is_ok(), "the password is the same");
    assert!(app.sign_in("ama", PASSWORD).await.is_ok());
    assert_eq!(app.hash_of(&ama).await, strong, "once is enough");
}

async fn concurrent_logins_succeed_during_hash_upgrade(app: TestApp) {
    let ama = app.sign_up("ama").await;
    app.store_weak_hash(&ama).await;

    let sessions = join_all((0..6).map(|_| app.sign_in("ama", PASSWORD))).await;

    assert!(sessions.iter().all(Result::is_ok), "{sessions:?}");
    assert!(app.hash_of(&ama).await.contains("m=19456"));
}

async fn overloaded_hashing_returns_unavailable(app: TestApp) {
    app.sign_up("ama").await;
    let mut state = App::open(&app.database_url, app.state.settings.clone(), log::silent()).await.unwrap();
    // No hash can be computed, so no request may wait.
    Arc::get_mut(&mut state).unwrap().passwords = Passwords::new(0);
    let platform = RunningApp::start(state, ANY_PORT).unwrap();
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
