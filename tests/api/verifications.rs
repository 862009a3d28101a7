//! Verification of an account's e-mail address by a mailed code.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use crate::support::{Response, TestApp, User, code_in, rejection, test_on, types};

impl TestApp {
    /// Requests a code, and reads it from the `count`th mail to that address. Returns the URI of the verification or reset, and
    /// the code.
    pub async fn request_code(&self, collection: &str, email: &str, count: usize) -> (String, String) {
        let response = self.request("POST", collection).json(&json!({ "email": email })).send().await;
        assert_eq!(response.status, 201, "{}", response.body);
        let letter = self.mail_to(&email.to_lowercase(), count).await;
        (response.uri().to_owned(), code_in(&letter))
    }

    /// Sends a body to a verification or reset.
    pub async fn submit_code(&self, uri: &str, body: serde_json::Value) -> Response {
        self.request("PATCH", uri).json(&body).send().await
    }

    /// Returns the status of a verification or reset.
    pub async fn verification_status(&self, uri: &str) -> String {
        let response = self.request("GET", uri).send().await;
        assert_eq!(response.status, 200, "{}", response.body);
        response.body["status"].as_str().unwrap().to_owned()
    }
}

/// Returns another code of six digits.
pub fn different_code(code: &str) -> String {
    let first = if code.starts_with('0') { "1" } else { "0" };
    format!("{first}{}", &code[1..])
}

async fn is_verified(ama: &User) -> bool {
    ama.client.account_get().number(ama.number.as_str()).send().await.unwrap().verified
}

