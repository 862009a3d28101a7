//! The commands `boxoffice admin …`, beside a running server.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Arc;

use boxoffice::server::RunningApp;
use boxoffice_http::Listener;
use serde_json::{Value, json};

use crate::support::server_process::{CommandOutput, Run, ServerProcess, boxoffice};
use crate::support::{
    ANY_PORT, Response, TestApp, card_payment, entries_of, fetch_url, id_of, partial_card_payment, section, test_on, wait_until,
};

/// Runs a command of `admin` with the settings of the server.
pub fn admin(app: &TestApp, arguments: &[&str]) -> CommandOutput {
    command(app, &[&["admin"], arguments].concat())
}

/// Runs a command with the settings of the server.
fn command(app: &TestApp, arguments: &[&str]) -> CommandOutput {
    let mut command = prepare(app, arguments);
    tokio::task::block_in_place(|| command.run())
}

/// Returns a command with the settings of the server.
fn prepare(app: &TestApp, arguments: &[&str]) -> Command {
    let settings = &app.state.settings;
    let folder = settings.mail.key_file.parent().unwrap();
    let mut command = boxoffice(folder, arguments);
    command.env("DATABASE_URL", &app.database_url).env("BOXOFFICE_PUBLIC_URL", &settings.public_url);
    command
}

/// Runs a command that succeeds, and returns what it prints.
fn text(app: &TestApp, arguments: &[&str]) -> String {
    let output = admin(app, arguments);
    assert_eq!(output.code, Some(0), "{arguments:?}: {}", output.stderr);
    output.stdout
}

/// Runs a command that succeeds with `--json`, and returns its result.
pub fn json_of(app: &TestApp, arguments: &[&str]) -> Value {
    serde_json::from_str(&text(app, &[arguments, &["--json"]].concat())).unwrap()
}

/// Runs a command that fails with this exit code and a text in its message.
fn fails(app: &TestApp, arguments: &[&str], code: i32, message: &str) {
    let output = admin(app, arguments);
    assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.stderr);
    assert!(output.stderr.contains(message), "{arguments:?}: {}", output.stderr);
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

/// Returns the operation, the resource and the status of the operator's entries in the audit log since the first start, the oldest
/// first.
async fn audited(app: &TestApp) -> Vec<(String, String, i64)> {
    let log = app.read("/audit?records=100&key=00000000000000").await;
    let first_start = 3;
    let entries = entries_of(&log).iter().rev().skip(first_start);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entry = |entry: &Value| {
        assert!(!entry["operator"].as_str().unwrap().is_empty() && entry["account"].is_null(), "{entry}");
        (text(&entry["operation"]), text(&entry["resource"]), entry["status"].as_i64().unwrap())
    };
    entries.map(entry).collect()
}

