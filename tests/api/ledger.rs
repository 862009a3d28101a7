//! The ledger: transactions, access, and the shares of hosts.

use std::time::Duration;

use boxoffice::features::sales::ledger::{Allocation, AllocationLine, HostShare, TicketCosts};
use boxoffice::kernel::types::clock::Timestamp;
use boxoffice::kernel::types::id::Id;
use boxoffice::kernel::types::money::Money;
use serde_json::{Value, json};

use crate::support::{TestApp, User, card_payment, entries_of, entry, id_of, partial_card_payment, rejection, section, test_on};

/// Ama's order of one ticket at 100.00 and a free one of Kofi's host, and two tickets at 30.00 of Esi's: 163.97 with fees.
struct MixedOrder {
    kofi: User,
    ama: User,
    hosts: [String; 2],
    order: String,
}

async fn create_mixed_order(app: &TestApp) -> MixedOrder {
    let (kofi, esi, ama) = (app.sign_up("kofi").await, app.sign_up("esi").await, app.sign_up("ama").await);
    let (live, players) = (app.create_host(&kofi).await, app.create_host(&esi).await);
    let jazz = app.create_listed_event(&live, &[section("Stalls", 100.0, 10), section("Standing", 0.0, 10)]).await;
    let play = app.create_listed_event(&players, &[section("Balcony", 30.0, 10)]).await;
    let hosts = [live.uri, players.uri];
    let items = json!({ jazz.sections[0].as_str(): 1, jazz.sections[1].as_str(): 1, play.sections[0].as_str(): 2 });
    let order = app.place_order(&ama.key, items).await.body;
    assert_eq!(order["total"], 163.97);
    let order = order["self"].as_str().unwrap().to_owned();
    MixedOrder { kofi, ama, hosts, order }
}

#[test_on(sqlite, postgres)]
async fn payment_is_recorded_as_sale(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    assert_eq!(app.read("/transactions").await, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
    let payment = app.pay(&ama.key, &order, card_payment()).await.body;

    let ledger = app.read("/transactions").await;

    let found = &ledger["entries"][0];
    let number = found["number"].as_str().unwrap();
    let expected = json!({
        "self": format!("/transactions/{number}"), "number": number, "type": "Sale", "order": order,
        "payment": payment["self"], "method": "card", "amount": 203.98, "fees": 3.98, "placed": found["placed"],
    });
    assert_eq!(ledger["entries"], json!([expected]));
    assert!(found["placed"].as_str().unwrap().ends_with("+00:00"));
    assert_eq!(app.read(found["self"].as_str().unwrap()).await, expected);
    assert_eq!(app.read(found["payment"].as_str().unwrap()).await, payment);
}

#[test_on(sqlite, postgres)]
async fn payments_fill_subtotal_before_fees(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    app.pay(&ama.key, &order, partial_card_payment(150.0)).await;
    app.pay(&app.staff.key, &order, json!({ "method": "external", "amount": 51.01, "reference": "Receipt 7" })).await;
    app.pay(&ama.key, &order, partial_card_payment(0.97)).await;
    app.pay(&ama.key, &order, card_payment()).await;

    let sales = [entry("Sale", 150.0, 0.0), entry("Sale", 51.01, 1.01), entry("Sale", 0.97, 0.97), entry("Sale", 2.0, 2.0)];
    assert_eq!(app.transactions("/transactions").await, sales);
}

#[test_on(sqlite, postgres)]
async fn full_refund_includes_fees_of_sale(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;
    app.pay(&ama.key, &order, partial_card_payment(201.0)).await;
    app.pay(&app.staff.key, &order, json!({ "method": "external", "amount": 2, "reference": "Receipt 7" })).await;
    app.cancel_order(&ama.key, &order).await;

    let mut ledger = app.transactions("/transactions").await;
    ledger.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let expected = [entry("Refund", 2.0, 2.0), entry("Refund", 201.0, 1.0), entry("Sale", 2.0, 2.0), entry("Sale", 201.0, 1.0)];
    assert_eq!(ledger, expected);
    let host = app.read(&event.uri).await["host"].as_str().unwrap().to_owned();
    let mut ledger = app.transactions(&format!("{host}/transactions")).await;
    ledger.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(ledger, expected, "all of it was the host's");
}

#[test_on(sqlite, postgres)]
async fn owed_refund_is_recorded_when_paid(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    app.pay(&ama.key, &order, partial_card_payment(50.0)).await;
    app.gateway.reject_refunds(true);

    app.time_out_orders().await;
    assert_eq!(app.transactions("/transactions").await, [entry("Sale", 50.0, 0.0)]);
    app.gateway.reject_refunds(false);
    app.expire_due().await;

    assert_eq!(app.transactions("/transactions").await, [entry("Sale", 50.0, 0.0), entry("Refund", 50.0, 0.0)]);
    app.expire_due().await;
    assert_eq!(app.transactions("/transactions").await.len(), 2);
}

#[test_on(sqlite, postgres)]
async fn uncollected_payment_is_not_recorded(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;

    for token in ["tok_decline", "tok_error"] {
        let rejected = app.pay(&ama.key, &order, json!({ "method": "card", "token": token })).await;
        assert!(rejected.status >= 400, "{}", rejected.body);
    }
    app.gateway.fail_after_charge(true);
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 502);
    app.expire_due().await;

    assert_eq!(app.transactions("/transactions").await, []);
}

