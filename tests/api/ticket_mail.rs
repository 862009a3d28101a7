//! Mails about orders, tickets and transfers, and tickets as a PDF.

use std::time::Duration;

use boxoffice::features::sales::mail;
use boxoffice::kernel::context::Context;
use boxoffice::kernel::outbox::{MailRow, format_time};
use boxoffice::kernel::types::clock::Timestamp;
use boxoffice::kernel::types::language::Language;
use chrono_tz::Tz;
use serde_json::{Value, json};

use crate::support::{TestApp, User, card_payment, id_of, partial_card_payment, pdf, readable, rejection, section, test_on};

impl TestApp {
    /// Delivers all mail, and returns the mails to a user, oldest first, as the server has sent them. No job may deliver mail meanwhile.
    async fn mails_of(&self, user: &User) -> Vec<String> {
        self.deliver_mail().await;
        let files = self.mailbox.files_to(&format!("{}@example.com", user.username));
        files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
    }

    /// Delivers all mail, and returns the subjects of the mails to a user, oldest first.
    async fn subjects_of(&self, user: &User) -> Vec<String> {
        self.mails_of(user).await.iter().map(|mail| subject(mail)).collect()
    }

    /// Sends all mails. Returns the template and the values with which each was stored.
    async fn send_stored(&self) -> Vec<Value> {
        let columns =
            "select id, recipient, account_id, template, subject, body, key_id, expires, created, attempts, due from outbox
            order by id";
        let stored = self.rows(columns).await.into_iter().map(|row: MailRow| {
            let body: Value = serde_json::from_str(&self.state.mail_cipher.decrypt(&row).unwrap()).unwrap();
            json!([row.template, body["values"]])
        });
        let stored = stored.collect();
        self.deliver_mail().await;
        stored
    }

    /// Runs the job that reports changed events.
    async fn report_events(&self) {
        while mail::report_events(&Context::immediate(self.state.clone())).await.unwrap() > 0 {}
    }

    /// Runs the job that reports changed events ten minutes later: until then, it waits for further changes.
    async fn report_events_later(&self) {
        self.advance_clock(Duration::from_secs(10 * 60));
        self.report_events().await;
    }
}

fn subject(mail: &str) -> String {
    readable(mail).lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap().to_owned()
}

/// Returns the attached PDF of a mail.
fn attachment(mail: &str) -> Option<Vec<u8>> {
    let parsed = mailparse::parse_mail(mail.as_bytes()).unwrap();
    let part = parsed.parts().find(|part| part.ctype.mimetype == "application/pdf")?;
    Some(part.get_body_raw().unwrap())
}

/// Returns the HTML of a mail.
fn html(mail: &str) -> String {
    let parsed = mailparse::parse_mail(mail.as_bytes()).unwrap();
    parsed.parts().find(|part| part.ctype.mimetype == "text/html").unwrap().get_body().unwrap()
}

#[test]
fn times_are_formatted_for_the_language() {
    for (time, language, expected) in [
        ("2027-03-01T19:00", Language::En, "Monday, 1 March 2027, 19:00 UTC"),
        ("2027-03-01T19:00", Language::Fr, "lundi 1er mars 2027 à 19:00 UTC"),
        ("2027-03-31T19:00", Language::Fr, "mercredi 31 mars 2027 à 19:00 UTC"),
    ] {
        assert_eq!(format_time(Timestamp::parse(time).unwrap(), Tz::UTC, language), expected);
    }
}

#[test_on(sqlite, postgres)]
async fn free_order_is_confirmed_with_its_tickets(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let title = app.read(&event.uri).await["title"].as_str().unwrap().to_owned();

    ama.order_free_tickets(&event.sections[0], 3).await;
    let mails = app.mails_of(&ama).await;

    assert_eq!(mails.len(), 1);
    assert_eq!(subject(&mails[0]), format!("Your tickets: {title}"));
    let text = readable(&mails[0]);
    assert!(text.contains("Hello ama") && text.contains("Your 3 tickets are attached") && text.contains("3 × Floor"), "{text}");
    assert!(mails[0].contains("Content-Type: text/html"), "{}", mails[0]);
    assert_eq!(pdf::pages(&attachment(&mails[0]).unwrap()), 3);
    assert!(app.mails_of(&kofi).await.iter().all(|mail| attachment(mail).is_none()));
}