#[test_on(sqlite, postgres)]
async fn manages_accounts(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let number = ama.number.as_str();
    let status = async || app.get(&ama.key, &format!("/accounts/{number}")).await.status;

    for found in ["ama", "AMA@example.com", number] {
        let page = json_of(&app, &["accounts", "find", found]);
        assert_eq!((&page["total"], &page["entries"][0]["number"]), (&json!(1), &json!(number)), "{found}");
    }
    assert!(text(&app, &["accounts", "find"]).starts_with("number "));
    for of_no_account in ["a", "@", "no one"] {
        assert_eq!(json_of(&app, &["accounts", "find", of_no_account])["total"], 0, "{of_no_account}");
    }
    assert!(text(&app, &["accounts", "show", number]).contains("ama@example.com"));
    fails(&app, &["accounts", "show", "GH-00000000"], 1, "resource.not-found");
    fails(&app, &["accounts", "show", ""], 2, "it is blank");
    fails(&app, &["accounts", "deactivate", number], 2, "Add --yes");
    assert_eq!(status().await, 200);
    text(&app, &["accounts", "deactivate", number, "--yes"]);
    assert_eq!(status().await, 403);
    fails(&app, &["accounts", "deactivate", number, "--yes"], 1, "inactive already");
    let staff = app.staff.number.as_str();
    fails(&app, &["accounts", "deactivate", staff, "--yes"], 1, "account.last-administrator");
    text(&app, &["accounts", "activate", number]);
    assert_eq!(status().await, 200);
    let reset = json_of(&app, &["accounts", "reset-password", number]);
    assert!(app.mail_to("ama@example.com", 1).await.contains("new password"));
    assert!(reset["self"].as_str().unwrap().starts_with("/resets/"));
    let first = json_of(&app, &["accounts", "find", "administrator@localhost.localdomain"]);
    let lost = admin(&app, &["accounts", "reset-password", first["entries"][0]["number"].as_str().unwrap()]);
    assert!(lost.succeeded() && lost.stderr.contains("no mail reaches administrator@localhost.localdomain"), "{}", lost.stderr);
    assert_eq!(json_of(&app, &["--yes", "accounts", "end-sessions", number]), json!({ "ended": 1 }));
    assert_eq!(status().await, 403);

    let toggles = format!("/accounts/{number}/toggles");
    let expected = [
        ("account_toggle_create", toggles.as_str(), 200),
        ("account_toggle_create", &format!("/accounts/{staff}/toggles"), 409),
        ("account_toggle_create", &toggles, 200),
        ("reset_create", "/resets", 201),
        ("reset_create", "/resets", 201),
        ("account_session_delete", &format!("/accounts/{number}/sessions"), 200),
    ];
    assert_eq!(audited(&app).await, expected.map(|(operation, resource, status)| (operation.into(), resource.into(), status)));
}

