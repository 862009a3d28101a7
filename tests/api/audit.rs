//! The audit log: the account, time and outcome of every change.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use boxoffice::kernel::audit::{self, redact};
use boxoffice::kernel::settings::{LimitSettings, Settings};
use boxoffice::kernel::types::secret;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{PASSWORD, Response, TestApp, card_payment, entries_of, id_of, section, test_on};

/// Returns the entries that staff see.
async fn entries(app: &TestApp, query: &str) -> Vec<Value> {
    let page = app.read(&format!("/audit?records=100&{query}")).await;
    entries_of(&page).to_vec()
}

/// Returns the status and the error code of entries.
fn outcomes(entries: &[Value]) -> Vec<(i64, &str)> {
    entries.iter().map(|entry| (entry["status"].as_i64().unwrap(), entry["code"].as_str().unwrap_or_default())).collect()
}

async fn make_region(app: &TestApp, key: &str, name: &str) -> Response {
    app.post(key, "/regions", json!({ "name": name, "country": "Ghana" })).await
}

/// Returns a key's stored id.
async fn id_of_key(app: &TestApp, key: &str) -> String {
    let mut reader = app.state.db.read().await.unwrap();
    let id = reader.query("select id from api_keys where hash = $1").bind(boxoffice::kernel::types::secret::hash(key));
    format!("{:014}", id.scalar::<i64>().await.unwrap())
}

#[test_on(sqlite, postgres)]
async fn successful_change_is_recorded(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let path = format!("/accounts/{}", ama.number);
    let changed = app.put(&ama.key, &format!("/v3{path}"), json!({ "city": "Accra" })).await;

    let found = entries(&app, "operation=account_update").await;

    assert_eq!(changed.status, 200);
    let expected = json!([{
        "at": found[0]["at"], "key": id_of_key(&app, &ama.key).await, "account": ama.number, "operation": "account_update",
        "resource": path, "outcome": "done", "status": 200, "code": null, "request": changed.header("x-request-id"),
        "count": 1, "operator": null,
    }]);
    assert_eq!(json!(found), expected);
    assert!(found[0]["at"].as_str().unwrap().ends_with("+00:00"));
}

#[test_on(sqlite, postgres)]
async fn rejected_change_is_recorded(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let host = "/hosts/17637000000001";
    let with_one_key = async |name: &str| {
        let request = app.request("POST", "/regions").key(&app.staff.key).header("Idempotency-Key", "one");
        request.json(&json!({ "name": name, "country": "Ghana" })).send().await
    };
    with_one_key("Oti").await;

    let rejections = [
        make_region(&app, &ama.key, "Volta").await,
        make_region(&app, &app.staff.key, "").await,
        app.delete(&ama.key, host).await,
        with_one_key("Ahafo").await,
        make_region(&app, "an unknown key", "Volta").await,
        app.request("POST", "/regions").key(&ama.key).version(None).send().await,
    ];

    assert_eq!(rejections.map(|response| response.status), [403, 400, 404, 422, 403, 412]);
    let found = entries(&app, "outcome=refused").await;
    let expected =
        [(422, "idempotency.other-request"), (404, "resource.not-found"), (400, "arguments.invalid"), (403, "key.refused")];
    assert_eq!(outcomes(&found), expected);
    assert!(found.iter().all(|entry| entry["outcome"] == "refused"), "{found:?}");
    assert_eq!((&found[1]["resource"], &found[1]["operation"]), (&json!(host), &json!("host_delete")));
    assert_eq!(found[3]["account"], ama.number);
}

/// Writes the entries of counted rejections, like the job.
async fn write_rejections(app: &TestApp) {
    for state in app.states() {
        audit::write_rejections(&state.kernel).await.unwrap();
    }
}

/// Everyone may have a public key, so rejections must not add a row each.
#[test_on(sqlite, postgres)]
async fn rejections_with_public_key_share_an_entry(app: TestApp) {
    app.stop_jobs().await;
    app.sign_up("ama").await;
    let before = entries(&app, "").await.len();
    let log_in = async |name: &str| {
        let body = json!({ "identification": name, "password": "not hers at all" });
        app.post(&app.public_key, "/sessions", body).await
    };

    let wrong = [log_in("ama").await, log_in("ama").await, log_in("ama").await];
    let unknown = log_in("nobody").await;
    make_region(&app, &app.public_key, "Volta").await;

    assert_eq!(entries(&app, "").await.len(), before);
    write_rejections(&app).await;
    write_rejections(&app).await;
    let found = entries(&app, "outcome=refused").await;
    let mut counted: Vec<(&str, i64)> =
        found.iter().map(|entry| (entry["code"].as_str().unwrap(), entry["count"].as_i64().unwrap())).collect();
    counted.sort_unstable();
    assert_eq!(counted, [(unknown.code(), 1), ("key.refused", 1), (wrong[2].code(), 3)]);
    let entry = found.iter().find(|entry| entry["count"] == 3).unwrap();
    assert_eq!((&entry["resource"], &entry["operation"]), (&json!("/sessions"), &json!("session_create")));
    assert_eq!(entry["request"], wrong[2].header("x-request-id"));
}

