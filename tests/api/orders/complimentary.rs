//! Complimentary orders.

use serde_json::{Value, json};

use crate::support::{Event, Response, TestApp, code_in, rejection, section, test_on};

async fn issue(app: &TestApp, key: &str, event: &Event, body: Value) -> Response {
    app.post(key, &format!("{}/complimentary-orders", event.uri), &body).await
}

#[test_on(sqlite, postgres)]
async fn host_issues_complimentary_tickets(app: TestApp) {
    let mut later = section("Later", 50.0, 10);
    later.sales_start = "2998-01-01T00:00".to_owned();
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 100.0, 10), later]).await;
    let items = json!({ &event.sections[0]: 2, &event.sections[1]: 1 });

    let issued = issue(&app, &kofi.key, &event, json!({ "account": ama.number, "items": items })).await;

    assert_eq!(issued.status, 201, "{}", issued.body);
    let order = issued.header("location").to_owned();
    assert_eq!((&issued.body["status"], &issued.body["complimentary"]), (&json!("Fulfilled"), &json!(true)));
    let amounts = ["subtotal", "fees", "total", "refunded"].map(|name| issued.body[name].as_f64().unwrap());
    assert_eq!((amounts, &issued.body["items"][0]["unitPrice"]), ([0.0; 4], &json!(0.0)));
    assert_eq!((&issued.body["customer"]["username"], &issued.body["customer"]["phone"]), (&json!("ama"), &json!("")));
    assert_eq!(app.get(&kofi.key, &order).await.body, issued.body);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (2, 0));
    let wallet = app.get(&ama.key, &format!("/accounts/{}/tickets", ama.number)).await.body;
    assert_eq!((&wallet["total"], &wallet["entries"][0]["order"]), (&json!(3), &json!(order)));

    let by_email = json!({ "email": "AMA@example.com", "items": { &event.sections[0]: 1 } });
    let by_email = issue(&app, &app.staff.key, &event, by_email).await;
    assert_eq!((by_email.status, &by_email.body["customer"]["number"]), (201, &json!(ama.number)));
    let bought = ama.order(&event.sections[0], 1).await.unwrap();
    assert!(!bought.complimentary && bought.total > 100.0);
    let returned = app.return_tickets(&kofi.key, &order, json!({})).await;
    assert_eq!((&returned.body["status"], &returned.body["complimentary"]), (&json!("Returned"), &json!(true)));
    assert_eq!(app.transactions("/transactions").await, []);
}

/// The owner of the address takes the account over with a code that only that address gets.
#[test_on(sqlite, postgres)]
async fn email_without_account_gets_tickets(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 100.0, 10)]).await;
    let gift = json!({ "email": "Esi@Example.com", "items": { &event.sections[0]: 2 } });

    let issued = issue(&app, &kofi.key, &event, gift.clone()).await;

    assert_eq!(issued.status, 201, "{}", issued.body);
    let guest = &issued.body["customer"];
    let number = guest["number"].as_str().unwrap();
    assert_eq!(
        (&guest["email"], &guest["verified"], &guest["role"]),
        (&json!("Esi@Example.com"), &json!(false), &json!("customer"))
    );
    assert_eq!(guest["username"], format!("guest-{}", number.to_lowercase()));
    let mail = app.mail_to("Esi@Example.com", 1).await;
    for text in ["Subject: Your tickets", "Hello Esi@Example.com,", "It has no password yet."] {
        assert!(mail.contains(text), "{mail}");
    }
    let again = issue(&app, &kofi.key, &event, gift.clone()).await;
    assert_eq!((again.status, &again.body["customer"]["number"]), (201, &json!(number)));
    let sign_up = json!({ "username": "esi", "password": "correct horse", "email": "esi@example.com" });
    let taken = app.post(&app.public_key, "/accounts", &sign_up).await;
    assert_eq!(rejection(&taken), (409, "account.taken"));
    assert!(taken.body["error"].as_str().unwrap().contains("reset the password"), "{}", taken.body);

    let reset = app.post(&app.public_key, "/resets", &json!({ "email": "esi@example.com" })).await;
    let code = code_in(&app.mail_to("Esi@Example.com", 3).await);
    let used = json!({ "code": code, "password": "correct horse" });
    let used = app.request("PATCH", reset.uri()).key(&app.public_key).json(&used).send().await;
    assert_eq!(used.status, 200, "{}", used.body);

    let esi = app.sign_in("esi@example.com", "correct horse").await.unwrap().key;
    let wallet = app.get(&esi, &format!("/accounts/{number}/tickets")).await.body;
    assert_eq!(wallet["total"], 4);
    let transfer = json!({ "recipient": ama.number, "tickets": [wallet["entries"][0]["serial"]] });
    assert_eq!(app.post(&esi, "/transfers", &transfer).await.status, 201);
    assert_eq!(issue(&app, &kofi.key, &event, gift).await.status, 201);
    let mail = app.mail_to("Esi@Example.com", 5).await;
    assert!(mail.contains("Your 2 tickets are attached") && !mail.contains("no password"), "{mail}");
}