#[test_on(sqlite, postgres)]
async fn mails_are_in_the_language_of_the_account(app: TestApp) {
    app.stop_jobs().await;
    let (_, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    let account = json!({ "username": "awa", "email": "awa@example.com", "password": "correct horse" });
    let created = app.request("POST", "/accounts").header("Accept-Language", "fr-CA, en;q=0.5").json(&account).send().await;
    let awa = app.sign_in("awa", "correct horse").await.unwrap();
    assert_eq!((created.status, &created.body["language"]), (201, &json!("fr")));
    let path = created.uri().to_owned();
    let order = async || {
        let floor = event.sections[0].as_str();
        assert_eq!(app.place_order(&awa.key, json!({ floor: 1 })).await.status, 201);
        app.mail_to("awa@example.com", 1).await
    };

    let french = order().await;
    let change = |language: &str| app.request("PUT", &path).key(&awa.key).json(&json!({ "language": language })).send();
    let (english, default, unknown) = (change("en").await, change("").await, change("de").await);

    assert!(french.contains("Subject: Vos billets : ") && french.contains("Présentez le code QR à l’entrée"), "{french}");
    assert_eq!((&english.body["language"], &default.body["language"]), (&json!("en"), &json!("")));
    assert_eq!(unknown.invalid_arguments(), ["language"]);
}

#[test_on(sqlite, postgres)]
async fn paid_order_is_confirmed_once(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 1234.5, 10)]).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap();
    assert_eq!(app.mails_of(&ama).await.len(), 0, "it is not paid");

    ama.pay(&order).await.unwrap();
    let mails = app.mails_of(&ama).await;

    assert_eq!(mails.len(), 1);
    let text = readable(&mails[0]);
    assert!(text.contains("GHS 2,469.00") && text.contains("GHS 9.98") && text.contains("GHS 2,478.98"), "{text}");
    assert!(text.contains(&format!("https://boxoffice.example/open?to={}", order.self_)), "{text}");
    assert_eq!(pdf::pages(&attachment(&mails[0]).unwrap()), 2);
}

#[test_on(sqlite, postgres)]
async fn ended_orders_are_mailed(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 50)]).await;
    let floor = event.sections[0].as_str();

    let cancelled = ama.order(floor, 1).await.unwrap();
    assert_eq!(app.pay(&ama.key, &cancelled.self_, partial_card_payment(10.0)).await.status, 201);
    assert_eq!(app.cancel_order(&ama.key, &cancelled.self_).await.status, 200);
    app.assert_subjects(&ama, &["was cancelled", "Refund of GHS 10.00"]).await;
    let text = readable(&app.mails_of(&ama).await[0]);
    assert!(text.contains("What you have paid for it is refunded"), "{text}");
    assert!(["GHS 20.00", "GHS 0.99", "GHS 20.99"].iter().all(|amount| text.contains(amount)), "{text}");

    let returned = ama.order(floor, 2).await.unwrap();
    ama.pay(&returned).await.unwrap();
    app.return_tickets(&kofi.key, &returned.self_, json!({ "reason": "Bad weather\n<b>Sorry</b>" })).await;
    app.assert_subjects(&ama, &["was cancelled", "Refund of", "Your tickets", "2 tickets of your order"]).await;
    let mail = app.mails_of(&ama).await.pop().unwrap();
    let text = readable(&mail);
    assert!(text.contains("GHS 41.98 are refunded") && text.contains("Reason: Bad weather <b>Sorry</b>"), "{text}");
    assert!(html(&mail).contains("Bad weather<br>&lt;b&gt;Sorry"), "{}", html(&mail));

    let timed_out = ama.order(floor, 1).await.unwrap();
    assert_eq!(app.pay(&ama.key, &timed_out.self_, partial_card_payment(5.0)).await.status, 201);
    app.time_out_orders().await;
    let voided = ama.order(floor, 1).await.unwrap();
    app.pay(&ama.key, &voided.self_, card_payment()).await;
    app.void_order(&app.staff.key, &voided.self_, json!({ "reason": "Stolen card" })).await;
    let expected = [
        "was cancelled",
        "Refund of",
        "Your tickets",
        "2 tickets of your order",
        "Refund of GHS 5.00",
        "Your tickets",
        "are void",
    ];
    app.assert_subjects(&ama, &expected).await;
}

