//! A load of users who order, pay, transfer and are admitted concurrently, and record the responses: a server may fail under them,
//! but acknowledged changes must exist afterwards.
//!
//! ```ignore
//! let load = Load::create(&address, &administrator_key, &public_key, 8, 5000).await;
//! let running = load.start(&address);
//! // … cause and repair a fault …
//! running.stop().await;
//! load.check(&mut db.read().await.unwrap()).await;
//! eprintln!("{}", load.figures());
//! ```
//!
//! After a restart of the server at another address, call [`Load::start`] again; the records stay.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use boxoffice::kernel::types::clock::Clock;
use boxoffice_client::{Client, Error, ResponseValue, RetryPolicy, types};
use parking_lot::{Mutex, MutexGuard};
use rand::RngExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{PASSWORD, id_of, section, wait_until};

/// The users, and the event whose tickets they order.
pub struct Load {
    /// The event's identifier.
    pub event: String,
    /// The long URIs of its sections, the first of which costs 45.50.
    pub sections: Vec<String>,
    /// A redeemer's key.
    gate_key: String,
    buyers: Vec<Buyer>,
    records: Mutex<Records>,
}

struct Buyer {
    number: String,
    key: String,
}

/// The acknowledged changes, and counts of all responses.
#[derive(Default)]
pub struct Records {
    /// The possible states of an order by number: one, unless a response was lost.
    pub orders: BTreeMap<String, BTreeSet<&'static str>>,
    /// The possible owners and states of a ticket, by serial.
    pub tickets: BTreeMap<String, BTreeSet<(String, &'static str)>>,
    /// The possible states of a transfer, by identifier.
    pub transfers: BTreeMap<String, BTreeSet<&'static str>>,
    /// The identifiers of confirmed payments.
    pub payments: BTreeSet<String>,
    /// The number of requests.
    pub requests: usize,
    /// The number of rejections, by error code.
    pub rejected: BTreeMap<String, usize>,
    /// The times of 503 responses.
    pub unavailable: Vec<Instant>,
    /// The times of lost responses.
    pub lost: Vec<Instant>,
    /// The times of failed connections.
    pub unconnected: Vec<Instant>,
    /// Wrong responses.
    pub wrong: Vec<String>,
    /// The times of successful requests.
    pub done_at: Vec<Instant>,
}

/// Running users.
pub struct Work {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Work {
    /// Stops the users after their current request.
    pub async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(body: Value) -> T {
    serde_json::from_value(body).unwrap()
}

impl Load {
    /// Signs up users at a server, and lists an event with three sections of this many tickets.
    pub async fn create(address: &str, administrators_key: &str, public_key: &str, buyers: usize, places: i64) -> Arc<Self> {
        let staff = Client::connect(address, administrators_key).unwrap();
        let public_client = Client::connect(address, public_key).unwrap();
        let mut users = Vec::new();
        for number in 0..buyers {
            users.push(sign_up(&public_client, &format!("buyer-{number}")).await);
        }
        let region: types::RegionCreate = read(json!({ "name": "Greater Accra", "country": "Ghana" }));
        let region = staff.region_create().body(region).send().await.unwrap().self_.clone();
        let venue =
            json!({ "name": "Great Hall", "region": region, "address": "Liberia Road", "longitude": -0.2, "latitude": 5.5 });
        let venue = staff.venue_create().body(read::<types::VenueCreate>(venue)).send().await.unwrap().self_.clone();
        let category = json!({ "name": "Music", "subcategories": ["Jazz"] });
        let category = staff.category_create().body(read::<types::CategoryCreate>(category)).send().await.unwrap().self_.clone();
        let host = json!({ "name": "The house", "contact": "Front office", "email": "office@example.com" });
        let host = staff.host_create().body(read::<types::HostCreate>(host)).send().await.unwrap().self_.clone();
        let event = json!({
            "host": host, "title": "Jazz Night", "description": "Jazz, outdoors.", "type": "Standard", "public": true,
            "category": category, "subcategory": "Jazz", "venue": venue, "start": "2998-12-20T19:00", "end": "2998-12-20T23:00",
        });
        let uri = staff.event_create().body(read::<types::EventCreate>(event)).send().await.unwrap().self_.clone();
        let event = id_of(&uri).to_owned();
        let mut sections = Vec::new();
        for (name, price) in [("Stalls", 45.5), ("Circle", 100.0), ("Gallery", 10.0)] {
            let created = staff.section_create().event(&event).body(section(name, price, places)).send().await.unwrap();
            sections.push(format!("{uri}{}", created.self_));
        }
        let submission = staff.event_submission_create().event(&event).send().await.unwrap();
        staff.submission_delete().submission(id_of(&submission.self_)).approved(true).send().await.unwrap();
        let tokens = staff.event_token_list().event(&event).global(true).send().await.unwrap();
        let gate = public_client.token_authentication_get().code(tokens.entries[0].code.as_str()).send().await.unwrap();
        Arc::new(Self { event, sections, gate_key: gate.key.to_string(), buyers: users, records: Mutex::default() })
    }

