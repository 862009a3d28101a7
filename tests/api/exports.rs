//! Exports as CSV.

use boxoffice::features::insight::exports::escape_formula;
use boxoffice::kernel::http::StreamedFile;
use boxoffice::kernel::types::currency::Currency;
use boxoffice::kernel::types::money::Money;
use boxoffice_http::etag::collect_body;
use dropshot::HttpResponse;
use serde_json::json;

use crate::support::{TestApp, card_payment, section, test_on};

/// Returns the lines of an export.
async fn lines(app: &TestApp, key: &str, path: &str) -> Vec<String> {
    let response = app.request("GET", path).key(key).send_raw().await;
    assert_eq!(response.status(), 200, "{path}");
    assert_eq!(response.headers()["content-type"], "text/csv; charset=utf-8");
    assert!(response.headers()["content-disposition"].to_str().unwrap().starts_with("attachment; filename="));
    assert!(!response.headers().contains_key("etag"));
    let text = response.text().await.unwrap();
    assert!(text.ends_with("\r\n"));
    text.trim_end().split("\r\n").map(str::to_owned).collect()
}

#[test_on(sqlite, postgres)]
async fn exports_are_tables(app: TestApp) {
    let (kofi, esi, ama) = (app.sign_up("kofi").await, app.sign_up("esi").await, app.sign_up("ama").await);
    let named = json!({ "firstName": "=HYPERLINK(1)", "lastName": "Mensah, \"Mrs\"" });
    app.put(&ama.key, &format!("/accounts/{}", ama.number), &named).await;
    let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("+Floor", 100.0, 10)]).await;
    let other = app.create_listed_event(&app.create_host(&esi).await, &[section("Floor", 30.0, 10)]).await;
    let order = ama.order_items([(event.sections[0].as_str(), 2), (other.sections[0].as_str(), 1)]).await.unwrap();
    assert_eq!(app.pay(&ama.key, &order.self_, card_payment()).await.status, 201);
    let open = ama.order(&event.sections[0], 1).await.unwrap();
    let serial = app.read(&format!("{}/tickets", event.uri)).await["entries"][0]["serial"].clone();
    app.return_tickets(&app.staff.key, &order.self_, json!({ "tickets": [serial] })).await;
    let left = app.read(&format!("{}/tickets", event.uri)).await["entries"][0].clone();
    let left = left["serial"].as_str().unwrap();
    let (number, placed) = (order.number.to_string(), order.placed.format("%Y-%m-%dT%H:%M:%S").to_string());
    let person = r#"'=HYPERLINK(1),"Mensah, ""Mrs""",ama@example.com"#;

    let orders = lines(&app, &kofi.key, &format!("{}/exports/orders", event.uri)).await;
    assert_eq!(orders.len(), 3, "{orders:?}");
    assert_eq!(
        orders[0],
        "number,status,placed,complimentary,customer,firstName,lastName,email,tickets,subtotal,fees,total,refunded"
    );
    assert!(orders[1].starts_with(&format!("{number},Fulfilled,{placed}")), "{orders:?}");
    assert!(orders[1].ends_with(&format!(",false,{},{person},2,200.00,3.98,203.98,101.99", ama.number)), "{orders:?}");
    assert!(orders[2].starts_with(&format!("{},Placed,", open.number)) && orders[2].ends_with(",1,100.00,1.99,101.99,0.00"));

    let tickets = lines(&app, &kofi.key, &format!("{}/exports/tickets", event.uri)).await;
    let expected = format!("{left},'+Floor,Issued,{person},{number},");
    assert_eq!(tickets, ["serial,section,status,firstName,lastName,email,order,redeemed", expected.as_str()]);

    let host = app.read(&event.uri).await["host"].as_str().unwrap().to_owned();
    let path = format!("{host}/exports/transactions");
    let ledger = lines(&app, &kofi.key, &path).await;
    let ends: Vec<&str> = ledger.iter().map(|line| line.splitn(6, ',').last().unwrap()).collect();
    assert_eq!(ends, ["amount,fees", "203.98,3.98", "-101.99,-1.99"], "{ledger:?}");
    let month = &placed[..7];
    assert_eq!(lines(&app, &kofi.key, &format!("{path}?month={month}")).await, ledger);
    for empty in ["month=2020-12", "from=2999-01-01T00:00", "to=2020-01-01T00:00"] {
        assert_eq!(lines(&app, &kofi.key, &format!("{path}?{empty}")).await, ledger[..1]);
    }
    for wrong in ["month=2020-13", "from=2026-02-01T00:00&to=2026-01-01T00:00"] {
        assert_eq!(app.get(&kofi.key, &format!("{path}?{wrong}")).await.status, 400);
    }
}