#[test_on(sqlite, postgres)]
async fn cancellation_without_payment_is_mailed(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let floor = event.sections[0].as_str();
    let cancel = async || {
        let order = ama.order(floor, 1).await.unwrap();
        let declined = json!({ "method": "card", "token": "tok_decline" });
        assert_eq!(app.pay(&ama.key, &order.self_, declined).await.status, 402);
        assert_eq!(app.cancel_order(&ama.key, &order.self_).await.status, 200);
    };

    cancel().await;
    let with_items = readable(&app.mails_of(&ama).await[0]);
    cancel().await;
    assert_eq!(app.delete(&kofi.key, &event.uri).await.status, 204);
    let of_deleted_event = readable(&app.mails_of(&ama).await[1]);

    assert!(with_items.contains("Nothing was charged.") && with_items.contains("GHS 20.99"), "{with_items}");
    assert!(of_deleted_event.contains("Nothing was charged.") && !of_deleted_event.contains("GHS"), "{of_deleted_event}");
    app.assert_subjects(&ama, &["was cancelled", "was cancelled"]).await;
}

/// The gateway answers after the order was paid in another way.
#[test_on(sqlite, postgres)]
async fn refund_of_a_late_payment_is_mailed(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    app.gateway.reject_refunds(true);
    let pay_in_cash = async || {
        // The payment by card is abandoned.
        app.advance_clock(Duration::from_secs(180));
        app.expire_due().await;
        let cash = json!({ "method": "external", "reference": "Till 2" });
        assert_eq!(app.pay(&app.staff.key, &order, cash).await.status, 201);
        app.gateway.reject_refunds(false);
    };

    let (late, ()) = app.pay_during(&ama, &order, card_payment(), pay_in_cash).await;
    app.expire_due().await;

    assert_eq!(rejection(&late), (409, "order.not-open"));
    app.assert_subjects(&ama, &["Your tickets", "Refund of GHS 20.99"]).await;
}

/// The tickets for another event of the same order stay valid.
#[test_on(sqlite, postgres)]
async fn mail_about_returned_tickets_names_only_them(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10), section("Balcony", 0.0, 10)]).await;
    let other = app.create_listed_event(&app.create_host(&kofi).await, &[section("Gallery", 0.0, 10)]).await;
    let items = [(event.sections[0].as_str(), 2), (event.sections[1].as_str(), 1), (other.sections[0].as_str(), 3)];
    let order = ama.order_items(items).await.unwrap();
    app.put(&kofi.key, &event.uri, json!({ "title": "Jazz Evening" })).await;
    app.put(&kofi.key, &other.uri, json!({ "title": "Open Air" })).await;
    let wallet = app.wallet(&ama).await;
    let of_floor = wallet.iter().filter(|ticket| ticket["section"]["name"] == "Floor");
    let serials: Vec<&Value> = of_floor.map(|ticket| &ticket["serial"]).collect();

    assert_eq!(app.return_tickets(&kofi.key, &order.self_, json!({ "tickets": serials })).await.status, 200);

    let mail = readable(app.mails_of(&ama).await.last().unwrap());
    assert!(mail.contains("2 tickets of your order"), "{mail}");
    assert!(mail.contains("2 × Floor, Jazz Evening"), "{mail}");
    assert!(["Balcony", "Open Air", "Gallery"].iter().all(|other| !mail.contains(other)), "{mail}");
}

