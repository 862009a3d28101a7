//! Rate limits.

use std::net::SocketAddr;

use boxoffice::kernel::settings::{LimitSettings, Settings};
use boxoffice_http::client_ip::TrustedProxies;
use boxoffice_openapi::{Scope, counted};
use serde_json::{Value, json};

use super::attempts::{MINUTE, reach_limit};
use crate::support::{Operation, PASSWORD, Response, TestApp, operations, rejection, section, test_on};
use crate::tokens::{global_token, redeemer_key};

fn limited(app: &TestApp, limits: LimitSettings) -> Settings {
    Settings { limits, ..app.state.settings.clone() }
}

/// Limits of one request a minute, so that no quota is restored during a test.
fn one_a_minute() -> LimitSettings {
    LimitSettings { guesses: 1, keys: 1, ..LimitSettings::default() }
}

/// A limit for guesses, and none for keys.
fn credential_limit(guesses: u32) -> LimitSettings {
    LimitSettings { guesses, ..LimitSettings::default() }
}

fn assert_refused(response: &Response, name: &str, limit: u32, about: &str) {
    assert_eq!(rejection(response), (429, "requests.too-many"), "{about}: {}", response.body);
    let wait: u64 = response.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{about}: {wait}");
    let wait = counted(wait, "second", "seconds");
    assert_eq!(response.body["error"], format!("Too many requests. Try again in {wait}."), "{about}");
    assert_eq!(response.header("ratelimit-policy"), format!("\"{name}\";q={limit};w=60"), "{about}");
    assert!(response.header("ratelimit").starts_with(&format!("\"{name}\";r=0;t=")), "{about}");
}

#[test_on(sqlite, postgres)]
async fn limits_requests_without_valid_key_by_address(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let server = app.start_second_server(limited(&app, one_a_minute())).await;
    let with_unknown_key = || app.request("GET", "/events").at(server.address).key("unknown").send();

    // Ten times as many as with a key, and perhaps some that are restored meanwhile.
    let mut responses = vec![with_unknown_key().await];
    while responses.last().unwrap().status != 429 && responses.len() < 100 {
        responses.push(with_unknown_key().await);
    }

    let (limited, refused) = responses.split_last().unwrap();
    assert!(refused.len() >= 10 && refused.iter().all(|response| response.code() == "key.refused"), "{}", refused.len());
    assert_refused(limited, "client", 10, "an unknown key");
    assert_eq!(app.request("GET", "/events").at(server.address).key(&ama.key).send().await.status, 200, "a valid key");
}

#[test_on(sqlite, postgres)]
async fn every_operation_with_key_is_limited(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let redeemer = redeemer_key(&app, &global_token(&event).await).await;
    let any_guesses = LimitSettings { guesses: 0, ..one_a_minute() };
    let key = |operation: &Operation| match operation.scopes.contains(&Scope::Administrator) {
        true => app.staff.key.clone(),
        false => redeemer.clone(),
    };
    let operations: Vec<_> = operations().iter().filter(|operation| operation.needs_key).collect();

    // Requests to all operations may take longer than the minute in which a quota is restored.
    for operations in operations.chunks(20) {
        let server = app.start_second_server(limited(&app, any_guesses.clone())).await;
        for key in [&app.staff.key, &redeemer] {
            app.request("GET", "/events").at(server.address).key(key).send().await;
        }
        for operation in operations {
            let response = operation.send(&app, |request| request.at(server.address).key(&key(operation))).await;

            assert_refused(&response, "key", 1, &operation.id);
        }
        server.stop().await;
    }
}