#[test_on(sqlite, postgres)]
async fn rejected_order_leaves_no_guest(app: TestApp) {
    let (kofi, _, event) = app.create_sale(&[section("Floor", 10.0, 1)]).await;
    let gift = |quantity: i64| json!({ "email": "esi@example.com", "items": { &event.sections[0]: quantity } });
    let accounts = async || app.scalar::<i64>("select count(*) from accounts where email = 'esi@example.com'").await;

    assert_eq!(rejection(&issue(&app, &kofi.key, &event, gift(2)).await), (409, "section.sold-out"));
    assert_eq!(accounts().await, 0);
    assert_eq!(issue(&app, &kofi.key, &event, gift(1)).await.status, 201);
    assert_eq!(accounts().await, 1);
}

#[test_on(sqlite, postgres, two_servers)]
async fn guests_have_one_account(app: TestApp) {
    let (kofi, _, event) = app.create_sale(&[section("Floor", 10.0, 100)]).await;
    let give = async |email: &str| {
        let gift = json!({ "email": email, "items": { &event.sections[0]: 1 } });
        issue(&app, &kofi.key, &event, gift).await
    };
    let sign_up = json!({ "username": "abena", "password": "correct horse", "email": "abena@example.com" });

    let given = futures::future::join_all((0..30).map(|number| {
        give(["esi@example.com", "Esi@example.com", "nana@example.com", "abena@example.com", "yaw@example.com"][number % 5])
    }));
    let (given, signed_up) = futures::future::join(given, app.post(&app.public_key, "/accounts", &sign_up)).await;

    assert!(given.iter().all(|response| response.status == 201), "{given:?}");
    assert!([201, 409].contains(&signed_up.status), "{}", signed_up.body);
    let accounts: Vec<(String, i64)> = app
        .rows("select lower(a.email), count(*) from orders o join accounts a on a.id = o.account_id group by a.id, a.email order by 1")
        .await;
    let accounts: Vec<(&str, i64)> = accounts.iter().map(|(email, orders)| (&**email, *orders)).collect();
    assert_eq!(accounts, [("abena@example.com", 6), ("esi@example.com", 12), ("nana@example.com", 6), ("yaw@example.com", 6)]);
}

#[test_on(sqlite, postgres, two_servers)]
async fn address_of_account_that_is_deleted_gets_tickets(app: TestApp) {
    let (kofi, _, event) = app.create_sale(&[section("Floor", 10.0, 100)]).await;
    for number in 0..5 {
        let esi = app.sign_up(&format!("esi{number}")).await;
        let gift = json!({ "email": format!("esi{number}@example.com"), "items": { &event.sections[0]: 1 } });

        let given = futures::future::join_all((0..4).map(|_| issue(&app, &kofi.key, &event, gift.clone())));
        let account = format!("/accounts/{}", esi.number);
        let (given, deleted) = futures::future::join(given, app.delete(&esi.key, &account)).await;

        assert!(given.iter().all(|response| response.status == 201), "{given:?}");
        assert!([204, 409].contains(&deleted.status), "{}", deleted.body);
    }
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres)]
async fn complimentary_tickets_count_for_capacity_and_maximum(app: TestApp) {
    let mut limited = section("Floor", 10.0, 4);
    limited.maximum_per_account = serde_json::from_value(json!(2)).unwrap();
    let (kofi, ama, event) = app.create_sale(&[limited]).await;
    let yaw = app.sign_up("yaw").await;
    let give = async |number: &str, quantity: i64| {
        issue(&app, &kofi.key, &event, json!({ "account": number, "items": { &event.sections[0]: quantity } })).await
    };

    assert_eq!(rejection(&give(&ama.number, 3).await), (409, "section.account-maximum"));
    assert_eq!(give(&ama.number, 2).await.status, 201);
    let order = app.place_order(&ama.key, json!({ &event.sections[0]: 1 })).await;
    assert_eq!(rejection(&order), (409, "section.account-maximum"));
    yaw.order(&event.sections[0], 1).await.unwrap();
    assert_eq!(rejection(&give(&kofi.number, 2).await), (409, "section.sold-out"));
    assert_eq!(give(&kofi.number, 1).await.status, 201);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (3, 1));
}

