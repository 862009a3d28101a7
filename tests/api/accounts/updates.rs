//! Updates of accounts, and the mails that report them.

use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::new_account;
use crate::support::{
    MailServer, PASSWORD, Rejection, SmtpBehavior, TestApp, operations, readable, rejection, test_on, wait_until,
};

#[test_on(sqlite, postgres)]
async fn update_keeps_omitted_properties(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let path = format!("/accounts/{}", ama.number);
    let before = app.get(&ama.key, &path).await.body;
    let change = json!({
        "title": "Dr", "dateOfBirth": "1992-04-18", "city": "Kumasi", "lastName": null,
        "role": "administrator", "activated": false, "number": "ZZ-00000000",
    });

    let changed = app.put(&ama.key, &path, &change).await;

    let mut expected = before;
    for (name, value) in [("title", "Dr"), ("dateOfBirth", "1992-04-18"), ("city", "Kumasi")] {
        expected[name] = json!(value);
    }
    assert_eq!((changed.status, &changed.body), (200, &expected));
    assert_eq!(app.get(&ama.key, &path).await.body, expected);
    let emptied = app.put(&ama.key, &path, json!({ "city": "" })).await;
    assert_eq!((&emptied.body["city"], &emptied.body["firstName"]), (&json!(""), &json!("ama")));
    let blank = app.put(&ama.key, &path, json!({ "title": " ", "dateOfBirth": "\u{3164}" })).await;
    assert_eq!((blank.status, &blank.body), (200, &emptied.body), "a blank that the schema rejects is ignored");
}

/// Every optional text of every resource that is changed by PUT.
#[test_on(sqlite, postgres)]
async fn empty_text_clears_optional_property(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let host = app.create_host(&ama).await.uri.clone();
    let (event, zone) = (app.create_draft(&app.create_host(&ama).await).await.uri.clone(), app.create_zone(300, 250).await);
    let region = app.create_region().await;
    let staff = app.staff.key.clone();
    for (operation, path, key) in [
        ("account_update", format!("/accounts/{}", ama.number), &ama.key),
        ("host_update", host, &ama.key),
        ("event_update", event, &ama.key),
        ("region_update", region, &staff),
        ("zone_update", zone, &staff),
    ] {
        let operation = operations().iter().find(|each| each.id == operation).unwrap();
        let schema = operation.body_schema().unwrap();
        let required = schema["x-not-blank"].as_array().unwrap();
        let is_text = |property: &Value| {
            property["type"] == "string" && !["image", "event-time"].iter().any(|format| property["format"] == *format)
        };
        let texts = schema["properties"].as_object().unwrap().iter();
        let texts = texts.filter(|(name, property)| is_text(property) && !required.contains(&json!(name)));
        let mut cleared = 0;
        for (name, property) in texts {
            let value = match name.as_str() {
                "dateOfBirth" => "1992-04-18",
                "website" => "https://example.com",
                _ => property["allOf"][0]["enum"][0].as_str().unwrap_or("Text"),
            };
            let put = async |value: &str| app.put(key, &path, json!({ name: value })).await;

            let (set, empty) = (put(value).await, put("").await);

            assert_eq!((set.status, &set.body[name]), (200, &json!(value)), "{} {name}", operation.id);
            assert_eq!((empty.status, &empty.body[name]), (200, &json!("")), "{} {name}", operation.id);
            assert_eq!(app.get(key, &path).await.body[name], "", "{} {name}", operation.id);
            cleared += 1;
        }
        assert!(cleared > 0, "{}", operation.id);
    }
}

#[test_on(sqlite, postgres)]
async fn update_rejects_taken_username_and_email(app: TestApp) {
    let ama = app.sign_up("ama").await;
    app.sign_up("kofi").await;
    let path = format!("/accounts/{}", ama.number);
    let change = |body: Value| app.request("PUT", &path).key(&ama.key).json(&body).send();

    for (body, text) in [
        (json!({ "username": "Kofi" }), "Another account has this username."),
        (
            json!({ "email": "KOFI@example.com" }),
            "Another account has this email. If the address is yours, reset the password of its account.",
        ),
        (
            json!({ "username": "kofi", "email": "kofi@example.com" }),
            "Another account has this username and this email. If the address is yours, reset the password of its account.",
        ),
    ] {
        let rejected = change(body).await;
        assert_eq!(rejection(&rejected), (409, "account.taken"));
        assert_eq!(rejected.body["error"], text);
    }
    let own = change(json!({ "username": "Ama", "email": "AMA@example.com" })).await;
    assert_eq!((own.status, &own.body["username"]), (200, &json!("Ama")), "its own are no one else's");
}