#[test_on(sqlite, postgres)]
async fn counts_each_key_separately(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let server = app.start_second_server(limited(&app, LimitSettings { keys: 2, ..one_a_minute() })).await;
    let ask = async |key: &str| app.request("GET", "/time").at(server.address).key(key).send().await;

    let (first, second, third) = (ask(&ama.key).await, ask(&ama.key).await, ask(&ama.key).await);
    let other = ask(&kofi.key).await;
    let unknown = ask("abcdefghijklmnopqrstuvwxyz012345").await;

    assert_eq!([first.status, second.status, third.status, other.status, unknown.status], [200, 200, 429, 200, 403]);
    assert_eq!(first.header("ratelimit-policy"), "\"key\";q=2;w=60");
    assert!(first.header("ratelimit").starts_with("\"key\";r=1;t="), "{}", first.header("ratelimit"));
    assert!(second.header("ratelimit").starts_with("\"key\";r=0;t="), "{}", second.header("ratelimit"));
    assert_eq!((second.header("retry-after"), unknown.header("ratelimit")), ("", ""));
}

/// All users of an application share its key, and none of them can use up the limit of the others.
#[test_on(sqlite, postgres)]
async fn counts_public_key_by_address(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let limits = LimitSettings { trusted_proxies: "127.0.0.0/8".parse().unwrap(), guesses: 0, ..one_a_minute() };
    let server = app.start_second_server(limited(&app, limits)).await;
    let ask = async |key: &str, from: &str| {
        app.request("GET", "/time").at(server.address).key(key).header("X-Forwarded-For", from).send().await
    };

    for (key, from, status) in [
        (&app.public_key, "198.51.100.7", 200),
        (&app.public_key, "198.51.100.7", 429),
        (&app.public_key, "198.51.100.8", 200),
        (&app.public_key, "2001:db8:1:2::1", 200),
        (&app.public_key, "2001:db8:1:2::2", 429),
        (&ama.key, "198.51.100.7", 200),
        (&ama.key, "198.51.100.8", 429),
    ] {
        let response = ask(key, from).await;
        assert_eq!(response.status, status, "{from}: {}", response.body);
    }
}

#[test_on(sqlite, postgres)]
async fn limited_client_receives_retry_after(app: TestApp) {
    let server = app.start_second_server(limited(&app, one_a_minute())).await;
    let ask = async || app.request("GET", "/time").at(server.address).send().await;
    ask().await;

    let rejected = ask().await;

    assert_refused(&rejected, "key", 1, "the second");
    assert!(rejected.header("access-control-expose-headers").contains("ratelimit, ratelimit-policy, retry-after"));
    let outdated = app.request("GET", "/time").at(server.address).version(None).send().await;
    let keyless = app.request("GET", "/time").at(server.address).no_key().send().await;
    let wrong = app.request("GET", "/regions?page=x").at(server.address).send().await;
    assert_eq!([outdated.status, keyless.status, wrong.status], [412, 401, 429], "the order of checks");
}

/// Sends a guess with this body, optionally with an address from a trusted proxy.
async fn try_credentials(app: &TestApp, server: SocketAddr, path: &str, body: Value, from: Option<&str>) -> Response {
    let request = app.request("POST", path).at(server).json(&body);
    let request = match from {
        Some(from) => request.header("X-Forwarded-For", from),
        None => request,
    };
    request.send().await
}

#[test_on(sqlite, postgres)]
async fn counts_credential_attempts_by_account(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let server = app.start_second_server(limited(&app, credential_limit(2))).await;
    let sign_in = async |name: &str, password: &str| {
        try_credentials(&app, server.address, "/sessions", json!({ "identification": name, "password": password }), None).await
    };

    let first = sign_in(&ama.username, "a wrong password").await;
    let second = sign_in(&ama.username.to_uppercase(), "another wrong one").await;
    let third = sign_in(&format!(" {} ", ama.username), PASSWORD).await;
    let nobody = sign_in("nobody", PASSWORD).await;
    let lookup = try_credentials(&app, server.address, "/lookups", json!({ "identification": ama.username }), None).await;

    assert_eq!((first.status, second.status), (401, 401));
    assert!(first.header("ratelimit").starts_with("\"guesses\";r=1;t="), "{}", first.header("ratelimit"));
    assert_refused(&third, "guesses", 2, "the right password, too");
    assert_eq!(nobody.status, 404);
    assert_eq!(lookup.status, 429, "all guesses about one name count together");
}

