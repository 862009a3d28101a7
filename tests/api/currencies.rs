//! A platform whose currency has no decimals: only whole amounts are accepted, and texts show them without decimals.

use std::fs;

use boxoffice::features::sales::mail;
use boxoffice::kernel::outbox::format_money;
use boxoffice::kernel::settings::Settings;
use boxoffice::kernel::types::currency::Currency;
use boxoffice::kernel::types::language::Language;
use boxoffice::kernel::types::money::Money;
use regex::Regex;
use serde_json::{Value, json};

use crate::admin_commands::admin;
use crate::support::server_process::{Run, ServerProcess, boxoffice, last_word};
use crate::support::{
    Client, Response, SecondServer, TestApp, card_payment, id_of, partial_card_payment, readable, section, test_on, wait_until,
};

/// The field error of an amount with decimals.
const NOT_WHOLE: &str = "must be a whole number: the currency XOF has no decimals";

/// Starts a server whose currency is XOF, and stops the jobs of the other one, so that it sends no mail.
async fn start_in_xof(app: &TestApp) -> SecondServer {
    app.stop_jobs().await;
    let (currency, fee_steps) = ("XOF".parse().unwrap(), "5000:100,300".parse().unwrap());
    app.start_second_server(Settings { currency, fee_steps, ..app.state.settings.clone() }).await
}

async fn send(app: &TestApp, server: &SecondServer, key: &str, (method, path): (&str, &str), body: &Value) -> Response {
    app.request(method, path).at(server.address).key(key).json(body).send().await
}

/// Waits for a mail to this address with a text, and returns it as [`readable`] text.
async fn mail_with(app: &TestApp, server: &SecondServer, address: &str, text: &str) -> String {
    let find = || {
        let mails = app.mailbox.files_to(address).into_iter().map(|file| readable(&fs::read_to_string(file).unwrap()));
        mails.into_iter().find(|mail| mail.contains(text))
    };
    while mail::deliver_due(&server.state).await.unwrap() > 0 {}
    wait_until(async || find().is_some()).await;
    find().unwrap()
}

#[test_on(sqlite, postgres)]
async fn amounts_must_be_whole(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let server = start_in_xof(&app).await;
    let sections = format!("{}/sections", event.uri);
    let body = |name: &str, price: f64| {
        let mut section = serde_json::to_value(section(name, 0.0, 10)).unwrap();
        section["basePrice"] = json!(price);
        section
    };

    let with_decimals = send(&app, &server, &kofi.key, ("POST", &sections), &body("Stalls", 3000.5)).await;
    let fields = json!([{ "name": "basePrice", "problem": "invalid", "detail": NOT_WHOLE }]);
    assert_eq!((with_decimals.status, &with_decimals.body["fields"]), (400, &fields));
    // The same kind of error as that of a third decimal, which the contract excludes.
    let third_decimal = app.post(&kofi.key, &sections, body("Stalls", 3000.005)).await;
    assert_eq!((third_decimal.status, third_decimal.code()), (400, with_decimals.code()));
    for price in [0.01, 999_999.01, 3_000.000_5, -0.5] {
        let rejected = send(&app, &server, &kofi.key, ("POST", &sections), &body("Stalls", price)).await;
        assert_eq!(rejected.invalid_arguments(), ["basePrice"], "{price}");
    }
    let mut all = body("", 3000.5);
    all["capacity"] = json!(0);
    let rejected = send(&app, &server, &kofi.key, ("POST", &sections), &all).await;
    assert_eq!(rejected.invalid_arguments(), ["-name", "basePrice", "capacity"]);

    for (name, price, stored) in [("A", 3000.0, 3000.0), ("B", 2_999.999_999_999_999_5, 3000.0), ("C", 1_000_000.0, 1_000_000.0)]
    {
        let created = send(&app, &server, &kofi.key, ("POST", &sections), &body(name, price)).await;
        assert_eq!((created.status, created.body["price"]["base"].as_f64()), (201, Some(stored)), "{}", created.body);
    }
    let integer = json!({ "name": "D", "basePrice": 3000, "capacity": 1, "salesStart": "2020-01-01T00:00", "salesEnd": "2999-01-01T00:00" });
    let created = send(&app, &server, &kofi.key, ("POST", &sections), &integer).await;
    assert_eq!(created.status, 201, "{}", created.body);

    let section = format!("{}{}", event.uri, created.uri());
    let modifiers = format!("{section}/modifiers");
    let change = send(&app, &server, &kofi.key, ("PUT", &section), &json!({ "basePrice": 10.5 })).await;
    assert_eq!(change.invalid_arguments(), ["basePrice"]);
    let modifier = json!({ "name": "Early", "priceDelta": -0.5 });
    assert_eq!(send(&app, &server, &kofi.key, ("POST", &modifiers), &modifier).await.invalid_arguments(), ["priceDelta"]);
    let modifier = send(&app, &server, &kofi.key, ("POST", &modifiers), &json!({ "name": "Early", "priceDelta": -500 })).await;
    assert_eq!(modifier.status, 201, "{}", modifier.body);
    let change = send(&app, &server, &kofi.key, ("PUT", modifier.uri()), &json!({ "priceDelta": 0.25 })).await;
    assert_eq!(change.invalid_arguments(), ["priceDelta"]);
    server.stop().await;

    let in_cedis = app.post(&kofi.key, &sections, body("Stalls", 3000.5)).await;
    assert_eq!((in_cedis.status, in_cedis.body["price"]["base"].as_f64()), (201, Some(3000.5)));
}

