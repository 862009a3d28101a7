//! Limits of attempts that depend on the account or on the result: failed log-ins, taken names, changes of credentials, codes.

use std::time::{Duration, Instant};

use boxoffice::features::identity::sessions;
use boxoffice::kernel::context::Context;
use boxoffice::kernel::settings::{LimitSettings, Settings};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::failures::LogBuffer;
use crate::support::{ANY_PORT, DAY, Event, PASSWORD, Response, SecondServer, TestApp, User, rejection, section, test_on};
use crate::tokens::global_token;

pub const MINUTE: Duration = Duration::from_secs(60);

/// A second server with these limits, which believes in `X-Forwarded-For`.
async fn limited_server(app: &TestApp, limits: LimitSettings) -> SecondServer {
    let limits = LimitSettings { trusted_proxies: "127.0.0.0/8".parse().unwrap(), ..limits };
    app.start_second_server(Settings { limits, ..app.state.settings.clone() }).await
}

/// Logs in from an address.
async fn sign_in(app: &TestApp, server: &SecondServer, name: &str, password: &str, from: &str) -> Response {
    let body = json!({ "identification": name, "password": password });
    app.request("POST", "/sessions").at(server.address).header("X-Forwarded-For", from).json(&body).send().await
}

fn assert_limited(response: &Response, policy: &str) {
    assert_eq!(rejection(response), (429, "requests.too-many"), "{}", response.body);
    assert_eq!(response.header("ratelimit-policy"), policy);
    assert!(response.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds > 0), "{:?}", response.headers);
}

/// Makes rounds of attempts until all responses of one are 429, and returns these. Requires that the limit is not
/// reached by fewer attempts that count, nor by more than the limit and the attempts that were restored since the start.
pub async fn reach_limit(
    (limit, window): (u32, Duration),
    counts: impl Fn(&Response) -> bool,
    attempt: impl AsyncFn(usize) -> Vec<Response>,
) -> Vec<Response> {
    let (start, mut counted) = (Instant::now(), 0);
    for round in 0..100 {
        let responses = attempt(round).await;
        if responses.iter().all(|response| response.status == 429) {
            let restored = start.elapsed().as_nanos() / (window / limit).as_nanos();
            let [limit, restored] = [u128::from(limit), restored].map(|attempts| usize::try_from(attempts).unwrap());
            assert!((limit..=limit + restored).contains(&counted), "{counted} of {limit} attempts, {restored} were restored");
            return responses;
        }
        counted += responses.iter().filter(|response| counts(response)).count();
    }
    panic!("the limit is not reached after {counted} attempts");
}

#[test_on(sqlite, postgres)]
async fn failed_logins_are_limited_by_account(app: TestApp) {
    app.sign_up("ama").await;
    app.sign_up("kofi").await;
    let server = limited_server(&app, LimitSettings { failed_logins: 3, ..LimitSettings::default() }).await;
    let home = "198.51.100.1";
    assert_eq!(sign_in(&app, &server, "ama", PASSWORD, home).await.status, 201);
    let policy = "\"logins\";q=3;w=3600";

    for last in 2..5 {
        let wrong = sign_in(&app, &server, "ama", "a wrong one", &format!("198.51.100.{last}")).await;
        assert_eq!(rejection(&wrong), (401, "session.wrong-password"));
    }

    assert_limited(&sign_in(&app, &server, "AMA", "a wrong one", "198.51.100.5").await, policy);
    assert_limited(&sign_in(&app, &server, "ama@example.com", PASSWORD, "198.51.100.6").await, policy);
    assert_limited(&sign_in(&app, &server, "ama", "a wrong one", home).await, policy);
    let at_home = sign_in(&app, &server, "ama", PASSWORD, home).await;
    assert_eq!(at_home.status, 201, "her address is known: {}", at_home.body);
    assert_eq!(sign_in(&app, &server, "kofi", PASSWORD, "198.51.100.5").await.status, 201, "another account");
    app.advance_clock(DAY * 31);
    server.state.clock.advance(DAY * 31);
    assert_limited(&sign_in(&app, &server, "ama", PASSWORD, home).await, policy);
}