#[test_on(sqlite, postgres)]
async fn return_is_mailed_once_if_the_order_is_voided_before_its_refund(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let order = ama.order(&event.sections[0], 3).await.unwrap();
    ama.pay(&order).await.unwrap();
    let wallet = ama.client.account_ticket_list().number(ama.number.as_str()).send().await.unwrap();
    let serials: Vec<String> = wallet.entries.iter().take(2).map(|ticket| ticket.serial.to_string()).collect();
    app.gateway.reject_refunds(true);
    assert_eq!(app.return_tickets(&kofi.key, &order.self_, json!({ "tickets": serials })).await.status, 200);
    assert_eq!(app.void_order(&app.staff.key, &order.self_, json!({ "reason": "Stolen card" })).await.status, 200);

    app.gateway.reject_refunds(false);
    app.expire_due().await;

    assert_eq!(app.gateway.total(), 20.99, "the returned tickets are refunded");
    app.assert_subjects(&ama, &["Your tickets", "2 tickets of your order", "are void"]).await;
}

impl TestApp {
    /// Asserts that the subjects of a user's mails contain these texts.
    async fn assert_subjects(&self, user: &User, expected: &[&str]) {
        let subjects = self.subjects_of(user).await;
        assert_eq!(subjects.len(), expected.len(), "{subjects:?}");
        for (subject, expected) in subjects.iter().zip(expected) {
            assert!(subject.contains(expected), "{subjects:?}");
        }
    }
}

#[test_on(sqlite, postgres)]
async fn transfer_is_offered_and_tickets_are_mailed(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let offered = app.post(&ama.key, "/transfers", json!({ "recipient": esi.number, "tickets": serials })).await;
    let transfer = offered.uri();

    let subjects = app.subjects_of(&esi).await;
    assert_eq!(subjects, ["ama offers you 2 tickets"]);
    app.post_empty(&esi.key, &format!("{transfer}/claims")).await;
    let mails = app.mails_of(&esi).await;

    assert_eq!(mails.len(), 2);
    assert_eq!(subject(&mails[1]), "Your tickets from ama");
    assert_eq!((attachment(&mails[0]), pdf::pages(&attachment(&mails[1]).unwrap())), (None, 2));
    let text = readable(&mails[0]);
    assert!(serials.iter().all(|serial| !text.contains(serial)), "the tickets are not hers yet");
}

#[test_on(sqlite, postgres)]
async fn holders_of_transferred_tickets_are_mailed_that_they_are_void(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Free", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let title = app.read(&event.uri).await["title"].as_str().unwrap().to_owned();
    let buy_and_transfer = async |transferred: usize| {
        let order = ama.order(&event.sections[0], 3).await.unwrap();
        let wallet = ama.client.account_ticket_list().number(ama.number.as_str()).records(100).send().await.unwrap();
        let serials: Vec<_> = wallet.entries.iter().rev().take(transferred).map(|ticket| ticket.serial.to_string()).collect();
        let transfer = app.post(&ama.key, "/transfers", json!({ "recipient": esi.number, "tickets": serials })).await.body;
        let claims = format!("{}/claims", transfer["self"].as_str().unwrap());
        assert!(app.post_empty(&esi.key, &claims).await.status < 300);
        order.self_.clone()
    };
    let (returned, voided) = (buy_and_transfer(2).await, buy_and_transfer(1).await);

    app.return_tickets(&kofi.key, &returned, json!({ "reason": "A storm" })).await;
    app.void_order(&app.staff.key, &voided, json!({ "reason": "A stolen card" })).await;
    let mails = app.mails_of(&esi).await;

    let subjects: Vec<String> = mails.iter().map(|mail| subject(mail)).filter(|subject| subject.ends_with("void")).collect();
    assert_eq!(subjects, [format!("2 tickets for {title} are void"), format!("A ticket for {title} is void")]);
    let number = |uri: &str| id_of(uri).to_owned();
    let of_customer = ["A storm".to_owned(), "A stolen card".to_owned(), number(&returned), number(&voided)];
    for mail in &mails {
        let text = readable(mail);
        assert!(of_customer.iter().all(|secret| !text.contains(secret.as_str())), "{text}");
    }
    let amas = app.subjects_of(&ama).await;
    assert!(amas.iter().all(|subject| !subject.contains(&title) || subject.starts_with("Your tickets")), "{amas:?}");
}