#[test_on(sqlite, postgres)]
async fn tickets_are_sold_and_returned(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Stalls", 3000.0, 10), section("Box", 10_000.0, 10)]).await;
    let server = start_in_xof(&app).await;

    let items = json!({ "items": { event.sections[0].as_str(): 2, event.sections[1].as_str(): 1 } });
    let order = send(&app, &server, &ama.key, ("POST", "/orders"), &items).await;
    let amounts = ["subtotal", "fees", "total"].map(|name| order.body[name].to_string());
    assert_eq!(amounts, ["16000.0", "500.0", "16500.0"]);
    let payments = format!("{}/payments", order.uri());
    for amount in [0.5, 100.01] {
        let rejected = send(&app, &server, &ama.key, ("POST", &payments), &partial_card_payment(amount)).await;
        assert_eq!(rejected.invalid_arguments(), ["amount"]);
        assert_eq!(rejected.body["fields"][0]["detail"], NOT_WHOLE);
    }
    let rejected = send(&app, &server, &ama.key, ("POST", &payments), &partial_card_payment(17_000.0)).await;
    assert_eq!(rejected.body["fields"][0]["detail"], "must be at most 16500, which is outstanding");
    for payment in [partial_card_payment(7000.0), card_payment()] {
        assert_eq!(send(&app, &server, &ama.key, ("POST", &payments), &payment).await.status, 201);
    }
    assert_eq!(app.gateway.total(), 16_500.0);

    let returned = send(&app, &server, &kofi.key, ("POST", &format!("{}/returns", order.uri())), &json!({})).await;
    assert_eq!((returned.status, returned.body["refunded"].as_f64()), (200, Some(16_500.0)), "{}", returned.body);
    assert_eq!(app.gateway.total(), 0.0);
    app.check_gateway_balance().await;
    app.assert_invariants().await;
    server.stop().await;
}

/// Tells whether a text shows an amount with decimals. The headers of a mail have random digits, too, but no currency before them.
fn has_decimals(text: &str) -> bool {
    Regex::new(r"XOF\s[\d,]+\.\d").unwrap().is_match(text)
}

#[test_on(sqlite, postgres)]
async fn texts_have_no_decimals(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Stalls", 3000.0, 10)]).await;
    let server = start_in_xof(&app).await;
    let items = json!({ "items": { event.sections[0].as_str(): 2 } });
    let order = send(&app, &server, &ama.key, ("POST", "/orders"), &items).await;
    let paid = send(&app, &server, &ama.key, ("POST", &format!("{}/payments", order.uri())), &card_payment()).await;
    assert_eq!(paid.status, 201, "{}", paid.body);

    let confirmation = mail_with(&app, &server, "ama@example.com", "XOF 6,200").await;
    assert!(confirmation.contains("XOF 6,000") && confirmation.contains("XOF 200"), "{confirmation}");
    assert!(!has_decimals(&confirmation), "{confirmation}");
    let document = app.request("GET", &format!("{}/tickets.pdf", order.uri())).at(server.address).key(&ama.key).send_raw().await;
    assert_eq!(document.status(), 200);

    let serial = app.wallet(&ama).await[0]["serial"].clone();
    let returns = format!("{}/returns", order.uri());
    assert_eq!(send(&app, &server, &kofi.key, ("POST", &returns), &json!({ "tickets": [serial] })).await.status, 200);
    let refund = mail_with(&app, &server, "ama@example.com", "XOF 3,100").await;
    assert!(!has_decimals(&refund), "{refund}");

    let host = app.read(&event.uri).await["host"].as_str().unwrap().to_owned();
    let orders = (format!("{}/exports/orders", event.uri), ",2,6000,200,6200,3100\r\n");
    let ledger = (format!("{host}/exports/transactions"), ",-3100,-100\r\n");
    for (path, end) in [orders, ledger] {
        let export = app.request("GET", &path).at(server.address).key(&kofi.key).send().await;
        assert!(export.status == 200 && export.text.ends_with(end), "{}", export.text);
    }
    server.stop().await;
}