#[test_on(sqlite, postgres)]
async fn late_payment_has_no_fees_or_host(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;
    app.pay(&ama.key, &order, partial_card_payment(201.0)).await;
    let meanwhile = async || {
        assert_eq!(app.cancel_order(&ama.key, &order).await.status, 200);
    };

    let (late, ()) = app.pay_during(&ama, &order, card_payment(), meanwhile).await;

    assert_eq!(rejection(&late), (409, "order.not-open"));
    let expected = [entry("Sale", 201.0, 1.0), entry("Refund", 201.0, 1.0), entry("Sale", 2.98, 0.0), entry("Refund", 2.98, 0.0)];
    assert_eq!(app.transactions("/transactions").await, expected);
    let host = app.read(&event.uri).await["host"].as_str().unwrap().to_owned();
    assert_eq!(app.transactions(&format!("{host}/transactions")).await, expected[..2]);
    assert_eq!(app.gateway.total(), 0.0);
}

#[test_on(sqlite, postgres)]
async fn payment_after_abandoned_one_belongs_to_order(app: TestApp) {
    let (ama, _, order) = app.create_order(10).await;
    let meanwhile = async || {
        app.advance_clock(Duration::from_secs(180));
        app.gateway.reject_refunds(true);
        app.expire_due().await;
    };

    let (late, ()) = app.pay_during(&ama, &order, card_payment(), meanwhile).await;
    assert_eq!(late.code(), "order.not-open");

    // The refund is owed, not yet made, and does not count.
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.body["amount"], 203.98);
    assert_eq!(app.read(&order).await["status"], "Fulfilled");
    app.gateway.reject_refunds(false);
    app.expire_due().await;

    let expected = [entry("Sale", 203.98, 0.0), entry("Sale", 203.98, 3.98), entry("Refund", 203.98, 0.0)];
    assert_eq!(app.transactions("/transactions").await, expected);
    let statuses: Vec<_> = app.payments(&order).await.into_iter().map(|payment| payment.1).collect();
    assert_eq!((statuses, app.gateway.total()), (vec!["Refunded".to_owned(), "Confirmed".to_owned()], 203.98));
}

