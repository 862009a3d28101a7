//! Buyers who order, pay, transfer and are let in, all at the same time, and remember what they were told: a server may fail
//! under them, but what it has acknowledged must be there afterwards.
//!
//! ```ignore
//! let crowd = Crowd::gather(&address, &administrators_key, &public_key, 8, 5000).await;
//! let work = crowd.set_to_work(&address);
//! // … break what the server stands on, and mend it …
//! work.stop().await;
//! crowd.check(&mut db.read().await.unwrap()).await;
//! eprintln!("{}", crowd.figures());
//! ```
//!
//! A server that was started anew at another address is told to a new [`Crowd::set_to_work`]; what was heard before stays.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use boxoffice_client::{Client, Error, ResponseValue, Retries, types};
use rand::RngExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{PASSWORD, section};

/// Who buys, and where.
pub struct Crowd {
    /// The identifier of the event that they go to.
    pub event: String,
    sections: Vec<String>,
    /// Of the gate that lets everyone in.
    gate_key: String,
    buyers: Vec<Buyer>,
    heard: Mutex<Heard>,
}

struct Buyer {
    number: String,
    key: String,
}

/// What the buyers were told, and how often.
#[derive(Default)]
pub struct Heard {
    /// The states that an order may be in, by its number: one, unless an answer about it is lacking.
    pub orders: BTreeMap<String, BTreeSet<&'static str>>,
    /// The owners and states that a ticket may have, by its serial.
    pub tickets: BTreeMap<String, BTreeSet<(String, &'static str)>>,
    /// The states that a transfer may be in, by its identifier.
    pub transfers: BTreeMap<String, BTreeSet<&'static str>>,
    /// The payments that were confirmed, by their identifiers.
    pub payments: BTreeSet<String>,
    /// Requests sent.
    pub asked: usize,
    /// Requests that a rule stood against, by its code.
    pub refused: BTreeMap<String, usize>,
    /// When 503 was answered.
    pub unavailable: Vec<Instant>,
    /// When a request was left without an answer.
    pub lost: Vec<Instant>,
    /// When nobody was there to take a request.
    pub unconnected: Vec<Instant>,
    /// Answers that must not be.
    pub wrong: Vec<String>,
    /// When a request was done.
    pub done_at: Vec<Instant>,
}

/// Buyers at work.
pub struct Work {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Work {
    /// Lets every buyer finish what is begun.
    pub async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

/// The last segment of a URI.
fn last(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap()
}

fn read<T: serde::de::DeserializeOwned>(body: Value) -> T {
    serde_json::from_value(body).unwrap()
}

impl Crowd {
    /// Signs that many buyers up at the server at `address`, and lists an event with three sections of that many places for them.
    pub async fn gather(address: &str, administrators_key: &str, public_key: &str, buyers: usize, places: i64) -> Arc<Self> {
        let staff = Client::connect(address, administrators_key).unwrap();
        let anyone = Client::connect(address, public_key).unwrap();
        let mut people = Vec::new();
        for number in 0..buyers {
            people.push(sign_up(&anyone, &format!("buyer-{number}")).await);
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
        let event = last(&uri).to_owned();
        let mut sections = Vec::new();
        for (name, price) in [("Stalls", 45.5), ("Circle", 100.0), ("Gallery", 10.0)] {
            let made = staff.section_create().event(&event).body(section(name, price, places)).send().await.unwrap();
            sections.push(format!("{uri}{}", made.self_));
        }
        let submission = staff.event_submission_create().event(&event).send().await.unwrap();
        staff.submission_delete().submission(last(&submission.self_)).approved(true).send().await.unwrap();
        let tokens = staff.event_token_list().event(&event).global(true).send().await.unwrap();
        let gate = anyone.token_authentication_get().code(tokens.entries[0].code.as_str()).send().await.unwrap();
        Arc::new(Self { event, sections, gate_key: gate.key.to_string(), buyers: people, heard: Mutex::default() })
    }

    /// Sends every buyer to the server at `address`, again and again until the work is stopped.
    pub fn set_to_work(self: &Arc<Self>, address: &str) -> Work {
        let stop = Arc::new(AtomicBool::new(false));
        let buyer = |buyer: usize| {
            let (crowd, stop, address) = (Arc::clone(self), Arc::clone(&stop), address.to_owned());
            tokio::spawn(async move {
                let round = Round::of(&crowd, buyer, &address);
                while !stop.load(Ordering::Relaxed) {
                    if round.buy().await.is_none() {
                        // Nobody asks a server that can't without a pause.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            })
        };
        let tasks = (0..self.buyers.len()).map(buyer).collect();
        Work { stop, tasks }
    }

    /// What has been heard so far.
    pub fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of a request, counted; `None` when it failed or its answer is lacking, so that nobody knows whether it was done.
    /// A rule that isn't named in `refusals` has no business to stand against it.
    fn hear<T>(
        &self,
        what: &str,
        outcome: Result<ResponseValue<T>, Error<types::Error>>,
        refusals: &[&str],
    ) -> Option<Result<T, String>> {
        let mut heard = self.heard();
        heard.asked += 1;
        match outcome {
            Ok(value) => {
                heard.done_at.push(Instant::now());
                return Some(Ok(value.into_inner()));
            }
            Err(Error::ErrorResponse(answer)) if answer.status() == 503 => {
                heard.unavailable.push(Instant::now());
                let seconds = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
                if seconds.is_none() || answer.code.to_string() != "server.unavailable" {
                    heard.wrong.push(format!("{what}: 503 {} with Retry-After {seconds:?}", answer.code));
                }
            }
            Err(Error::ErrorResponse(answer)) if refusals.contains(&answer.code.to_string().as_str()) => {
                let code = answer.code.to_string();
                *heard.refused.entry(code.clone()).or_default() += 1;
                return Some(Err(code));
            }
            Err(Error::CommunicationError(error)) if error.is_connect() => heard.unconnected.push(Instant::now()),
            Err(Error::CommunicationError(_) | Error::ResponseBodyError(_)) => heard.lost.push(Instant::now()),
            Err(other) => heard.wrong.push(format!("{what}: {other:?}")),
        }
        None
    }

    /// The figures of what was heard, on a line.
    pub fn figures(&self) -> String {
        let heard = self.heard();
        let refused: usize = heard.refused.values().sum();
        format!(
            "{} requests: {} done, {refused} refused, {} times 503, {} not connected, {} without an answer, {} wrong; \
             {} orders, {} payments, {} tickets, {} transfers",
            heard.asked,
            heard.done_at.len(),
            heard.unavailable.len(),
            heard.unconnected.len(),
            heard.lost.len(),
            heard.wrong.len(),
            heard.orders.len(),
            heard.payments.len(),
            heard.tickets.len(),
            heard.transfers.len(),
        )
    }

    /// How long after this moment a request was done again, and how long after it the last one failed: 0 when none has.
    ///
    /// # Panics
    /// When none was done since.
    pub fn recovery(&self, since: Instant) -> (Duration, Duration) {
        let heard = self.heard();
        let first = heard.done_at.iter().find(|done| **done > since).expect("nothing was done after the return");
        let last = heard.unavailable.iter().chain(&heard.lost).chain(&heard.unconnected).max();
        (*first - since, last.map_or(Duration::ZERO, |last| last.saturating_duration_since(since)))
    }
}

async fn sign_up(anyone: &Client, name: &str) -> Buyer {
    let account =
        anyone.account_create().body_map(|body| body.username(name).email(format!("{name}@example.com")).password(PASSWORD));
    let number = account.send().await.unwrap().number.clone();
    let session = anyone.session_create().body_map(|body| body.identification(name).password(PASSWORD)).send().await.unwrap();
    Buyer { number, key: session.key.to_string() }
}

/// One buyer at one server.
struct Round<'a> {
    crowd: &'a Crowd,
    me: &'a Buyer,
    client: Client,
    gate: Client,
    address: String,
}

impl<'a> Round<'a> {
    fn of(crowd: &'a Crowd, buyer: usize, address: &str) -> Self {
        let me = &crowd.buyers[buyer];
        let client = once(address, &me.key);
        let gate = once(address, &crowd.gate_key);
        Self { crowd, me, client, gate, address: address.to_owned() }
    }

    /// Orders, and then pays or cancels; has a ticket transferred or lets somebody in. Ends early, with `None`, where the server
    /// can't.
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
            self.go_in().await?;
        }
        if rest < 50 { self.look(&order).await } else { Some(()) }
    }

    /// A new order's number; `Some(None)` where a rule stood against it.
    async fn order(&self) -> Option<Option<String>> {
        let quantity = rand::rng().random_range(1..4);
        let section = self.crowd.sections[rand::rng().random_range(0..self.crowd.sections.len())].clone();
        let items = HashMap::from([(section, quantity)]);
        let outcome = self.client.order_create().body_map(|body| body.items(items)).send().await;
        let order = self.crowd.hear("order", outcome, &["order.too-many", "section.sold-out"])?;
        Some(order.ok().map(|order| {
            let number = order.number.to_string();
            self.crowd.heard().orders.insert(number.clone(), BTreeSet::from(["Placed"]));
            number
        }))
    }

    /// Cancels whatever is still open from requests whose answers were lacking.
    async fn clear(&self) -> Option<()> {
        let outcome = self.client.account_order_list().number(self.me.number.as_str()).records(100).send().await;
        let total = self.crowd.hear("orders", outcome, &[])?.ok()?.total;
        let outcome = self.client.account_order_list().number(self.me.number.as_str()).records(100);
        let outcome = outcome.page(u64::try_from(total).unwrap().div_ceil(100).max(1) as i64).send().await;
        let orders = self.crowd.hear("orders", outcome, &[])?.ok()?.entries;
        for order in orders.iter().filter(|order| order.status == types::OrderStatus::Placed) {
            self.crowd.heard().orders.entry(order.number.to_string()).or_default().insert("Placed");
            self.cancel(&order.number).await?;
        }
        Some(())
    }

    async fn pay(&self, order: &str) -> Option<()> {
        self.may_become(order, "Fulfilled");
        let payment = self.client.order_payment_create().order(order);
        let payment = payment.body_map(|body| body.method(types::PaymentMethod::Card).token("tok_approve".to_owned()));
        let payment = self.crowd.hear("payment", payment.send().await, &[])?.ok()?;
        let mut heard = self.crowd.heard();
        heard.payments.insert(last(&payment.self_).to_owned());
        heard.orders.insert(order.to_owned(), BTreeSet::from(["Fulfilled"]));
        Some(())
    }

    async fn cancel(&self, order: &str) -> Option<()> {
        // A payment whose answer was lost may be under way still.
        let is_known = self.crowd.heard().orders.get(order).is_some_and(|states| states.len() == 1);
        self.may_become(order, "Cancelled");
        let outcome = self.client.order_cancellation_create().order(order).send().await;
        self.crowd.hear("cancellation", outcome, if is_known { &[] } else { &["order.not-open"] })?.ok()?;
        self.crowd.heard().orders.insert(order.to_owned(), BTreeSet::from(["Cancelled"]));
        Some(())
    }

    fn may_become(&self, order: &str, status: &'static str) {
        self.crowd.heard().orders.entry(order.to_owned()).or_default().insert(status);
    }

    /// Takes the new tickets out of the wallet.
    async fn collect(&self) -> Option<()> {
        let wallet = || self.client.account_ticket_list().number(self.me.number.as_str()).records(100);
        let mut page = self.crowd.hear("wallet", wallet().send().await, &[])?.ok()?;
        if page.total > 100 {
            let last = wallet().page((page.total + 99) / 100).send().await;
            page = self.crowd.hear("wallet", last, &["page.past-end"])?.ok()?;
        }
        let mut heard = self.crowd.heard();
        for ticket in page.entries.iter().filter(|ticket| ticket.status == types::TicketStatus::Issued) {
            let here = BTreeSet::from([(self.me.number.clone(), "Issued")]);
            heard.tickets.entry(ticket.serial.to_string()).or_insert(here);
        }
        Some(())
    }

    /// One of this buyer's tickets that can be used, if there is any; its states are those of a ticket that is being used.
    fn take(&self, then: &[(&str, &'static str)]) -> Option<String> {
        let mine = BTreeSet::from([(self.me.number.clone(), "Issued")]);
        let mut heard = self.crowd.heard();
        let (serial, states) = heard.tickets.iter_mut().find(|(_, states)| **states == mine)?;
        states.extend(then.iter().map(|(owner, status)| ((*owner).to_owned(), *status)));
        Some(serial.clone())
    }

    fn ticket_is(&self, serial: &str, owner: &str, status: &'static str) {
        self.crowd.heard().tickets.insert(serial.to_owned(), BTreeSet::from([(owner.to_owned(), status)]));
    }

    /// Gives a ticket to somebody else, who claims it.
    async fn transfer(&self) -> Option<()> {
        let other = &self.crowd.buyers[rand::rng().random_range(0..self.crowd.buyers.len())];
        if other.number == self.me.number {
            return Some(());
        }
        let Some(serial) = self.take(&[(&self.me.number, "Pending")]) else { return Some(()) };
        let body: types::TransferCreate = read(json!({ "recipient": other.number, "tickets": [serial] }));
        let transfer = self.crowd.hear("transfer", self.client.transfer_create().body(body).send().await, &[])?.ok()?;
        let id = last(&transfer.self_).to_owned();
        self.ticket_is(&serial, &self.me.number, "Pending");
        self.crowd.heard().transfers.insert(id.clone(), BTreeSet::from(["Pending", "Claimed"]));
        self.crowd.heard().tickets.get_mut(&serial)?.insert((other.number.clone(), "Issued"));
        let recipient = once(&self.address, &other.key);
        let outcome = recipient.transfer_claim_create().transfer(id.as_str()).send().await;
        self.crowd.hear("claim", outcome, &[])?.ok()?;
        self.crowd.heard().transfers.insert(id, BTreeSet::from(["Claimed"]));
        self.ticket_is(&serial, &other.number, "Issued");
        Some(())
    }

    /// Shows a ticket at the gate.
    async fn go_in(&self) -> Option<()> {
        let Some(serial) = self.take(&[(&self.me.number, "Redeemed")]) else { return Some(()) };
        let body: types::AdmissionCreate = read(json!({ "serials": [serial] }));
        let outcome = self.gate.event_admission_create().event(self.crowd.event.as_str()).body(body).send().await;
        let admissions = self.crowd.hear("admission", outcome, &[])?.ok()?;
        assert_eq!(admissions.len(), 1);
        self.ticket_is(&serial, &self.me.number, "Redeemed");
        Some(())
    }

    /// Reads the order and its section: neither may tell anything else than was told before.
    async fn look(&self, number: &str) -> Option<()> {
        let order = self.crowd.hear("order's reading", self.client.order_get().order(number).send().await, &[])?.ok()?;
        let mut heard = self.crowd.heard();
        let known = heard.orders[number].clone();
        if !known.contains(order.status.to_string().as_str()) {
            heard.wrong.push(format!("order {number} is {}, and was {known:?}", order.status));
        }
        Some(())
    }
}

/// A client that hears every answer itself.
fn once(address: &str, key: &str) -> Client {
    Client::connect(address, key).unwrap().with_retries(Retries::NONE)
}

impl Crowd {
    /// Holds the database to what the buyers were told, and to its own rules.
    ///
    /// # Panics
    /// When anything that was acknowledged is lacking, or was answered wrong, or the books don't agree.
    pub async fn check(&self, tx: &mut boxoffice::db::Tx) {
        let rows: Vec<(i64, String)> = tx.query("select id, status from orders").all().await.unwrap();
        let orders: BTreeMap<String, String> = rows.into_iter().map(|(id, status)| (id.to_string(), status)).collect();
        let rows = tx.query("select t.serial, a.number, t.status from tickets t join accounts a on a.id = t.owner_id");
        let rows: Vec<(String, String, String)> = rows.all().await.unwrap();
        let tickets: BTreeMap<_, _> = rows.into_iter().map(|(serial, owner, status)| (serial, (owner, status))).collect();
        let rows: Vec<(i64, String)> = tx.query("select id, status from transfers").all().await.unwrap();
        let transfers: BTreeMap<String, String> = rows.into_iter().map(|(id, status)| (id.to_string(), status)).collect();
        let rows: Vec<(i64,)> = tx.query("select id from payments where status = 'Confirmed'").all().await.unwrap();
        let payments: BTreeSet<String> = rows.into_iter().map(|(id,)| id.to_string()).collect();
        let violations = crate::support::check_invariants(tx).await;

        let heard = self.heard();
        let mut lacking = heard.wrong.clone();
        for (kind, told, found) in [("order", &heard.orders, &orders), ("transfer", &heard.transfers, &transfers)] {
            let is_wrong = |id: &str, may_be: &BTreeSet<&str>| found.get(id).is_none_or(|found| !may_be.contains(found.as_str()));
            let wrong = told.iter().filter(|(id, may_be)| is_wrong(id, may_be));
            lacking.extend(wrong.map(|(id, may_be)| format!("{kind} {id} is {:?} and not {may_be:?}", found.get(id))));
        }
        for (serial, may_be) in &heard.tickets {
            let found = tickets.get(serial);
            if !found.is_some_and(|found| may_be.iter().any(|(owner, status)| *owner == found.0 && *status == found.1)) {
                lacking.push(format!("ticket {serial} is {found:?} and not one of {may_be:?}"));
            }
        }
        lacking.extend(heard.payments.difference(&payments).map(|payment| format!("payment {payment} is not there")));
        lacking.extend(violations);
        assert!(lacking.is_empty(), "{} things are wrong: {:#?}", lacking.len(), &lacking[..lacking.len().min(20)]);
    }
}