#[test_on(sqlite, postgres)]
async fn exports_have_all_rows_of_many_batches(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Free", 0.0, 5000)]).await;
    for _ in 0..42 {
        ama.order(&event.sections[0], 50).await.unwrap();
    }

    let tickets = lines(&app, &kofi.key, &format!("{}/exports/tickets", event.uri)).await;

    let mut serials: Vec<&str> = tickets[1..].iter().map(|line| line.split(',').next().unwrap()).collect();
    serials.sort_unstable();
    serials.dedup();
    assert_eq!(serials.len(), 2100);
}

/// The database fails while the response is sent. The client must not take the part that it has for the whole table.
#[test_on(sqlite, postgres)]
async fn export_that_fails_is_not_whole(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Free", 0.0, 5000)]).await;
    for _ in 0..90 {
        ama.order(&event.sections[0], 50).await.unwrap();
    }
    // A batch of rows is larger than the buffers of a connection.
    let long = if app.database_url.starts_with("sqlite") { "printf('%.*c', 5000, 'x')" } else { "repeat('x', 5000)" };
    app.execute_sql(format!("update accounts set first_name = {long} where number = '{}'", ama.number).leak()).await;
    let path = format!("{}/exports/tickets", event.uri);

    let response = app.request("GET", &path).at(app.server).key(&kofi.key).send_raw().await;
    app.execute_sql("alter table tickets rename to gone_tickets").await;
    let status = response.status();
    let text = response.text().await;

    assert!(status == 200 && text.is_err(), "{} bytes", text.unwrap_or_default().len());
}

/// After a panic, or at the end of the grace period, the client must not take the parts that it has for the whole file.
#[tokio::test]
async fn only_a_finished_file_is_whole() {
    for (is_finished, whole) in [(true, Some("ab")), (false, None)] {
        let (sender, file) = StreamedFile::new("text/plain", "file.txt");
        tokio::spawn(async move {
            for part in ["a", "b"] {
                sender.send(part.into()).await;
            }
            if is_finished {
                sender.finish().await;
            }
        });

        let sent = collect_body(file.to_result().unwrap().into_body()).await;

        assert_eq!(sent.ok().as_deref(), whole.map(str::as_bytes));
    }
}

#[test]
fn formulas_become_texts() {
    for (given, expected) in [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2", "'-2"),
        ("Ama = Esi", "Ama = Esi"),
        ("", ""),
        ("x;=cmd|' /C calc'!A0;y", "x;'=cmd|' /C calc'!A0;y"),
        ("x; \"+1\", -2\t@A1", "x; \"'+1\", '-2\t'@A1"),
        ("x;\t=1", "x;'\t'=1"),
        (" =1", " '=1"),
        ("Ama; Esi-Efua, Abena", "Ama; Esi-Efua, Abena"),
    ] {
        assert_eq!(escape_formula(given.to_owned()), expected);
    }
}

#[test]
fn amounts_have_the_decimals_of_the_currency() {
    for (currency, given, expected) in [
        ("GHS", 0, "0.00"),
        ("GHS", 5, "0.05"),
        ("GHS", 12_345, "123.45"),
        ("GHS", -199, "-1.99"),
        ("GHS", -5, "-0.05"),
        ("TND", 12_345, "123.45"),
        ("XOF", 0, "0"),
        ("XOF", 300_000, "3000"),
        ("UGX", -300_000, "-3000"),
    ] {
        let currency: Currency = currency.parse().unwrap();
        assert_eq!(currency.format(Money(given)), expected, "{currency}");
    }
}
