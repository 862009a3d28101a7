//! Complimentary orders among others: they take places, count for the maximum of an account, and cost nothing.

use std::collections::{BTreeSet, HashMap};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::{Map, Value, json};

use super::check_cases;
use crate::support::{TestApp, User, card_payment, check_invariants, entries_of, section, test_on};

/// The number of cases.
const CASES: usize = 4;
/// The number of accounts that have tickets.
const ACCOUNTS: usize = 3;
/// The largest number of sections.
const SECTIONS: usize = 3;

#[derive(Debug, Clone)]
struct Section {
    is_free: bool,
    capacity: i64,
    maximum: Option<i64>,
    is_active: bool,
    is_on_sale: bool,
}

#[derive(Debug, Clone)]
enum Step {
    /// The host issues complimentary tickets to an account, by its number or its e-mail address.
    Give { account: usize, quantities: Vec<i64>, is_by_email: bool },
    /// The account orders tickets, and pays for them.
    Buy { account: usize, quantities: Vec<i64> },
    /// The host returns an earlier order.
    Return { order: usize },
}

/// An order that was accepted.
#[derive(Debug)]
struct Accepted {
    uri: String,
    account: usize,
    quantities: Vec<i64>,
    is_paid: bool,
    is_returned: bool,
}

fn cases() -> impl Strategy<Value = (Vec<Section>, Vec<Step>)> {
    let section = (any::<bool>(), 1..9_i64, option::of(1..6_i64), prop::bool::weighted(0.7), prop::bool::weighted(0.7));
    let section = section.prop_map(|(is_free, capacity, maximum, is_active, is_on_sale)| Section {
        is_free,
        capacity,
        maximum,
        is_active,
        is_on_sale,
    });
    let order = || (0..ACCOUNTS, vec(0..4_i64, SECTIONS));
    let step = prop_oneof![
        3 => (order(), any::<bool>())
            .prop_map(|((account, quantities), is_by_email)| Step::Give { account, quantities, is_by_email }),
        2 => order().prop_map(|(account, quantities)| Step::Buy { account, quantities }),
        1 => (0..10_usize).prop_map(|order| Step::Return { order }),
    ];
    (vec(section, 1..=SECTIONS), vec(step, 1..14))
}

#[test_on(sqlite, postgres)]
async fn complimentary_orders_match_model(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let accounts = [app.sign_up("ama").await, app.sign_up("esi").await, app.sign_up("yaw").await];
    let check = async |(sections, steps): &(Vec<Section>, Vec<Step>)| check(&app, &kofi, &accounts, sections, steps).await;
    check_cases(CASES, cases(), check).await;
}

async fn check(app: &TestApp, kofi: &User, accounts: &[User; ACCOUNTS], sections: &[Section], steps: &[Step]) -> TestCaseResult {
    let bodies = sections.iter().enumerate().map(|(number, model)| {
        let mut body = section(&format!("Block {number}"), if model.is_free { 0.0 } else { 100.0 }, model.capacity);
        body.maximum_per_account = serde_json::from_value(json!(model.maximum)).unwrap();
        body.active = Some(model.is_active);
        if !model.is_on_sale {
            body.sales_start = "2998-01-01T00:00".to_owned();
        }
        body
    });
    let host = app.create_host(kofi).await;
    let event = app.create_listed_event(&host, &bodies.collect::<Vec<_>>()).await;
    let mut orders: Vec<Accepted> = Vec::new();
    for step in steps {
        match step {
            Step::Return { order } => {
                let open = orders.iter_mut().filter(|order| !order.is_returned).nth(*order);
                if let Some(order) = open {
                    let returned = app.return_tickets(&kofi.key, &order.uri, json!({})).await;
                    prop_assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Returned")));
                    order.is_returned = true;
                }
            }
            Step::Give { account, quantities, .. } | Step::Buy { account, quantities } => {
                let items = items(&event.sections, quantities);
                if items.is_empty() {
                    continue;
                }
                let customer = &accounts[*account];
                let (response, is_sale) = match step {
                    Step::Give { is_by_email, .. } => {
                        let email = format!("{}@example.com", customer.username);
                        let (name, value) = if *is_by_email { ("email", &email) } else { ("account", &customer.number) };
                        let body = json!({ name: value, "items": items });
                        let path = format!("{}/complimentary-orders", event.uri);
                        (app.post(&kofi.key, &path, &body).await, false)
                    }
                    _ => (app.place_order(&customer.key, items.into()).await, true),
                };
                let reasons = reasons(sections, &orders, *account, quantities, is_sale);
                if !reasons.is_empty() {
                    prop_assert!(response.status == 409 && reasons.contains(response.code()), "{}", response.body);
                    continue;
                }
                prop_assert_eq!(response.status, 201, "{}", response.body);
                let order = &response.body;
                let uri = order["self"].as_str().unwrap().to_owned();
                prop_assert_eq!(&order["complimentary"], !is_sale);
                let is_paid = order["total"] != 0.0;
                if is_paid {
                    prop_assert!(is_sale, "a complimentary order costs nothing: {}", order);
                    prop_assert_eq!(app.pay(&customer.key, &uri, card_payment()).await.status, 201);
                } else {
                    prop_assert_eq!(&order["status"], "Fulfilled");
                    let amounts = ["subtotal", "fees", "refunded"].map(|name| order[name].as_f64().unwrap());
                    prop_assert_eq!(amounts, [0.0; 3]);
                }
                orders.push(Accepted { uri, account: *account, quantities: quantities.clone(), is_paid, is_returned: false });
            }
        }
    }
    let sold = sold(&orders, None);
    for (number, (uri, model)) in event.sections.iter().zip(sections).enumerate() {
        prop_assert_eq!(app.sold_and_reserved(uri).await, (sold[number], 0), "section {}", number);
        prop_assert!(sold[number] <= model.capacity);
    }
    check_ledger(app, &host.uri, &orders).await?;
    prop_assert_eq!(check_invariants(&mut app.state.db.read().await.unwrap(), app.state.clock.now()).await, Vec::<String>::new());
    Ok(())
}