#[test_on(sqlite, postgres)]
async fn lists_and_filters_transactions(app: TestApp) {
    let (ama, event, order) = app.create_order(10).await;
    for amount in [1.0, 2.0] {
        app.pay(&ama.key, &order, partial_card_payment(amount)).await;
        app.advance_clock(Duration::from_secs(60));
    }
    app.cancel_order(&ama.key, &order).await;
    let ledger = app.read("/transactions").await;
    let entries = entries_of(&ledger);
    let amounts = |ledger: &[(String, f64, f64)]| ledger.iter().map(|entry| entry.1).collect::<Vec<_>>();
    let all = amounts(&app.transactions("/transactions").await);
    assert_eq!((all.len(), &all[..2]), (4, [1.0, 2.0].as_slice()));
    assert!(entries.is_sorted_by(|a, b| a["number"].as_str() < b["number"].as_str()));

    assert_eq!(amounts(&app.transactions("/transactions?type=Sale").await), [1.0, 2.0]);
    assert_eq!(amounts(&app.transactions("/transactions?type=Refund").await), all[2..]);
    let page = app.read("/transactions?records=3&page=2").await;
    assert_eq!((&page["total"], entries_of(&page).len()), (&json!(4), 1));
    // The times of a period are inclusive.
    let placed = |entry: &Value| {
        let placed = entry["placed"].as_str().unwrap();
        form_urlencoded::byte_serialize(placed.as_bytes()).collect::<String>()
    };
    let (first, second) = (placed(&entries[0]), placed(&entries[1]));
    for (query, expected) in [
        (format!("to={first}"), &all[..1]),
        (format!("from={first}&to={second}"), &all[..2]),
        (format!("from={second}"), &all[1..]),
        (format!("from={second}&type=Sale"), &all[1..2]),
        ("from=2998-01-01T00:00".to_owned(), &[]),
        ("to=2020-01-01T00:00".to_owned(), &[]),
    ] {
        assert_eq!(amounts(&app.transactions(&format!("/transactions?{query}")).await), expected, "{query}");
    }
    let reversed = app.get(&app.staff.key, &format!("/transactions?from={second}&to={first}")).await;
    assert_eq!(reversed.invalid_arguments(), ["to"]);

    let other = ama.order(&event.sections[0], 1).await.unwrap().self_.clone();
    app.pay(&ama.key, &other, partial_card_payment(5.0)).await;
    let of_order = async |query: &str| amounts(&app.transactions(&format!("/transactions?order={query}")).await);
    assert_eq!(of_order(id_of(&order)).await, all);
    assert_eq!(of_order(&format!("{}&type=Sale", id_of(&order))).await, all[..2]);
    assert_eq!(of_order(id_of(&other)).await, [5.0]);
    assert_eq!(of_order("10000000000000").await, [0.0; 0]);

    let external = json!({ "method": "external", "amount": 3.0, "reference": "BANK-77" });
    app.pay(&app.staff.key, &other, external).await;
    app.cancel_order(&ama.key, &other).await;
    for list in ["/transactions".to_owned(), format!("{}/transactions", event.host.uri)] {
        let external = app.read(&format!("{list}?method=external&order={}", id_of(&other))).await;
        let entries = entries_of(&external).iter().map(|entry| (entry["type"].as_str(), entry["amount"].as_f64()));
        assert_eq!(entries.collect::<Vec<_>>(), [(Some("Sale"), Some(3.0)), (Some("Refund"), Some(3.0))]);
        assert!(entries_of(&external).iter().all(|entry| entry["method"] == "external"), "{external}");
        let by_card = app.read(&format!("{list}?method=card&type=Refund&order={}", id_of(&other))).await;
        assert_eq!((&by_card["total"], &by_card["entries"][0]["method"]), (&json!(1), &json!("card")));
        let unknown = app.get(&app.staff.key, &format!("{list}?method=cash")).await;
        assert_eq!(unknown.invalid_arguments(), ["method"]);
    }
    let malformed = app.get(&app.staff.key, "/transactions?order=none").await;
    assert_eq!(malformed.invalid_arguments(), ["order"]);
}