/// The command reads the state of the account, and changes it after another transaction has deactivated the account.
#[test_on(two_servers)]
async fn account_that_is_deactivated_twice_is_inactive(app: TestApp) {
    let ama = app.sign_up("ama").await;
    // A job that waits for the lock would be taken for the command.
    app.stop_jobs().await;
    let mut other = app.state.db.begin().await.unwrap();
    other.query("update accounts set activated = false where number = $1").bind(&ama.number).execute().await.unwrap();

    let mut command = prepare(&app, &["admin", "accounts", "deactivate", &ama.number, "--yes"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    app.wait_for_lock_waits(1).await;
    other.commit().await.unwrap();
    let output = CommandOutput::from(tokio::task::block_in_place(|| command.wait_with_output().unwrap()));

    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(app.get(&ama.key, &format!("/accounts/{}", ama.number)).await.status, 403);
}

#[test_on(sqlite, postgres)]
async fn manages_orders_and_events(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let floor = &event.sections[0];
    let mut orders = Vec::new();
    for paid in [true, true, false] {
        let order = ama.order(floor, 2).await.unwrap().self_.clone();
        if paid {
            assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
        }
        orders.push(id_of(&order).to_owned());
    }
    let [returned, voided, open] = [&orders[0], &orders[1], &orders[2]].map(String::as_str);

    let found = json_of(&app, &["orders", "find", "--customer", &ama.number, "--status", "Fulfilled"]);
    assert_eq!((&found["total"], &found["entries"][0]["number"]), (&json!(2), &json!(voided)));
    let shown = json_of(&app, &["orders", "show", returned]);
    assert_eq!((&shown["status"], &shown["payments"][0]["status"]), (&json!("Fulfilled"), &json!("Confirmed")));
    let serials = [0, 1].map(|index| shown["tickets"][index]["serial"].as_str().unwrap().to_owned());
    assert_eq!(shown["tickets"][1]["owner"]["username"], "ama");
    let shown = text(&app, &["orders", "show", returned]);
    assert!(serials.iter().all(|serial| shown.contains(serial)) && shown.contains("Issued"), "{shown}");
    assert!(shown.contains("ama@example.com") && shown.contains(floor.as_str()) && shown.contains("Confirmed"), "{shown}");
    app.mail_to("ama@example.com", 2).await;
    text(&app, &["orders", "resend-mail", returned]);
    let resent = app.mail_to("ama@example.com", 3).await;
    assert!(resent.contains("Your tickets") && resent.contains(returned), "{resent}");
    fails(&app, &["orders", "resend-mail", open], 1, "order.not-fulfilled");
    fails(&app, &["orders", "resend-mail", "17"], 1, "resource.not-found");
    fails(&app, &["orders", "show", "17"], 1, "nothing has this number or identifier");
    fails(&app, &["orders", "find", "--status", "Timed"], 2, "Timed Out");
    fails(&app, &["orders", "refund", returned], 2, "refunds them. Add --yes");
    for change in ["refund", "void"] {
        fails(&app, &["orders", change, returned, "--yes", "--reason", " "], 2, "it is blank");
    }
    let reason = ["--reason", "the singer is ill", "--yes"];
    let refund = text(&app, &[&["orders", "refund", returned, "--ticket", &serials[0]][..], &reason].concat());
    assert!(refund.contains("Its status is Fulfilled.") && refund.contains("The payment gateway refunds 20.99"), "{refund}");
    assert_eq!(json_of(&app, &[&["orders", "refund", returned][..], &reason].concat())["status"], "Returned");
    fails(&app, &[&["orders", "refund", returned][..], &reason].concat(), 1, "order.not-fulfilled");
    text(&app, &[&["orders", "void", voided][..], &reason].concat());
    text(&app, &["orders", "cancel", open, "--yes"]);
    for (order, status, refunded) in [(returned, "Returned", 41.98), (voided, "Voided", 0.0), (open, "Cancelled", 0.0)] {
        let order = app.read(&format!("/orders/{order}")).await;
        assert_eq!((&order["status"], order["refunded"].as_f64()), (&json!(status), Some(refunded)));
    }
    assert_eq!(app.sold_and_reserved(floor).await, (0, 0));

    let number = id_of(&event.uri);
    assert_eq!(json_of(&app, &["events", "find", "--status", "Listed"])["total"], 1);
    let shown = text(&app, &["events", "show", &event.uri]);
    let floor = shown.lines().find(|line| line.split_whitespace().any(|cell| cell == "Floor")).unwrap();
    assert_eq!(floor.split_whitespace().collect::<Vec<_>>(), ["Floor", "20.0", "10", "0", "0", "yes"], "{shown}");
    text(&app, &["events", "withdraw", number, "--yes"]);
    assert_eq!(app.read(&event.uri).await["status"], "Draft");
    text(&app, &["events", "cancel", number, "--yes"]);
    assert_eq!(app.read(&event.uri).await["status"], "Cancelled");
    fails(&app, &["events", "cancel", number, "--yes"], 1, "event.not-listed");

    let operations: Vec<(String, i64)> =
        audited(&app).await.into_iter().map(|(operation, _, status)| (operation, status)).collect();
    let expected = [
        ("order_mail_resend", 200),
        ("order_mail_resend", 409),
        ("order_mail_resend", 404),
        ("order_return_create", 200),
        ("order_return_create", 200),
        ("order_return_create", 409),
        ("order_void_create", 200),
        ("order_cancellation_create", 200),
        ("event_withdrawal_create", 200),
        ("event_cancellation_create", 200),
        ("event_cancellation_create", 409),
    ];
    assert_eq!(operations, expected.map(|(operation, status)| (operation.to_owned(), status)));
}

#[test_on(sqlite, postgres)]
async fn refund_of_external_payment_is_left_to_operator(app: TestApp) {
    let (ama, event, order) = app.create_order(4).await;
    // More than a page of declined payments comes first.
    app.execute_sql(
        "insert into payments (id, order_id, method, amount, status, reference, placed)
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 120)
         select n, (select id from orders), 'card', 100, 'Declined', '', n from numbers",
    )
    .await;
    let external = json!({ "method": "external", "amount": 30.0, "reference": "RECEIPT-17" });
    let external = app.pay(&app.staff.key, &order, external).await;
    let card = app.pay(&ama.key, &order, card_payment()).await;
    assert_eq!((external.status, card.status), (201, 201), "{} {}", external.body, card.body);
    let (number, payment) = (id_of(&order), external.body["number"].as_str().unwrap());

    let shown = text(&app, &["orders", "show", number]);
    let refund = text(&app, &["orders", "refund", number, "--yes"]);

    assert!(shown.contains("RECEIPT-17") && !shown.contains("--page"), "{shown}");
    let total = card.body["amount"].as_f64().unwrap();
    assert!(refund.contains(&format!("The payment gateway refunds {total:.2}")), "{refund}");
    let by_operator = format!("outside of the platform:\n  30.00 of the payment {payment}, reference RECEIPT-17");
    assert!(refund.contains(&by_operator), "{refund}");

    let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
    let external = json!({ "method": "external", "amount": 5.0, "reference": "RECEIPT-18" });
    let external = app.pay(&app.staff.key, &order, external).await;
    let refunds = json_of(&app, &["orders", "cancel", id_of(&order), "--yes"])["refunds"].clone();
    let expected = json!({ "payment": external.body["number"], "method": "external", "reference": "RECEIPT-18", "amount": 5.0 });
    assert_eq!(refunds, json!([expected]));
}

#[test_on(sqlite, postgres)]
async fn manages_keys(app: TestApp) {
    fails(&app, &["keys", "create", "--role", "public", "--name", ""], 2, "it is blank");
    let created = json_of(&app, &["keys", "create", "--role", "public", "--name", "Shop"]);
    let (id, key) = (created["id"].as_str().unwrap(), created["key"].as_str().unwrap());
    let status = async || app.get(key, "/time").await.status;
    assert_eq!(status().await, 200);

    let keys = json_of(&app, &["keys", "list"]);
    let shop = entries_of(&keys).iter().find(|entry| entry["name"] == "Shop").unwrap();
    assert_eq!((&shop["id"], &shop["role"], &shop["account"]), (&json!(id), &json!("public"), &Value::Null));
    assert!(!keys.to_string().contains(key) && !text(&app, &["keys", "list"]).contains(key));
    fails(&app, &["keys", "create", "--role", "customer", "--account", "GH-00000000", "--name", "x"], 1, "GH-00000000");
    let for_a_year = ["keys", "create", "--role", "public", "--name", "Year", "--expires", "2999-12-31"];
    text(&app, &for_a_year);
    let keys = json_of(&app, &["keys", "list"]);
    let year = entries_of(&keys).iter().find(|entry| entry["name"] == "Year").unwrap();
    assert!(year["expires"].as_str().unwrap().starts_with("2999-12-31T00:00:00") && shop["expires"].is_null(), "{keys}");
    fails(&app, &["keys", "create", "--role", "public", "--name", "x", "--expires", "2020-01-01"], 2, "it has passed");
    fails(&app, &["keys", "create", "--role", "public", "--name", "x", "--expires", "soon"], 2, "2027-01-31T18:00");
    fails(&app, &["keys", "end", id], 2, "Add --yes");
    text(&app, &["keys", "end", id, "--yes"]);

    assert_eq!(status().await, 403);
    fails(&app, &["keys", "end", id, "--yes"], 1, "resource.not-found");
}

#[test_on(sqlite, postgres)]
async fn manages_outbox(app: TestApp) {
    app.execute_sql(
        "insert into outbox (id, recipient, subject, body, created, attempts, due, failed, key_id) values
         (17637000000001, 'ama@example.com', 'Hello', 'A text.', 1, 3, 9000000000000000, null, null),
         (17637000000002, 'esi@example.com', 'Hello', '', 1, 8, null, 9000000000000000, null),
         (17637000000003, 'yaw@example.com', 'Hello', 'A text.', 1, 1, 9000000000000000, null, 'lost')",
    )
    .await;

    let mails = text(&app, &["outbox", "list"]);
    assert!(mails.contains("17637000000001") && mails.contains("given up") && !mails.contains("A text."), "{mails}");
    assert_eq!(json_of(&app, &["outbox", "list", "--failed"])["entries"][0]["recipient"], "esi@example.com");
    let mail = json_of(&app, &["outbox", "show", "17637000000001"]);
    assert_eq!((&mail["state"], &mail["attempts"]), (&json!("waiting"), &json!(3)));
    assert!(!mail.to_string().contains("A text."));
    fails(&app, &["outbox", "show", "1"], 1, "no mail with the identifier 1");
    fails(&app, &["outbox", "retry", "17637000000002"], 1, "was given up");
    text(&app, &["outbox", "retry", "17637000000001"]);
    assert!(app.mail_to("ama@example.com", 1).await.contains("A text."));
    assert_eq!(
        (&mail["key"], json_of(&app, &["outbox", "show", "17637000000003"])["key"].as_str()),
        (&json!(""), Some("encrypted with another key"))
    );
    assert!(text(&app, &["outbox", "retry", "17637000000003"]).contains("A server with the key of this mail"));
    app.execute_sql("update outbox set due = 9000000000000000 where id = 17637000000003").await;
    assert_eq!(json_of(&app, &["outbox", "retry", "--all"]), json!({ "mails": 1 }));
    assert_eq!(json_of(&app, &["outbox", "retry", "--all"]), json!({ "mails": 0 }));
    fails(&app, &["outbox", "drop", "17637000000003"], 2, "yaw@example.com");
    text(&app, &["outbox", "drop", "17637000000003", "--yes"]);
    assert_eq!(json_of(&app, &["outbox", "list"])["total"], 1);

    let retry = |id: &str| ("outbox_retry", format!("/outbox/{id}"));
    let delete = ("outbox_delete", "/outbox/17637000000003".to_owned());
    let all = ("outbox_retry", "/outbox".to_owned());
    let expected = [retry("17637000000001"), retry("17637000000003"), all.clone(), all, delete];
    assert_eq!(audited(&app).await, expected.map(|(operation, resource)| (operation.into(), resource, 200)));
}

#[test_on(sqlite, postgres)]
async fn lists_and_runs_jobs(app: TestApp) {
    let retention = ["jobs", "run", "apply the retention"];
    fails(&app, &retention, 2, "deletes sessions after 30 days, codes after a day, mails after 30 days, unpaid orders after 365");
    fails(&app, &retention, 2, "and entries of the audit log never. These are the settings of this command.");
    let run = json_of(&app, &[&retention[..], &["--yes"]].concat());
    assert_eq!(run, json!({ "name": "apply the retention", "processed": 0 }));
    assert_eq!(audited(&app).await, [("job_run".to_owned(), "/jobs/apply%20the%20retention".to_owned(), 200)]);
    fails(&app, &["jobs", "run", "tidy"], 2, "watch the clock");
    for job in ["watch the clock", "watch the standby", "record rejected requests"] {
        fails(&app, &["jobs", "run", job], 1, "the work of this job is in the memory of each server");
    }

    let job = |name: &str| {
        let jobs = json_of(&app, &["jobs", "list"]);
        entries_of(&jobs).iter().find(|job| job["name"] == name).unwrap().clone()
    };
    assert_eq!((&job("apply the retention")["outcome"], &job("apply the retention")["every"]), (&json!("done"), &json!("1 h")));
    // The server has begun to run its jobs, one after the other.
    wait_until(async || job("expire reservations")["finished"].is_string()).await;
    assert!(text(&app, &["jobs", "list"]).contains("deliver mail"));
}

#[test_on(sqlite, postgres)]
async fn command_sends_mail_with_its_own_settings_only_if_confirmed(app: TestApp) {
    app.stop_jobs().await;
    app.execute_sql(
        "insert into outbox (id, recipient, subject, body, created, attempts, due, failed, key_id) values
         (17637000000001, 'ama@example.com', 'Hello', 'A text.', 1, 0, 1, null, null)",
    )
    .await;
    let deliver = ["jobs", "run", "deliver mail"];
    let waiting = || json_of(&app, &["outbox", "list"])["total"].clone();

    fails(&app, &deliver, 2, "sends no mail, because no mail server is set: it moves the mails that are due from the outbox to");
    fails(
        &app,
        &[&deliver[..], &["--smtp", "127.0.0.1:1"]].concat(),
        2,
        "to the mail server 127.0.0.1:1. These are the settings",
    );
    assert_eq!(waiting(), 1);
    text(&app, &[&deliver[..], &["--yes"]].concat());
    assert_eq!(waiting(), 0);
}

/// Cancels an order with a payment of 50.00, and one of 30.00 that may have been made. The gateway rejects both refunds. Returns the
/// order and the first payment.
async fn create_open_refunds(app: &TestApp) -> (String, Response) {
    let (ama, _, order) = app.create_order(10).await;
    let paid = app.pay(&ama.key, &order, partial_card_payment(50.0)).await;
    app.gateway.reject_refunds(true);
    app.gateway.fail_after_charge(true);
    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(30.0)).await.code(), "payment.gateway");
    app.cancel_order(&ama.key, &order).await;
    (order, paid)
}

