//! Prices: random price modifiers, quantities and times, compared with an independent model.

use std::time::Duration;

use boxoffice::kernel::types::clock::Timestamp;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};

use super::check_cases;
use crate::support::{Host, TestApp, User, section, test_on};

/// The number of cases.
const CASES: usize = 6;
/// The number of times at which a case is checked, one slot apart.
const MOMENTS: i64 = 5;
/// The time between two checks. Modifiers and sales begin and end in the middle of a slot, so that the duration of the test
/// doesn't matter.
const SLOT: Duration = Duration::from_secs(600);

/// A price modifier. Its times are slots: from slot 2 on means that it applies at check 2.
#[derive(Debug, Clone)]
struct Modifier {
    delta: i64,
    from: Option<i64>,
    to: Option<i64>,
    min: Option<i64>,
    max: Option<i64>,
    active: bool,
}

#[derive(Debug, Clone)]
struct Section {
    base: i64,
    /// The slot at which sales end.
    sales_end: i64,
    modifiers: Vec<Modifier>,
    /// The quantities of the orders at each check.
    quantities: Vec<i64>,
}

fn modifiers() -> impl Strategy<Value = Modifier> {
    let delta = prop_oneof![-12_000..12_000_i64, -100..100_i64];
    let slots = (option::of(-1..MOMENTS), option::of(1..4_i64), -1..MOMENTS);
    // The end is an optional number of slots after the start.
    let window = slots.prop_map(|(from, length, end)| (from, length.map(|length| from.map_or(end, |from| from + length))));
    let bounds = (option::of(1..4_i64), option::of(0..3_i64), 1..4_i64);
    let bounds = bounds.prop_map(|(min, more, max)| (min, more.map(|more| min.map_or(max, |min| min + more))));
    (delta, window, bounds, prop::bool::weighted(0.8)).prop_map(|(delta, (from, to), (min, max), active)| Modifier {
        delta,
        from,
        to,
        min,
        max,
        active,
    })
}

fn sections() -> impl Strategy<Value = Vec<Section>> {
    let base = prop_oneof![Just(0), Just(5_000), Just(10_000), 0..25_000_i64];
    let section = (base, 2..=MOMENTS, vec(modifiers(), 0..5), vec(1..5_i64, MOMENTS as usize));
    let section = section.prop_map(|(base, sales_end, modifiers, quantities)| Section { base, sales_end, modifiers, quantities });
    vec(section, 1..4)
}

impl Modifier {
    fn is_for(&self, quantity: i64) -> bool {
        self.active && self.min.is_none_or(|min| quantity >= min) && self.max.is_none_or(|max| quantity <= max)
    }

    fn applies(&self, moment: i64, quantity: i64) -> bool {
        self.is_for(quantity) && self.from.is_none_or(|from| moment >= from) && self.to.is_none_or(|to| moment < to)
    }
}

impl Section {
    fn unit_price(&self, moment: i64, quantity: i64) -> i64 {
        let applying = self.modifiers.iter().filter(|modifier| modifier.applies(moment, quantity));
        (self.base + applying.map(|modifier| modifier.delta).sum::<i64>()).max(0)
    }

    fn expiry(&self, moment: i64) -> i64 {
        let for_one = self.modifiers.iter().filter(|modifier| modifier.is_for(1));
        let changes = for_one.flat_map(|modifier| modifier.from.into_iter().chain(modifier.to));
        changes.filter(|slot| *slot > moment).chain([self.sales_end]).min().unwrap()
    }
}

/// Returns the fee of a ticket by the fee steps of the test settings.
fn fee(unit_price: i64) -> i64 {
    match unit_price {
        0 => 0,
        1..=5_000 => 99,
        5_001..=10_000 => 199,
        10_001..=15_000 => 299,
        15_001..=20_000 => 399,
        _ => 499,
    }
}

/// Returns an amount in minor units as the API writes it.
fn amount(minor: i64) -> Value {
    json!(minor as f64 / 100.0)
}

