//! Deletion of accounts: conditions and remaining data.

mod races;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use boxoffice::features::sales::account_deletion;
use boxoffice::kernel::context::Context;
use serde_json::{Value, json};

use crate::support::{
    Event, PASSWORD, RESERVATION_TTL, Rejection, Response, TestApp, User, card_payment, entries_of, partial_card_payment,
    rejection, section, test_on, wait_until,
};
use crate::tickets::set_status;

impl TestApp {
    async fn remove(&self, key: &str, user: &User) -> Response {
        self.delete(key, &format!("/accounts/{}", user.number)).await
    }

    /// Returns the result of a count for an account.
    async fn count(&self, sql: &'static str, user: &User) -> i64 {
        let mut reader = self.state.db.read().await.unwrap();
        reader.query(sql).bind(user.number.clone()).scalar().await.unwrap()
    }

    /// Returns the number of an account's usable tickets.
    async fn count_usable_tickets(&self, user: &User) -> i64 {
        let count = "select count(*) from tickets t join accounts a on a.id = t.owner_id
            where a.number = $1 and t.status in ('Issued', 'Pending')";
        self.count(count, user).await
    }
}

/// Signs up Kofi, and creates an event with sections at these prices.
async fn create_event(app: &TestApp, prices: &[f64]) -> (User, Event) {
    let sections = prices.iter().enumerate().map(|(number, price)| section(&format!("Block {number}"), *price, 100));
    app.sign_up_host("kofi", &sections.collect::<Vec<_>>()).await
}

#[test_on(sqlite, postgres)]
async fn deletion_keeps_account_number_in_ledger(app: TestApp) {
    let (kofi, event) = create_event(&app, &[0.0]).await;
    let ama = app.sign_up("ama").await;
    let particulars = json!({
        "lastName": "Mensah", "title": "Ms", "dateOfBirth": "1992-04-18", "phone": "+233 24 555 0134", "country": "Ghana",
        "firstAddressLine": "12 Oxford Street", "secondAddressLine": "Osu", "city": "Accra", "state": "Greater Accra",
    });
    let path = format!("/accounts/{}", ama.number);
    assert_eq!(app.put(&ama.key, &path, &particulars).await.status, 200);
    app.execute("update accounts set verified = true where number = $1", ama.number.clone()).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap();
    app.end_event(&event).await;

    let removed = app.remove(&ama.key, &ama).await;

    assert_eq!((removed.status, removed.body), (204, Value::Null));
    let kept = app.read(&order.self_).await;
    assert_eq!(kept["status"], "Fulfilled");
    let customer = &kept["customer"];
    let name = customer["username"].as_str().unwrap();
    assert!(name.starts_with("deleted-") && name.len() > 32, "{name}");
    let expected = json!({
        "self": path, "number": ama.number, "username": name, "email": format!("{name}@deleted.invalid"), "role": "customer",
        "verified": false, "activated": false, "firstName": "", "lastName": "", "title": "", "dateOfBirth": "",
        "phone": "", "country": "", "firstAddressLine": "", "secondAddressLine": "", "city": "", "state": "",
        "language": "", "preferences": format!("{path}/preferences"),
    });
    assert_eq!(customer, &expected);
    let tickets = app.get(&kofi.key, &format!("{}/tickets", event.uri)).await;
    assert_eq!(tickets.body["entries"][0]["owner"], expected);
    let found = app.read(&format!("/orders?customer={}", ama.number)).await;
    assert_eq!(
        (&found["total"], &found["entries"][0]["self"]),
        (&json!(1), &json!(order.self_)),
        "the order is found by the account number"
    );
    let old = "select count(*) from accounts where number <> $1 and username = 'ama' or email = 'ama@example.com'";
    assert_eq!(app.count(old, &ama).await, 0);
}

