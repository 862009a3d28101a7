//! The export of everything that is stored about an account.

use std::collections::BTreeSet;

use boxoffice::features::insight::account_export::PERSONAL_TABLES;
use serde_json::{Value, json};

use crate::support::{TestApp, card_payment, entries_of, id_of, section, test_on};

impl TestApp {
    /// Returns all entries of an export as pairs of type and data.
    async fn export(&self, key: &str, number: &str) -> Vec<(String, Value)> {
        let (mut entries, mut next) = (Vec::new(), Some(format!("/accounts/{number}/export")));
        while let Some(path) = next {
            let page = self.get(key, &path).await;
            assert_eq!(page.status, 200, "{}", page.body);
            let of_page = entries_of(&page.body);
            entries.extend(of_page.iter().map(|entry| (entry["type"].as_str().unwrap().to_owned(), entry["data"].clone())));
            next = page.body["next"].as_str().map(str::to_owned);
        }
        entries
    }
}

#[test_on(sqlite, postgres)]
async fn export_has_everything_about_account(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let order = ama.order(&event.sections[0], 2).await.unwrap();
    assert_eq!(app.pay(&ama.key, &order.self_, card_payment()).await.status, 201);
    esi.order(&event.sections[0], 1).await.unwrap();
    let offer = json!({ "recipient": esi.number, "tickets": [app.wallet(&ama).await[0]["serial"]] });
    let transfer = app.post(&ama.key, "/transfers", offer).await;
    app.put(&ama.key, &format!("/accounts/{}", ama.number), json!({ "firstName": "Ama" })).await;

    let export = app.export(&ama.key, &ama.number).await;

    let of = |kind: &str| export.iter().filter(|(found, _)| found == kind).map(|(_, data)| data).collect::<Vec<_>>();
    assert_eq!((of("account")[0]["firstName"].as_str(), of("account")[0]["activated"].as_bool()), (Some("Ama"), Some(true)));
    assert_eq!(of("order").len(), 1, "not that of another account");
    assert_eq!((&of("order")[0]["number"], &of("order")[0]["subtotal"]), (&json!(id_of(&order.self_)), &json!(20.0)));
    assert_eq!((of("ticket").len(), &of("payment")[0]["amount"]), (2, &json!(21.98)));
    assert_eq!((of("transaction").len(), &of("transaction")[0]["amount"]), (1, &json!(21.98)));
    let transferred = json!({ "transfer": id_of(transfer.uri()), "ticket": of("ticket")[0]["ticket"] });
    assert_eq!(of("transferredTicket"), [&transferred]);
    assert!(of("auditEntry").iter().any(|entry| entry["operation"] == "order_create"));
    let recipient = app.export(&esi.key, &esi.number).await;
    assert!(recipient.contains(&("transferredTicket".to_owned(), transferred)));
    let host = app.export(&app.staff.key, &kofi.number).await;
    assert!(host.iter().any(|(kind, _)| kind == "administeredHost") && host.iter().any(|(kind, _)| kind == "submission"));
    let text = serde_json::to_string(&export).unwrap();
    assert!(!text.contains(&ama.key) && !text.contains("argon2"), "{text}");
}

#[test_on(sqlite, postgres)]
async fn export_has_prices_and_returns(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 10.0, 10)]).await;
    let discount = json!({ "name": "Early", "priceDelta": -1.0 });
    let modifier = app.post(&kofi.key, &format!("{}/modifiers", event.sections[0]), discount).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap();
    assert_eq!((modifier.status, app.pay(&ama.key, &order.self_, card_payment()).await.status), (201, 201), "{}", modifier.body);
    let returned = app.return_tickets(&kofi.key, &order.self_, json!({ "reason": "Rain." })).await;
    assert_eq!(returned.status, 200, "{}", returned.body);

    let export = app.export(&ama.key, &ama.number).await;

    let of = |kind: &str| export.iter().find(|(found, _)| found == kind).map(|(_, data)| data).unwrap();
    let refunded = app.read(&order.self_).await["refunded"].clone();
    let item = json!({ "order": id_of(&order.self_), "item": of("orderItem")["item"], "modifier": id_of(modifier.uri()) });
    assert_eq!(of("orderItemModifier"), &item);
    assert_eq!((&of("return")["amount"], &of("return")["reason"]), (&refunded, &json!("Rain.")));
    assert_eq!((&of("refund")["amount"], &of("refund")["fees"]), (&refunded, &of("transaction")["fees"]));
    let listed = app.read(&format!("{}/returns", order.self_)).await;
    assert_eq!(of("return")["number"], entries_of(&listed)[0]["number"]);
}

