//! Orders and payments through plain HTTP, and their effects.

use std::sync::Arc;
use std::time::Duration;

use boxoffice::features::sales::orders::{self, waiting_list};
use boxoffice::features::sales::payments;
use boxoffice::state::Ctx;
use boxoffice_http::error::Error;
use futures::future::{join, join_all};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Event, Response, TestApp, User, entries_of, section};

/// The time for which an open order reserves its tickets.
pub const RESERVATION_TTL: Duration = Duration::from_secs(15 * 60);

impl TestApp {
    /// Returns the body of a GET request with the administrator's key.
    pub async fn read(&self, path: &str) -> Value {
        self.get(&self.staff.key, path).await.body
    }

    /// Returns a section's numbers of sold and reserved tickets.
    pub async fn sold_and_reserved(&self, section: &str) -> (i64, i64) {
        let section = self.read(section).await;
        let count = |name: &str| section[name].as_i64().unwrap();
        assert_eq!(count("remaining"), count("capacity") - count("sold") - count("reserved"));
        (count("sold"), count("reserved"))
    }

    /// Returns every section's numbers of sold and reserved tickets as stored, and the sum of all reservations.
    pub async fn stored_sold_and_reserved(&self) -> (Vec<(i64, i64)>, i64) {
        let mut reader = self.state.db.read().await.unwrap();
        let sections = reader.query("select sold, reserved from sections order by id").all().await.unwrap();
        let reserved =
            reader.query("select coalesce(cast(sum(quantity) as bigint), 0) from reservations").scalar().await.unwrap();
        (sections, reserved)
    }

    /// Returns the amount and the status of every payment of an order.
    pub async fn payments(&self, order: &str) -> Vec<(f64, String)> {
        let page = self.read(&format!("{order}/payments")).await;
        let payment = |payment: &Value| (payment["amount"].as_f64().unwrap(), payment["status"].as_str().unwrap().to_owned());
        entries_of(&page).iter().map(payment).collect()
    }

    /// Has Ama order two tickets at 100.00, which is 203.98 with fees, of a section with this capacity.
    pub async fn create_order(&self, capacity: i64) -> (User, Event, String) {
        let (_, ama, event) = self.create_sale(&[section("Stalls", 100.0, capacity)]).await;
        let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
        (ama, event, order)
    }

    /// Returns the first hundred tickets of a user, oldest first.
    pub async fn wallet(&self, user: &User) -> Vec<Value> {
        entries_of(&self.read(&format!("/accounts/{}/tickets?records=100", user.number)).await).to_vec()
    }

    /// Admits tickets to an event.
    pub async fn admit(&self, key: &str, event: &Event, serials: impl Serialize) -> Response {
        self.post(key, &format!("{}/admissions", event.uri), json!({ "serials": serials })).await
    }

    /// Places an order.
    pub async fn place_order(&self, key: &str, items: Value) -> Response {
        self.post(key, "/orders", json!({ "items": items })).await
    }

    /// Pays for an order.
    pub async fn pay(&self, key: &str, order: &str, payment: Value) -> Response {
        self.post(key, &format!("{order}/payments"), &payment).await
    }

    /// Pays for an order, and runs `meanwhile` before the gateway responds. Returns the response and the result of `meanwhile`.
    pub async fn pay_during<T>(
        &self,
        user: &User,
        order: &str,
        payment: Value,
        meanwhile: impl AsyncFnOnce() -> T,
    ) -> (Response, T) {
        self.gateway.block();
        let charges = self.gateway.charge_count() + 1;
        let meanwhile = async {
            self.gateway.wait_for_charges(charges).await;
            let result = meanwhile().await;
            self.gateway.unblock();
            result
        };
        join(self.pay(&user.key, order, payment), meanwhile).await
    }

    /// Asserts that the only charge was this payment of this order, and that it was refunded.
    pub async fn assert_refunded(&self, order: &str, amount: f64) {
        assert_eq!((self.gateway.charge_count(), self.gateway.total()), (1, 0.0));
        assert_eq!(self.payments(order).await, [(amount, "Refunded".to_owned())]);
    }