/// Without a limit, any key could fill the log.
#[test_on(sqlite, postgres)]
async fn limits_entries_for_missing_scope(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let redeemer = crate::tokens::redeemer_key(&app, &crate::tokens::global_token(&event).await).await;
    let limits = LimitSettings { keys: 2, ..LimitSettings::default() };
    let server = app.start_second_server(Settings { limits, ..app.state.settings.clone() }).await;
    let before = entries(&app, "outcome=refused").await.len();

    for (path, key) in [("/regions", &ama.key), ("/sessions", &redeemer)] {
        let ask = async || app.request("POST", path).at(server.address).key(key).json(&json!({})).send().await;
        let responses = [ask().await, ask().await, ask().await];

        let actual = responses.each_ref().map(|response| (response.status, response.header("ratelimit-policy")));
        assert_eq!(actual, [403, 403, 429].map(|status| (status, "\"key\";q=2;w=60")), "{path}");
    }
    assert_eq!(entries(&app, "outcome=refused").await.len(), before + 4);
    server.stop().await;
}

#[test_on(sqlite, postgres)]
async fn unchanging_requests_are_not_recorded(app: TestApp) {
    let before = entries(&app, "").await.len();

    for path in ["/regions", "/accounts", "/regions/17637000000001", "/audit"] {
        app.get(&app.staff.key, path).await;
    }

    assert_eq!(entries(&app, "").await.len(), before);
}

/// A GET that creates a key.
#[test_on(sqlite, postgres)]
async fn creation_of_redeemer_key_is_recorded(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let token = crate::tokens::global_token(&event).await;
    crate::tokens::redeemer_key(&app, &token).await;
    app.request("GET", "/tokens/ZZZZZZZZ").send().await;

    let found = entries(&app, "operation=token_authentication_get").await;

    assert_eq!(outcomes(&found), [(200, "")]);
    assert_eq!((&found[0]["resource"], &found[0]["account"]), (&json!("/tokens/{code}"), &Value::Null));
}

#[test_on(sqlite, postgres)]
async fn first_start_is_recorded(app: TestApp) {
    let mut found = entries(&app, "").await;
    found.reverse();

    let created: Vec<_> = found.iter().map(|entry| (entry["operation"].as_str().unwrap(), entry["status"].as_i64())).collect();
    assert_eq!(created, [("account_create", Some(200)), ("integration_create", Some(200)), ("integration_create", Some(200))]);
    for entry in &found {
        assert!(entry["key"] == "00000000000000" && !entry["operator"].as_str().unwrap().is_empty(), "{entry}");
    }
}

#[test_on(sqlite, postgres)]
async fn every_rejection_under_load_is_recorded(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 3)]).await;
    let floor = event.sections[0].as_str();

    let responses = join_all((0..40).map(|_| app.place_order(&ama.key, json!({ floor: 1 })))).await;

    let found = entries(&app, "operation=order_create").await;
    let mut seen: Vec<(String, i64)> =
        responses.iter().map(|response| (response.header("x-request-id").into(), response.status.into())).collect();
    let actual = |entry: &Value| (entry["request"].as_str().unwrap().to_owned(), entry["status"].as_i64().unwrap());
    let mut kept: Vec<(String, i64)> = found.iter().map(actual).collect();
    seen.sort();
    kept.sort();
    assert_eq!(kept, seen);
    assert_eq!(outcomes(&found).iter().filter(|outcome| **outcome == (409, "section.sold-out")).count(), 37);
}

/// Entries are written in batches.
#[test_on(sqlite, postgres)]
async fn failed_entry_does_not_fail_other_requests(app: TestApp) {
    app.allow_server_errors();
    let guilty = "/hosts/17637000000007";
    app.execute_sql("create unique index one_of_it on audit (resource) where resource = '/hosts/17637000000007'").await;
    app.delete(&app.staff.key, guilty).await;
    let paths: Vec<String> = (0..20).map(|number| format!("/hosts/176370000000{number:02}")).collect();

    let responses = join_all(paths.iter().map(|path| app.request("DELETE", path).key(&app.staff.key).send())).await;

    for (path, response) in paths.iter().zip(&responses) {
        assert_eq!(response.status, if path == guilty { 500 } else { 404 }, "{path}");
    }
    assert_eq!(entries(&app, "operation=host_delete").await.len(), 20);
}