/// The files of a SQLite database keep nothing of an erased account: neither free pages nor the log. PostgreSQL overwrites deleted
/// rows in its own time, see docs/operating.md.
#[test_on(sqlite, postgres)]
async fn deletion_leaves_no_personal_data_in_files(app: TestApp) {
    let (_, event) = create_event(&app, &[0.0, 10.0]).await;
    let ama = app.sign_up("zyxwvuwoman").await;
    let path = format!("/accounts/{}", ama.number);
    let particulars =
        json!({ "firstName": "Zyxwvufirst", "lastName": "Zyxwvulast", "phone": "+233 zyxwvu", "city": "Zyxwvutown" });
    assert_eq!(app.put(&ama.key, &path, &particulars).await.status, 200);
    for name in ["zyxwvusecond", "zyxwvuthird"] {
        let ask = app.request("POST", "/verifications").json(&json!({ "email": app.read(&path).await["email"] }));
        assert_eq!(ask.send().await.status, 201);
        let change = json!({
            "email": format!("{name}@example.com"), "username": name, "firstAddressLine": "Zyxwvu St ".repeat(20),
        });
        assert_eq!(app.put(&ama.key, &path, &change).await.status, 200);
    }
    ama.order(&event.sections[1], 1).await.unwrap();
    app.deliver_mail().await;
    let Some(file) = app.database_url.strip_prefix("sqlite:") else { return };
    let count = || {
        let of_file = |suffix: &str| {
            let bytes = std::fs::read(format!("{file}{suffix}")).unwrap_or_default();
            // A shorter text occurs in keys and in the Base64 of identifiers, too.
            let text = b"zyxwvu";
            bytes.windows(text.len()).filter(|window| window.eq_ignore_ascii_case(text)).count()
        };
        // The WAL first, because a job moves its content to the database file.
        ["-wal", ""].map(of_file).into_iter().sum::<usize>()
    };
    assert!(count() > 10, "{}", count());

    assert_eq!(app.remove(&ama.key, &ama).await.status, 204);

    wait_until(async || count() == 0).await;
}

#[test_on(sqlite, postgres)]
async fn deleted_account_is_not_found(app: TestApp) {
    let (ama, esi) = (app.sign_up("ama").await, app.sign_up("esi").await);
    let session = ama.client.session_active_get().send().await.unwrap().self_.clone();

    assert_eq!(app.remove(&ama.key, &ama).await.status, 204);

    let account = format!("/accounts/{}", ama.number);
    let send = |method, path: &str, body: Value| app.request(method, path).key(&app.staff.key).json(&body).send();
    for below in ["", "/preferences", "/hosts", "/sessions", "/orders", "/tickets", "/transfers", "/events"] {
        let response = send("GET", &format!("{account}{below}"), Value::Null).await;
        assert_eq!(rejection(&response), (404, "resource.not-found"), "{below}");
    }
    for (method, path, body) in [
        ("PUT", account.clone(), json!({ "firstName": "Ama" })),
        ("DELETE", account.clone(), Value::Null),
        ("POST", format!("{account}/toggles"), Value::Null),
        ("POST", format!("{account}/deletions"), Value::Null),
        ("PUT", format!("{account}/preferences"), json!({ "region": app.create_region().await })),
        ("GET", session.clone(), Value::Null),
        ("DELETE", session, Value::Null),
    ] {
        assert_eq!(rejection(&send(method, &path, body).await), (404, "resource.not-found"), "{method} {path}");
    }
    for filter in ["", &format!("?number={}", ama.number), "?username=ama", "?email=ama@example.com"] {
        let listed = app.read(&format!("/accounts{filter}")).await;
        assert!(!listed.to_string().contains(&ama.number), "{filter}");
    }
    let integration = json!({ "name": "Kiosk", "role": "customer", "account": ama.number });
    let integration = send("POST", "/integrations", integration).await;
    assert_eq!(integration.invalid_arguments(), ["account"]);
    let (_, event) = create_event(&app, &[10.0]).await;
    let order = json!({ "customer": ama.number, "items": { event.sections[0].as_str(): 1 } });
    let order_for_it = send("POST", "/orders", order.clone()).await;
    assert_eq!(order_for_it.invalid_arguments(), ["customer"]);
    assert_eq!(rejection(&app.post(&esi.key, "/orders", &order).await), (403, "resource.not-yours"));
}

