//! Ten users per ticket, who order, pay, cancel, abandon and return at random: exactly the available tickets are sold, and none
//! twice at any moment.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use boxoffice::provisioning;
use boxoffice_openapi::Scope;
use futures::StreamExt;
use futures::stream;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use super::{print_figure, seed, short_or_full};
use crate::support::{
    RESERVATION_TTL, Response, TestApp, card_payment, check_invariants, partial_card_payment, rejection, section, test_on,
};

/// The number of concurrent users.
const CONCURRENCY: usize = 100;
/// The price of each section, and its share of every ten tickets. The last section is free.
const SECTIONS: [(f64, i64); 4] = [(12.5, 4), (60.0, 3), (199.99, 2), (0.0, 1)];

struct Contention {
    app: TestApp,
    seed: u64,
    sections: Vec<String>,
    keys: Vec<String>,
    gone: AtomicUsize,
    /// The number of times that each action succeeded.
    done: Mutex<BTreeMap<&'static str, usize>>,
}

/// A section's counters and related rows, read in one statement.
#[derive(Debug, sqlx_macros::FromRow)]
struct SectionCounts {
    capacity: i64,
    sold: i64,
    reserved: i64,
    tickets: i64,
    held: i64,
}

#[test_on(sqlite, postgres, two_servers)]
async fn ten_buyers_for_each_ticket(app: TestApp) {
    let buyers: usize = short_or_full(1000, 10_000);
    let seed = seed();
    let places = i64::try_from(buyers / 10).unwrap();
    eprintln!("BOXOFFICE_SEED={seed}, {buyers} buyers");
    let contention = Contention::create(app, seed, buyers, places).await;

    let begun = Instant::now();
    let samples = contention.buy_while_checking().await;
    let seconds = begun.elapsed().as_secs_f64();
    let early = contention.sell_remaining().await;

    let counted = contention.count().await;
    assert_eq!(counted.iter().map(|section| section.sold).sum::<i64>(), places, "{counted:?}");
    contention.check_money().await;
    print_figure(format!(
        "{} on {}: {buyers} buyers for {places} places: {places} sold, {early} of them to the crowd; {}; {samples} samples, \
         none oversold; {seconds:.1} s (BOXOFFICE_SEED={seed})",
        "ten_buyers_for_each_ticket",
        contention.app.database_name(),
        contention.done.lock().iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", "),
    ));
}

/// Returns a user's account number.
fn number(buyer: usize) -> String {
    format!("ZZ-{buyer:08}")
}

impl Contention {
    async fn create(app: TestApp, seed: u64, buyers: usize, places: i64) -> Self {
        let kofi = app.sign_up("kofi").await;
        let sections = SECTIONS
            .iter()
            .zip(1..)
            .map(|((price, tenths), number)| section(&format!("Block {number}"), *price, places * tenths / 10));
        let event = app.create_listed_event(&app.create_host(&kofi).await, &sections.collect::<Vec<_>>()).await;
        // Inserted directly: hashing this many passwords would take longer than the test.
        let mut tx = app.state.db.begin().await.unwrap();
        let columns = "accounts (id, number, username, email, password_hash, role, verified, activated, first_name, last_name, \
            title, phone, country, first_address_line, second_address_line, city, state)";
        tx.insert_rows(columns, 0..buyers, |columns| {
            columns.add(|buyer| i64::try_from(*buyer).unwrap()).add(|buyer| number(*buyer));
            columns.add(|buyer| format!("buyer{buyer}")).add(|buyer| format!("buyer{buyer}@example.com"));
            columns.add(|_| "").add(|_| "customer").add(|_| true).add(|_| true);
            for _empty in 0..9 {
                columns.add(|_| "");
            }
        })
        .await
        .unwrap();
        tx.commit().await.unwrap();
        let mut keys = Vec::new();
        for buyer in 0..buyers {
            keys.push(
                provisioning::create_key(&app.state, "a buyer", Scope::Customer, Some(&number(buyer)), None).await.unwrap(),
            );
        }
        Self { app, seed, sections: event.sections, keys, gone: AtomicUsize::new(0), done: Mutex::default() }
    }