#[test_on(sqlite, postgres)]
async fn counts_credential_attempts_by_address(app: TestApp) {
    let trusted_proxies: TrustedProxies = "127.0.0.0/8".parse().unwrap();
    let body = || json!({ "email": "nobody@example.com" });
    let believing = LimitSettings { trusted_proxies, ..credential_limit(1) };
    let believing = app.start_second_server(limited(&app, believing)).await;
    let wary = app.start_second_server(limited(&app, credential_limit(1))).await;

    for (from, status) in [
        ("198.51.100.7", 404),
        ("198.51.100.7", 429),
        ("6.6.6.6, 198.51.100.7", 429),
        ("198.51.100.8", 404),
        ("2001:db8:1:2::1", 404),
        ("2001:db8:1:2:ffff::9", 429),
        ("2001:db8:1:3::1", 404),
    ] {
        let response = try_credentials(&app, believing.address, "/resets", body(), Some(from)).await;
        assert_eq!(response.status, status, "{from}: {}", response.body);
    }
    let first = try_credentials(&app, wary.address, "/resets", body(), Some("198.51.100.7")).await;
    let second = try_credentials(&app, wary.address, "/resets", body(), Some("198.51.100.8")).await;
    assert_eq!((first.status, second.status), (404, 429), "a stranger is not believed");
}

#[test_on(sqlite, postgres)]
async fn counts_invalid_credential_attempts(app: TestApp) {
    let server = app.start_second_server(limited(&app, credential_limit(1))).await;

    for (path, body) in [
        ("/sessions", json!({ "identification": "ama" })),
        ("/sessions", json!({ "identification": "ama", "password": "x", "x": 1 })),
        ("/sessions", json!({ "identification": 5, "password": "x" })),
        ("/lookups", json!({})),
    ] {
        let response = try_credentials(&app, server.address, path, body.clone(), None).await;
        let is_first_about_it = !body.as_object().unwrap().contains_key("x") && path == "/sessions";
        assert_eq!(response.status, if is_first_about_it { 400 } else { 429 }, "{body}: {}", response.body);
    }
}