#[test_on(sqlite, postgres)]
async fn refunds_that_fail_are_visible(app: TestApp) {
    let platform = RunningApp::start_with_admin(Arc::clone(&app.state), ANY_PORT, Some(Listener::from(ANY_PORT))).unwrap();
    let metrics_url = format!("http://{}/metrics", platform.admin_address().unwrap());
    let metrics = async || fetch_url(&metrics_url).await.text().await.unwrap();
    let value = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("boxoffice_{name} ")));
        line.unwrap_or_else(|| panic!("{name} in {text}")).parse::<f64>().unwrap()
    };
    assert_eq!(text(&app, &["refunds", "list"]).trim(), "(none)");
    let (order, paid) = create_open_refunds(&app).await;

    let list = json_of(&app, &["refunds", "list"]);
    let [cancellation, refund] = entries_of(&list) else { panic!("{list}") };
    let facts = |entry: &Value| ["type", "order", "amount"].map(|name| entry[name].clone());
    let order = json!(order.trim_start_matches("/orders/"));
    assert_eq!(facts(cancellation), [json!("cancellation"), order.clone(), json!(30.0)]);
    assert_eq!(facts(refund), [json!("refund"), order, json!(50.0)]);
    assert_eq!((&cancellation["payment"], &refund["payment"]), (&cancellation["id"], &paid.body["number"]));
    assert!(refund["since"].as_str() >= paid.body["placed"].as_str(), "{list}");
    let page = text(&app, &["refunds", "list", "--records", "1"]);
    assert!(page.contains("cancellation") && page.contains("(1 of 2;"), "{page}");
    let failed = metrics().await;
    assert!(value(&failed, "refunds_waiting") == 2.0 && value(&failed, "oldest_refund_age_seconds") > 0.0, "{failed}");

    app.gateway.reject_refunds(false);

    wait_until(async || value(&metrics().await, "refunds_waiting") == 0.0).await;
    assert_eq!(value(&metrics().await, "oldest_refund_age_seconds"), 0.0);
    assert_eq!(text(&app, &["refunds", "list"]).trim(), "(none)");
}