    /// Runs all users, and checks the tables repeatedly meanwhile. Returns the number of checks.
    async fn buy_while_checking(&self) -> usize {
        let samples = AtomicUsize::new(0);
        let sample = async {
            loop {
                self.count().await;
                samples.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let buy = stream::iter(0..self.keys.len()).for_each_concurrent(CONCURRENCY, |buyer| self.run_user(buyer));
        tokio::select! {
            () = buy => samples.load(Ordering::Relaxed),
            never = sample => never,
        }
    }

    /// Returns every section's counts. Panics if a ticket is sold twice, or if counts disagree.
    async fn count(&self) -> Vec<SectionCounts> {
        let mut reader = self.app.state.db.read().await.unwrap();
        let counted: Vec<SectionCounts> = reader
            .query(
                "select s.capacity, s.sold, s.reserved,
                    (select count(*) from tickets t where t.section_id = s.id and t.status <> 'Void') as tickets,
                    coalesce((select cast(sum(r.quantity) as bigint) from reservations r where r.section_id = s.id), 0) as held
                 from sections s order by s.id",
            )
            .all()
            .await
            .unwrap();
        for section in &counted {
            assert!(section.tickets + section.held <= section.capacity, "oversold, BOXOFFICE_SEED={}: {section:?}", self.seed);
            assert_eq!((section.sold, section.reserved), (section.tickets, section.held), "BOXOFFICE_SEED={}", self.seed);
        }
        counted
    }

    /// Runs one user, and advances the clock.
    async fn run_user(&self, buyer: usize) {
        self.buy(buyer, &mut StdRng::seed_from_u64(self.seed ^ buyer as u64)).await;
        if self.gone.fetch_add(1, Ordering::Relaxed).is_multiple_of((self.keys.len() / 20).max(1)) {
            self.app.advance_clock(RESERVATION_TTL / 3);
        }
    }

    async fn buy(&self, buyer: usize, random: &mut StdRng) {
        let key = &self.keys[buyer];
        let (order, is_free) = loop {
            let (items, quantity, is_free) = self.random_items(random);
            let placed = self.app.place_order(key, items).await;
            if self.is_done(&placed, 201, "section.sold-out", "orders", "refused as sold out") {
                break (placed.uri().to_owned(), is_free);
            }
            // Some accept fewer tickets.
            if quantity < 3 || random.random_bool(0.7) {
                return;
            }
        };
        if !is_free && !self.finish_order(key, &order, random).await {
            return;
        }
        let (staff, app) = (&self.app.staff.key, &self.app);
        match random.random_range(0..20) {
            0..4 => {
                let back = app.return_tickets(staff, &order, json!({})).await;
                self.is_done(&back, 200, "", "returned whole", "");
            }
            4..7 => {
                let tickets = app.read(&format!("/accounts/{}/tickets", number(buyer))).await;
                let serial = tickets["entries"][0]["serial"].clone();
                let back = app.return_tickets(staff, &order, json!({ "tickets": [serial] })).await;
                self.is_done(&back, 200, "", "returned in part", "");
            }
            7 => {
                let voided = app.void_order(staff, &order, json!({ "reason": "Sold on." })).await;
                self.is_done(&voided, 200, "", "voided", "");
            }
            _ => {}
        }
    }

    /// Returns one to ten tickets of one to three sections, their number, and whether they are free.
    fn random_items(&self, random: &mut StdRng) -> (Value, i64, bool) {
        let mut sections: Vec<usize> = (0..self.sections.len()).collect();
        sections.shuffle(random);
        sections.truncate(random.random_range(1..=3));
        let (mut items, mut left) = (Map::new(), random.random_range(1..=10_i64));
        let mut wanted = 0;
        for (number, &section) in sections.iter().enumerate() {
            let quantity = if number + 1 == sections.len() { left } else { random.random_range(0..=left) };
            left -= quantity;
            wanted += quantity;
            if quantity > 0 {
                items.insert(self.sections[section].clone(), quantity.into());
            }
        }
        let is_free = items.keys().all(|section| *section == self.sections[SECTIONS.len() - 1]);
        (items.into(), wanted, is_free)
    }

    /// Pays, cancels or abandons an order with a price. Returns whether it was paid.
    async fn finish_order(&self, key: &str, order: &str, random: &mut StdRng) -> bool {
        let app = &self.app;
        match random.random_range(0..20) {
            0..9 => {
                self.is_done(&app.read_order(order).await, 200, "", "left to time out", "");
                false
            }
            9..13 => {
                self.is_done(&app.cancel_order(key, order).await, 200, "order.not-open", "cancelled", "cancelled too late");
                false
            }
            13 => {
                self.is_done(
                    &app.pay(key, order, partial_card_payment(1.0)).await,
                    201,
                    "order.not-open",
                    "begun to be paid",
                    "paid too late",
                );
                false
            }
            14 => {
                let declined = json!({ "method": "card", "token": "tok_decline" });
                let declined = app.pay(key, order, declined).await;
                assert!(["payment.declined", "order.not-open"].contains(&declined.code()), "{}", declined.body);
                self.is_done(&app.pay(key, order, card_payment()).await, 201, "order.not-open", "paid", "paid too late")
            }
            15..17 => {
                let first = app.pay(key, order, partial_card_payment(2.5)).await;
                self.is_done(&first, 201, "order.not-open", "begun to be paid", "paid too late")
                    && self.is_done(&app.pay(key, order, card_payment()).await, 201, "order.not-open", "paid", "paid too late")
            }
            _ => self.is_done(&app.pay(key, order, card_payment()).await, 201, "order.not-open", "paid", "paid too late"),
        }
    }

    /// Counts a response. Panics if it is neither successful nor the expected rejection.
    fn is_done(&self, response: &Response, success: u16, rejection: &str, done: &'static str, rejected: &'static str) -> bool {
        let is_done = response.status == success;
        assert!(is_done || response.code() == rejection, "{done}: {} {}", response.status, response.body);
        *self.done.lock().entry(if is_done { done } else { rejected }).or_default() += 1;
        is_done
    }

    /// Sells all remaining tickets once the reservations have expired. Returns the number of tickets sold before.
    async fn sell_remaining(&self) -> i64 {
        self.app.time_out_orders().await;
        let sold = self.count().await.iter().map(|section| section.sold).sum();
        let last = &self.keys[0];
        for section in &self.sections {
            loop {
                let left = self.app.read(section).await["remaining"].as_i64().unwrap();
                if left == 0 {
                    break;
                }
                let placed = self.app.place_order(last, json!({ section.as_str(): left.min(50) })).await;
                assert_eq!(placed.status, 201, "a place is lost, BOXOFFICE_SEED={}: {}", self.seed, placed.body);
                if placed.body["status"] == "Placed" {
                    let paid = self.app.pay(last, placed.uri(), card_payment()).await;
                    assert_eq!(paid.status, 201, "{}", paid.body);
                }
            }
            assert_eq!(rejection(&self.app.place_order(last, json!({ section.as_str(): 1 })).await), (409, "section.sold-out"));
        }
        sold
    }

    /// Asserts that the gateway and the ledger have the price of all valid tickets and of voided orders.
    async fn check_money(&self) {
        let mut reader = self.app.state.db.read().await.unwrap();
        assert_eq!(check_invariants(&mut reader, self.app.state.clock.now()).await, [""; 0], "BOXOFFICE_SEED={}", self.seed);
        let cost: i64 = reader
            .query(
                "select coalesce(cast(sum(i.unit_price + i.unit_fee) as bigint), 0) from tickets t
                 join orders o on o.id = t.order_id
                 join order_items i on i.order_id = t.order_id and i.section_id = t.section_id
                 where t.status <> 'Void' or o.status = 'Voided'",
            )
            .scalar()
            .await
            .unwrap();
        assert_eq!((self.app.gateway.total() * 100.0).round() as i64, cost, "BOXOFFICE_SEED={}", self.seed);
        drop(reader);
        self.app.check_gateway_balance().await;
    }
}

impl TestApp {
    /// Returns the name of the database setup.
    fn database_name(&self) -> &'static str {
        match (self.database_url.starts_with("sqlite"), &self.other_state) {
            (true, _) => "SQLite",
            (false, None) => "PostgreSQL",
            (false, Some(_)) => "PostgreSQL, two servers",
        }
    }

    async fn read_order(&self, order: &str) -> Response {
        self.request("GET", order).key(&self.staff.key).send().await
    }
}
