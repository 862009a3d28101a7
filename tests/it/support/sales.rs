//! Orders and payments in plain HTTP, and what they leave behind.

use std::time::Duration;

use boxoffice::orders;
use futures::future::join_all;
use serde_json::{Value, json};

use super::{Answer, World};

/// How long an open order holds its places.
pub const RESERVATION: Duration = Duration::from_secs(15 * 60);

impl World {
    /// What the staff read at a path.
    pub async fn read(&self, path: &str) -> Value {
        self.request("GET", path).key(&self.staff.key).send().await.body
    }

    /// The places sold and reserved of a section.
    pub async fn places(&self, section: &str) -> (i64, i64) {
        let section = self.read(section).await;
        let count = |name: &str| section[name].as_i64().unwrap();
        assert_eq!(count("remaining"), count("capacity") - count("sold") - count("reserved"));
        (count("sold"), count("reserved"))
    }

    /// The places sold and reserved of every section as the table has them, and those that the reservations hold in all.
    pub async fn stored_places(&self) -> (Vec<(i64, i64)>, i64) {
        let mut tx = self.app.db.read().await.unwrap();
        let sections = tx.query("select sold, reserved from sections order by id").all().await.unwrap();
        let held = tx.query("select coalesce(cast(sum(quantity) as bigint), 0) from reservations").scalar().await.unwrap();
        (sections, held)
    }

    /// The amount and the state of every payment of an order.
    pub async fn payments(&self, order: &str) -> Vec<(f64, String)> {
        let page = self.read(&format!("{order}/payments")).await;
        let payment = |payment: &Value| (payment["amount"].as_f64().unwrap(), payment["status"].as_str().unwrap().to_owned());
        page["entries"].as_array().unwrap().iter().map(payment).collect()
    }

    /// Sends an order with these items.
    pub async fn place(&self, key: &str, items: Value) -> Answer {
        self.request("POST", "/orders").key(key).json(&json!({ "items": items })).send().await
    }

    /// Sends a payment for an order.
    pub async fn pay(&self, key: &str, order: &str, payment: Value) -> Answer {
        self.request("POST", &format!("{order}/payments")).key(key).json(&payment).send().await
    }

    /// Cancels an order.
    pub async fn cancel(&self, key: &str, order: &str) -> Answer {
        self.request("POST", &format!("{order}/cancellations")).key(key).send().await
    }

    /// Sends a return of an order's tickets.
    pub async fn take_back(&self, key: &str, order: &str, body: Value) -> Answer {
        self.request("POST", &format!("{order}/returns")).key(key).json(&body).send().await
    }

    /// Sends the voiding of an order.
    pub async fn void(&self, key: &str, order: &str, body: Value) -> Answer {
        self.request("POST", &format!("{order}/voids")).key(key).json(&body).send().await
    }

    /// The type, the amount and the fees of the first hundred entries of a list of transactions.
    pub async fn ledger(&self, path: &str) -> Vec<(String, f64, f64)> {
        let number = |value: &Value| value.as_f64().unwrap();
        let entry =
            |entry: &Value| (entry["type"].as_str().unwrap().to_owned(), number(&entry["amount"]), number(&entry["fees"]));
        let separator = if path.contains('?') { '&' } else { '?' };
        let page = self.read(&format!("{path}{separator}records=100")).await;
        page["entries"].as_array().unwrap().iter().map(entry).collect()
    }

    /// When nothing is unsettled any more, the gateway has what the ledger says of it.
    pub async fn check_till(&self) {
        let mut tx = self.app.db.read().await.unwrap();
        let by_card = tx.query(
            "select coalesce(cast(sum(case t.type when 'Sale' then t.amount else -t.amount end) as bigint), 0)
             from transactions t join payments p on p.id = t.payment_id where p.method = 'card'",
        );
        let by_card: i64 = by_card.scalar().await.unwrap();
        assert_eq!((self.till.total() * 100.0).round() as i64, by_card);
        let unsettled = tx.query("select count(*) from refunds where status = 'Owed'").scalar::<i64>().await.unwrap();
        let unknown = tx.query("select count(*) from payments where status in ('Pending', 'Abandoned')");
        assert_eq!((unsettled, unknown.scalar::<i64>().await.unwrap()), (0, 0));
    }

    /// Runs the job that times out orders, on every server at once, until nothing is left for it.
    pub async fn expire_due(&self) {
        join_all(self.apps().map(async |app| while orders::expire_due(app).await.unwrap() > 0 {})).await;
    }
}

/// All that is outstanding, by a card that is approved.
pub fn by_card() -> Value {
    json!({ "method": "card", "token": "tok_approve" })
}

/// A part of it.
pub fn part(amount: f64) -> Value {
    json!({ "method": "card", "token": "tok_approve", "amount": amount })
}