#[test_on(sqlite, postgres)]
async fn concurrent_failed_logins_do_not_exceed_the_limit(app: TestApp) {
    app.sign_up("ama").await;
    let server = limited_server(&app, LimitSettings { failed_logins: 3, ..LimitSettings::default() }).await;

    let addresses: Vec<_> = (0..12).map(|last| format!("198.51.100.{last}")).collect();
    let responses = join_all(addresses.iter().map(|from| sign_in(&app, &server, "ama", "a wrong one", from))).await;

    assert_eq!(responses.iter().filter(|response| response.status == 401).count(), 3);
    assert!(responses.iter().all(|response| [401, 429].contains(&response.status)), "{responses:?}");
}

#[test_on(sqlite, postgres)]
async fn known_addresses_are_few_and_expire(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let server = limited_server(&app, LimitSettings::default()).await;
    let stored = async || {
        let stored = app.rows("select address from login_addresses order by seen").await;
        stored.into_iter().map(|(address,): (String,)| address).collect::<Vec<_>>()
    };
    for last in 0..12 {
        assert_eq!(sign_in(&app, &server, "ama", PASSWORD, &format!("198.51.100.{last}")).await.status, 201);
        server.state.clock.advance(Duration::from_secs(1));
    }
    let addresses = stored().await;
    for from in ["198.51.100.11", "2001:db8:1:2::1", "2001:db8:1:2::2"] {
        server.state.clock.advance(Duration::from_secs(1));
        assert_eq!(sign_in(&app, &server, "ama", PASSWORD, from).await.status, 201);
    }

    let later = stored().await;
    assert_eq!((addresses.len(), later.len()), (10, 10));
    assert_eq!((later[..8] == addresses[1..9], &later[8]), (true, &addresses[9]), "a network counts as one address");
    assert!(later.iter().all(|address| address.len() == 6), "{later:?}");
    let ctx = Context::immediate(server.state.clone());
    let delete = async || sessions::delete_expired_addresses(&ctx, server.state.clock.now()).await.unwrap();
    assert_eq!(delete().await, 0);
    server.state.clock.advance(DAY * 30);
    assert_eq!((delete().await, stored().await.len()), (10, 0));

    assert_eq!(sign_in(&app, &server, "ama", PASSWORD, "198.51.100.1").await.status, 201);
    let deleted = app.delete(&app.staff.key, &format!("/accounts/{}", ama.number)).await;
    assert_eq!((deleted.status, stored().await.len()), (204, 0));
}

/// Changes an account.
async fn change(app: &TestApp, server: &SecondServer, key: &str, user: &User, body: Value) -> Response {
    app.request("PUT", &format!("/accounts/{}", user.number)).at(server.address).key(key).json(&body).send().await
}

#[test_on(sqlite, postgres)]
async fn taken_names_are_limited_by_account(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let other = app.sign_in("ama", PASSWORD).await.unwrap();
    let server = limited_server(&app, LimitSettings { guesses: 2, ..LimitSettings::default() }).await;
    let policy = "\"names\";q=2;w=60";

    let free = change(&app, &server, &ama.key, &ama, json!({ "username": "ama.mensah" })).await;
    let own = change(&app, &server, &ama.key, &ama, json!({ "username": "AMA.mensah", "email": "ama@example.com" })).await;
    let taken = [json!({ "email": "kofi@example.com" }), json!({ "username": "kofi", "email": "kofi@example.com" })];
    for body in &taken {
        assert_eq!(change(&app, &server, &ama.key, &ama, body.clone()).await.code(), "account.taken");
    }

    assert_eq!((free.status, own.status), (200, 200));
    for key in [&ama.key, &other.key] {
        assert_limited(&change(&app, &server, key, &ama, taken[0].clone()).await, policy);
        let unknown = change(&app, &server, key, &ama, json!({ "email": "free@example.com" })).await;
        assert_limited(&unknown, policy);
    }
    let sign_up = json!({ "username": "kofi", "email": "new@example.com", "password": PASSWORD });
    let sign_up = app.request("POST", "/accounts").at(server.address).key(&ama.key).json(&sign_up).send().await;
    assert_limited(&sign_up, policy);
    assert_eq!(change(&app, &server, &ama.key, &ama, json!({ "city": "Accra" })).await.status, 200, "no name is changed");
    assert_eq!(change(&app, &server, &kofi.key, &kofi, json!({ "username": "esi" })).await.status, 200, "another account");
    for _ in 0..4 {
        let by_staff = change(&app, &server, &app.staff.key, &ama, json!({ "username": "esi" })).await;
        assert_eq!(by_staff.code(), "account.taken", "staff may list all accounts");
    }
}