#[test_on(sqlite, postgres)]
async fn refund_made_by_other_means_is_settled(app: TestApp) {
    let (order, paid) = create_open_refunds(&app).await;
    let list = json_of(&app, &["refunds", "list"]);
    let [cancellation, refund] = entries_of(&list) else { panic!("{list}") };
    let [cancellation, refund] = [cancellation, refund].map(|entry| entry["id"].as_str().unwrap());

    fails(&app, &["refunds", "settle", refund], 2, "records the refund of 50.00 of the payment");
    for id in [cancellation, refund] {
        assert_eq!(json_of(&app, &["refunds", "settle", id, "--yes"])["id"], id);
        fails(&app, &["refunds", "settle", id, "--yes"], 1, "no refund or cancellation with the identifier");
    }

    assert_eq!(text(&app, &["refunds", "list"]).trim(), "(none)");
    let payments = app.read(&format!("{order}/payments")).await;
    let [payment] = entries_of(&payments) else { panic!("{payments}") };
    assert_eq!((&payment["number"], &payment["status"]), (&paid.body["number"], &json!("Refunded")));
    let ledger = app.read("/transactions").await;
    assert_eq!(entries_of(&ledger).iter().filter(|entry| entry["type"] == "Refund").count(), 1, "{ledger}");
    assert_eq!(app.gateway.balances().into_values().collect::<Vec<_>>(), [5000, 3000]);
    let settled = [cancellation, refund].map(|id| ("refund_settle".to_owned(), format!("/refunds/{id}"), 200));
    assert_eq!(audited(&app).await, settled);
}

