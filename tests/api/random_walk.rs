//! Random purchases, payments, cancellations and returns: the invariants hold after every step.
//!
//! The seed is printed; `BOXOFFICE_WALK=seed` repeats a walk.

use std::collections::BTreeMap;
use std::env;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::support::{Event, Response, TestApp, User, card_payment, check_invariants, id_of, section, test_on};

const STEPS: usize = 150;

/// The expected state of an order, in minor units.
struct ExpectedOrder {
    uri: String,
    owner: usize,
    total: i64,
    subtotal: i64,
    /// The price of the returned tickets, with and without fees.
    returned: (i64, i64),
}

struct Walk {
    app: TestApp,
    random: StdRng,
    users: Vec<User>,
    /// Each section with the price and the fee of a ticket.
    sections: Vec<(String, i64, i64)>,
    orders: Vec<ExpectedOrder>,
    refuses: bool,
}

/// The stored state of an order.
#[derive(Debug, sqlx_macros::FromRow)]
struct StoredOrder {
    id: i64,
    status: String,
    /// The owed refunds, and their fees.
    owed: i64,
    owed_fees: i64,
    /// The sum of the transactions.
    amount: i64,
    fees: i64,
    tickets: i64,
}

fn cents(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 100.0).round() as i64
}

#[test_on(sqlite, postgres)]
async fn random_actions_keep_invariants(app: TestApp) {
    let seed = env::var("BOXOFFICE_WALK").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random::<u64>);
    eprintln!("BOXOFFICE_WALK={seed}");
    let mut walk = Walk::begin(app, seed).await;
    for number in 0..STEPS {
        let step = walk.step().await;
        walk.check(&format!("step {number} of BOXOFFICE_WALK={seed}: {step}")).await;
    }
    walk.app.gateway.reject_refunds(false);
    walk.app.time_out_orders().await;
    walk.check(&format!("the end of BOXOFFICE_WALK={seed}")).await;
    walk.app.check_gateway_balance().await;
}

impl Walk {
    async fn begin(app: TestApp, seed: u64) -> Self {
        let (kofi, esi) = (app.sign_up("kofi").await, app.sign_up("esi").await);
        let prices = [(100.0, 199), (30.5, 99), (0.0, 0), (210.01, 499)];
        let mut sections = Vec::new();
        for (owner, prices) in [(&kofi, &prices[..2]), (&esi, &prices[2..])] {
            let created: Vec<_> = prices.iter().map(|(price, _)| section(&format!("At {price}"), *price, 20)).collect();
            let event: Event = app.create_listed_event(&app.create_host(owner).await, &created).await;
            let priced = event.sections.into_iter().zip(prices);
            sections.extend(priced.map(|(uri, (price, fee))| (uri, (price * 100.0_f64).round() as i64, *fee)));
        }
        let users = vec![app.sign_up("ama").await, app.sign_up("yaw").await, app.sign_up("abena").await];
        Self { app, random: StdRng::seed_from_u64(seed), users, sections, orders: Vec::new(), refuses: false }
    }

    /// Takes a random step, and returns its description. The proxy checks the responses against the contract.
    async fn step(&mut self) -> String {
        let step = self.random.random_range(0..100);
        if step < 30 || self.orders.is_empty() {
            return self.place().await;
        }
        // Prefers later orders: most of the first ones have ended.
        let (one, other) = (self.random.random_range(0..self.orders.len()), self.random.random_range(0..self.orders.len()));
        let order = one.max(other);
        let status = self.app.read(&self.orders[order].uri).await["status"].as_str().unwrap().to_owned();
        let is_open = status == "Placed";
        let uri = self.orders[order].uri.clone();
        let key = self.users[self.orders[order].owner].key.clone();
        let staff = self.app.staff.key.clone();
        let action = match step {
            30..46 => {
                let amount = self.random.random_range(1..15_000);
                let method = if self.random.random_bool(0.3) { "external" } else { "card" };
                let mut body = json!({ "method": method, "token": "tok_approve", "reference": "Receipt 7" });
                body["amount"] = json!(amount as f64 / 100.0);
                let paid = self.app.pay(&staff, &uri, body).await;
                // More than the outstanding amount is rejected.
                let expected: &[u16] = if is_open { &[201, 400] } else { &[409] };
                describe(&format!("pay {amount} {method}"), &paid, expected)
            }
            46..60 => describe("pay all", &self.app.pay(&key, &uri, card_payment()).await, if is_open { &[201] } else { &[409] }),
            60..64 => {
                let body = json!({ "method": "card", "token": "tok_decline" });
                describe("decline", &self.app.pay(&key, &uri, body).await, if is_open { &[402] } else { &[409] })
            }
            64..68 => {
                let loses = self.random.random_bool(0.5);
                self.app.gateway.fail_after_charge(loses);
                let token = if loses { "tok_approve" } else { "tok_error" };
                let failed = self.app.pay(&key, &uri, json!({ "method": "card", "token": token })).await;
                self.app.gateway.fail_after_charge(false);
                describe("fail", &failed, if is_open { &[502] } else { &[409] })
            }
            68..73 => describe("cancel", &self.app.cancel_order(&key, &uri).await, if is_open { &[200] } else { &[409] }),
            73..76 => {
                self.app.time_out_orders().await;
                "time out".to_owned()
            }
            76..88 => return self.return_tickets_of(order, status == "Fulfilled").await,
            88..91 => {
                let voided = self.app.void_order(&staff, &uri, json!({ "reason": "x" })).await;
                describe("void", &voided, if status == "Fulfilled" { &[200] } else { &[409] })
            }
            _ => {
                self.refuses = !self.refuses;
                self.app.gateway.reject_refunds(self.refuses);
                self.app.expire_due().await;
                format!("gateway rejects refunds: {}", self.refuses)
            }
        };
        format!("{action} for {uri}, which was {status}")
    }