#[test_on(sqlite, postgres)]
async fn filters_entries(app: TestApp) {
    let (ama, esi) = (app.sign_up("ama").await, app.sign_up("esi").await);
    let path = format!("/accounts/{}", ama.number);
    for (key, city) in [(&ama.key, "Accra"), (&ama.key, "Tema"), (&esi.key, "Ho")] {
        app.put(key, &path, json!({ "city": city })).await;
    }
    app.advance_clock(Duration::from_secs(3600));
    app.delete(&esi.key, "/sessions/active").await;

    let count = async |query: &str| entries(&app, query).await.len();
    // A filter by time includes the whole of its last second, so the time is between two entries.
    let between = app.state.clock.now().minus(Duration::from_secs(1800)).format_minutes();
    let key = id_of_key(&app, &ama.key).await;
    assert_eq!(count(&format!("resource={path}")).await, 3);
    assert_eq!(count(&format!("account={}", ama.number)).await, 2);
    assert_eq!(count(&format!("account={}", esi.number)).await, 2);
    assert_eq!(count(&format!("key={key}")).await, 2);
    assert_eq!(count(&format!("resource={path}&outcome=done")).await, 2);
    assert_eq!(count(&format!("resource={path}&outcome=refused&account={}", esi.number)).await, 1);
    assert_eq!(count("operation=session_active_delete").await, 1);
    assert_eq!(count(&format!("from={between}")).await, 1);
    assert_eq!(count(&format!("to={between}&account={}", esi.number)).await, 1);
    for nothing in ["account=ZZ-ZZZZZZZZ", "key=17637000000001", "key=x", "operation=x", "resource=/x", "from=2998-01-01T00:00"] {
        assert_eq!(count(nothing).await, 0, "{nothing}");
    }
    let newest = entries(&app, "").await;
    assert_eq!(newest[0]["operation"], "session_active_delete");
    assert!(newest.iter().map(|entry| entry["at"].as_str().unwrap()).is_sorted_by(|a, b| a >= b));
    let wrong = app.get(&app.staff.key, "/audit?from=2026-01-02T00:00&to=2026-01-01T00:00").await;
    assert_eq!(wrong.invalid_arguments(), ["to"]);
}

#[test_on(sqlite, postgres)]
async fn entries_are_immutable(app: TestApp) {
    make_region(&app, &app.staff.key, "Volta").await;
    let before = entries(&app, "").await;

    for change in ["update audit set status = 500", "delete from audit", "truncate audit"] {
        let mut tx = app.state.db.begin().await.unwrap();
        // SQLite has no TRUNCATE.
        if change.starts_with("truncate") && !tx.is_postgres() {
            continue;
        }
        let rejected = tx.query(change).execute().await.unwrap_err();
        assert!(format!("{rejected:?}").contains("append-only"), "{change}: {rejected:?}");
    }

    assert_eq!(entries(&app, "").await, before);
}

#[test_on(sqlite, postgres)]
async fn contains_no_personal_data_or_secrets(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 3)]).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    app.pay(&ama.key, &order, card_payment()).await;
    let created = app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    let verification = created.uri().to_owned();
    app.request("PATCH", &verification).json(&json!({ "code": "000000" })).send().await;
    let reset = app.request("PATCH", "/resets/m4x8c5v0b3n6z7l2j9h4g1f8q7w2k9d1");
    reset.json(&json!({ "code": "000000", "password": PASSWORD })).send().await;
    // A secret in the form of an id.
    app.request("PATCH", "/verifications/17637000000051").json(&json!({ "code": "000000" })).send().await;
    write_rejections(&app).await;

    // The key of the first start has only zeros.
    let mut of_requests = entries(&app, "").await;
    of_requests.retain(|entry| entry["operator"].is_null());
    let trail = json!(of_requests).to_string();

    assert!(trail.contains("/verifications/{verification}") && trail.contains("/resets/{reset}"), "{trail}");
    let identifier = id_of(&verification);
    for secret in
        [identifier, "m4x8c5v0", "17637000000051", "\"000000", PASSWORD, "tok_approve", &ama.key, &kofi.key, &app.staff.key]
    {
        assert!(!trail.contains(secret), "{secret}");
    }
    for personal in ["example.com", "\"ama", "\"kofi", "127.0.0.1"] {
        assert!(!trail.contains(personal), "{personal}");
    }
}