#[test_on(sqlite, postgres)]
async fn deletion_ends_open_transfers(app: TestApp) {
    let (_, event) = create_event(&app, &[0.0]).await;
    let (ama, esi, yaw) = (app.sign_up("ama").await, app.sign_up("esi").await, app.sign_up("yaw").await);
    let offer = async |from: &User, to: &User| {
        let serial = from.order_free_tickets(&event.sections[0], 1).await.remove(0);
        let body = json!({ "recipient": to.number, "tickets": [serial] });
        let created = app.post(&from.key, "/transfers", &body).await;
        created.uri().to_owned()
    };
    let (received, sent, others) = (offer(&ama, &esi).await, offer(&esi, &yaw).await, offer(&ama, &yaw).await);
    assert_eq!(app.remove(&esi.key, &esi).await.code(), "account.has-tickets", "pending tickets belong to the sender");
    assert_eq!(app.read(&received).await["status"], "Pending", "a rejection ends nothing");
    app.end_event(&event).await;

    assert_eq!(app.remove(&esi.key, &esi).await.status, 204);

    for (transfer, status) in [(&received, "Cancelled"), (&sent, "Cancelled"), (&others, "Pending")] {
        assert_eq!(app.read(transfer).await["status"], status);
    }
    let back = app.wallet(&ama).await;
    assert_eq!((&back[0]["status"], &back[1]["status"]), (&json!("Issued"), &json!("Pending")));
    assert_eq!(rejection(&app.post_empty(&yaw.key, &format!("{sent}/claims")).await), (409, "transfer.not-open"));
    let offer_to_nobody = json!({ "recipient": esi.number, "tickets": [back[0]["serial"]] });
    let rejected = app.post(&ama.key, "/transfers", offer_to_nobody).await;
    assert_eq!(rejected.invalid_arguments(), ["recipient"]);
}

#[test_on(sqlite, postgres)]
async fn deletion_removes_codes_and_mail(app: TestApp) {
    let (ama, esi) = (app.sign_up("ama").await, app.sign_up("esi").await);
    let ask = async |kind: &str, user: &User| {
        let email = json!({ "email": format!("{}@example.com", user.username) });
        app.request("POST", kind).json(&email).send().await.uri().to_owned()
    };
    let (reset, kept) = (ask("/resets", &ama).await, ask("/verifications", &esi).await);
    let given_up = "insert into outbox (id, recipient, subject, body, created, attempts, due, failed) select id, 'AMA@example.com', '', '', 0, 8, null, 1 from accounts where number = $1";
    app.execute(given_up, ama.number.clone()).await;

    assert_eq!(app.remove(&ama.key, &ama).await.status, 204);

    assert_eq!(app.request("GET", &reset).send().await.status, 404);
    assert_eq!(app.request("GET", &kept).send().await.status, 200);
    let left = "select count(*) from outbox where lower(recipient) = 'ama@example.com' and $1 <> ''";
    assert_eq!(app.count(left, &ama).await, 0);
    let reset = app.request("POST", "/resets").json(&json!({ "email": "ama@example.com" })).send().await;
    assert_eq!(rejection(&reset), (404, "account.unknown"));
    let lookup = app.request("POST", "/lookups").json(&json!({ "identification": "ama" })).send().await;
    assert_eq!(lookup.body["found"], false);
}

#[test_on(sqlite, postgres)]
async fn deletion_removes_mail_to_earlier_addresses(app: TestApp) {
    app.stop_jobs().await;
    let (ama, esi) = (app.sign_up("ama").await, app.sign_up("esi").await);
    for user in [&ama, &esi] {
        let email = json!({ "email": format!("{}.mensah@example.com", user.username) });
        let changed = app.put(&user.key, &format!("/accounts/{}", user.number), &email).await;
        assert_eq!(changed.status, 200, "the change is reported to the earlier address");
    }

    assert_eq!(app.remove(&ama.key, &ama).await.status, 204);

    let left: Vec<(String,)> = app.rows("select recipient from outbox").await;
    assert_eq!(left, [("esi@example.com".to_owned(),)]);
}

/// Otherwise an intruder could take the address that an account had before, and keep its owner from learning of the change.
#[test_on(sqlite, postgres)]
async fn deletion_keeps_mail_to_earlier_holder_of_address(app: TestApp) {
    app.stop_jobs().await;
    let (ama, esi) = (app.sign_up("ama").await, app.sign_up("esi").await);
    for (user, email) in [(&ama, "new@example.com"), (&esi, "ama@example.com")] {
        let changed = app.put(&user.key, &format!("/accounts/{}", user.number), json!({ "email": email })).await;
        assert_eq!(changed.status, 200, "{}", changed.body);
    }
    let export = app.get(&esi.key, &format!("/accounts/{}/export", esi.number)).await;
    let mails: Vec<&Value> = entries_of(&export.body).iter().filter(|entry| entry["type"] == "mail").collect();
    assert!(mails.is_empty(), "{mails:?}");

    assert_eq!(app.remove(&esi.key, &esi).await.status, 204);

    let left: Vec<(String,)> = app.rows("select recipient from outbox").await;
    assert_eq!(left, [("ama@example.com".to_owned(),)]);
}

