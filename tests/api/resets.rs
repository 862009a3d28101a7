//! Password resets by mailed codes.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use crate::support::{PASSWORD, Rejection, TestApp, rejection, test_on, types};
use crate::verifications::different_code;

const NEW: &str = "another horse entirely";

#[test_on(sqlite, postgres)]
async fn resets_password_with_mailed_code(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (uri, code) = app.request_code("/resets", "Ama@Example.com", 1).await;
    let pending = app.request("GET", &uri).send().await.body;

    let reset = app.public_client.reset_update().reset(uri.strip_prefix("/resets/").unwrap());
    let reset = reset.body_map(|body| body.code(code.as_str()).password(NEW)).send().await.unwrap().into_inner();

    assert_eq!(pending, json!({ "self": uri, "email": "ama@example.com", "status": "Pending" }));
    assert_eq!((reset.self_.as_str(), reset.status), (uri.as_str(), types::ResetStatus::Used));
    assert_eq!(app.verification_status(&uri).await, "Used");
    assert_eq!(app.sign_in("ama", PASSWORD).await.rejection(), (401, "session.wrong-password".to_owned()));
    let session = app.sign_in("ama", NEW).await.unwrap();
    assert_eq!((session.account.number.as_str(), session.account.verified), (ama.number.as_str(), false));
    assert_eq!(rejection(&app.submit_code(&uri, json!({ "code": code, "password": PASSWORD })).await), (409, "reset.closed"));
    assert!(app.sign_in("ama", NEW).await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn spaces_around_email_are_ignored(app: TestApp) {
    app.sign_up("ama").await;

    let reset = app.public_client.reset_create().body_map(|body| body.email(" Ama@example.com ")).send().await.unwrap();
    let verification =
        app.public_client.verification_create().body_map(|body| body.email("ama@example.com ")).send().await.unwrap();

    assert_eq!((reset.email.as_str(), verification.email.as_str()), ("ama@example.com", "ama@example.com"));
    for path in ["/resets", "/verifications"] {
        for email in ["ama", "ama @example.com", "@example.com"] {
            let rejected = app.request("POST", path).json(&json!({ "email": email })).send().await;
            assert_eq!(rejected.invalid_arguments(), ["email"], "{path} {email}");
        }
    }
}

#[test_on(sqlite, postgres)]
async fn reset_ends_sessions_but_no_integrations(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let other = app.sign_in("ama", PASSWORD).await.unwrap();
    let integration = app.create_integration_key(&ama).await;
    let (uri, code) = app.request_code("/resets", "ama@example.com", 1).await;

    // With the account's own key, too.
    let body = json!({ "code": code, "password": NEW });
    let reset = app.request("PATCH", &uri).key(&ama.key).json(&body).send().await;

    assert_eq!(reset.status, 200);
    for (key, status) in [(&ama.key, 403), (&other.key, 403), (&integration, 200), (&kofi.key, 200)] {
        assert_eq!(app.get(key, "/time").await.status, status);
    }
}

#[test_on(sqlite, postgres)]
async fn unknown_reset_is_not_found(app: TestApp) {
    app.sign_up("ama").await;
    let (verification, code) = app.request_code("/verifications", "ama@example.com", 1).await;
    let of_a_verification = verification.replace("/verifications/", "/resets/");

    for uri in ["/resets/m4x8c5v0b3n6z7l2j9h4g1f8q7w2k9d1", &of_a_verification] {
        let read = app.request("GET", uri).send().await;
        let answered = app.submit_code(uri, json!({ "code": code, "password": NEW })).await;

        assert_eq!(rejection(&read), (404, "resource.not-found"), "{uri}");
        assert_eq!(rejection(&answered), (404, "resource.not-found"), "{uri}");
    }
    assert!(app.sign_in("ama", PASSWORD).await.is_ok(), "a verification's code is none for a password");
}

#[test_on(sqlite, postgres)]
async fn rejects_invalid_reset(app: TestApp) {
    app.sign_up("ama").await;
    let (uri, code) = app.request_code("/resets", "ama@example.com", 1).await;

    let nothing = app.submit_code(&uri, json!({ "password": " " })).await;
    let short = app.submit_code(&uri, json!({ "code": code, "password": "short" })).await;

    assert_eq!(nothing.invalid_arguments(), ["-code", "-password"]);
    assert_eq!(short.invalid_arguments(), ["password"]);
    assert_eq!(app.submit_code(&uri, json!({ "code": code, "password": NEW })).await.status, 200, "neither was a try");
}

#[test_on(sqlite, postgres)]
async fn wrong_codes_exhaust_reset(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (uri, code) = app.request_code("/resets", "ama@example.com", 1).await;

    for _ in 0..5 {
        let wrong = app.submit_code(&uri, json!({ "code": different_code(&code), "password": NEW })).await;
        assert_eq!(wrong.invalid_arguments(), ["code"]);
    }
    let right = app.submit_code(&uri, json!({ "code": code, "password": NEW })).await;

    assert_eq!(rejection(&right), (409, "reset.closed"));
    assert_eq!(app.verification_status(&uri).await, "Expired");
    assert!(app.sign_in("ama", PASSWORD).await.is_ok());
    assert_eq!(app.get(&ama.key, "/time").await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn reset_expires_after_fifteen_minutes(app: TestApp) {
    app.sign_up("ama").await;
    let (uri, code) = app.request_code("/resets", "ama@example.com", 1).await;
    app.advance_clock(Duration::from_secs(15 * 60));

    let rejected = app.submit_code(&uri, json!({ "code": code, "password": NEW })).await;

    assert_eq!(rejection(&rejected), (409, "reset.closed"));
    assert_eq!(app.verification_status(&uri).await, "Expired");
    assert!(app.sign_in("ama", PASSWORD).await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn newer_reset_replaces_earlier_ones(app: TestApp) {
    app.sign_up("ama").await;
    let (first, first_code) = app.request_code("/resets", "ama@example.com", 1).await;
    let (second, code) = app.request_code("/resets", "ama@example.com", 2).await;

    let rejected = app.submit_code(&first, json!({ "code": first_code, "password": "a third one" })).await;

    assert_eq!(rejection(&rejected), (409, "reset.closed"));
    assert_eq!(app.submit_code(&second, json!({ "code": code, "password": NEW })).await.status, 200);
    assert!(app.sign_in("ama", NEW).await.is_ok());
}

/// Codes that are requested from a known address don't replace those from other addresses.
#[test_on(sqlite, postgres)]
async fn reset_ends_those_requested_from_other_addresses(app: TestApp) {
    app.sign_up("ama").await;
    let (first, first_code) = app.request_code("/resets", "ama@example.com", 1).await;
    app.execute_sql("update codes set known_address = not known_address").await;
    let (second, code) = app.request_code("/resets", "ama@example.com", 2).await;
    assert_eq!(app.verification_status(&first).await, "Pending");

    assert_eq!(app.submit_code(&second, json!({ "code": code, "password": NEW })).await.status, 200);

    assert_eq!(app.verification_status(&first).await, "Expired");
    let rejected = app.submit_code(&first, json!({ "code": first_code, "password": "a third one" })).await;
    assert_eq!(rejection(&rejected), (409, "reset.closed"));
    assert_eq!(app.verification_status(&second).await, "Used");
    assert!(app.sign_in("ama", NEW).await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn reset_for_former_email_is_rejected(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (uri, code) = app.request_code("/resets", "ama@example.com", 1).await;
    let change = ama.client.account_update().number(ama.number.as_str());
    change.body_map(|body| body.email("mensah@example.com".to_owned())).send().await.unwrap();

    let rejected = app.submit_code(&uri, json!({ "code": code, "password": NEW })).await;

    assert_eq!(rejection(&rejected), (409, "reset.closed"));
    assert!(app.sign_in("ama", PASSWORD).await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn reset_does_not_activate_account(app: TestApp) {
    let ama = app.sign_up("ama").await;
    app.execute("update accounts set activated = false where number = $1", ama.number.clone()).await;
    let (uri, code) = app.request_code("/resets", "ama@example.com", 1).await;

    let reset = app.submit_code(&uri, json!({ "code": code, "password": NEW })).await;

    assert_eq!(reset.status, 200);
    assert_eq!(app.sign_in("ama", NEW).await.rejection(), (403, "account.deactivated".to_owned()));
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_resets_succeed_once(app: TestApp) {
    app.sign_up("ama").await;
    let (uri, code) = app.request_code("/resets", "ama@example.com", 1).await;
    let passwords: Vec<_> = (0..4).map(|number| format!("{NEW} {number}")).collect();

    let responses =
        join_all(passwords.iter().map(|password| app.submit_code(&uri, json!({ "code": code, "password": password })))).await;

    let mut statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    let winner = &passwords[statuses.iter().position(|status| *status == 200).unwrap()];
    assert!(app.sign_in("ama", winner).await.is_ok());
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
}

#[test_on(sqlite, postgres)]
async fn attempts_are_limited_across_codes(app: TestApp) {
    app.sign_up("ama").await;
    app.sign_up("kofi").await;
    let ask = async |email: &str| app.request("POST", "/resets").json(&json!({ "email": email })).send().await.body;
    let guess = json!({ "code": "000000", "password": NEW });
    for _ in 0..10 {
        let requested = ask("ama@example.com").await;
        for _ in 0..5 {
            // The correct code is treated like a wrong one.
            app.submit_code(requested["self"].as_str().unwrap(), guess.clone()).await;
        }
    }

    let refused = app.request("POST", "/resets").json(&json!({ "email": "AMA@example.com" })).send().await;
    assert_eq!(rejection(&refused), (429, "requests.too-many"), "fifty tries a day");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((86_000..=87_300).contains(&wait), "{wait}");
    let (others, others_code) = app.request_code("/resets", "kofi@example.com", 1).await;
    assert_eq!(app.submit_code(&others, json!({ "code": others_code, "password": NEW })).await.status, 200);

    app.advance_clock(Duration::from_secs(25 * 60 * 60));
    let (uri, code) = app.request_code("/resets", "ama@example.com", 11).await;
    assert_eq!(app.submit_code(&uri, json!({ "code": code, "password": NEW })).await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn daily_limit_hides_whether_code_is_correct(app: TestApp) {
    app.sign_up("ama").await;
    let (open, open_code) = app.request_code("/resets", "ama@example.com", 1).await;
    // As if this and nine other codes had been tried, all but one of the daily limit.
    app.execute_sql("update codes set tries = 49").await;
    let (last, last_code) = app.request_code("/resets", "ama@example.com", 2).await;
    assert_eq!(app.verification_status(&last).await, "Pending");
    let wrong = app.submit_code(&last, json!({ "code": different_code(&last_code), "password": NEW })).await;
    assert_eq!(wrong.status, 400, "the fiftieth try of the day");

    for (uri, code) in [(&open, &open_code), (&last, &last_code)] {
        for digits in [code, &different_code(code)] {
            for password in [NEW, "password1", "ama@example.com"] {
                let response = app.submit_code(uri, json!({ "code": digits, "password": password })).await;
                assert_eq!(rejection(&response), (409, "reset.closed"), "{digits} {password}");
            }
        }
        assert_eq!(app.verification_status(uri).await, "Expired");
    }

    assert!(app.sign_in("ama", PASSWORD).await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn password_change_ends_open_reset(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (reset, reset_code) = app.request_code("/resets", "ama@example.com", 1).await;
    let (verification, code) = app.request_code("/verifications", "ama@example.com", 2).await;
    let change = ama.client.account_update().number(ama.number.as_str());
    change.body_map(|body| body.password("a third horse".to_owned())).send().await.unwrap();

    let rejected = app.submit_code(&reset, json!({ "code": reset_code, "password": NEW })).await;

    assert_eq!(rejection(&rejected), (409, "reset.closed"));
    assert_eq!(app.verification_status(&reset).await, "Expired");
    assert!(app.sign_in("ama", "a third horse").await.is_ok());
    assert_eq!(app.submit_code(&verification, json!({ "code": code })).await.status, 200, "the address is unchanged");
}