#[test_on(sqlite, postgres)]
async fn host_reads_own_share(app: TestApp) {
    let MixedOrder { kofi, ama, hosts, order, .. } = create_mixed_order(&app).await;
    app.pay(&ama.key, &order, card_payment()).await;
    let of = async |host: &str| app.transactions(&format!("{host}/transactions")).await;

    let (live, players) = (of(&hosts[0]).await, of(&hosts[1]).await);

    assert_eq!(live, [entry("Sale", 101.99, 1.99)]);
    assert_eq!(players, [entry("Sale", 61.98, 1.98)]);
    let path = format!("{}/transactions", hosts[0]);
    let found = app.get(&kofi.key, &path).await.body;
    let whole = app.read("/transactions").await["entries"][0].clone();
    let mut expected = whole.clone();
    (expected["amount"], expected["fees"]) = (json!(101.99), json!(1.99));
    assert_eq!(found["entries"], json!([expected]), "but for the amounts it is the ledger's entry");

    // A return of Kofi's tickets doesn't affect Esi; a free ticket affects no share.
    let mut tickets = app.wallet(&ama).await;
    tickets.retain(|ticket| ticket["section"]["name"] != "Balcony");
    let serials: Vec<&str> = tickets.iter().map(|ticket| ticket["serial"].as_str().unwrap()).collect();
    assert_eq!(serials.len(), 2);
    assert_eq!(app.return_tickets(&app.staff.key, &order, json!({ "tickets": serials })).await.status, 200);
    assert_eq!(of(&hosts[0]).await, [entry("Sale", 101.99, 1.99), entry("Refund", 101.99, 1.99)]);
    assert_eq!(of(&hosts[1]).await, players);
    assert_eq!(app.transactions(&format!("{}/transactions?type=Refund", hosts[0])).await.len(), 1);
    assert_eq!(app.transactions(&format!("{}/transactions?order={}", hosts[1], id_of(&order))).await, players);
    assert_eq!(app.transactions(&format!("{}/transactions?order=10000000000000", hosts[1])).await, []);
    assert_eq!(app.transactions(&format!("{}/transactions?to=2020-01-01T00:00", hosts[0])).await, []);
}

#[test_on(sqlite, postgres)]
async fn host_share_is_exact_for_any_payments(app: TestApp) {
    let MixedOrder { ama, hosts, order, .. } = create_mixed_order(&app).await;
    for amount in [99.99, 0.02, 60.0, 1.0] {
        assert_eq!(app.pay(&ama.key, &order, partial_card_payment(amount)).await.status, 201);
    }
    app.pay(&ama.key, &order, card_payment()).await;
    assert_eq!(app.read(&order).await["status"], "Fulfilled");

    let mut sums = Vec::new();
    for host in &hosts {
        let entries = app.transactions(&format!("{host}/transactions")).await;
        let cents = |amounts: Vec<f64>| amounts.iter().sum::<f64>().mul_add(100.0, 0.5) as i64;
        sums.push((cents(entries.iter().map(|e| e.1).collect()), cents(entries.iter().map(|e| e.2).collect())));
    }
    assert_eq!(sums, [(10_199, 199), (6198, 198)]);

    // A full return subtracts each host's share of the sales.
    app.return_tickets(&app.staff.key, &order, json!({})).await;
    for host in &hosts {
        let entries = app.transactions(&format!("{host}/transactions")).await;
        let signed = |e: &(String, f64, f64)| if e.0 == "Sale" { e.1 } else { -e.1 };
        assert!(entries.iter().map(signed).sum::<f64>().abs() < 0.001, "{entries:?}");
    }
}

/// Returns the whole ledger: payment, type, amount, fees, host, and the host's amount and fees.
async fn whole_ledger(app: &TestApp) -> Vec<(i64, String, i64, i64, i64, i64, i64)> {
    app.rows(
        "select t.payment_id, t.type, t.amount, t.fees, coalesce(s.host_id, 0), coalesce(s.amount, 0), coalesce(s.fees, 0)
         from transactions t left join transaction_shares s on s.transaction_id = t.id
         order by t.payment_id, t.type, s.host_id",
    )
    .await
}