#[test_on(sqlite, postgres)]
async fn concurrent_taken_names_do_not_exceed_the_limit(app: TestApp) {
    let ama = app.sign_up("ama").await;
    app.sign_up("kofi").await;
    let server = limited_server(&app, LimitSettings { guesses: 2, ..LimitSettings::default() }).await;

    let body = json!({ "email": "kofi@example.com" });
    let responses = join_all((0..12).map(|_| change(&app, &server, &ama.key, &ama, body.clone()))).await;

    assert_eq!(responses.iter().filter(|response| response.status == 409).count(), 2);
    assert!(responses.iter().all(|response| [409, 429].contains(&response.status)), "{responses:?}");
}

#[test_on(sqlite, postgres)]
async fn taken_names_are_limited_by_address(app: TestApp) {
    let server = limited_server(&app, LimitSettings { guesses: 1, ..LimitSettings::default() }).await;
    let sign_up = async |name: &str, from: &str| {
        let body = json!({ "username": name, "email": format!("{name}@example.com"), "password": PASSWORD });
        app.request("POST", "/accounts").at(server.address).header("X-Forwarded-For", from).json(&body).send().await
    };
    for number in 0..11 {
        assert_eq!(sign_up(&format!("person{number}"), "198.51.100.7").await.status, 201, "successes don't count");
    }

    let limited = reach_limit(
        (10, MINUTE),
        |response| response.code() == "account.taken",
        async |round| vec![sign_up("person10", "198.51.100.7").await, sign_up(&format!("free{round}"), "198.51.100.7").await],
    );
    for limited in limited.await {
        assert_limited(&limited, "\"names\";q=10;w=60");
    }

    assert_eq!(sign_up("person10", "198.51.100.8").await.code(), "account.taken");
    assert_eq!(sign_up("person11", "198.51.100.8").await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn accounts_of_guests_are_limited(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 1001)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 10.0, 10)]).await;
    let give = async |key: &str, event: &Event, recipient: Value| {
        let mut body = recipient;
        body["items"] = json!({ &event.sections[0]: 1 });
        app.post(key, &format!("{}/complimentary-orders", event.uri), &body).await
    };
    let guest = |name: &str| json!({ "email": format!("{name}@example.com") });

    // Reveals nothing about the address, so it isn't counted.
    let invalid = give(&kofi.key, &other, json!({ "account": ama.number, "email": "ama@example.com" })).await;
    assert_eq!(invalid.invalid_arguments(), ["email"]);

    let limited = reach_limit(
        (1000, DAY),
        |response| response.status == 201,
        async |round| {
            if round < 10 {
                let names = (0..100).map(|number| format!("guest-{round}-{number}"));
                return join_all(names.map(async |name| give(&kofi.key, &event, guest(&name)).await)).await;
            }
            vec![give(&kofi.key, &other, guest(&format!("nana-{round}"))).await]
        },
    )
    .await;
    // Whether or not the address has an account.
    for limited in [&limited[0], &give(&kofi.key, &other, guest("guest-0-0")).await] {
        assert_limited(limited, "\"guests\";q=1000;w=86400");
    }
    assert_eq!(give(&kofi.key, &other, json!({ "account": ama.number })).await.status, 201);
    assert_eq!(give(&app.staff.key, &event, guest("nana")).await.status, 201);
    assert_eq!(give(&app.staff.key, &event, guest("esi")).await.code(), "section.sold-out");
}