/// Unlimited text from the path would be stored forever, or exceed the database's limit.
#[test_on(sqlite, postgres)]
async fn redacts_invalid_identifiers(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    // Random, so that the database can't compress it.
    let long: String = (0..250).map(|_| secret::api_key()).collect();
    let submission = STANDARD.encode(format!("/{}/17637000000051", "a".repeat(3000)));
    let sent = [
        ("DELETE", format!("/regions/{long}"), "/regions/{region}"),
        ("DELETE", format!("/submissions/{}?approved=true", submission.replace('=', "%3D")), "/submissions/{submission}"),
        ("DELETE", format!("/integrations/{}", kofi.key), "/integrations/{integration}"),
        ("PUT", "/accounts/ama@example.com".to_owned(), "/accounts/{number}"),
    ];

    for (method, path, kept) in &sent {
        for key in [&app.staff.key, &kofi.key] {
            let rejected = app.request(method, path).key(key).json(&json!({})).send().await;

            assert!([400, 403, 404].contains(&rejected.status), "{kept}: {}", rejected.status);
            let id = rejected.header("x-request-id");
            let found = entries(&app, "outcome=refused").await;
            let entry = found.iter().find(|entry| entry["request"] == id).unwrap_or_else(|| panic!("{kept}"));
            assert_eq!(entry["resource"], **kept);
        }
    }
}

#[test_on(sqlite, postgres)]
async fn normalizes_identifiers(app: TestApp) {
    let event = "L2V2ZW50cy8xNzYzNzAwMDAwMDA1MQ==";
    let sent = [
        ("/hosts/17637000000001".to_owned(), "/hosts/17637000000001".to_owned()),
        ("/hosts//%317637000000001/".to_owned(), "/hosts/17637000000001".to_owned()),
        ("/accounts/GH%2D4K7QW2MZ".to_owned(), "/accounts/GH-4K7QW2MZ".to_owned()),
        (format!("/submissions/{}?approved=true", event.replace('=', "%3D")), format!("/submissions/{event}")),
    ];

    for (path, kept) in &sent {
        let rejected = app.delete(&app.staff.key, path).await;

        let found = entries(&app, "outcome=refused").await;
        assert_eq!(
            (&found[0]["request"], &found[0]["resource"]),
            (&json!(rejected.header("x-request-id")), &json!(kept)),
            "{path}"
        );
    }
}

#[test_on(sqlite, postgres)]
async fn entries_survive_account_deletion(app: TestApp) {
    let ama = app.sign_up("ama").await;
    app.put(&ama.key, &format!("/accounts/{}", ama.number), json!({ "city": "Accra" })).await;
    let erased = app.delete(&ama.key, &format!("/accounts/{}", ama.number)).await;

    let found = entries(&app, &format!("account={}", ama.number)).await;

    assert_eq!(erased.status, 204);
    let operations: Vec<&str> = found.iter().map(|entry| entry["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["account_delete", "account_update"]);
}

#[test_on(sqlite, postgres)]
async fn change_without_entry_is_rolled_back(app: TestApp) {
    app.allow_server_errors();
    app.execute_sql("alter table audit rename column resource to gone").await;

    let failed = make_region(&app, &app.staff.key, "Volta").await;

    assert_eq!(failed.status, 500);
    assert_eq!(app.read("/regions").await["total"], 0);
    app.execute_sql("alter table audit rename column gone to resource").await;
    assert_eq!(make_region(&app, &app.staff.key, "Volta").await.status, 201);
}

#[test]
fn recognizes_identifiers_only() {
    for identifier in ["17637000000051", "GH-4K7QW2MZ", "L2V2ZW50cy8xNzYzNzAwMDAwMDA1MQ=="] {
        assert!(redact::is_identifier(identifier), "{identifier}");
    }
    let key = "m4x8c5v0b3n6z7l2j9h4g1f8q7w2k9d1";
    let others = ["", "ama", "ama@example.com", "1763700000005", "176370000000511", "gh-4k7qw2mz", "GH-4K7QW2M", "V8T3HK5N"];
    let encoded =
        [key, "/regions/ama", "/ama@example.com/17637000000051", "/events/17637000000051/"].map(|text| STANDARD.encode(text));
    let long = format!("/{}/17637000000051", "a".repeat(64));
    for other in others.into_iter().chain([key, &STANDARD.encode(long)]).chain(encoded.iter().map(String::as_str)) {
        assert!(!redact::is_identifier(other), "{other}");
    }
}
