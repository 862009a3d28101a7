//! Passwords: forbidden passwords, hashes, and the limit of concurrent hashing.

use std::net::IpAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use boxoffice::kernel::auth::{HashRequester, PasswordCost, PasswordSettings, Passwords};
use boxoffice::kernel::settings::Settings;
use boxoffice::kernel::types::id::Id;
use boxoffice::kernel::worker_pool::{WorkerPool, WorkerPoolStatus};
use boxoffice::provisioning;
use boxoffice::server::RunningApp;
use boxoffice::state::App;
use boxoffice_http::error::{Code, Error, Result};
use boxoffice_http::log;
use boxoffice_http::traces::Tracer;
use boxoffice_openapi::Scope;
use futures::FutureExt;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{ANY_PORT, PASSWORD, Response, SecondServer, TestApp, User, rejection, test_on};

impl TestApp {
    async fn sign_up_with(&self, password: &str) -> Response {
        let body = json!({ "username": "kwame", "email": "kwame@example.com", "password": password });
        self.request("POST", "/accounts").json(&body).send().await
    }

    async fn change(&self, user: &User, change: Value) -> Response {
        self.put(&user.key, &format!("/accounts/{}", user.number), &change).await
    }

    async fn hash_of(&self, user: &User) -> String {
        let mut reader = self.state.db.read().await.unwrap();
        let find = reader.query("select password_hash from accounts where number = $1");
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

#[test_on(sqlite, postgres)]
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
        let by_command = provisioning::create_account(&app.state, "esi", "esi@example.com", common, Scope::Customer).await;
        assert!(by_command.unwrap_err().to_string().contains("most common"));
    }

    assert!(app.sign_in("ama", PASSWORD).await.is_ok(), "nothing was changed");
    let reset = app.submit_code(&reset, json!({ "code": code, "password": "a third horse" })).await;
    assert_eq!(reset.status, 200, "no rejection was an attempt at the code: {}", reset.body);
    assert_eq!(app.sign_up_with("password1 and more").await.status, 201);
}

#[test_on(sqlite, postgres)]
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

#[test_on(sqlite, postgres)]
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

#[test_on(sqlite, postgres)]
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

#[test_on(sqlite, postgres)]
async fn concurrent_logins_succeed_during_hash_upgrade(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let server = app.start_server_with_default_cost().await;

    let sessions = join_all((0..6).map(|_| app.sign_in_at(&server, PASSWORD))).await;

    assert!(sessions.iter().all(|session| session.status == 201), "{sessions:?}");
    assert!(app.hash_of(&ama).await.contains("m=19456"));
}

#[test_on(sqlite, postgres)]
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

    assert_eq!(rejection(&rejected), (503, "server.unavailable"));
    assert!(rejected.header("retry-after").parse::<u32>().is_ok(), "{:?}", rejected.headers);
    assert_eq!(rejection(&nobody), (404, "account.unknown"), "an unknown name costs no hash");
    assert_eq!(time.status, 200, "other requests don't wait");
    platform.stop().await.unwrap();
    assert!(app.sign_in("ama", PASSWORD).await.is_ok(), "and no other server has to");
}

/// Starts another server that can't compute any hash, so no request may wait for one.
async fn start_without_hashing(app: &TestApp) -> RunningApp {
    let mut state = App::open(&app.database_url, app.state.settings.clone(), log::silent(), Tracer::default()).await.unwrap();
    Arc::get_mut(&mut state).unwrap().passwords = Passwords::new(0, PasswordSettings::default());
    RunningApp::start(state, ANY_PORT).unwrap()
}

#[test_on(sqlite, postgres)]
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

#[test_on(sqlite, postgres)]
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

#[test_on(sqlite, postgres)]
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

fn cheap(concurrency: usize) -> Passwords {
    Passwords::new(concurrency, PasswordSettings { cost: PasswordCost::MINIMUM, ..PasswordSettings::default() })
}

/// The number of waiting hashes for each running one.
const WAITING: usize = 100;
/// The number of waiting and running hashes of one account.
const OF_ACCOUNT: usize = 8;
/// That of one address, if one hash runs at a time.
const OF_ADDRESS: usize = WAITING / 2;

async fn hash(passwords: &Passwords, account: Option<Id>, address: Option<IpAddr>) -> Result<String> {
    passwords.hash(HashRequester { account, address }, "correct horse".to_owned()).await
}

#[tokio::test]
async fn rejects_hashes_above_the_capacity() {
    let passwords = cheap(1);
    let hashes: Vec<_> = (0..=WAITING).map(|_| hash(&passwords, None, None).boxed()).collect();
    let mut hashes = join_all(hashes);
    // Each future takes its permit when it is first polled.
    assert!((&mut hashes).now_or_never().is_none());

    let late = hash(&passwords, None, None).await;

    assert!(matches!(late, Err(Error::Rejected(Code::SERVER_UNAVAILABLE, _))), "{late:?}");
    drop(hashes);
    assert!(hash(&passwords, None, None).await.is_ok(), "cancelled hashes release their permits");
}