#[test_on(sqlite, postgres, two_servers)]
async fn email_change_resets_verification(app: TestApp) {
    let bodies: Vec<_> = (0..8).map(|number| new_account("ama", &format!("ama{number}@example.com"))).collect();

    let responses = join_all(bodies.iter().map(|body| app.create_account(body))).await;

    let mut outcomes: Vec<_> = responses.iter().map(rejection).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes[0], (201, ""));
    assert_eq!(outcomes[1..], [(409, "account.taken"); 7]);
}

#[test_on(sqlite, postgres)]
async fn password_change_ends_other_sessions(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let other = app.sign_in("ama", PASSWORD).await.unwrap();
    let integration = app.create_integration_key(&ama).await;

    let change =
        ama.client.account_update().number(ama.number.as_str()).body_map(|body| body.password("another one".parse().ok()));
    change.send().await.unwrap();

    let status = async |key: &str| app.get(key, &format!("/accounts/{}", ama.number)).await.status;
    assert_eq!(status(&ama.key).await, 200);
    assert_eq!(status(&other.key).await, 403);
    assert_eq!(status(&integration).await, 200, "only sessions end");
    assert_eq!(app.sign_in("ama", PASSWORD).await.rejection(), (401, "session.wrong-password".to_owned()));
    assert!(app.sign_in("ama", "another one").await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn password_change_by_staff_ends_all_sessions(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);

    let path = format!("/accounts/{}", ama.number);
    let change = app.put(&app.staff.key, &path, json!({ "password": "another one" })).await;

    assert_eq!(change.status, 200);
    assert_eq!(ama.client.session_active_get().send().await.rejection(), (403, "key.refused".to_owned()));
    assert!(kofi.client.session_active_get().send().await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn login_during_password_change_leaves_no_session(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let path = format!("/accounts/{}", ama.number);
    let change = app.request("PUT", &path).key(&ama.key).json(&json!({ "password": "another one" })).send();

    let (change, opened) = join(change, join_all((0..12).map(|_| app.sign_in("ama", PASSWORD)))).await;

    assert_eq!(change.status, 200);
    for session in opened.into_iter().flatten() {
        let rejected = app.client(&session.key).session_active_get().send().await;
        assert_eq!(rejected.rejection(), (403, "key.refused".to_owned()));
    }
    assert!(ama.client.session_active_get().send().await.is_ok());
}

/// Waits until this many mails have arrived, and returns the recipient, the subject and the text of the last one.
async fn last_mail(app: &TestApp, server: &MailServer, count: usize) -> (String, String, String) {
    app.deliver_mail().await;
    wait_until(async || server.accepted().len() >= count).await;
    assert_eq!(server.accepted().len(), count);
    let mail = readable(&server.accepted().pop().unwrap());
    let header = |name: &str| mail.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
    let text = mail.split_once("\n\n").unwrap().1.to_owned();
    (header("To:"), header("Subject:"), text)
}

#[test_on(sqlite, postgres)]
async fn email_change_is_reported_to_old_address(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let other = app.sign_in("ama", PASSWORD).await.unwrap();
    let integration = app.create_integration_key(&ama).await;
    let server = app.start_mail_server(SmtpBehavior::Accept).await;
    let path = format!("/accounts/{}", ama.number);
    let change = |email: &str| app.request("PUT", &path).key(&ama.key).json(&json!({ "email": email })).send();
    let status = async |key: &str| app.get(key, &path).await.status;
    assert_eq!(change("AMA@example.com").await.status, 200);
    assert_eq!(status(&other.key).await, 200, "it is the same address");

    let changed = change("mensah@example.com").await;

    assert_eq!(changed.body["email"], "mensah@example.com");
    let (to, subject, text) = last_mail(&app, &server, 1).await;
    assert_eq!((to.as_str(), subject.as_str()), ("AMA@example.com", "Your e-mail address was changed"));
    assert!(text.contains(&ama.number) && text.contains("Hello ama") && !text.contains("mensah@"), "{text}");
    assert_eq!([status(&ama.key).await, status(&other.key).await, status(&integration).await], [200, 403, 200]);
}

#[test_on(sqlite, postgres)]
async fn password_change_is_reported(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let server = app.start_mail_server(SmtpBehavior::Accept).await;
    let change = |body: Value| app.request("PUT", &format!("/accounts/{}", ama.number)).key(&ama.key).json(&body).send();

    assert_eq!(change(json!({ "password": "another horse" })).await.status, 200);
    let (to, subject, text) = last_mail(&app, &server, 1).await;
    assert_eq!((to.as_str(), subject.as_str()), ("ama@example.com", "Your password was changed"));
    assert!(text.contains("was changed on ") && !text.contains("another horse"), "{text}");

    assert_eq!(change(json!({ "password": "a third horse", "email": "mensah@example.com" })).await.status, 200);
    let (to, subject, _) = last_mail(&app, &server, 2).await;
    assert_eq!((to.as_str(), subject.as_str()), ("ama@example.com", "Your e-mail address and password were changed"));

    assert_eq!(change(json!({ "city": "Accra" })).await.status, 200);
    assert_eq!(change(json!({ "password": "a fourth horse", "username": "administrator" })).await.status, 409);
    app.deliver_mail().await;
    assert_eq!(server.accepted().len(), 2, "neither changes credentials");
}

#[test_on(sqlite, postgres)]
async fn changes_by_staff_and_by_code_are_reported(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let (reset, code) = app.request_code("/resets", "ama@example.com", 1).await;
    let server = app.start_mail_server(SmtpBehavior::Accept).await;

    assert_eq!(app.submit_code(&reset, json!({ "code": code, "password": "another horse" })).await.status, 200);
    let (to, subject, text) = last_mail(&app, &server, 1).await;
    assert_eq!((to.as_str(), subject.as_str()), ("ama@example.com", "Your password was changed"));
    assert!(text.contains("with a mailed code"), "{text}");

    let session = app.sign_in("ama", "another horse").await.unwrap();
    let path = format!("/accounts/{}", ama.number);
    let change = json!({ "email": "mensah@example.com" });
    assert_eq!(app.put(&app.staff.key, &path, &change).await.status, 200);
    let (to, subject, text) = last_mail(&app, &server, 2).await;
    assert_eq!((to.as_str(), subject.as_str()), ("ama@example.com", "Your e-mail address was changed"));
    assert!(text.contains("by the platform's staff"), "{text}");
    let ended = app.client(&session.key).session_active_get().send().await;
    assert_eq!(ended.rejection(), (403, "key.refused".to_owned()));
}

/// Requests of two sessions wait for the database. The first change ends the other session.
#[test_on(sqlite, postgres)]
async fn key_that_is_revoked_meanwhile_changes_nothing(app: TestApp) {
    app.stop_jobs().await;
    let ama = app.sign_up("ama").await;
    let other = app.sign_in("ama", PASSWORD).await.unwrap();
    let path = format!("/accounts/{}", ama.number);
    let passwords = ["correct horse", "battery staple"];
    let change = async |key: &str, password: &str| app.put(key, &path, json!({ "password": password })).await;
    let lock = app.begin_with_lock("select id from accounts where username = 'ama' for update").await;

    let changes = join(change(&ama.key, passwords[0]), change(&other.key, passwords[1]));
    let ((first, second), ()) = join(changes, app.commit_when_awaited(lock, 2)).await;

    let (rejected, winner) = if first.status == 200 { (second, 0) } else { (first, 1) };
    assert_eq!(rejection(&rejected), (403, "key.refused"), "{}", rejected.body);
    assert!(app.sign_in("ama", passwords[winner]).await.is_ok());
    assert!(app.sign_in("ama", passwords[1 - winner]).await.is_err());
}

#[test_on(sqlite, postgres)]
async fn key_of_a_program_changes_no_credentials(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let key = app.create_integration_key(&ama).await;
    let path = format!("/accounts/{}", ama.number);

    for change in [json!({ "password": "another one" }), json!({ "email": "other@example.com", "city": "Accra" })] {
        let rejected = app.put(&key, &path, change).await;
        assert_eq!(rejection(&rejected), (403, "resource.not-yours"), "{}", rejected.body);
    }
    assert_eq!(app.put(&key, &path, json!({ "email": "ama@example.com", "city": "Accra" })).await.status, 200);
    assert!(app.sign_in("ama", PASSWORD).await.is_ok());
}

/// The owner changes the address while a program's request, which repeats the earlier one, waits for the account.
#[test_on(sqlite, postgres)]
async fn key_of_a_program_does_not_restore_an_address(app: TestApp) {
    app.stop_jobs().await;
    let ama = app.sign_up("ama").await;
    let key = app.create_integration_key(&ama).await;
    let path = format!("/accounts/{}", ama.number);
    let mut lock = app.state.db.begin().await.unwrap();
    let update = "update accounts set email = 'other@example.com' where username = 'ama'";
    // SQLite has one transaction that writes at a time.
    lock.query(update).execute().await.unwrap();

    let restored = app.put(&key, &path, json!({ "email": "ama@example.com" }));
    let (restored, ()) = join(restored, app.commit_when_awaited(lock, 1)).await;

    assert_eq!(rejection(&restored), (403, "resource.not-yours"), "{}", restored.body);
    assert_eq!(app.get(&app.staff.key, &path).await.body["email"], "other@example.com");
}