/// Runs the ledger's migration again on payments in the format before it.
#[test_on(sqlite, postgres)]
async fn migration_records_earlier_payments(app: TestApp) {
    let MixedOrder { ama, order, .. } = create_mixed_order(&app).await;
    for body in [partial_card_payment(99.99), partial_card_payment(60.5), card_payment()] {
        assert_eq!(app.pay(&ama.key, &order, body).await.status, 201);
    }
    let items: Value = app.read(&order).await["items"].clone();
    let items: serde_json::Map<String, Value> =
        items.as_array().unwrap().iter().map(|item| (item["section"].as_str().unwrap().to_owned(), json!(1))).collect();
    let cancelled = app.place_order(&ama.key, Value::Object(items.clone())).await.uri().to_owned();
    app.pay(&ama.key, &cancelled, partial_card_payment(130.5)).await;
    app.pay(&app.staff.key, &cancelled, json!({ "method": "external", "amount": 1, "reference": "Receipt 7" })).await;
    app.pay(&ama.key, &cancelled, json!({ "method": "card", "token": "tok_decline" })).await;
    app.cancel_order(&ama.key, &cancelled).await;
    app.gateway.reject_refunds(true);
    let owed = app.place_order(&ama.key, Value::Object(items)).await.uri().to_owned();
    app.pay(&ama.key, &owed, partial_card_payment(5.0)).await;
    app.cancel_order(&ama.key, &owed).await;
    let before = whole_ledger(&app).await;
    assert_eq!(before.iter().filter(|entry| entry.1 == "Refund").count(), 3, "one of two hosts, one of one");
    let order = id_of(&owed).parse::<i64>().unwrap();
    app.execute("update payments set status = 'Refunding' where order_id = $1", order).await;
    for table in [
        "drop table transaction_shares",
        "drop table transactions",
        "drop table refund_shares",
        "drop table refunds",
        "drop table revocations",
    ] {
        app.execute_sql(table).await;
    }

    let migration = match app.database_url.starts_with("sqlite") {
        true => include_str!("../../migrations/sqlite/0014_refunds_and_ledger.sql"),
        false => include_str!("../../migrations/postgres/0014_refunds_and_ledger.sql"),
    };
    let mut tx = app.state.db.begin().await.unwrap();
    for statement in migration.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        tx.query(statement).execute().await.unwrap();
    }
    tx.commit().await.unwrap();

    assert_eq!(whole_ledger(&app).await, before);
    let Timestamp(now) = app.state.clock.now();
    assert!(app.scalar::<i64>("select max(id) from transactions").await < now / 100, "later ones come after");
    // An owed refund is still owed.
    assert_eq!(app.payments(&owed).await, [(5.0, "Confirmed".to_owned())]);
    app.gateway.reject_refunds(false);
    app.expire_due().await;
    assert_eq!(app.payments(&owed).await, [(5.0, "Refunded".to_owned())]);
    assert_eq!(app.gateway.total(), 163.97);
    assert_eq!(app.transactions("/transactions").await.len(), 9);
}

/// Runs the migration again on rows: SQLite copies them into new tables.
#[tokio::test]
async fn migration_keeps_items_reservations_and_shares() {
    let app = TestApp::on_sqlite().await;
    let MixedOrder { ama, order, .. } = create_mixed_order(&app).await;
    assert_eq!(app.pay(&ama.key, &order, card_payment()).await.status, 201);
    let items: Value = app.read(&order).await["items"].clone();
    let section = items[0]["section"].as_str().unwrap();
    let open = app.place_order(&ama.key, json!({ section: 2 })).await.uri().to_owned();
    let state = async || {
        let orders = format!("/accounts/{}/orders", ama.number);
        (app.read(&orders).await, app.read(section).await, whole_ledger(&app).await)
    };
    let before = state().await;

    app.execute_sql(include_str!("../../migrations/sqlite/0132_tables_without_rowid.sql")).await;

    assert_eq!(state().await, before);
    assert_eq!(app.pay(&ama.key, &open, card_payment()).await.status, 201);
    assert_eq!(app.transactions("/transactions").await.len(), 2);
    assert_eq!(app.read(section).await["sold"], json!(3));
}