#[tokio::test]
async fn pool_counts_running_and_waiting_work() {
    let pool = WorkerPool::new(1, 5, "full");
    let (release, released) = mpsc::channel::<()>();
    let mut running = pool.enter().unwrap().run(move || released.recv()).boxed();
    let mut waiting = pool.enter().unwrap().run(|| ()).boxed();
    assert!((&mut running).now_or_never().is_none() && (&mut waiting).now_or_never().is_none());

    assert_eq!(pool.status(), WorkerPoolStatus { running: 1, waiting: 1 });
    drop(release);
    assert!(running.await.is_ok() && waiting.await.is_ok());
    assert_eq!(pool.status(), WorkerPoolStatus { running: 0, waiting: 0 });
}

#[tokio::test]
async fn one_account_or_address_cannot_fill_the_pool() {
    let passwords = cheap(1);
    let address = |last| Some([127, 0, 0, last].into());
    let fill = || {
        let of_account = (0..OF_ACCOUNT).map(|_| hash(&passwords, Some(Id(1)), address(1)).boxed());
        let of_address = (OF_ACCOUNT..OF_ADDRESS).map(|_| hash(&passwords, None, address(1)).boxed());
        join_all(of_account.chain(of_address).collect::<Vec<_>>())
    };
    let mut hashes = fill();
    assert!((&mut hashes).now_or_never().is_none());

    let same_account = hash(&passwords, Some(Id(1)), address(2)).await;
    let same_address = hash(&passwords, Some(Id(2)), address(1)).await;
    let mut other = hash(&passwords, Some(Id(2)), address(2)).boxed();

    assert!(matches!(same_account, Err(Error::TooMany(_))), "{same_account:?}");
    assert!(matches!(same_address, Err(Error::TooMany(_))), "{same_address:?}");
    assert!((&mut other).now_or_never().is_none(), "it waits");
    drop(hashes);
    assert!(other.await.is_ok());
    assert!(fill().await.iter().all(Result::is_ok), "cancelled hashes release their shares");
}

#[tokio::test]
async fn default_cost_is_that_of_owasp_and_other_hashes_are_outdated() {
    let passwords = Passwords::new(1, PasswordSettings::default());
    let now = hash(&passwords, None, None).await.unwrap();
    assert!(now.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && !passwords.is_outdated(&now), "{now}");
    for (part, other) in [("m=19456", "m=65536"), ("t=2", "t=1"), ("p=1", "p=2"), ("argon2id", "argon2i"), ("v=19", "v=16")] {
        assert!(passwords.is_outdated(&now.replace(part, other)), "{other}");
    }
}

/// Each hash is computed in the memory of the one before it, which is larger or smaller.
#[tokio::test]
async fn verifies_hashes_of_any_cost() {
    let passwords = Passwords::new(1, PasswordSettings::default());
    let weak = hash(&cheap(1), None, None).await.unwrap();
    let own = hash(&passwords, None, None).await.unwrap();
    // By the reference implementation.
    let two_lanes = "$argon2id$v=19$m=64,t=2,p=2$MDEyMzQ1Njc4OWFiY2RlZg$ehqGRlXhNY90u1mXokuaGpor9OaG4WSZVb4jCfev4ys";
    let other_version = "$argon2i$v=16$m=32,t=3,p=1$MDEyMzQ1Njc4OWFiY2RlZg$qds621l8QEuKxHBEm0Cp2uUBAdMouTny";

    assert!(weak.contains("m=8,t=1,p=1"), "{weak}");
    for hash in [&weak, two_lanes, &own, other_version, &weak, &own] {
        let verify =
            async |password: &str| passwords.verify(HashRequester::default(), password.to_owned(), hash.to_owned()).await;
        assert!(verify("correct horse").await.unwrap() && !verify("wrong horse").await.unwrap(), "{hash}");
    }
    assert_eq!(passwords.kept_buffers(), 1, "hashes one after the other need the memory of one");
}

#[test]
fn common_passwords_are_lower_case_and_of_valid_length() {
    let list = include_str!("../../src/kernel/auth/common-passwords.txt");
    let lines: Vec<_> = list.lines().filter(|line| !line.starts_with("# ")).collect();
    assert!(lines.len() > 8_000 && lines.contains(&"password1"));
    for line in lines {
        assert!((8..=128).contains(&line.chars().count()) && line.to_lowercase() == line, "{line}");
    }
}