/// A command may run with a data folder of its own, and so with a key that signs no tickets.
#[test_on(sqlite, postgres)]
async fn command_registers_no_ticket_key(app: TestApp) {
    let registered = async || app.scalar::<i64>("select count(*) from ticket_keys").await;
    let before = registered().await;
    let folder = tempfile::tempdir().unwrap();
    let mut command = boxoffice(folder.path(), &["key", "create", "--name", "Gate", "--role", "public"]);
    command.env("DATABASE_URL", &app.database_url).env("BOXOFFICE_PUBLIC_URL", &app.state.settings.public_url);

    let output = tokio::task::block_in_place(|| command.run());

    assert!(output.succeeded(), "{}", output.stderr);
    assert_eq!(registered().await, before);
}

#[test]
fn command_that_changes_nothing_creates_no_files() {
    let folder = tempfile::tempdir().unwrap();
    assert!(boxoffice(folder.path(), &["migrate"]).run().succeeded());
    let files = || folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>();
    let before = files();

    for command in [
        ["accounts", "find"],
        ["keys", "list"],
        ["orders", "find"],
        ["refunds", "list"],
        ["events", "find"],
        ["jobs", "list"],
        ["outbox", "list"],
    ] {
        let output = boxoffice(folder.path(), &[&["admin"], &command[..]].concat()).run();

        assert_eq!((output.code, files()), (Some(0), before.clone()), "{command:?}: {}", output.stderr);
    }
}