/// Servers of another version send the mails that this one stores, and the other way round.
#[test_on(sqlite, postgres)]
async fn stored_mails_have_the_same_form_in_all_versions(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 20.0, 10), section("Box", 20.0, 1)]).await;
    let (floor, box_) = (event.sections[0].as_str(), event.sections[1].as_str());
    let esi = app.sign_up("esi").await;
    app.deliver_mail().await;
    let id = |uri: &str| id_of(uri).parse::<i64>().unwrap();
    let buy = async |quantity: i64| {
        let order = ama.order(floor, quantity).await.unwrap();
        ama.pay(&order).await.unwrap();
        assert_eq!(app.send_stored().await, [json!(["order-confirmation", { "order": id(&order.self_) }])]);
        order.self_.clone()
    };

    let returned = buy(2).await;
    let tickets = [app.wallet(&ama).await[0]["serial"].clone()];
    let transfer = app.post(&ama.key, "/transfers", json!({ "recipient": esi.number, "tickets": tickets })).await;
    let transfer = transfer.uri();
    assert_eq!(app.send_stored().await, [json!(["transfer-received", { "transfer": id(transfer) }])]);
    app.post_empty(&esi.key, &format!("{transfer}/claims")).await;
    assert_eq!(app.send_stored().await, [json!(["transfer-claimed", { "transfer": id(transfer) }])]);
    app.return_tickets(&kofi.key, &returned, json!({ "reason": "A storm" })).await;
    let expected = [
        json!(["tickets-voided", { "order": id(&returned), "event": id(&event.uri), "voided": 1 }]),
        json!([
            "tickets-returned",
            { "order": id(&returned), "returned": 2, "sections": [[id(floor), 2]], "amount": 4198, "reason": "A storm" }
        ]),
    ];
    assert_eq!(app.send_stored().await, expected);

    let voided = buy(1).await;
    app.void_order(&app.staff.key, &voided, json!({ "reason": "A stolen card" })).await;
    assert_eq!(app.send_stored().await, [json!(["order-voided", { "order": id(&voided), "reason": "A stolen card" }])]);

    let cancelled = ama.order(box_, 1).await.unwrap().self_.clone();
    assert_eq!(app.pay(&ama.key, &cancelled, partial_card_payment(10.0)).await.status, 201);
    let entry = app.post(&esi.key, &format!("{box_}/waiting-list"), json!({ "quantity": 1 })).await;
    app.cancel_order(&ama.key, &cancelled).await;
    let expected = [
        json!(["order-cancelled", { "order": id(&cancelled), "because": "customer" }]),
        json!(["refund", { "order": id(&cancelled), "amount": 1000 }]),
    ];
    assert_eq!(app.send_stored().await, expected);
    app.offer_places().await;
    assert_eq!(app.send_stored().await, [json!(["places-offered", { "offer": id(entry.uri()) }])]);

    let open = ama.order(floor, 1).await.unwrap().self_.clone();
    app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await;
    app.expire_due().await;
    assert_eq!(app.send_stored().await, [json!(["order-cancelled", { "order": id(&open), "because": "event" }])]);

    let subjects = ["Your tickets", "2 tickets of your order", "Your tickets", "are void", "cancelled", "Refund", "cancelled"];
    app.assert_subjects(&ama, &subjects).await;
    app.assert_subjects(&esi, &["offers you a ticket", "Your tickets from", "A ticket for", "A place is free: Box"]).await;
}