#[test_on(sqlite, postgres)]
async fn credential_changes_are_limited_by_account(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let server = limited_server(&app, LimitSettings { credential_changes: 2, ..LimitSettings::default() }).await;
    let policy = "\"changes\";q=2;w=3600";

    for rejected in [json!({ "password": "password1" }), json!({ "password": "another horse", "email": "kofi@example.com" })] {
        assert!([400, 409].contains(&change(&app, &server, &ama.key, &ama, rejected).await.status));
    }
    for body in [json!({ "password": "another horse" }), json!({ "email": "mensah@example.com" })] {
        assert_eq!(change(&app, &server, &ama.key, &ama, body).await.status, 200);
    }

    assert_limited(&change(&app, &server, &ama.key, &ama, json!({ "password": "a third horse" })).await, policy);
    assert_limited(&change(&app, &server, &app.staff.key, &ama, json!({ "email": "ama@example.com" })).await, policy);
    assert_eq!(
        change(&app, &server, &ama.key, &ama, json!({ "city": "Accra", "email": "Mensah@Example.com" })).await.status,
        200
    );
    assert_eq!(change(&app, &server, &kofi.key, &kofi, json!({ "password": "another horse" })).await.status, 200);
    assert!(app.sign_in("ama", "another horse").await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn codes_are_limited_by_email_address(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let server = limited_server(&app, LimitSettings { codes: 2, ..LimitSettings::default() }).await;
    let ask = async |path: &str, name: &str| {
        let body = json!({ "email": format!("{name}@example.com") });
        app.request("POST", path).at(server.address).json(&body).send().await
    };
    let policy = "\"codes\";q=2;w=3600";

    for _ in 0..2 {
        assert_eq!(ask("/resets", "nobody").await.status, 404, "no code is mailed");
        assert_eq!(ask("/resets", "ama").await.status, 201);
    }

    assert_limited(&ask("/resets", "AMA").await, policy);
    assert_eq!(ask("/verifications", "ama").await.status, 201, "the other kind");
    assert_eq!(ask("/resets", "kofi").await.status, 201, "another address");
    // An attacker gives the same address to another account.
    for (user, email) in [(&ama, "mensah@example.com"), (&kofi, "ama@example.com")] {
        assert_eq!(change(&app, &server, &user.key, user, json!({ "email": email })).await.status, 200);
    }
    assert_limited(&ask("/resets", "ama").await, policy);
    assert_eq!(ask("/resets", "mensah").await.status, 201);
    assert_eq!(ask("/resets", "nobody").await.status, 404, "no code was mailed");
}

/// Requests a code for Ama's account from an address.
async fn ask(app: &TestApp, server: &SecondServer, path: &str, from: &str) -> Response {
    let body = json!({ "email": "ama@example.com" });
    app.request("POST", path).at(server.address).header("X-Forwarded-For", from).json(&body).send().await
}

#[test_on(sqlite, postgres)]
async fn strangers_do_not_use_up_the_codes_of_the_owner(app: TestApp) {
    app.sign_up("ama").await;
    let server = limited_server(&app, LimitSettings { codes: 2, ..LimitSettings::default() }).await;
    let home = "198.51.100.1";
    assert_eq!(sign_in(&app, &server, "ama", PASSWORD, home).await.status, 201);
    let policy = "\"codes\";q=2;w=3600";

    for path in ["/resets", "/verifications"] {
        for last in 2..4 {
            assert_eq!(ask(&app, &server, path, &format!("198.51.100.{last}")).await.status, 201);
        }
        assert_limited(&ask(&app, &server, path, "198.51.100.4").await, policy);

        for _ in 0..2 {
            let at_home = ask(&app, &server, path, home).await;
            assert_eq!(at_home.status, 201, "the address is known: {}", at_home.body);
        }

        assert_limited(&ask(&app, &server, path, home).await, policy);
    }
}

#[test_on(sqlite, postgres)]
async fn strangers_do_not_use_up_the_attempts_of_the_owner(app: TestApp) {
    app.sign_up("ama").await;
    let server = limited_server(&app, LimitSettings { codes: 0, ..LimitSettings::default() }).await;
    let wrong = json!({ "code": "000000", "password": "another horse" });
    let policy = "\"attempts\";q=50;w=86400";
    // From the address of the tests, from which Ama has signed in.
    let (uri, code) = app.request_code("/resets", "ama@example.com", 1).await;

    for last in 0..10 {
        let stranger = format!("198.51.100.{last}");
        let requested = ask(&app, &server, "/resets", &stranger).await.body;
        for _ in 0..5 {
            let patch = app.request("PATCH", requested["self"].as_str().unwrap()).at(server.address);
            patch.header("X-Forwarded-For", &stranger).json(&wrong).send().await;
        }
    }

    assert_limited(&ask(&app, &server, "/resets", "198.51.100.10").await, policy);
    let reset = app.submit_code(&uri, json!({ "code": code, "password": "another horse" })).await;
    assert_eq!(reset.status, 200, "{}", reset.body);
    app.execute_sql("update codes set tries = 50 where known_address").await;
    assert_limited(&app.request("POST", "/resets").json(&json!({ "email": "ama@example.com" })).send().await, policy);
}

#[test_on(sqlite, postgres)]
async fn unknown_codes_of_tokens_are_limited_by_address(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let (code, ama) = (global_token(&event).await.code, app.sign_up("ama").await);
    let server = limited_server(&app, LimitSettings { guesses: 1, ..LimitSettings::default() }).await;
    let exchange = async |code: &str, key: &str, from: &str| {
        let request = app.request("GET", &format!("/tokens/{code}")).at(server.address).key(key);
        request.header("X-Forwarded-For", from).send().await
    };
    for _ in 0..12 {
        assert_eq!(exchange(&code, &app.public_key, "198.51.100.7").await.status, 200, "known codes don't count");
    }

    let limited = reach_limit(
        (10, MINUTE),
        |response| response.status == 404,
        async |round| {
            let unknown = format!("000000{round:02}");
            let attempts = [(&unknown, &app.public_key), (&unknown, &ama.key), (&code, &app.public_key)];
            let mut responses = Vec::new();
            for (code, key) in attempts {
                responses.push(exchange(code, key, "198.51.100.7").await);
            }
            responses
        },
    );
    for limited in limited.await {
        assert_limited(&limited, "\"tokens\";q=10;w=60");
    }
    assert_eq!(exchange("00000010", &app.public_key, "198.51.100.8").await.status, 404);
    assert_eq!(exchange(&code, &app.public_key, "198.51.100.8").await.status, 200);
}

/// The address of the account may be somebody else's.
#[test_on(sqlite, postgres)]
async fn mails_about_cancellations_are_limited(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 10.0, 1)]).await;

    for _ in 0..12 {
        let order = ama.order(&event.sections[0], 1).await.unwrap();
        assert_eq!(app.cancel_order(&ama.key, &order.self_).await.status, 200);
    }

    assert_eq!(app.scalar::<i64>("select count(*) from outbox where template = 'order-cancelled'").await, 10);
}