#[test_on(sqlite, postgres)]
async fn commands_show_no_decimals(app: TestApp) {
    let (_, _, order) = app.create_order(4).await;
    let external = json!({ "method": "external", "amount": 30.0, "reference": "RECEIPT-17" });
    let external = app.pay(&app.staff.key, &order, external).await;
    assert_eq!(external.status, 201, "{}", external.body);
    let payment = external.body["number"].as_str().unwrap();
    let in_xof = |arguments: &[&str]| {
        let output = admin(&app, &[arguments, &["--currency", "XOF", "--fee-steps", "0"]].concat());
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output.stdout
    };

    let shown = in_xof(&["orders", "show", id_of(&order)]);
    let cancelled = in_xof(&["orders", "cancel", id_of(&order), "--yes"]);

    let payment_line = shown.lines().find(|line| line.starts_with(payment)).unwrap();
    assert!(payment_line.contains("  30  "), "{shown}");
    assert!(cancelled.contains(&format!("\n  30 of the payment {payment}, reference RECEIPT-17")), "{cancelled}");
}

#[test]
fn formatted_amounts_have_the_decimals_of_the_currency() {
    for (currency, language, amount, expected) in [
        ("GHS", Language::En, 123_450, "GHS 1,234.50"),
        ("GHS", Language::Fr, -123_450, "-1 234,50 GHS"),
        ("UGX", Language::En, 123_456_700, "UGX 1,234,567"),
        ("XOF", Language::Fr, 300_000, "3 000 XOF"),
        ("XOF", Language::Fr, -50_000, "-500 XOF"),
        ("XOF", Language::En, 0, "XOF 0"),
    ] {
        let formatted = format_money(Money(amount), currency.parse::<Currency>().unwrap(), language);
        assert_eq!(formatted.replace(['\u{a0}', '\u{202f}'], " "), expected);
    }
}

#[test]
fn fees_must_be_whole() {
    let folder = tempfile::tempdir().unwrap();
    let expected = "--fee-steps (BOXOFFICE_FEE_STEPS): the currency UGX has no decimals, so give whole prices and fees, such as \
                    5000:100,10000:200,300, or 0 for no fees; the default has decimals";
    let in_shillings =
        |command: &[&str], fees: &[&str]| boxoffice(folder.path(), &[command, &["--currency", "UGX"], fees].concat());
    for fees in [&[][..], &["--fee-steps", "5000:100.50,300"], &["--fee-steps", "5000.5:100,300"], &["--fee-steps", "0.99"]] {
        for command in [&["serve"][..], &["config", "check"], &["demo"]] {
            let rejected = in_shillings(command, fees).run();
            assert_eq!(rejected.code, Some(2), "{command:?} {fees:?}: {}", rejected.stderr);
            assert!(rejected.stderr.contains(expected), "{command:?} {fees:?}: {}", rejected.stderr);
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was created");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn demo_and_server_run_without_decimals() {
    let folder = tempfile::tempdir().unwrap();
    let run = |command: &str| boxoffice(folder.path(), &[command, "--currency", "UGX", "--fee-steps", "50:10,30"]);

    let filled = run("demo").run();
    let server = ServerProcess::start(run("serve"));
    let anyone = Client::connect(&server.address, &last_word(&filled.stdout, "public key")).unwrap();

    assert!(filled.succeeded(), "{}", filled.stderr);
    assert!(filled.stdout.contains("Table of four -20, ") && filled.stdout.contains(", 520 in all, paid"), "{}", filled.stdout);
    let defaults = anyone.defaults_get().send().await.unwrap();
    let fees: Vec<f64> = defaults.fee_steps.iter().map(|step| step.fee).collect();
    assert_eq!((defaults.currency.as_str(), fees), ("UGX", vec![10.0, 30.0]));
    server.stop();
}