const ACCRA: Id = Id(1);
const LEGON: Id = Id(2);

/// Two tickets of one host at 100.00 with a fee of 1.99 each; of another host a free one and one at 30.00 with a fee of 0.99.
/// The total is 234.97.
fn tickets() -> Vec<TicketCosts> {
    let tickets = |section_id, host_id, quantity, (unit_price, unit_fee)| TicketCosts {
        section_id: Id(section_id),
        host_id,
        quantity,
        unit_price: Money(unit_price),
        unit_fee: Money(unit_fee),
    };
    vec![tickets(11, ACCRA, 2, (10_000, 199)), tickets(12, LEGON, 1, (0, 0)), tickets(13, LEGON, 1, (3000, 99))]
}

fn allocation(amount: i64, fees: i64, shares: &[(Id, i64, i64)]) -> Allocation {
    let share = |&(host, amount, fees): &_| HostShare { host, amount: Money(amount), fees: Money(fees) };
    Allocation { amount: Money(amount), fees: Money(fees), shares: shares.iter().map(share).collect() }
}

#[test]
fn payments_fill_the_prices_before_the_fees() {
    let line = AllocationLine::of(&tickets());

    assert_eq!(line.total(), Money(23_497));
    assert_eq!(line.slice(Money(0), Money(19_999)), allocation(19_999, 0, &[(ACCRA, 19_999, 0)]));
    assert_eq!(line.slice(Money(19_999), Money(3002)), allocation(3002, 1, &[(ACCRA, 2, 1), (LEGON, 3000, 0)]));
    assert_eq!(line.slice(Money(23_001), Money(496)), allocation(496, 496, &[(ACCRA, 397, 397), (LEGON, 99, 99)]));
    assert_eq!(line.slice(Money(0), Money(23_497)), allocation(23_497, 497, &[(ACCRA, 20_398, 398), (LEGON, 3099, 99)]));
}

#[test]
fn allocates_nothing_beyond_the_line() {
    let line = AllocationLine::of(&tickets());

    assert_eq!(line.slice(Money(23_490), Money(100)), allocation(100, 7, &[(LEGON, 7, 7)]));
    assert_eq!(line.slice(Money(30_000), Money(100)), Allocation::unallocated(Money(100)));
}

#[test]
fn slices_add_up_to_the_line() {
    let line = AllocationLine::of(&tickets()).reversed();
    for step in [1, 7, 99, 1999, 10_000, 23_497] {
        let (mut amount, mut fees, mut of_accra) = (Money::ZERO, Money::ZERO, Money::ZERO);
        while amount < line.total() {
            let item = line.slice(amount, Money(step).min(line.total() - amount));
            assert_eq!(item.shares.iter().map(|share| share.amount).sum::<Money>(), item.amount);
            amount += item.amount;
            fees += item.fees;
            of_accra += item.shares.iter().filter(|share| share.host == ACCRA).map(|share| share.amount).sum::<Money>();
        }
        assert_eq!((amount, fees, of_accra), (Money(23_497), Money(497), Money(20_398)), "{step}");
    }
}

#[test]
fn returns_refund_the_fees_first() {
    let line = AllocationLine::of(&tickets()).reversed();

    assert_eq!(line.slice(Money(0), Money(497)), allocation(497, 497, &[(ACCRA, 398, 398), (LEGON, 99, 99)]));
}