#[test_on(sqlite, postgres)]
async fn names_of_deleted_account_are_free(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let esi = app.sign_up("esi").await;
    app.remove(&ama.key, &ama).await;
    app.remove(&app.staff.key, &esi).await;

    for identification in ["ama", "ama@example.com"] {
        assert_eq!(app.sign_in(identification, PASSWORD).await.rejection(), (404, "account.unknown".to_owned()));
    }
    let again = app.sign_up("ama").await;

    assert_ne!(again.number, ama.number);
    assert!(app.sign_in("ama@example.com", PASSWORD).await.is_ok());
    let in_the_books = "select count(*) from accounts where number = $1 and username like 'deleted-%'";
    assert_eq!((app.count(in_the_books, &ama).await, app.count(in_the_books, &esi).await), (1, 1));
    let gone = "select username from accounts where username like 'deleted-%'";
    for (username,) in app.rows::<(String,)>(gone).await {
        assert_eq!(app.sign_in(&username, PASSWORD).await.rejection(), (404, "account.unknown".to_owned()));
    }
}

#[test_on(sqlite, postgres)]
async fn keys_of_deleted_account_are_rejected(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let other = app.sign_in("ama", PASSWORD).await.unwrap();
    let body = json!({ "name": "Kiosk", "role": "customer", "account": ama.number });
    let integration = app.post(&app.staff.key, "/integrations", &body).await.body;
    let kofis = app.create_integration_key(&kofi).await;

    assert_eq!(app.remove(&app.staff.key, &ama).await.status, 204);

    for key in [ama.key.as_str(), &other.key, integration["key"].as_str().unwrap()] {
        assert_eq!(rejection(&app.get(key, "/time").await), (403, "key.refused"));
    }
    assert_eq!(app.get(&kofis, "/time").await.status, 200);
    assert_eq!(rejection(&app.get(&app.staff.key, integration["self"].as_str().unwrap()).await), (404, "resource.not-found"));
    let open = "select count(*) from api_keys k join accounts a on a.id = k.account_id where a.number = $1 and k.ended is null";
    assert_eq!(app.count(open, &ama).await, 0);
}

#[test_on(sqlite, postgres)]
async fn deletion_removes_host_roles_and_preferences(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let host = app.create_host(&ama).await.uri;
    let region = app.create_region().await;
    let preferences = format!("/accounts/{}/preferences", ama.number);
    app.put(&ama.key, &preferences, json!({ "region": region })).await;

    assert_eq!(app.remove(&ama.key, &ama).await.status, 204);

    for table in [
        "select count(*) from host_administrators m join accounts a on a.id = m.account_id where a.number = $1",
        "select count(*) from account_preferences p join accounts a on a.id = p.account_id where a.number = $1",
    ] {
        assert_eq!(app.count(table, &ama).await, 0);
    }
    assert_eq!(app.read(&format!("/hosts?account={}", ama.number)).await["total"], 0);
    assert_eq!(app.request("GET", &host).send().await.status, 200, "the host stays");
}

#[test_on(sqlite, postgres)]
async fn deletion_cancels_and_refunds_open_orders(app: TestApp) {
    let (_, event) = create_event(&app, &[10.0, 20.0]).await;
    let (ama, esi) = (app.sign_up("ama").await, app.sign_up("esi").await);
    let late = ama.order(&event.sections[0], 5).await.unwrap().self_.clone();
    app.advance_clock(RESERVATION_TTL);
    let both = ama.order_items([(event.sections[0].as_str(), 2), (event.sections[1].as_str(), 3)]).await.unwrap();
    let second = ama.order(&event.sections[1], 1).await.unwrap();
    let hers = esi.order(&event.sections[1], 4).await.unwrap();
    assert_eq!(app.pay(&ama.key, &both.self_, partial_card_payment(30.0)).await.status, 201);

    assert_eq!(app.remove(&ama.key, &ama).await.status, 204);

    for (order, status) in
        [(&late, "Timed Out"), (&both.self_, "Cancelled"), (&second.self_, "Cancelled"), (&hers.self_, "Placed")]
    {
        assert_eq!(app.read(order).await["status"], status);
    }
    assert_eq!(app.payments(&both.self_).await, [(30.0, "Refunded".to_owned())]);
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 0));
    assert_eq!(app.sold_and_reserved(&event.sections[1]).await, (0, 4));
    app.expire_due().await;
    assert_eq!(app.stored_sold_and_reserved().await, (vec![(0, 0), (0, 4)], 4));
}