#[test_on(sqlite, postgres)]
async fn verifies_account_with_mailed_code(app: TestApp) {
    let ama = app.sign_up("ama").await;

    let created = app.request("POST", "/verifications").json(&json!({ "email": "AMA@example.com" })).send().await;
    let uri = created.uri();
    let identifier = uri.strip_prefix("/verifications/").unwrap();
    let letter = app.mail_to("ama@example.com", 1).await;

    assert_eq!((created.status, created.header("location")), (201, uri));
    assert_eq!(created.body, json!({ "self": uri, "email": "ama@example.com", "status": "Pending" }));
    assert!(identifier.len() == 32 && identifier.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
    assert_eq!(app.request("GET", uri).send().await.body, created.body);
    assert!(!is_verified(&ama).await, "not yet");

    let verified = app.public_client.verification_update().verification(identifier);
    let verified = verified.body_map(|body| body.code(code_in(&letter))).send().await.unwrap().into_inner();

    assert_eq!((verified.self_.as_str(), verified.status), (uri, types::VerificationStatus::Verified));
    assert!(is_verified(&ama).await);
    assert_eq!(app.verification_status(uri).await, "Verified");
    assert_eq!(rejection(&app.submit_code(uri, json!({ "code": code_in(&letter) })).await), (409, "verification.closed"));
}

#[test_on(sqlite, postgres)]
async fn unknown_email_gets_no_mail(app: TestApp) {
    for path in ["/verifications", "/resets"] {
        let rejected = app.post(&app.public_key, path, json!({ "email": "kofi@example.com" })).await;
        assert_eq!(rejection(&rejected), (404, "account.unknown"), "{path}");
    }
    app.deliver_mail().await;
    assert_eq!(app.mailbox.files_to("kofi@example.com").len(), 0);
}

#[test_on(sqlite, postgres)]
async fn unknown_verification_is_not_found(app: TestApp) {
    app.sign_up("ama").await;
    let (reset, code) = app.request_code("/resets", "ama@example.com", 1).await;
    let of_a_reset = reset.replace("/resets/", "/verifications/");

    for uri in ["/verifications/m4x8c5v0b3n6z7l2j9h4g1f8q7w2k9d1", "/verifications/1", &of_a_reset] {
        let read = app.request("GET", uri).send().await;
        let answered = app.submit_code(uri, json!({ "code": code })).await;

        assert_eq!(rejection(&read), (404, "resource.not-found"), "{uri}");
        assert_eq!(rejection(&answered), (404, "resource.not-found"), "{uri}");
    }
    assert_eq!(app.verification_status(&reset).await, "Pending");
}

#[test_on(sqlite, postgres)]
async fn wrong_code_is_rejected_and_counted(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (uri, code) = app.request_code("/verifications", "ama@example.com", 1).await;

    for _ in 0..3 {
        let unreadable = app.submit_code(&uri, json!({ "code": "12345" })).await;
        assert_eq!(unreadable.invalid_arguments(), ["code"], "which is no try");
    }
    for _ in 0..5 {
        assert_eq!(app.verification_status(&uri).await, "Pending");
        let wrong = app.submit_code(&uri, json!({ "code": different_code(&code) })).await;
        assert_eq!((wrong.status, wrong.code(), wrong.invalid_arguments()), (400, "arguments.invalid", vec!["code".to_owned()]));
    }
    let right = app.submit_code(&uri, json!({ "code": code })).await;

    assert_eq!(rejection(&right), (409, "verification.closed"));
    assert_eq!(app.verification_status(&uri).await, "Expired");
    assert!(!is_verified(&ama).await);
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_wrong_codes_are_all_counted(app: TestApp) {
    app.sign_up("ama").await;
    let (uri, code) = app.request_code("/verifications", "ama@example.com", 1).await;

    let responses = join_all((0..12).map(|_| app.submit_code(&uri, json!({ "code": different_code(&code) })))).await;

    let with = |status| responses.iter().filter(|response| response.status == status).count();
    assert_eq!((with(400), with(409)), (5, 7));
}

#[test_on(sqlite, postgres)]
async fn code_expires_after_fifteen_minutes(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (late, code) = app.request_code("/verifications", "ama@example.com", 1).await;
    app.advance_clock(Duration::from_secs(15 * 60));

    let rejected = app.submit_code(&late, json!({ "code": code })).await;

    assert_eq!(rejection(&rejected), (409, "verification.closed"));
    assert_eq!(app.verification_status(&late).await, "Expired");
    assert!(!is_verified(&ama).await);
    let (timely, code) = app.request_code("/verifications", "ama@example.com", 2).await;
    app.advance_clock(Duration::from_secs(14 * 60));
    assert_eq!(app.submit_code(&timely, json!({ "code": code })).await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn newer_verification_replaces_earlier_ones(app: TestApp) {
    app.sign_up("ama").await;
    let (first, first_code) = app.request_code("/verifications", "ama@example.com", 1).await;
    let (reset, _) = app.request_code("/resets", "ama@example.com", 2).await;
    let (second, code) = app.request_code("/verifications", "ama@example.com", 3).await;

    let rejected = app.submit_code(&first, json!({ "code": first_code })).await;

    assert_eq!(rejection(&rejected), (409, "verification.closed"));
    assert_eq!(
        (app.verification_status(&first).await.as_str(), app.verification_status(&reset).await.as_str()),
        ("Expired", "Pending")
    );
    assert_eq!(app.submit_code(&second, json!({ "code": code })).await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn code_for_former_email_is_rejected(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (uri, code) = app.request_code("/verifications", "ama@example.com", 1).await;
    let change = ama.client.account_update().number(ama.number.as_str());
    change.body_map(|body| body.email("mensah@example.com".to_owned())).send().await.unwrap();

    let rejected = app.submit_code(&uri, json!({ "code": code })).await;

    assert_eq!(rejection(&rejected), (409, "verification.closed"));
    assert_eq!(app.verification_status(&uri).await, "Expired");
    let change = ama.client.account_update().number(ama.number.as_str());
    change.body_map(|body| body.email("ama@example.com".to_owned())).send().await.unwrap();
    assert_eq!(app.verification_status(&uri).await, "Expired", "also if the address is changed back");
    assert_eq!(rejection(&app.submit_code(&uri, json!({ "code": code })).await), (409, "verification.closed"));
    assert!(!is_verified(&ama).await);
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_correct_codes_succeed_once(app: TestApp) {
    app.sign_up("ama").await;
    let (uri, code) = app.request_code("/verifications", "ama@example.com", 1).await;

    let responses = join_all((0..6).map(|_| app.submit_code(&uri, json!({ "code": code })))).await;

    let with = |status| responses.iter().filter(|response| response.status == status).count();
    assert_eq!((with(200), with(409)), (1, 5));
}

#[test_on(sqlite, postgres)]
async fn stored_code_is_not_readable(app: TestApp) {
    app.sign_up("ama").await;
    let (uri, code) = app.request_code("/verifications", "ama@example.com", 1).await;
    let identifier = uri.strip_prefix("/verifications/").unwrap();

    let kept: Vec<(String, String)> = app.rows("select hash, code_hash from codes").await;

    assert_eq!(kept.len(), 1);
    for hash in [&kept[0].0, &kept[0].1] {
        assert!(hash.len() == 64 && !hash.contains(identifier));
        assert_ne!(*hash, boxoffice::kernel::types::secret::hash(&code), "the hash of a code alone could be reversed");
    }
}