    /// Cancels an order.
    pub async fn cancel_order(&self, key: &str, order: &str) -> Response {
        self.post_empty(key, &format!("{order}/cancellations")).await
    }

    /// Returns tickets of an order.
    pub async fn return_tickets(&self, key: &str, order: &str, body: Value) -> Response {
        self.post(key, &format!("{order}/returns"), &body).await
    }

    /// Voids an order.
    pub async fn void_order(&self, key: &str, order: &str, body: Value) -> Response {
        self.post(key, &format!("{order}/voids"), &body).await
    }

    /// Returns the type, the amount and the fees of the first hundred transactions in a list.
    pub async fn transactions(&self, path: &str) -> Vec<(String, f64, f64)> {
        let number = |value: &Value| value.as_f64().unwrap();
        let entry =
            |entry: &Value| (entry["type"].as_str().unwrap().to_owned(), number(&entry["amount"]), number(&entry["fees"]));
        let separator = if path.contains('?') { '&' } else { '?' };
        let page = self.read(&format!("{path}{separator}records=100")).await;
        entries_of(&page).iter().map(entry).collect()
    }

    /// Asserts that no payment or refund is open, and that the gateway's balance equals the ledger's.
    pub async fn check_gateway_balance(&self) {
        let mut reader = self.state.db.read().await.unwrap();
        let by_card = reader.query(
            "select coalesce(cast(sum(case t.type when 'Sale' then t.amount else -t.amount end) as bigint), 0)
             from transactions t join payments p on p.id = t.payment_id where p.method = 'card'",
        );
        let by_card: i64 = by_card.scalar().await.unwrap();
        assert_eq!((self.gateway.total() * 100.0).round() as i64, by_card);
        let owed = reader.query("select count(*) from refunds where status = 'Owed'").scalar::<i64>().await.unwrap();
        let pending = reader.query("select count(*) from payments where status in ('Pending', 'Abandoned')");
        assert_eq!((owed, pending.scalar::<i64>().await.unwrap()), (0, 0));
    }

    /// Runs the job that offers places to waiting accounts, on every server at once, until it has nothing to do.
    pub async fn offer_places(&self) {
        self.run_on_all(waiting_list::offer_places).await;
    }

    /// Runs the jobs that expire orders and process refunds, on every server at once, until they have nothing to do.
    pub async fn expire_due(&self) {
        self.run_on_all(orders::expire_due).await;
        self.run_on_all(payments::process_due).await;
    }

    /// Advances the clock until all open orders have timed out, and runs the jobs that expire them.
    pub async fn time_out_orders(&self) {
        self.advance_clock(RESERVATION_TTL);
        self.expire_due().await;
    }

    /// Stops the jobs of the servers first: a step skips the rows that the same job has locked.
    async fn run_on_all(&self, step: impl AsyncFn(&Ctx) -> Result<u64, Error>) {
        self.stop_jobs().await;
        join_all(self.states().map(async |state| while step(&Ctx::immediate(Arc::clone(state))).await.unwrap() > 0 {})).await;
    }
}

/// Builds a card payment of the outstanding amount, which the sandbox approves.
pub fn card_payment() -> Value {
    json!({ "method": "card", "token": "tok_approve" })
}

/// Builds a card payment of a part of the outstanding amount, which the sandbox approves.
pub fn partial_card_payment(amount: f64) -> Value {
    json!({ "method": "card", "token": "tok_approve", "amount": amount })
}

/// Builds a payment as `TestApp::payments` returns it.
pub fn paid(amount: f64, status: &str) -> (f64, String) {
    (amount, status.to_owned())
}

/// Builds an entry of the ledger as `TestApp::transactions` returns it.
pub fn entry(kind: &str, amount: f64, fees: f64) -> (String, f64, f64) {
    (kind.to_owned(), amount, fees)
}