    /// Runs every user against this server until the load is stopped.
    pub fn start(self: &Arc<Self>, address: &str) -> Work {
        let stop = Arc::new(AtomicBool::new(false));
        let buyer = |buyer: usize| {
            let (load, stop, address) = (Arc::clone(self), Arc::clone(&stop), address.to_owned());
            tokio::spawn(async move {
                let round = Round::of(&load, buyer, &address);
                while !stop.load(Ordering::Relaxed) {
                    if round.buy().await.is_none() {
                        // A client pauses before it retries.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            })
        };
        let tasks = (0..self.buyers.len()).map(buyer).collect();
        Work { stop, tasks }
    }

    /// Returns the records.
    pub fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock()
    }

    /// Records a result. Returns `None` if the request failed or its response was lost, so that its effect is unknown. Only the
    /// error codes in `rejections` are expected.
    fn record<T>(
        &self,
        what: &str,
        outcome: Result<ResponseValue<T>, Error<types::Error>>,
        rejections: &[&str],
    ) -> Option<Result<T, String>> {
        let mut records = self.records();
        records.requests += 1;
        match outcome {
            Ok(value) => {
                records.done_at.push(Instant::now());
                return Some(Ok(value.into_inner()));
            }
            Err(Error::ErrorResponse(response)) if response.status() == 503 => {
                records.unavailable.push(Instant::now());
                let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
                if seconds.is_none() || response.code.to_string() != "server.unavailable" {
                    records.wrong.push(format!("{what}: 503 {} with Retry-After {seconds:?}", response.code));
                }
            }
            Err(Error::ErrorResponse(response)) if rejections.contains(&response.code.to_string().as_str()) => {
                let code = response.code.to_string();
                *records.rejected.entry(code.clone()).or_default() += 1;
                return Some(Err(code));
            }
            Err(Error::CommunicationError(error)) if error.is_connect() => records.unconnected.push(Instant::now()),
            Err(Error::CommunicationError(_) | Error::ResponseBodyError(_)) => records.lost.push(Instant::now()),
            Err(other) => records.wrong.push(format!("{what}: {other:?}")),
        }
        None
    }

    /// Returns a summary in one line.
    pub fn figures(&self) -> String {
        let records = self.records();
        let rejected: usize = records.rejected.values().sum();
        format!(
            "{} requests: {} successful, {rejected} rejected, {} times 503, {} not connected, {} without a response, {} wrong; \
             {} orders, {} payments, {} tickets, {} transfers",
            records.requests,
            records.done_at.len(),
            records.unavailable.len(),
            records.unconnected.len(),
            records.lost.len(),
            records.wrong.len(),
            records.orders.len(),
            records.payments.len(),
            records.tickets.len(),
            records.transfers.len(),
        )
    }

    /// Waits until a request has succeeded after a fault, and then for another second.
    pub async fn wait_for_recovery(&self, since: Instant) {
        wait_until(async || self.records().done_at.last().is_some_and(|done| *done > since)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    /// Returns the time from `since` to the next success and to the last failure (0 without one).
    ///
    /// # Panics
    ///
    /// If no request has succeeded since.
    pub fn recovery(&self, since: Instant) -> (Duration, Duration) {
        let records = self.records();
        let first = records.done_at.iter().find(|done| **done > since).expect("nothing was done after the return");
        let last = records.unavailable.iter().chain(&records.lost).chain(&records.unconnected).max();
        (*first - since, last.map_or(Duration::ZERO, |last| last.saturating_duration_since(since)))
    }
}

async fn sign_up(public_client: &Client, name: &str) -> Buyer {
    let account = public_client
        .account_create()
        .body_map(|body| body.username(name).email(format!("{name}@example.com")).password(PASSWORD));
    let number = account.send().await.unwrap().number.clone();
    let session =
        public_client.session_create().body_map(|body| body.identification(name).password(PASSWORD)).send().await.unwrap();
    Buyer { number, key: session.key.to_string() }
}

/// One user's requests to one server.
struct Round<'a> {
    load: &'a Load,
    me: &'a Buyer,
    client: Client,
    gate: Client,
    address: String,
}

impl<'a> Round<'a> {
    fn of(load: &'a Load, buyer: usize, address: &str) -> Self {
        let me = &load.buyers[buyer];
        let client = connect_without_retries(address, &me.key);
        let gate = connect_without_retries(address, &load.gate_key);
        Self { load, me, client, gate, address: address.to_owned() }
    }

    /// Orders, pays or cancels, and then transfers or redeems a ticket. Returns `None` early if the server fails.
    async fn buy(&self) -> Option<()> {
        let [first, second, rest] = [(); 3].map(|()| rand::rng().random_range(0..100));
        let Some(order) = self.order().await? else { return self.clear().await };
        if first < 15 {
            self.cancel(&order).await?;
        } else {
            self.pay(&order).await?;
            self.collect().await?;
        }
        if second < 40 {
            self.transfer().await?;
        } else if second < 80 {
            self.redeem().await?;
        }
        if rest < 50 { self.look(&order).await } else { Some(()) }
    }

    /// Places an order, and returns its number; `Some(None)` after an expected rejection.
    async fn order(&self) -> Option<Option<String>> {
        let quantity = rand::rng().random_range(1..4);
        let section = self.load.sections[rand::rng().random_range(0..self.load.sections.len())].clone();
        let items = HashMap::from([(section, quantity)]);
        let outcome = self.client.order_create().body_map(|body| body.items(items)).send().await;
        let order = self.load.record("order", outcome, &["order.too-many", "section.sold-out"])?;
        Some(order.ok().map(|order| {
            let number = order.number.to_string();
            self.load.records().orders.insert(number.clone(), BTreeSet::from(["Placed"]));
            number
        }))
    }

    /// Cancels orders that are still open because a response was lost.
    async fn clear(&self) -> Option<()> {
        let outcome = self.client.account_order_list().number(self.me.number.as_str()).records(100).send().await;
        let total = self.load.record("orders", outcome, &[])?.ok()?.total;
        let outcome = self.client.account_order_list().number(self.me.number.as_str()).records(100);
        let outcome = outcome.page(u64::try_from(total).unwrap().div_ceil(100).max(1) as i64).send().await;
        let orders = self.load.record("orders", outcome, &[])?.ok()?.entries;
        for order in orders.iter().filter(|order| order.status == types::OrderStatus::Placed) {
            self.load.records().orders.entry(order.number.to_string()).or_default().insert("Placed");
            self.cancel(&order.number).await?;
        }
        Some(())
    }

    async fn pay(&self, order: &str) -> Option<()> {
        self.record_possible_status(order, "Fulfilled");
        let payment = self.client.order_payment_create().order(order);
        let payment = payment.body_map(|body| body.method(types::PaymentMethod::Card).token("tok_approve".to_owned()));
        let payment = self.load.record("payment", payment.send().await, &[])?.ok()?;
        let mut records = self.load.records();
        records.payments.insert(id_of(&payment.self_).to_owned());
        records.orders.insert(order.to_owned(), BTreeSet::from(["Fulfilled"]));
        Some(())
    }

    async fn cancel(&self, order: &str) -> Option<()> {
        // A payment with a lost response may still be in progress.
        let is_known = self.load.records().orders.get(order).is_some_and(|states| states.len() == 1);
        self.record_possible_status(order, "Cancelled");
        let outcome = self.client.order_cancellation_create().order(order).send().await;
        self.load.record("cancellation", outcome, if is_known { &[] } else { &["order.not-open"] })?.ok()?;
        self.load.records().orders.insert(order.to_owned(), BTreeSet::from(["Cancelled"]));
        Some(())
    }

    fn record_possible_status(&self, order: &str, status: &'static str) {
        self.load.records().orders.entry(order.to_owned()).or_default().insert(status);
    }

    /// Records the new tickets in the wallet.
    async fn collect(&self) -> Option<()> {
        let wallet = || self.client.account_ticket_list().number(self.me.number.as_str()).records(100);
        let mut page = self.load.record("wallet", wallet().send().await, &[])?.ok()?;
        if page.total > 100 {
            let last = wallet().page((page.total + 99) / 100).send().await;
            page = self.load.record("wallet", last, &["page.past-end"])?.ok()?;
        }
        let mut records = self.load.records();
        for ticket in page.entries.iter().filter(|ticket| ticket.status == types::TicketStatus::Issued) {
            let here = BTreeSet::from([(self.me.number.clone(), "Issued")]);
            records.tickets.entry(ticket.serial.to_string()).or_insert(here);
        }
        Some(())
    }

    /// Reserves a usable ticket of this user, if any, and records the states that the next request may lead to.
    fn take(&self, then: &[(&str, &'static str)]) -> Option<String> {
        let mine = BTreeSet::from([(self.me.number.clone(), "Issued")]);
        let mut records = self.load.records();
        let (serial, states) = records.tickets.iter_mut().find(|(_, states)| **states == mine)?;
        states.extend(then.iter().map(|(owner, status)| ((*owner).to_owned(), *status)));
        Some(serial.clone())
    }

    fn record_ticket(&self, serial: &str, owner: &str, status: &'static str) {
        self.load.records().tickets.insert(serial.to_owned(), BTreeSet::from([(owner.to_owned(), status)]));
    }

    /// Transfers a ticket to another user, who claims it.
    async fn transfer(&self) -> Option<()> {
        let other = &self.load.buyers[rand::rng().random_range(0..self.load.buyers.len())];
        if other.number == self.me.number {
            return Some(());
        }
        let Some(serial) = self.take(&[(&self.me.number, "Pending")]) else { return Some(()) };
        let body: types::TransferCreate = read(json!({ "recipient": other.number, "tickets": [serial] }));
        let transfer = self.load.record("transfer", self.client.transfer_create().body(body).send().await, &[])?.ok()?;
        let id = id_of(&transfer.self_).to_owned();
        self.record_ticket(&serial, &self.me.number, "Pending");
        self.load.records().transfers.insert(id.clone(), BTreeSet::from(["Pending", "Claimed"]));
        self.load.records().tickets.get_mut(&serial)?.insert((self.me.number.clone(), "Void"));
        let recipient = connect_without_retries(&self.address, &other.key);
        let outcome = recipient.transfer_claim_create().transfer(id.as_str()).send().await;
        let claimed = self.load.record("claim", outcome, &[])?.ok()?;
        self.load.records().transfers.insert(id, BTreeSet::from(["Claimed"]));
        self.record_ticket(&serial, &self.me.number, "Void");
        // The recipient may have found it in the wallet, and used it, in the meantime.
        let mut records = self.load.records();
        for ticket in &claimed.tickets {
            let issued = BTreeSet::from([(other.number.clone(), "Issued")]);
            records.tickets.entry(ticket.serial.to_string()).or_insert(issued);
        }
        Some(())
    }

    /// Redeems a ticket.
    async fn redeem(&self) -> Option<()> {
        let Some(serial) = self.take(&[(&self.me.number, "Redeemed")]) else { return Some(()) };
        let body: types::AdmissionCreate = read(json!({ "serials": [serial] }));
        let outcome = self.gate.event_admission_create().event(self.load.event.as_str()).body(body).send().await;
        let admissions = self.load.record("admission", outcome, &[])?.ok()?;
        assert_eq!(admissions.len(), 1);
        self.record_ticket(&serial, &self.me.number, "Redeemed");
        Some(())
    }

    /// Reads an order, and compares its status with the record.
    async fn look(&self, number: &str) -> Option<()> {
        let order = self.load.record("order's reading", self.client.order_get().order(number).send().await, &[])?.ok()?;
        let mut records = self.load.records();
        let known = records.orders[number].clone();
        if !known.contains(order.status.to_string().as_str()) {
            records.wrong.push(format!("order {number} is {}, and was {known:?}", order.status));
        }
        Some(())
    }
}

/// Creates a client that doesn't retry.
pub fn connect_without_retries(address: &str, key: &str) -> Client {
    Client::connect(address, key).unwrap().with_retries(RetryPolicy::NONE)
}

impl Load {
    /// Compares the database with the records, and checks its invariants.
    ///
    /// # Panics
    ///
    /// If an acknowledged change is missing, a response was wrong, or an invariant is violated.
    pub async fn check(&self, reader: &mut boxoffice::kernel::db::Reader) {
        let rows: Vec<(i64, String)> = reader.query("select id, status from orders").all().await.unwrap();
        let orders: BTreeMap<String, String> = rows.into_iter().map(|(id, status)| (id.to_string(), status)).collect();
        let rows = reader.query("select t.serial, a.number, t.status from tickets t join accounts a on a.id = t.owner_id");
        let rows: Vec<(String, String, String)> = rows.all().await.unwrap();
        let tickets: BTreeMap<_, _> = rows.into_iter().map(|(serial, owner, status)| (serial, (owner, status))).collect();
        let rows: Vec<(i64, String)> = reader.query("select id, status from transfers").all().await.unwrap();
        let transfers: BTreeMap<String, String> = rows.into_iter().map(|(id, status)| (id.to_string(), status)).collect();
        let rows: Vec<(i64,)> = reader.query("select id from payments where status = 'Confirmed'").all().await.unwrap();
        let payments: BTreeSet<String> = rows.into_iter().map(|(id,)| id.to_string()).collect();
        let violations = crate::support::check_invariants(reader, Clock::default().now()).await;

        let records = self.records();
        let mut lacking = records.wrong.clone();
        for (kind, reported, found) in [("order", &records.orders, &orders), ("transfer", &records.transfers, &transfers)] {
            let is_wrong = |id: &str, may_be: &BTreeSet<&str>| found.get(id).is_none_or(|found| !may_be.contains(found.as_str()));
            let wrong = reported.iter().filter(|(id, may_be)| is_wrong(id, may_be));
            lacking.extend(wrong.map(|(id, may_be)| format!("{kind} {id} is {:?} and not {may_be:?}", found.get(id))));
        }
        for (serial, may_be) in &records.tickets {
            let found = tickets.get(serial);
            if !found.is_some_and(|found| may_be.iter().any(|(owner, status)| *owner == found.0 && *status == found.1)) {
                lacking.push(format!("ticket {serial} is {found:?} and not one of {may_be:?}"));
            }
        }
        lacking.extend(records.payments.difference(&payments).map(|payment| format!("payment {payment} is missing")));
        lacking.extend(violations);
        assert!(lacking.is_empty(), "{} things are wrong: {:#?}", lacking.len(), &lacking[..lacking.len().min(20)]);
    }
}