/// A command with the settings of another server would encrypt mails with a key of its own, and no server could send them.
#[test]
fn admin_command_needs_the_keys_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    assert!(boxoffice(folder.path(), &["migrate"]).run().succeeded());
    let create = ["admin", "keys", "create", "--role", "public", "--name", "x"];

    let rejected = boxoffice(folder.path(), &create).run();
    let has_keys = ["mail.key", "ticket.key"].map(|key| folder.path().join(key).exists());
    ServerProcess::start(boxoffice(folder.path(), &["serve"])).stop();
    let accepted = boxoffice(folder.path(), &create).run();

    assert_eq!((rejected.code, has_keys), (Some(1), [false; 2]));
    assert!(rejected.stderr.contains("mail.key does not exist: give the settings of the server"), "{}", rejected.stderr);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
}

#[test]
fn command_without_database_creates_none() {
    let folder = tempfile::tempdir().unwrap();
    let account = ["account", "create", "--username", "esi", "--email", "esi@example.com", "--password", "correct horse"];

    for command in [&["admin", "orders", "find"][..], &["key", "create", "--role", "public"], &account] {
        let output = boxoffice(folder.path(), command).run();

        assert_eq!(output.code, Some(1), "{command:?}");
        assert!(output.stderr.contains("there is no SQLite database"), "{}", output.stderr);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{command:?}");
    }
}

#[test_on(sqlite, postgres)]
async fn commands_for_accounts_and_keys_are_audited(app: TestApp) {
    let create = ["account", "create", "--username", "esi", "--email", "esi@example.com", "--password", "correct horse"];

    let created = command(&app, &create);
    let number = created.stdout.trim().to_owned();
    let again = command(&app, &create);
    let key = command(&app, &["key", "create", "--role", "administrator", "--account", &number]);
    let nobodys = command(&app, &["key", "create", "--role", "administrator", "--account", "ZZ-00000000"]);

    let codes = [&created, &again, &key, &nobodys].map(|output| output.code);
    assert_eq!(codes, [Some(0), Some(1), Some(0), Some(1)], "{}{}", created.stderr, key.stderr);
    let audited = audited(&app).await;
    let expected = [("account_create", 200), ("account_create", 409), ("integration_create", 200), ("integration_create", 404)];
    assert_eq!(audited.iter().map(|(operation, _, status)| (operation.as_str(), *status)).collect::<Vec<_>>(), expected);
    assert!(audited.iter().all(|(operation, resource, _)| *resource == format!("/{}s", operation.trim_end_matches("_create"))));
}