#[test_on(sqlite, postgres)]
async fn changes_of_an_event_are_mailed_to_holders_once(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    ama.order_free_tickets(&event.sections[0], 2).await;
    let change = async |start: &str| {
        let body = json!({ "start": start });
        assert_eq!(app.put(&kofi.key, &event.uri, &body).await.status, 200);
    };
    let before = app.read(&event.uri).await["start"].as_str().unwrap().to_owned();
    change("2998-01-02T20:00").await;
    change("2998-01-03T20:30").await;
    app.report_events().await;
    assert_eq!(app.subjects_of(&ama).await.len(), 1, "further changes may follow");

    app.report_events_later().await;
    app.report_events().await;
    let mails = app.mails_of(&ama).await;

    assert_eq!((mails.len(), app.mails_of(&esi).await.len()), (2, 0));
    let text = readable(&mails[1]);
    assert!(
        text.contains("Subject: Changed: ") && text.contains("changed its time") && text.contains("3 January 2998, 20:30 UTC"),
        "{text}"
    );

    change("2998-01-04T20:30").await;
    change("2998-01-03T20:30").await;
    app.report_events_later().await;
    assert_eq!(app.mails_of(&ama).await.len(), 2, "the change was taken back");
    change("2998-01-05T20:30").await;
    // As if some of many holders had been mailed, before the change is taken back.
    app.execute_sql("update event_notices set last_ticket_id = 1").await;
    change("2998-01-03T20:30").await;
    app.report_events_later().await;
    let corrected = readable(app.mails_of(&ama).await.last().unwrap());
    assert!(corrected.contains("3 January 2998, 20:30 UTC") && corrected.contains("5 January 2998, 20:30 UTC"), "{corrected}");
    assert_ne!(before, "2998-01-03T20:30");
}

#[test_on(sqlite, postgres)]
async fn change_to_the_past_that_is_taken_back_is_not_mailed(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    ama.order_free_tickets(&event.sections[0], 1).await;
    let before = app.read(&event.uri).await;

    for is_late in [false, true] {
        app.end_event(&event).await;
        if is_late {
            app.report_events_later().await;
        }
        let taken_back = app.put(&kofi.key, &event.uri, json!({ "start": before["start"], "end": before["end"] })).await;
        app.report_events_later().await;

        assert_eq!((taken_back.status, &taken_back.body["start"]), (200, &before["start"]));
        assert_eq!(app.subjects_of(&ama).await.len(), 1, "her ticket");
    }
}

#[test_on(sqlite, postgres)]
async fn other_end_and_admission_time_are_mailed_to_holders(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    app.put(&kofi.key, &event.uri, json!({ "start": "2998-01-03T20:30", "end": "9999-12-31T23:59" })).await;
    ama.order_free_tickets(&event.sections[0], 2).await;
    let mail_after = async |change: Value| {
        assert_eq!(app.put(&kofi.key, &event.uri, change).await.status, 200);
        app.report_events_later().await;
        readable(app.mails_of(&ama).await.last().unwrap())
    };

    let end = mail_after(json!({ "end": "2998-01-03T22:15" })).await;
    let admission = mail_after(json!({ "admissionFrom": "2998-01-03T19:45" })).await;
    let title = mail_after(json!({ "title": "Another title" })).await;

    let is_in = |text: &str, parts: &[&str]| parts.iter().all(|part| text.contains(part));
    assert!(is_in(&end, &["changed its time", "End: Wednesday, 3 January 2998, 22:15 UTC", "End: open"]), "{end}");
    assert!(!end.contains("Admission"), "{end}");
    assert!(
        is_in(&admission, &["changed its time", "Admission from: Wednesday, 3 January 2998, 19:45 UTC", "not limited"]),
        "{admission}"
    );
    assert!(!admission.contains("End:") && title == admission, "{admission} {title}");
}