/// A new table with a foreign key to accounts must be added to the export.
#[test_on(sqlite, postgres)]
async fn export_covers_every_table_that_names_accounts(app: TestApp) {
    let mut reader = app.state.db.read().await.unwrap();
    let references = if reader.is_postgres() {
        "select k.table_name::text, k.column_name::text from information_schema.table_constraints c
         join information_schema.key_column_usage k on k.constraint_name = c.constraint_name and k.table_schema = c.table_schema
         join information_schema.constraint_column_usage u on u.constraint_name = c.constraint_name
         where c.constraint_type = 'FOREIGN KEY' and u.table_name = 'accounts' and c.table_schema = current_schema()"
    } else {
        "select m.name, f.\"from\" from sqlite_master m join pragma_foreign_key_list(m.name) f
         where m.type = 'table' and f.\"table\" = 'accounts'"
    };
    let references: BTreeSet<(String, String)> =
        reader.query(references).all::<(String, String)>().await.unwrap().into_iter().collect();

    let covered: BTreeSet<(String, String)> =
        PERSONAL_TABLES.iter().map(|table| (table.table.to_owned(), table.column.to_owned())).collect();

    assert!(references.len() > 10, "{references:?}");
    let missing: Vec<_> = references.difference(&covered).collect();
    assert!(missing.is_empty(), "the export lacks {missing:?}; add them to PERSONAL_TABLES");
}

#[test_on(sqlite, postgres)]
async fn export_has_pages(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let many = "insert into submissions (id, type, content_id, status, submitted, submitter_id, reason)
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1100)
         select n, 'venue', n, 'Approved', 0, (select id from accounts where username = 'ama'), '' from numbers";
    app.execute_sql(many).await;

    let whole = app.export(&ama.key, &ama.number).await;
    let rest = app.get(&ama.key, &format!("/accounts/{}/export?after=0-1", ama.number)).await;
    let end = app.get(&ama.key, &format!("/accounts/{}/export?after=99-0", ama.number)).await;
    let invalid = app.get(&ama.key, &format!("/accounts/{}/export?after=all", ama.number)).await;

    let submissions = whole.iter().filter(|(kind, _)| kind == "submission");
    let numbers: BTreeSet<&str> = submissions.map(|(_, data)| data["content"].as_str().unwrap()).collect();
    assert_eq!((numbers.len(), whole.len() > 1100), (1100, true));
    assert_eq!((entries_of(&rest.body).len(), &rest.body["entries"][0]["type"]), (500, &json!("key")));
    assert_eq!((&end.body["entries"], &end.body["next"]), (&json!([]), &Value::Null));
    assert_eq!(invalid.invalid_arguments(), ["after"]);
}

#[test_on(sqlite, postgres)]
async fn export_leaves_nothing_out_while_old_rows_are_deleted(app: TestApp) {
    app.stop_jobs().await;
    let ama = app.sign_up("ama").await;
    let addresses = "insert into login_addresses (account_id, address, seen)
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1100)
         select (select id from accounts where username = 'ama'), 'address ' || (1000 + n), n from numbers";
    let orders = "insert into orders (id, account_id, status, placed, expires, subtotal, fees)
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1100)
         select 17637000000000 + n, (select id from accounts where username = 'ama'), 'Timed Out', n, n, 0, 0 from numbers";
    app.execute_sql(addresses).await;
    app.execute_sql(orders).await;

    // Page by page, with a deletion after the first page of each kind.
    let (mut shown, mut next) = ([BTreeSet::new(), BTreeSet::new()], Some(format!("/accounts/{}/export", ama.number)));
    let mut deletions = ["delete from login_addresses where seen <= 100", "delete from orders where placed <= 100"].map(Some);
    while let Some(path) = next {
        let page = app.get(&ama.key, &path).await;
        for entry in entries_of(&page.body) {
            match entry["type"].as_str() {
                Some("loginAddress") => shown[0].insert(entry["data"]["shortenedHash"].as_str().unwrap().to_owned()),
                Some("order") => shown[1].insert(entry["data"]["number"].as_str().unwrap().to_owned()),
                _ => false,
            };
        }
        for (shown, deletion) in shown.iter().zip(&mut deletions) {
            if let Some(delete) = deletion.take_if(|_| !shown.is_empty()) {
                app.execute_sql(delete).await;
            }
        }
        next = page.body["next"].as_str().map(str::to_owned);
    }

    let kept = [|n: u64| format!("address {}", 1000 + n), |n: u64| (17_637_000_000_000 + n).to_string()];
    for (shown, name) in shown.iter().zip(kept) {
        let missing: Vec<u64> = (101..=1100).filter(|n| !shown.contains(&name(*n))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