#[test_on(sqlite, postgres)]
async fn failed_refund_is_retried(app: TestApp) {
    let (_, event) = create_event(&app, &[10.0]).await;
    let ama = app.sign_up("ama").await;
    let order = ama.order(&event.sections[0], 5).await.unwrap().self_.clone();
    app.pay(&ama.key, &order, partial_card_payment(30.0)).await;
    app.gateway.reject_refunds(true);

    assert_eq!(app.remove(&ama.key, &ama).await.status, 204);

    assert_eq!(app.gateway.total(), 30.0);
    app.gateway.reject_refunds(false);
    app.expire_due().await;
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.payments(&order).await, [(30.0, "Refunded".to_owned())]);
}

#[test_on(sqlite, postgres)]
async fn deleted_account_gets_no_mail(app: TestApp) {
    let (_, event) = create_event(&app, &[10.0]).await;
    let ama = app.sign_up("ama").await;
    let order = ama.order(&event.sections[0], 5).await.unwrap().self_.clone();
    assert_eq!(app.pay(&ama.key, &order, partial_card_payment(30.0)).await.status, 201);

    assert_eq!(app.remove(&ama.key, &ama).await.status, 204);

    assert_eq!(app.read(&order).await["refunded"], 30.0, "of which other accounts get a mail");
    app.deliver_mail().await;
    wait_until(async || {
        app.count("select count(*) from outbox where account_id = (select id from accounts where number = $1)", &ama).await == 0
    })
    .await;
    let email = app.read(&order).await["customer"]["email"].as_str().unwrap().to_owned();
    assert!(email.ends_with("@deleted.invalid") && app.mailbox.files_to(&email).is_empty(), "{email}");
}

#[test_on(sqlite, postgres)]
async fn valid_tickets_for_future_events_prevent_deletion(app: TestApp) {
    let (_, event) = create_event(&app, &[0.0, 10.0]).await;
    let ama = app.sign_up("ama").await;
    let serials = ama.order_free_tickets(&event.sections[0], 1).await;
    let open = ama.order(&event.sections[1], 2).await.unwrap();
    let path = format!("/accounts/{}", ama.number);
    let before = app.read(&path).await;

    for status in ["Issued", "Pending"] {
        set_status(&app, &serials[0], status).await;
        for key in [&ama.key, &app.staff.key] {
            assert_eq!(rejection(&app.remove(key, &ama).await), (409, "account.has-tickets"), "{status}");
        }
    }

    assert_eq!(app.read(&path).await, before, "nothing was changed");
    assert_eq!(app.read(&open.self_).await["status"], "Placed");
    assert_eq!(app.sold_and_reserved(&event.sections[1]).await, (0, 2));
    assert!(ama.client.session_active_get().send().await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn unusable_tickets_do_not_prevent_deletion(app: TestApp) {
    let (kofi, event) = create_event(&app, &[0.0]).await;
    let over = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 0.0, 10)]).await;
    let ama = app.sign_up("ama").await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    set_status(&app, &serials[0], "Redeemed").await;
    set_status(&app, &serials[1], "Void").await;
    ama.order_free_tickets(&over.sections[0], 1).await;
    app.end_event(&over).await;

    assert_eq!(app.remove(&ama.key, &ama).await.status, 204);
}

#[test_on(sqlite, postgres)]
async fn deletion_refunds_payment_in_progress(app: TestApp) {
    let (_, event) = create_event(&app, &[100.0]).await;
    let ama = app.sign_up("ama").await;
    let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
    let meanwhile = async || {
        assert_eq!(app.remove(&ama.key, &ama).await.status, 204);
    };

    let (paid, ()) = app.pay_during(&ama, &order, card_payment(), meanwhile).await;

    assert_eq!(rejection(&paid), (409, "order.not-open"));
    app.assert_refunded(&order, 203.98).await;
    assert_eq!(app.count_usable_tickets(&ama).await, 0);
}

#[test_on(sqlite, postgres)]
async fn wal_is_truncated_again_after_a_failure(app: TestApp) {
    app.stop_jobs().await;
    let ctx = Context::immediate(Arc::clone(&app.state));
    app.state.has_erased.store(true, Ordering::Relaxed);

    let lock = app.state.db.begin().await.unwrap();
    if lock.is_postgres() {
        // It has no such file.
        return;
    }
    let failed = account_deletion::truncate_wal(&ctx).await;
    lock.commit().await.unwrap();

    assert!(failed.is_err());
    assert!(app.state.has_erased.load(Ordering::Relaxed));
    account_deletion::truncate_wal(&ctx).await.unwrap();
    assert!(!app.state.has_erased.load(Ordering::Relaxed));
}