    async fn place(&mut self) -> String {
        let owner = self.random.random_range(0..self.users.len());
        let mut items = serde_json::Map::new();
        for (section, _, _) in &self.sections {
            if self.random.random_bool(0.5) {
                items.insert(section.clone(), json!(self.random.random_range(1..4)));
            }
        }
        if items.is_empty() {
            items.insert(self.sections[0].0.clone(), json!(1));
        }
        // Sold out, or too many open orders.
        let placed = self.app.place_order(&self.users[owner].key, Value::Object(items.clone())).await;
        let actual = describe(&format!("place {items:?}"), &placed, &[201, 409]);
        if placed.status == 201 {
            let order = &placed.body;
            let uri = order["self"].as_str().unwrap().to_owned();
            let (total, subtotal) = (cents(&order["total"]), cents(&order["subtotal"]));
            self.orders.push(ExpectedOrder { uri, owner, total, subtotal, returned: (0, 0) });
        }
        actual
    }

    /// Returns all tickets of an order, or some of the remaining ones.
    async fn return_tickets_of(&mut self, order: usize, is_fulfilled: bool) -> String {
        let known = &self.orders[order];
        let id: i64 = id_of(&known.uri).parse().unwrap();
        let mut reader = self.app.state.db.read().await.unwrap();
        let tickets = reader.query("select serial, section_id from tickets where order_id = $1 and status = 'Issued'").bind(id);
        let tickets: Vec<(String, i64)> = tickets.all().await.unwrap();
        drop(reader);
        let some = self.random.random_bool(0.7) && !tickets.is_empty();
        let count = self.random.random_range(1..=tickets.len().max(1));
        let chosen: Vec<&(String, i64)> =
            if some { tickets.sample(&mut self.random, count).collect() } else { tickets.iter().collect() };
        let serials: Vec<&String> = chosen.iter().map(|(serial, _)| serial).collect();
        let body = if some { json!({ "tickets": serials }) } else { json!({}) };
        let returned = self.app.return_tickets(&self.app.staff.key, &known.uri, body).await;
        let actual =
            describe(&format!("return {} of {}", known.uri, chosen.len()), &returned, if is_fulfilled { &[200] } else { &[409] });
        if returned.status == 200 {
            for (_, section) in chosen {
                let (_, price, fee) = self.sections.iter().find(|(uri, ..)| uri.ends_with(&section.to_string())).unwrap();
                self.orders[order].returned.0 += price + fee;
                self.orders[order].returned.1 += fee;
            }
        }
        actual
    }

    async fn check(&self, step: &str) {
        let mut tx = self.app.state.db.begin().await.unwrap();
        let actual = tx.query(
            "select o.id, o.status,
                coalesce((select cast(sum(r.amount) as bigint) from refunds r
                    where r.order_id = o.id and r.status = 'Owed'), 0) as owed,
                coalesce((select cast(sum(r.fees) as bigint) from refunds r
                    where r.order_id = o.id and r.status = 'Owed'), 0) as owed_fees,
                coalesce((select cast(sum(case t.type when 'Sale' then t.amount else -t.amount end) as bigint)
                    from transactions t where t.order_id = o.id), 0) as amount,
                coalesce((select cast(sum(case t.type when 'Sale' then t.fees else -t.fees end) as bigint)
                    from transactions t where t.order_id = o.id), 0) as fees,
                (select count(*) from tickets t where t.order_id = o.id and t.status <> 'Void') as tickets
             from orders o order by o.id",
        );
        let actual: Vec<StoredOrder> = actual.all().await.unwrap();
        let wrong = check_invariants(&mut tx, self.app.state.clock.now()).await;
        drop(tx);

        assert!(wrong.is_empty(), "{step}: {wrong:#?}");
        let known: BTreeMap<String, &ExpectedOrder> =
            self.orders.iter().map(|known| (id_of(&known.uri).to_owned(), known)).collect();
        for order in &actual {
            let known = known[&order.id.to_string()];
            let about = format!("{step}: {order:?}, {} of {} returned", known.returned.0, known.total);
            // The remaining amount after all owed refunds.
            let (stays, fees) = (order.amount - order.owed, order.fees - order.owed_fees);
            match order.status.as_str() {
                "Placed" => assert_eq!((stays <= known.total, fees), (true, (stays - known.subtotal).max(0)), "{about}"),
                "Cancelled" | "Timed Out" => assert_eq!((stays, fees, order.tickets), (0, 0, 0), "{about}"),
                other => {
                    let all_fees = known.total - known.subtotal;
                    assert_eq!((stays, fees), (known.total - known.returned.0, all_fees - known.returned.1), "{about}");
                    assert_eq!(other == "Fulfilled", order.tickets > 0, "{about}");
                }
            }
        }
    }
}

/// Describes an action and its response. Panics on an unexpected status.
fn describe(what: &str, response: &Response, expected: &[u16]) -> String {
    assert!(expected.contains(&response.status), "{what}: {} {}", response.status, response.body);
    format!("{what}: {}", response.status)
}