/// Returns the items of an order with these quantities.
fn items(sections: &[String], quantities: &[i64]) -> Map<String, Value> {
    let items = sections.iter().zip(quantities).filter(|(_, quantity)| **quantity > 0);
    items.map(|(section, quantity)| (section.clone(), json!(quantity))).collect()
}

/// Returns the number of valid tickets by section: those of an account, or of all.
fn sold(orders: &[Accepted], account: Option<usize>) -> [i64; SECTIONS] {
    let mut sold = [0; SECTIONS];
    let valid = orders.iter().filter(|order| !order.is_returned && account.is_none_or(|account| order.account == account));
    for order in valid {
        sold.iter_mut().zip(&order.quantities).for_each(|(sold, quantity)| *sold += quantity);
    }
    sold
}

/// Returns the codes with which an order is rejected; none if it is accepted.
fn reasons(
    sections: &[Section],
    orders: &[Accepted],
    account: usize,
    quantities: &[i64],
    is_sale: bool,
) -> BTreeSet<&'static str> {
    let (sold, held) = (sold(orders, None), sold(orders, Some(account)));
    let mut reasons = BTreeSet::new();
    for (number, section) in sections.iter().enumerate().filter(|(number, _)| quantities[*number] > 0) {
        let quantity = quantities[number];
        for (is_violated, code) in [
            (sold[number] + quantity > section.capacity, "section.sold-out"),
            (section.maximum.is_some_and(|maximum| held[number] + quantity > maximum), "section.account-maximum"),
            (is_sale && !section.is_active, "section.inactive"),
            (is_sale && !section.is_on_sale, "section.not-on-sale"),
        ] {
            reasons.extend(is_violated.then_some(code));
        }
    }
    reasons
}

/// The ledger has the orders that were paid, each with a sale, and a refund if it was returned, and nothing of the others.
async fn check_ledger(app: &TestApp, host: &str, orders: &[Accepted]) -> TestCaseResult {
    let ledger = app.read(&format!("{host}/transactions?records=100")).await;
    let mut balances: HashMap<String, (usize, f64)> = HashMap::new();
    for entry in entries_of(&ledger) {
        let (count, sum) = balances.entry(entry["order"].as_str().unwrap().to_owned()).or_default();
        *count += 1;
        *sum += if entry["type"] == "Sale" { 1.0 } else { -1.0 } * entry["amount"].as_f64().unwrap();
    }
    for order in orders {
        let (count, sum) = balances.remove(&order.uri).unwrap_or_default();
        prop_assert_eq!(count, usize::from(order.is_paid) * (1 + usize::from(order.is_returned)), "{}", order.uri);
        prop_assert_eq!(sum > 0.0, order.is_paid && !order.is_returned, "{}", order.uri);
    }
    prop_assert!(balances.is_empty(), "{:?}", balances);
    Ok(())
}