#[test_on(sqlite, postgres)]
async fn complimentary_order_is_rejected_with_reasons(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 100), section("Balcony", 10.0, 100)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 10.0, 100)]).await;
    let floor = event.sections[0].as_str();
    let items = json!({ floor: 1 });

    for (body, invalid) in [
        (json!({ "items": items }), &["-account"][..]),
        (json!({ "account": ama.number, "email": "ama@example.com", "items": items }), &["email"]),
        (json!({ "account": "ZZ-00000000", "items": items }), &["account"]),
        (json!({ "email": "nobody@example.com", "items": { &other.sections[0]: 1 } }), &["items"]),
        (json!({ "email": "nobody", "items": items }), &["email"]),
        (json!({ "account": ama.number, "items": { "/sections/17637000000001": 1 } }), &["items"]),
        (json!({ "account": ama.number, "items": { floor: 1, super::short(floor): 1 } }), &["items"]),
        (json!({ "account": ama.number, "items": {} }), &["items"]),
        (json!({ "account": "ZZ-00000000", "items": { floor: 50, &event.sections[1]: 1 } }), &["items", "account"]),
    ] {
        let rejected = issue(&app, &kofi.key, &event, body.clone()).await;
        assert_eq!(rejected.invalid_arguments(), *invalid, "{body}");
    }
    let wrong = json!({ floor: 50, super::short(floor): 1, &other.sections[0]: 1 });
    let rejected = issue(&app, &kofi.key, &event, json!({ "account": ama.number, "items": wrong })).await;
    for detail in ["names no section of this event (at ", "names a section again (at ", "must have at most 50 tickets in all"] {
        assert!(rejected.body["fields"][0]["detail"].as_str().unwrap().contains(detail), "{}", rejected.body);
    }
    let body = json!({ "account": ama.number, "items": items });
    assert_eq!(rejection(&issue(&app, &ama.key, &event, body.clone()).await), (403, "resource.not-yours"));
    for (change, code) in [
        ("update hosts set removed = true", "host.removed"),
        ("update events set ends = 1, starts = 0", "event.over"),
        ("update events set status = 'Draft'", "event.not-listed"),
    ] {
        app.execute_sql(change).await;
        assert_eq!(rejection(&issue(&app, &app.staff.key, &event, body.clone()).await), (409, code));
    }
}

/// Nobody could use the places.
#[test_on(sqlite, postgres)]
async fn deactivated_account_gets_no_tickets(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 100)]).await;
    let toggled = app.post_empty(&app.staff.key, &format!("/accounts/{}/toggles", ama.number)).await;
    assert_eq!(toggled.status, 200);
    let items = json!({ event.sections[0].as_str(): 1 });

    let given = issue(&app, &kofi.key, &event, json!({ "account": ama.number, "items": items })).await;
    let by_email = issue(&app, &kofi.key, &event, json!({ "email": "ama@example.com", "items": items })).await;
    let body = json!({ "customer": ama.number, "items": items });
    let ordered = app.post(&app.staff.key, "/orders", &body).await;

    let unknown = json!({ "customer": ama.number, "items": { "/sections/1": 1 } });
    assert_eq!(app.post(&app.staff.key, "/orders", &unknown).await.invalid_arguments(), ["items", "customer"]);
    for (rejected, argument) in [(given, "account"), (by_email, "email"), (ordered, "customer")] {
        assert_eq!(rejected.invalid_arguments(), [argument], "{}", rejected.body);
        assert!(rejected.body["error"].as_str().unwrap().contains("active account"), "{}", rejected.body);
    }
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 0));
}

#[test_on(sqlite, postgres, two_servers)]
async fn complimentary_tickets_and_orders_never_oversell(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Free", 0.0, 5)]).await;
    let body = json!({ "account": ama.number, "items": { &event.sections[0]: 1 } });

    let given = futures::future::join_all((0..6).map(|_| issue(&app, &kofi.key, &event, body.clone())));
    let ordered = futures::future::join_all((0..6).map(|_| app.place_order(&ama.key, json!({ &event.sections[0]: 1 }))));
    let (given, ordered) = futures::future::join(given, ordered).await;

    let all: Vec<u16> = given.iter().chain(&ordered).map(|response| response.status).collect();
    assert_eq!(
        (all.iter().filter(|status| **status == 201).count(), all.iter().filter(|status| **status == 409).count()),
        (5, 7)
    );
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (5, 0));
}
