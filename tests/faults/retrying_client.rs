//! A client that retries each request with the same `Idempotency-Key` until it is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use boxoffice::kernel::db::Db;
use boxoffice_client::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::{PASSWORD, section};

/// A client that orders free tickets, one at a time.
pub struct RetryingClient {
    key: String,
    /// A section that no other client uses.
    section: String,
    http: reqwest::Client,
    records: Mutex<Records>,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Records {
    /// Each `Idempotency-Key` with its order, the last answered one at the end.
    orders: Vec<(String, String)>,
    /// The keys of lost responses.
    unanswered: Vec<String>,
    /// The number of lost responses.
    lost: usize,
}

/// An order's URI, and whether the response was a replay.
type CreatedOrder = (String, bool);

impl RetryingClient {
    /// Signs up at a server, where staff add a section to the event.
    pub async fn sign_up(address: &str, administrators_key: &str, public_key: &str, event: &str) -> Arc<Self> {
        let staff = Client::connect(address, administrators_key).unwrap();
        let public_client = Client::connect(address, public_key).unwrap();
        let created = staff.section_create().event(event).body(section("Standing", 0.0, 100_000)).send().await.unwrap();
        let sign_up = public_client.account_create();
        let sign_up = sign_up.body_map(|body| body.username("persistent").email("persistent@example.com").password(PASSWORD));
        sign_up.send().await.unwrap();
        let session = public_client.session_create().body_map(|body| body.identification("persistent").password(PASSWORD));
        let key = session.send().await.unwrap().key.to_string();
        let section = format!("/events/{event}{}", created.self_);
        Arc::new(Self { key, section, http: reqwest::Client::new(), records: Mutex::default(), stopped: AtomicBool::new(false) })
    }

    /// Orders until it is stopped.
    pub async fn order(self: Arc<Self>, address: String) {
        while !self.stopped.load(Ordering::Relaxed) {
            let idempotency_key = format!("{:032x}", rand::random::<u128>());
            match self.send(&address, &idempotency_key).await {
                Some((order, is_replayed)) => {
                    assert!(!is_replayed, "{idempotency_key} is new");
                    self.records.lock().orders.push((idempotency_key, order));
                }
                None => {
                    let mut records = self.records.lock();
                    records.unanswered.push(idempotency_key);
                    records.lost += 1;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops [`RetryingClient::order`], or allows it to start again.
    pub fn stop(&self, stop: bool) {
        self.stopped.store(stop, Ordering::Relaxed);
    }

    /// Repeats every unanswered request and the last five answered ones: each key has created one order, which every response names.
    pub async fn repeat(&self, address: &str) {
        let (unanswered, last) = {
            let mut records = self.records.lock();
            let last: Vec<_> = records.orders.iter().rev().take(5).cloned().collect();
            (std::mem::take(&mut records.unanswered), last)
        };
        for idempotency_key in unanswered {
            let (order, _) = self.send(address, &idempotency_key).await.unwrap();
            assert_eq!(self.send(address, &idempotency_key).await, Some((order.clone(), true)));
            self.records.lock().orders.push((idempotency_key, order));
        }
        for (idempotency_key, order) in last {
            assert_eq!(self.send(address, &idempotency_key).await, Some((order, true)));
        }
    }

    /// Asserts that each order exists once. Returns the number of lost responses.
    pub async fn check(&self, db: &Db) -> usize {
        let count = "select count(*) from orders o join accounts a on a.id = o.account_id where a.username = 'persistent'";
        let there: i64 = db.read().await.unwrap().query(count).scalar().await.unwrap();
        let records = self.records.lock();
        let mut orders: Vec<&String> = records.orders.iter().map(|(_, order)| order).collect();
        orders.sort();
        orders.dedup();
        assert_eq!(
            (orders.len(), there),
            (records.orders.len(), i64::try_from(records.orders.len()).unwrap()),
            "each has one effect"
        );
        records.lost
    }

    /// Returns `None` without a response, and after a 503.
    async fn send(&self, address: &str, idempotency_key: &str) -> Option<CreatedOrder> {
        let request = self.http.post(format!("{address}/orders")).json(&json!({ "items": { self.section.as_str(): 1 } }));
        let request =
            request.header("X-API-Key", &self.key).header("X-Client-Version", "3.0.0").header("Idempotency-Key", idempotency_key);
        let response = request.send().await.ok()?;
        let (status, is_replayed) = (response.status().as_u16(), response.headers().contains_key("idempotency-replayed"));
        let body = response.json::<Value>().await.ok()?;
        if status == 503 {
            return None;
        }
        assert_eq!(status, 201, "{body}");
        Some((body["self"].as_str().unwrap().to_owned(), is_replayed))
    }
}