#[test_on(sqlite, postgres)]
async fn mails_beyond_a_limit_are_logged(app: TestApp) {
    let log = LogBuffer::default();
    let server = app.start_second_server_on(app.state.settings.clone(), log.logger(), ANY_PORT).await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 1)]).await;
    let post = async |key: &str, path: &str, body: Value| {
        let response = app.request("POST", path).at(server.address).key(key).json(&body).send().await;
        assert_eq!(response.status, 201, "{path}: {}", response.body);
        response
    };

    for _ in 0..11 {
        let order = post(&ama.key, "/orders", json!({ "items": { &event.sections[0]: 1 } })).await;
        let cancel = app.request("POST", &format!("{}/cancellations", order.uri())).at(server.address).key(&ama.key);
        assert_eq!(cancel.send().await.status, 200);
    }
    for _ in 0..21 {
        let gift = json!({ "account": ama.number, "items": { &event.sections[0]: 1 } });
        let order = post(&kofi.key, &format!("{}/complimentary-orders", event.uri), gift).await;
        let back = app.request("POST", &format!("{}/returns", order.uri())).at(server.address).key(&kofi.key);
        assert_eq!(back.json(&json!({ "reason": "Moved." })).send().await.body["status"], "Returned");
    }

    let lines = log.lines();
    let left_out = lines.iter().filter(|line| line["msg"] == "mail left out, its recipient has received too many");
    let (templates, accounts): (Vec<_>, Vec<_>) = left_out.map(|line| (&line["template"], line["account_id"].is_i64())).unzip();
    assert_eq!(templates, ["order-cancelled", "order-confirmation", "tickets-returned"], "{lines:?}");
    assert_eq!(accounts, [true; 3]);
}