#[test_on(sqlite, postgres)]
async fn prices_match_model(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    check_cases(CASES, sections(), async |sections: &Vec<Section>| check(&app, &host, &ama, sections).await).await;
}

/// Creates these sections, and compares their prices and those of orders with the model.
async fn check(app: &TestApp, host: &Host, customer: &User, sections: &[Section]) -> TestCaseResult {
    let beginning = app.state.clock.now();
    let at = |slot: i64| Timestamp(beginning.0 + (2 * slot - 1) * i64::try_from(SLOT.as_micros() / 2).unwrap());
    let event = app.create_listed_event(host, &[]).await;
    let mut created = Vec::new();
    for (number, model) in sections.iter().enumerate() {
        let mut body = section(&format!("Block {number}"), model.base as f64 / 100.0, 1000);
        body.sales_end = at(model.sales_end).format_rfc3339();
        let uri = app.add_section(&event, &body).await;
        let mut modifiers = Vec::new();
        for (number, modifier) in model.modifiers.iter().enumerate() {
            let time = |slot: Option<i64>| slot.map(|slot| at(slot).format_rfc3339());
            let body = json!({
                "name": format!("Modifier {number}"), "priceDelta": amount(modifier.delta), "active": modifier.active,
                "availableFrom": time(modifier.from), "availableTo": time(modifier.to),
                "minOrder": modifier.min, "maxOrder": modifier.max,
            });
            let created = app.post(&host.owner.key, &format!("{uri}/modifiers"), &body).await;
            prop_assert_eq!(created.status, 201, "{}", created.body);
            modifiers.push(created.body["self"].clone());
        }
        created.push((uri, model, modifiers));
    }
    for moment in 0..MOMENTS {
        let shown = app.read(&event.uri).await;
        for (number, (_, model, _)) in created.iter().enumerate() {
            let (current, expires) = (model.unit_price(moment, 1), at(model.expiry(moment)).format_minutes());
            let expected = json!({ "base": amount(model.base), "current": amount(current), "expires": expires });
            prop_assert_eq!(&shown["sections"][number]["price"], &expected, "section {} at {}", number, moment);
        }
        let on_sale: Vec<_> = created.iter().filter(|(_, model, _)| moment < model.sales_end).collect();
        if !on_sale.is_empty() {
            let (mut items, mut expected) = (serde_json::Map::new(), Vec::new());
            let (mut subtotal, mut fees) = (0, 0);
            for (uri, model, modifiers) in on_sale {
                let quantity = model.quantities[moment as usize];
                let unit_price = model.unit_price(moment, quantity);
                let applied = modifiers.iter().zip(&model.modifiers).filter(|(_, model)| model.applies(moment, quantity));
                let applied: Vec<_> = applied.map(|(uri, _)| uri).collect();
                items.insert(uri.clone(), quantity.into());
                expected.push(json!({
                    "event": event.uri, "section": uri, "quantity": quantity, "unitPrice": amount(unit_price),
                    "modifier": applied.first(), "modifiers": applied,
                }));
                subtotal += quantity * unit_price;
                fees += quantity * fee(unit_price);
            }
            let quote = app.request("POST", "/quotes").json(&json!({ "items": items })).send().await;
            prop_assert_eq!(quote.status, 200, "{}", quote.body);
            let placed = app.place_order(&customer.key, items.into()).await;
            prop_assert_eq!(placed.status, 201, "{}", placed.body);
            for amount in ["items", "subtotal", "fees", "total"] {
                prop_assert_eq!(&quote.body[amount], &placed.body[amount], "{} of the quote at {}", amount, moment);
            }
            prop_assert_eq!(&placed.body["items"], &Value::from(expected), "at {}", moment);
            let amounts = [&placed.body["subtotal"], &placed.body["fees"], &placed.body["total"]].map(Value::clone);
            prop_assert_eq!(amounts, [subtotal, fees, subtotal + fees].map(amount), "at {}", moment);
            let status = if subtotal == 0 { "Fulfilled" } else { "Placed" };
            prop_assert_eq!(&placed.body["status"], status);
        }
        app.advance_clock(SLOT);
    }
    Ok(())
}