/// Not every parser reads a number that is too large for 64 bits.
#[test_on(sqlite, postgres)]
async fn counts_credential_attempts_with_unusual_numbers(app: TestApp) {
    app.sign_up("ama").await;
    let server = app.start_second_server(limited(&app, credential_limit(1))).await;
    let sign_in = async |other: &str| {
        let body = format!(r#"{{"identification": "ama", "password": "a wrong password", "other": {other}}}"#);
        let request = app.request("POST", "/sessions").at(server.address).header("Content-Type", "application/json");
        request.body(body).send().await
    };

    assert_eq!(sign_in("1").await.status, 401);
    for number in ["1e999", "-1e999", "[1e999]"] {
        assert_refused(&sign_in(number).await, "guesses", 1, number);
    }
}

/// Account enumeration, and one password tried with many names.
#[test_on(sqlite, postgres)]
async fn counts_credential_attempts_of_all_accounts_together(app: TestApp) {
    let trusted_proxies: TrustedProxies = "127.0.0.0/8".parse().unwrap();
    let server = app.start_second_server(limited(&app, LimitSettings { trusted_proxies, ..credential_limit(2) })).await;
    let look_up = async |name: &str, from: &str| {
        try_credentials(&app, server.address, "/lookups", json!({ "identification": name }), Some(from)).await
    };
    let sign_in = async |name: &str, from: &str| {
        let body = json!({ "identification": name, "password": PASSWORD });
        try_credentials(&app, server.address, "/sessions", body, Some(from)).await
    };
    let limited = reach_limit(
        (20, MINUTE),
        |response| response.status != 429,
        async |round| {
            vec![
                look_up(&format!("looked-up{round}"), "198.51.100.7").await,
                sign_in(&format!("signed-in{round}"), "198.51.100.7").await,
            ]
        },
    )
    .await;
    let elsewhere = look_up("elsewhere", "198.51.100.8").await;

    assert_refused(&limited[0], "address", 20, "whatever the name");
    assert_refused(&limited[1], "address", 20, "all that guesses counts together");
    assert_eq!(elsewhere.status, 200);
    assert!(elsewhere.header("ratelimit").starts_with("\"guesses\";r=1;t="), "{}", elsewhere.header("ratelimit"));
    // An attempt that is refused for the address counts for the name, too.
    for _ in 0..2 {
        look_up("three times", "198.51.100.7").await;
    }
    let third = look_up("three times", "198.51.100.7").await;
    assert_refused(&third, "guesses", 2, "its wait is the longest");
}

#[test_on(sqlite, postgres)]
async fn credential_attempts_count_for_key_limit(app: TestApp) {
    let server = app.start_second_server(limited(&app, LimitSettings { keys: 3, ..credential_limit(100) })).await;
    let look_up =
        async |name: &str| try_credentials(&app, server.address, "/lookups", json!({ "identification": name }), None).await;

    let first = look_up("person1").await;
    let time = app.request("GET", "/time").at(server.address).send().await;
    let third = look_up("person2").await;
    let rejected = look_up("person3").await;

    assert_eq!([first.status, time.status, third.status], [200, 200, 200]);
    assert!(first.header("ratelimit").starts_with("\"key\";r=2;t="), "{}", first.header("ratelimit"));
    assert_refused(&rejected, "key", 3, "a key's limit is one for all");
}

/// The Kelvin sign and the dotted I are folded to ASCII letters by some databases and libraries only.
#[test_on(sqlite, postgres)]
async fn normalizes_account_names(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let server = app.start_second_server(limited(&app, credential_limit(1))).await;
    let sign_in = async |name: &str| {
        let body = json!({ "identification": name, "password": PASSWORD });
        try_credentials(&app, server.address, "/sessions", body, None).await
    };

    let right = sign_in(&kofi.username).await;
    assert_eq!(right.status, 201, "{}", right.body);
    for name in ["\u{212a}ofi", "kof\u{130}", "kof\u{131}", "\u{212a}ofi@example.com"] {
        let nobody = sign_in(name).await;
        let looked_up = app.request("POST", "/lookups").json(&json!({ "identification": name })).send().await;

        assert_eq!(rejection(&nobody), (404, "account.unknown"), "{name}");
        assert_eq!((looked_up.status, &looked_up.body["found"]), (200, &json!(false)), "{name}");
    }
}

#[test_on(sqlite, postgres)]
async fn unlimited_server_sends_no_rate_limit_headers(app: TestApp) {
    for _ in 0..3 {
        let response = app.request("GET", "/time").send().await;
        assert_eq!((response.status, response.header("ratelimit"), response.header("ratelimit-policy")), (200, "", ""));
    }
}

/// Operations that take codes or names are limited, and no others.
#[test]
fn credential_operations_are_marked() {
    let marked: Vec<_> = operations().iter().filter(|operation| operation.guessing_argument().is_some()).collect();
    for operation in &marked {
        let argument = operation.guessing_argument().unwrap();
        let is_in_path = operation.path.contains(&format!("{{{argument}}}"));
        let is_in_body = operation.body_schema().is_some_and(|schema| schema["properties"].get(argument).is_some());
        assert!(is_in_path != is_in_body, "{}: {argument}", operation.id);
    }
    let places = ["/sessions", "/lookups", "/verifications", "/resets"];
    for operation in operations().iter().filter(|operation| ["POST", "PATCH"].contains(&operation.method.as_str())) {
        let place = operation.path.split("/{").next().unwrap();
        assert_eq!(operation.guessing_argument().is_some(), places.contains(&place), "{}", operation.id);
    }
}