/// The host decides on their number and on the reason, which the mail contains.
#[test_on(sqlite, postgres)]
async fn mails_about_gifts_and_their_returns_are_limited(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 50.0, 100)]).await;
    app.execute("update accounts set verified = true where number = $1", ama.number.clone()).await;
    let gift = json!({ "account": ama.number, "items": { &event.sections[0]: 1 } });

    for _ in 0..21 {
        let given = app.post(&kofi.key, &format!("{}/complimentary-orders", event.uri), gift.clone()).await;
        let returned = app.return_tickets(&kofi.key, given.uri(), json!({ "reason": "Visit my other shop." })).await;
        assert_eq!(returned.body["status"], "Returned", "{}", returned.body);
    }

    let mails: Vec<(String, i64)> = app.rows("select template, count(*) from outbox group by template order by template").await;
    assert!(mails.contains(&("order-confirmation".to_owned(), 20)), "{mails:?}");
    assert!(mails.contains(&("tickets-returned".to_owned(), 20)), "{mails:?}");
}

/// The address of the account may be somebody else's.
#[test_on(sqlite, postgres)]
async fn mails_about_free_orders_are_limited_until_the_address_is_verified(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 100)]).await;
    let mails = async || app.scalar::<i64>("select count(*) from outbox where template = 'order-confirmation'").await;

    for _ in 0..22 {
        assert_eq!(ama.order_free_tickets(&event.sections[0], 1).await.len(), 1);
    }
    assert_eq!(mails().await, 20);
    let order = app.post(&ama.key, "/orders", json!({ "items": { &event.sections[0]: 1 } })).await;
    assert_eq!((order.status, &order.body["status"]), (201, &json!("Fulfilled")));
    let gift = json!({ "account": ama.number, "items": { &event.sections[0]: 1 } });
    let given = app.post(&kofi.key, &format!("{}/complimentary-orders", event.uri), gift).await;
    assert_eq!(given.status, 201);
    assert_eq!(mails().await, 20);

    app.execute("update accounts set verified = true where number = $1", ama.number.clone()).await;
    ama.order_free_tickets(&event.sections[0], 1).await;
    assert_eq!(mails().await, 21);
}

/// The first attempt of every transaction that stores a mail ends with a conflict. Only PostgreSQL has conflicts that a trigger
/// can cause.
#[test_on(postgres)]
async fn mails_of_repeated_transactions_count_once(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 100), section("Lawn", 0.0, 100)]).await;
    let yaw = app.sign_up("yaw").await;
    app.execute_sql("create sequence conflicts").await;
    app.execute_sql(
        "create function conflict() returns trigger language plpgsql as $$ begin
            if nextval('conflicts') % 2 = 1 then raise 'conflict' using errcode = '40001'; end if; return null; end $$",
    )
    .await;
    app.execute_sql("create trigger conflict after insert on outbox for each statement execute function conflict()").await;
    let post = async |key: &str, path: &str, body: Value| {
        let response = app.post(key, path, body).await;
        assert!(matches!(response.status, 200 | 201), "{path}: {}", response.body);
        response
    };

    for _ in 0..10 {
        let order = post(&ama.key, "/orders", json!({ "items": { &event.sections[0]: 1 } })).await;
        post(&ama.key, &format!("{}/cancellations", order.uri()), json!({})).await;
    }
    for _ in 0..20 {
        let gift = json!({ "email": "esi@example.com", "items": { &event.sections[1]: 1 } });
        post(&kofi.key, &format!("{}/complimentary-orders", event.uri), gift).await;
        let order = post(&ama.key, "/orders", json!({ "items": { &event.sections[1]: 2 } })).await;
        let serial = &app.wallet(&ama).await.pop().unwrap()["serial"];
        post(&ama.key, "/transfers", json!({ "recipient": yaw.number, "tickets": [serial] })).await;
        post(&kofi.key, &format!("{}/returns", order.uri()), json!({ "reason": "Moved." })).await;
    }

    let mails: Vec<(String, i64)> = app.rows("select template, count(*) from outbox group by template order by template").await;
    let sent = [("order-cancelled", 10), ("order-confirmation", 40), ("tickets-returned", 20), ("transfer-received", 20)];
    for (template, count) in sent {
        assert!(mails.contains(&(template.to_owned(), count)), "{mails:?}");
    }
    assert!(app.scalar::<i64>("select last_value from conflicts").await >= 180);
}