#[test_on(sqlite, postgres)]
async fn other_name_or_address_of_a_venue_is_mailed_to_holders(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    ama.order_free_tickets(&event.sections[0], 2).await;
    let venue = app.read(&event.uri).await["venue"].clone();
    let text = |name: &str| venue[name].as_str().unwrap().to_owned();
    let mails_after = async |change: Value| {
        assert_eq!(app.put(&app.staff.key, &text("self"), change).await.status, 200);
        app.report_events().await;
        app.report_events_later().await;
        app.mails_of(&ama).await.iter().map(|mail| readable(mail)).collect::<Vec<_>>()
    };

    assert_eq!(mails_after(json!({ "name": text("name"), "latitude": 6.25 })).await.len(), 1, "her tickets");
    let renamed = mails_after(json!({ "name": "Old Fort" })).await;
    let moved = mails_after(json!({ "address": "2 Castle Road, Accra" })).await;

    assert_eq!((renamed.len(), moved.len(), app.mails_of(&esi).await.len()), (2, 3, 0));
    let is_in = |mail: &str, parts: &[&str]| parts.iter().all(|part| mail.contains(part));
    assert!(is_in(&renamed[1], &["changed its venue", "Old Fort", &text("name")]), "{}", renamed[1]);
    assert!(is_in(&moved[2], &["changed its venue", "2 Castle Road, Accra", &text("address")]), "{}", moved[2]);
    assert_eq!(app.scalar::<i64>("select count(*) from venue_changes").await, 0);
}

/// The job that reports the new name of the venue has not run before the time of its event is changed.
#[test_on(sqlite, postgres)]
async fn mail_about_another_time_has_the_former_name_of_the_venue(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    ama.order_free_tickets(&event.sections[0], 1).await;
    let venue = app.read(&event.uri).await["venue"].clone();
    let renamed = json!({ "name": "Old Fort", "address": "2 Castle Road, Accra" });
    assert_eq!(app.put(&app.staff.key, venue["self"].as_str().unwrap(), renamed).await.status, 200);

    assert_eq!(app.put(&kofi.key, &event.uri, json!({ "start": "2998-01-03T20:30" })).await.status, 200);
    app.report_events().await;
    app.report_events_later().await;

    let mails = app.mails_of(&ama).await;
    let text = readable(mails.last().unwrap());
    for part in ["3 January 2998, 20:30 UTC", "Old Fort", venue["name"].as_str().unwrap(), venue["address"].as_str().unwrap()] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(mails.len(), 2, "one mail for both changes");
}

#[test_on(sqlite, postgres)]
async fn cancellation_of_an_event_is_mailed_to_holders(app: TestApp) {
    app.stop_jobs().await;
    let sections = [section("Floor", 0.0, 10), section("Balcony", 10.0, 10)];
    let (kofi, ama, event) = app.create_sale(&sections).await;
    let esi = app.sign_up("esi").await;
    let start =
        async |start: &str| app.put(&kofi.key, &event.uri, json!({ "start": start, "end": "9999-12-31T23:59" })).await.status;
    assert_eq!(start("2998-01-02T20:00").await, 200);
    ama.order_free_tickets(&event.sections[0], 2).await;
    esi.order(&event.sections[1], 1).await.unwrap();
    assert_eq!(start("2998-01-03T20:00").await, 200);

    assert_eq!(app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await.status, 200);
    app.report_events().await;
    app.expire_due().await;

    let (amas, esis) = (app.subjects_of(&ama).await, app.subjects_of(&esi).await);
    assert!(amas.len() == 2 && amas[1].starts_with("Cancelled: "), "{amas:?}");
    let mail = readable(app.mails_of(&ama).await.last().unwrap());
    assert!(mail.contains("2 January 2998") && !mail.contains("3 January 2998"), "she knows the first time: {mail}");
    assert!(esis.len() == 1 && esis[0].ends_with("was cancelled"), "{esis:?}");
}

#[test]
fn accept_language_selects_the_language_with_the_highest_weight() {
    for (header, expected) in [
        ("fr", Some(Language::Fr)),
        ("fr-CA, en;q=0.8", Some(Language::Fr)),
        ("EN-gb", Some(Language::En)),
        ("de, fr;q=0.5, en;q=0.7", Some(Language::En)),
        ("en;q=0, fr;q=0.1", Some(Language::Fr)),
        ("de, *;q=0.5", None),
        ("fr;q=high", None),
        ("", None),
    ] {
        assert_eq!(Language::preferred(header), expected, "{header}");
    }
}
