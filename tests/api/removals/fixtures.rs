//! The users of the tests, and the resources that their requests need.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::advertisements;
use crate::support::{Call, Event, TestApp, User, entries_of, section};

/// The users of a test. Creates resources with unique names.
pub struct Fixtures<'a> {
    pub app: &'a TestApp,
    /// Has a host.
    pub kofi: User,
    pub buyers: Vec<User>,
    count: Cell<usize>,
}

impl<'a> Fixtures<'a> {
    pub async fn create(app: &'a TestApp) -> Self {
        let kofi = app.sign_up("kofi").await;
        let mut buyers = Vec::new();
        for name in ["ama", "esi", "yaw", "abena"] {
            buyers.push(app.sign_up(name).await);
        }
        Self { app, kofi, buyers, count: Cell::new(0) }
    }

    /// Returns a name that no other resource has.
    pub fn name(&self, kind: &str) -> String {
        self.count.set(self.count.get() + 1);
        format!("{kind} {}", self.count.get())
    }

    /// Returns whether the number of names is even, so that it differs between rounds.
    pub fn is_even(&self) -> bool {
        self.count.get().is_multiple_of(2)
    }

    pub fn by_staff(&self, method: &'static str, path: impl Into<String>, body: Value) -> Call {
        Call::new(&self.app.staff.key, method, path, body)
    }

    pub fn by_host(&self, method: &'static str, path: impl Into<String>, body: Value) -> Call {
        Call::new(&self.kofi.key, method, path, body)
    }

    pub fn removal(&self, path: &str) -> Call {
        self.by_staff("DELETE", path, Value::Null)
    }

    pub fn order(&self, buyer: &User, section: &str) -> Call {
        Call::new(&buyer.key, "POST", "/orders", json!({ "items": { section: 1 } }))
    }

    /// Creates a listed event with a section for each price.
    pub async fn listed_event(&self, prices: &[f64]) -> Event {
        let host = self.app.create_host(&self.kofi).await;
        let sections: Vec<_> = prices.iter().map(|price| section(&self.name("Block"), *price, 1000)).collect();
        self.app.create_listed_event(&host, &sections).await
    }

    /// Creates a draft event with two sections.
    pub async fn draft_event(&self) -> Event {
        let host = self.app.create_host(&self.kofi).await;
        let mut event = self.app.create_draft(&host).await;
        for name in ["Stalls", "Balcony"] {
            event.sections.push(self.app.add_section(&event, &section(name, 10.0, 100)).await);
        }
        event
    }

    /// Sends a request that must succeed, and returns the URI in its response.
    pub async fn create_with(&self, call: Call) -> String {
        call.send(self.app).await.uri().to_owned()
    }

    pub async fn advertisement(&self, event: &Event, zone: &str) -> String {
        advertisements::create_draft(self.app, &self.kofi, &self.name("Jazz"), event, &[zone]).await
    }

    /// Signs up a user who will be removed.
    pub async fn leaving_user(&self) -> User {
        self.app.sign_up(&self.name("person").replace(' ', "-")).await
    }

    pub async fn cancel_open_orders(&self, buyer: &User) {
        let orders = self.app.read(&format!("/accounts/{}/orders?status=Placed&records=100", buyer.number)).await;
        for order in entries_of(&orders) {
            self.app.cancel_order(&buyer.key, order["self"].as_str().unwrap()).await;
        }
    }
}
