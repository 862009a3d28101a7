//! Whoever sends a request again until it is answered, with the same `Idempotency-Key`, whatever becomes of the server meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use boxoffice::db::Db;
use boxoffice_client::Client;
use serde_json::{Value, json};

use crate::support::{PASSWORD, section};

/// Somebody who orders places that cost nothing, one at a time.
pub struct Persistent {
    key: String,
    /// The section, whose places nobody else wants.
    section: String,
    http: reqwest::Client,
    heard: Mutex<Heard>,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Heard {
    /// The order that each `Idempotency-Key` has made.
    orders: BTreeMap<String, String>,
    /// Those whose answers were lost.
    unanswered: Vec<String>,
    /// How many were.
    lost: usize,
}

/// An order's URI, and whether the answer was given before.
type Made = (String, bool);

impl Persistent {
    /// Signs up at the server at `address`, where the staff add a section to the event.
    pub async fn come(address: &str, administrators_key: &str, public_key: &str, event: &str) -> Arc<Self> {
        let staff = Client::connect(address, administrators_key).unwrap();
        let anyone = Client::connect(address, public_key).unwrap();
        let made = staff.section_create().event(event).body(section("Standing", 0.0, 100_000)).send().await.unwrap();
        let sign_up = anyone.account_create();
        let sign_up = sign_up.body_map(|body| body.username("persistent").email("persistent@example.com").password(PASSWORD));
        sign_up.send().await.unwrap();
        let session = anyone.session_create().body_map(|body| body.identification("persistent").password(PASSWORD));
        let key = session.send().await.unwrap().key.to_string();
        let section = format!("/events/{event}{}", made.self_);
        Arc::new(Self { key, section, http: reqwest::Client::new(), heard: Mutex::default(), stopped: AtomicBool::new(false) })
    }

    /// Orders until it is stopped.
    pub async fn order(self: Arc<Self>, address: String) {
        while !self.stopped.load(Ordering::Relaxed) {
            let once = format!("{:032x}", rand::random::<u128>());
            match self.ask(&address, &once).await {
                Some((order, is_replayed)) => {
                    assert!(!is_replayed, "nobody has sent {once} before");
                    self.heard.lock().unwrap().orders.insert(once, order);
                }
                None => {
                    let mut heard = self.heard.lock().unwrap();
                    heard.unanswered.push(once);
                    heard.lost += 1;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Has [`Persistent::order`] end, or lets it begin again.
    pub fn stop(&self, stop: bool) {
        self.stopped.store(stop, Ordering::Relaxed);
    }

    /// Sends everything again that was not answered, and the last of what was: each has made one order, and every answer tells it.
    pub async fn ask_again(&self, address: &str) {
        let (unanswered, known) = {
            let mut heard = self.heard.lock().unwrap();
            let known: Vec<_> = heard.orders.iter().take(5).map(|(once, order)| (once.clone(), order.clone())).collect();
            (std::mem::take(&mut heard.unanswered), known)
        };
        for once in unanswered {
            let (order, _) = self.ask(address, &once).await.unwrap();
            assert_eq!(self.ask(address, &once).await, Some((order.clone(), true)));
            self.heard.lock().unwrap().orders.insert(once, order);
        }
        for (once, order) in known {
            assert_eq!(self.ask(address, &once).await, Some((order, true)));
        }
    }

    /// What was asked for is there, each once; how often the answer had been lost.
    pub async fn check(&self, db: &Db) -> usize {
        let count = "select count(*) from orders o join accounts a on a.id = o.account_id where a.username = 'persistent'";
        let there: i64 = db.read().await.unwrap().query(count).scalar().await.unwrap();
        let heard = self.heard.lock().unwrap();
        let mut orders: Vec<&String> = heard.orders.values().collect();
        orders.sort();
        orders.dedup();
        assert_eq!(
            (orders.len(), there),
            (heard.orders.len(), i64::try_from(heard.orders.len()).unwrap()),
            "each has one effect"
        );
        heard.lost
    }

    /// `None` where there is no answer, or one that the server can't at the moment.
    async fn ask(&self, address: &str, once: &str) -> Option<Made> {
        let request = self.http.post(format!("{address}/orders")).json(&json!({ "items": { self.section.as_str(): 1 } }));
        let request = request.header("X-API-Key", &self.key).header("X-Client-Version", "3.0.0").header("Idempotency-Key", once);
        let answer = request.send().await.ok()?;
        let (status, is_replayed) = (answer.status().as_u16(), answer.headers().contains_key("idempotency-replayed"));
        let body = answer.json::<Value>().await.ok()?;
        if status == 503 {
            return None;
        }
        assert_eq!(status, 201, "{body}");
        Some((body["self"].as_str().unwrap().to_owned(), is_replayed))
    }
}
