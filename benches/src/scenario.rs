//! Scenarios: the requests of each load.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::repeat_n;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use boxoffice::kernel::db::Db;
use bytes::Bytes;
use clap::ValueEnum;
use http::Method;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::fixtures::{
    ADMISSIBLE_TICKETS, BUYERS, FIRST_BUYER_ID, FIRST_CHANGE, FIRST_ORDER_ID, Fixtures, PASSWORD, SENDERS, database_error,
};
use crate::load::{LOG_IN_PATH, Load, LoadRequest, RequestSource, run_load};

/// Maximum number of open orders of a buyer.
const MAX_OPEN_ORDERS: u64 = 10;
/// Number of serials in a batch admission.
const BATCH_SERIALS: u64 = 100;
/// Number of buyers reserved for each scenario that places orders, because a buyer's open orders are limited.
const GROUP_BUYERS: u64 = BUYERS as u64 / 4;
/// Number of orders that the buyers of a group can place before one of them is paid or expires.
const GROUP_ORDERS: u64 = GROUP_BUYERS * MAX_OPEN_ORDERS;
/// Group of buyers for orders that are paid.
const PAYING_GROUP: u64 = 2;
/// Number of sections over which orders are spread.
const SPREAD_SECTIONS: u64 = 1000;
/// First ticket for single admissions.
const FIRST_SINGLE_TICKET: u64 = ADMISSIBLE_TICKETS as u64 * 4 / 5;
/// Number of the first tickets, which are for batch admissions. Those from here to [`FIRST_SINGLE_TICKET`] are for the admissions
/// of a mix, so that all scenarios can run on one database.
const BATCH_TICKETS: u64 = ADMISSIBLE_TICKETS as u64 * 19 / 25;

/// The requests that the server receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Scenario {
    /// GET a listed event with 5 sections
    ReadEvent,
    /// GET the first 25 of the published events
    ListPublished,
    /// GET page 200 of them
    ListDeep,
    /// GET the published events that have two words, each time other ones
    Search,
    /// POST a session
    Login,
    /// POST an order of one ticket, always of the same section
    OnSaleHot,
    /// POST an order of one ticket, spread over 1,000 sections
    OnSaleSpread,
    /// POST the payment of an open order
    Pay,
    /// GET five of a customer's tickets
    Wallet,
    /// GET five of a customer's orders (as many with --orders 200000)
    OwnOrders,
    /// GET an order of a customer
    OwnOrder,
    /// GET five of a customer's transfers
    OwnTransfers,
    /// GET five of a host's events
    HostEvents,
    /// GET the first 25 of all events, as the platform's staff does
    StaffEvents,
    /// GET five of an event's tickets, as a device at the entrance does
    GateTickets,
    /// GET the five of an event's tickets that have changed since a time, each time another one
    GateChanges,
    /// POST the admission of one ticket
    Scan,
    /// POST the admission of 100 tickets
    ScanBatch,
    /// 55 % events, 20 % lists, 10 % wallets, 14 % orders, 1 % log-ins
    Mixed,
    /// Requests of buyers, hosts, staff and devices at the entrance; see `SALE_DAY`
    SaleDay,
}

/// The percentages of the scenarios in `mixed`.
const MIXED: &[(Scenario, u8)] = &[
    (Scenario::ReadEvent, 55),
    (Scenario::ListPublished, 20),
    (Scenario::Wallet, 10),
    (Scenario::OnSaleSpread, 14),
    (Scenario::Login, 1),
];
/// The percentages of the scenarios in `sale-day`: all of them, but for payments and batches of admissions, which can't be repeated.
const SALE_DAY: &[(Scenario, u8)] = &[
    (Scenario::ReadEvent, 38),
    (Scenario::ListPublished, 15),
    (Scenario::ListDeep, 1),
    (Scenario::Search, 5),
    (Scenario::Wallet, 10),
    (Scenario::OwnOrders, 4),
    (Scenario::OwnOrder, 3),
    (Scenario::OwnTransfers, 2),
    (Scenario::HostEvents, 2),
    (Scenario::StaffEvents, 1),
    (Scenario::GateTickets, 2),
    (Scenario::GateChanges, 2),
    (Scenario::Scan, 2),
    (Scenario::OnSaleHot, 2),
    (Scenario::OnSaleSpread, 10),
    (Scenario::Login, 1),
];

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

impl Scenario {
    /// Returns the scenario's requests. For [`Pay`](Self::Pay), places the orders first.
    ///
    /// # Errors
    /// Returns an error if no order can be placed.
    pub async fn requests(self, fixtures: &Arc<Fixtures>, address: SocketAddr) -> anyhow::Result<RequestSource> {
        if self == Self::Pay {
            return payments(fixtures, address).await;
        }
        let fixtures = Arc::clone(fixtures);
        Ok(match self.parts() {
            Some(parts) => mix(parts, fixtures),
            None => Arc::new(move |n| self.request(&fixtures, n)),
        })
    }

    /// Returns the requests like [`requests`](Self::requests), for a server whose open orders expire soon: orders start again from the
    /// beginning when all buyers have placed their maximum of open orders.
    ///
    /// # Errors
    /// Returns an error if no order can be placed.
    pub async fn repeatable_requests(self, fixtures: &Arc<Fixtures>, address: SocketAddr) -> anyhow::Result<RequestSource> {
        let requests = self.requests(fixtures, address).await?;
        Ok(match self {
            Self::OnSaleHot | Self::OnSaleSpread => Arc::new(move |n| requests(n % GROUP_ORDERS)),
            _ => requests,
        })
    }

    /// Returns the percentages of other scenarios that it consists of.
    pub fn parts(self) -> Option<&'static [(Self, u8)]> {
        match self {
            Self::Mixed => Some(MIXED),
            Self::SaleDay => Some(SALE_DAY),
            _ => None,
        }
    }

    /// Returns the `n`th request of a scenario whose requests are independent.
    fn request(self, fixtures: &Fixtures, n: u64) -> Option<LoadRequest> {
        let buyer = &fixtures.buyers[(n * 7919 % BUYERS as u64) as usize];
        let own = |path: String| Some(get(path, &buyer.key));
        match self {
            Self::ReadEvent => own(format!("/v3/events/{}", fixtures.event)),
            Self::ListPublished => own("/v3/published-events?records=25".to_owned()),
            Self::ListDeep => own("/v3/published-events?records=25&page=200".to_owned()),
            // All events have the first word, and about ten have a word that begins with the second.
            Self::Search => own(format!("/v3/published-events?records=25&search=lawn+{}", n * 7919 % fixtures.events as u64)),
            // Every buyer has at least five, so that the response doesn't grow with the number of orders.
            Self::Wallet => own(format!("/v3/accounts/{}/tickets?records=5", buyer.number)),
            Self::OwnOrders => own(format!("/v3/accounts/{}/orders?records=5", buyer.number)),
            Self::OwnOrder => {
                let order = n * 7919 % fixtures.orders as u64;
                let customer = &fixtures.buyers[(order % BUYERS as u64) as usize];
                Some(get(format!("/v3/orders/{}", FIRST_ORDER_ID + order as i64), &customer.key))
            }
            Self::OwnTransfers => {
                let sender = &fixtures.buyers[(n * 7919 % SENDERS as u64) as usize];
                Some(get(format!("/v3/accounts/{}/transfers?records=5", sender.number), &sender.key))
            }
            Self::HostEvents => own(format!("/v3/hosts/{}/events?records=5", fixtures.host)),
            Self::StaffEvents => Some(get("/v3/events?records=25".to_owned(), &fixtures.staff_key)),
            Self::GateTickets => Some(get(format!("/v3/events/{}/tickets?records=5", fixtures.event), &fixtures.staff_key)),
            Self::GateChanges => {
                let offset = Duration::from_secs(ADMISSIBLE_TICKETS as u64 - 5) - Duration::from_micros(n % 1_000_000);
                let since = FIRST_CHANGE.plus(offset).utc().format("%Y-%m-%dT%H:%M:%S%.6fZ");
                Some(get(format!("/v3/events/{}/tickets?records=5&modified_since={since}", fixtures.event), &fixtures.staff_key))
            }
            Self::Login => {
                let body = json!({ "identification": format!("buyer-{}", n % BUYERS as u64), "password": PASSWORD });
                Some(post(LOG_IN_PATH.to_owned(), &fixtures.public_key, &body))
            }
            Self::OnSaleHot => order(fixtures, 0, n, fixtures.hot_section.clone()),
            Self::OnSaleSpread => order(fixtures, 1, n, fixtures.section(n % SPREAD_SECTIONS)),
            Self::Scan => {
                let ticket = FIRST_SINGLE_TICKET + n;
                (ticket < ADMISSIBLE_TICKETS as u64).then(|| admission(fixtures, ticket..ticket + 1))
            }
            Self::ScanBatch => ((n + 1) * BATCH_SERIALS <= BATCH_TICKETS)
                .then(|| admission(fixtures, n * BATCH_SERIALS..(n + 1) * BATCH_SERIALS)),
            Self::Pay | Self::Mixed | Self::SaleDay => None,
        }
    }
}

/// Returns the requests of several scenarios, in the same order in each run. Without admissions they never end, with 2 % admissions
/// they end after 10 million.
fn mix(parts: &'static [(Scenario, u8)], fixtures: Arc<Fixtures>) -> RequestSource {
    let percents: Vec<Scenario> =
        parts.iter().flat_map(|(scenario, percent)| repeat_n(*scenario, usize::from(*percent))).collect();
    let mut rng = StdRng::seed_from_u64(1);
    let mut counts: BTreeMap<Scenario, u64> = BTreeMap::new();
    let mut next = || {
        let scenario = percents[rng.random_range(0..percents.len())];
        let count = counts.entry(scenario).or_default();
        *count += 1;
        (scenario, *count - 1)
    };
    let sequence: Vec<(Scenario, u64)> = (0..10_007).map(|_| next()).collect();
    Arc::new(move |n| {
        let (round, position) = (n / sequence.len() as u64, n as usize % sequence.len());
        let (scenario, number) = sequence[position];
        let number = round * counts[&scenario] + number;
        // From the beginning again when all buyers have the maximum of open orders.
        let order_number = number % GROUP_ORDERS;
        match scenario {
            Scenario::OnSaleHot => order(&fixtures, 0, order_number, fixtures.hot_section.clone()),
            Scenario::OnSaleSpread => order(&fixtures, 3, order_number, fixtures.section(number % SPREAD_SECTIONS)),
            Scenario::Scan => mixed_ticket(number).map(|ticket| admission(&fixtures, ticket..ticket + 1)),
            scenario => scenario.request(&fixtures, number),
        }
    })
}

/// Returns the ticket of a mix's `n`th admission. Goes back from [`FIRST_SINGLE_TICKET`], so that a long load, which has a database of
/// its own, can use the tickets of batch admissions too.
fn mixed_ticket(n: u64) -> Option<u64> {
    FIRST_SINGLE_TICKET.checked_sub(n + 1)
}

fn get(path: String, key: &Arc<str>) -> LoadRequest {
    LoadRequest { method: Method::GET, path, key: Arc::clone(key), body: Bytes::new() }
}

fn post(path: String, key: &Arc<str>, body: &Value) -> LoadRequest {
    LoadRequest { method: Method::POST, path, key: Arc::clone(key), body: body.to_string().into() }
}

/// Returns an order of one ticket by a buyer of a group. Each buyer places [`MAX_OPEN_ORDERS`] orders.
fn order(fixtures: &Fixtures, group: u64, n: u64, section: String) -> Option<LoadRequest> {
    let buyer = &fixtures.buyers[(group * GROUP_BUYERS + n % GROUP_BUYERS) as usize];
    (n < GROUP_ORDERS).then(|| post("/v3/orders".to_owned(), &buyer.key, &json!({ "items": { section: 1 } })))
}

fn admission(fixtures: &Fixtures, tickets: Range<u64>) -> LoadRequest {
    let serials: Vec<String> = tickets.map(|n| fixtures.serial(n)).collect();
    post(
        format!("/v3/events/{}/admissions", fixtures.event),
        &fixtures.staff_key,
        &json!({ "serials": serials, "device": "Gate A" }),
    )
}

/// Places orders and returns their payments, each by the order's buyer.
async fn payments(fixtures: &Arc<Fixtures>, address: SocketAddr) -> anyhow::Result<RequestSource> {
    let started = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?;
    let for_orders = Arc::clone(fixtures);
    let orders: RequestSource = Arc::new(move |n| order(&for_orders, PAYING_GROUP, n, for_orders.section(n % SPREAD_SECTIONS)));
    let load = Load { address, connections: 32, warm_up: Duration::ZERO, duration: Duration::from_secs(5), rate: None };
    run_load(&load, &orders, || ()).await?;
    let db = Db::open(&fixtures.database_url).await?;
    let select = "select id, account_id from orders where status = 'Placed' and account_id between $1 and $2 and placed >= $3";
    let first = FIRST_BUYER_ID + (PAYING_GROUP * GROUP_BUYERS) as i64;
    let placed = db
        .read()
        .await
        .map_err(database_error)?
        .query(select)
        .bind(first)
        .bind(first + GROUP_BUYERS as i64 - 1)
        .bind(started)
        .all()
        .await;
    let placed: Vec<(i64, i64)> = placed.map_err(database_error)?;
    db.close().await;
    let card = json!({ "method": "card", "token": "tok_approve" });
    let pay = |(order, account): (i64, i64)| {
        post(format!("/v3/orders/{order:014}/payments"), &fixtures.buyers[(account - FIRST_BUYER_ID) as usize].key, &card)
    };
    let mut payments: Vec<LoadRequest> = placed.into_iter().map(pay).collect();
    payments.shuffle(&mut StdRng::seed_from_u64(2));
    Ok(Arc::new(move |n| payments.get(n as usize).cloned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use serde_json::Value;

    use super::{BATCH_TICKETS, FIRST_SINGLE_TICKET, SALE_DAY, Scenario, mix, mixed_ticket};
    use crate::fixtures::{BUYERS, Buyer, Fixtures};
    use crate::load::{LoadRequest, RequestSource};

    fn fixtures() -> Arc<Fixtures> {
        let buyer = |n| Buyer { number: format!("LD-{n}"), key: "key".into() };
        Arc::new(Fixtures {
            database_url: String::new(),
            public_key: "public".into(),
            staff_key: "staff".into(),
            event: "1".to_owned(),
            hot_section: "/events/1/sections/1".to_owned(),
            hot_section_id: 1,
            host: 1,
            orders: 1000,
            events: 10_000,
            buyers: (0..BUYERS).map(buyer).collect(),
        })
    }

    /// Returns the serials that the first requests admit.
    fn serials(requests: &RequestSource, count: u64) -> anyhow::Result<Vec<String>> {
        let mut serials = Vec::new();
        for request in (0..count).map_while(|n| requests(n)).filter(|request| request.path.ends_with("/admissions")) {
            let body: Value = serde_json::from_slice(&request.body)?;
            serials.extend(body["serials"].as_array().into_iter().flatten().map(Value::to_string));
        }
        Ok(serials)
    }

    #[test]
    fn scenarios_admit_different_tickets() -> anyhow::Result<()> {
        let fixtures = fixtures();
        let source = |scenario: Scenario| -> RequestSource {
            let fixtures = Arc::clone(&fixtures);
            Arc::new(move |n| scenario.request(&fixtures, n))
        };
        let mut all = serials(&source(Scenario::Scan), u64::MAX)?;
        all.extend(serials(&source(Scenario::ScanBatch), u64::MAX)?);
        let mixed = serials(&mix(SALE_DAY, Arc::clone(&fixtures)), 100_000)?;
        assert!(mixed.len() > 1000, "{}", mixed.len());
        all.extend(mixed);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        Ok(())
    }

    #[test]
    fn mix_admits_tickets_backwards() {
        assert_eq!(mixed_ticket(0), Some(FIRST_SINGLE_TICKET - 1));
        assert_eq!(mixed_ticket(FIRST_SINGLE_TICKET - BATCH_TICKETS - 1), Some(BATCH_TICKETS));
        assert_eq!(mixed_ticket(FIRST_SINGLE_TICKET - 1), Some(0));
        assert_eq!(mixed_ticket(FIRST_SINGLE_TICKET), None);
    }

    #[tokio::test]
    async fn repeatable_orders_start_again() -> anyhow::Result<()> {
        let (fixtures, address) = (fixtures(), ([127, 0, 0, 1], 1).into());
        let request = |request: Option<LoadRequest>| request.map(|request| (request.key, request.body));
        for scenario in [Scenario::OnSaleHot, Scenario::OnSaleSpread] {
            let once = scenario.requests(&fixtures, address).await?;
            let repeated = scenario.repeatable_requests(&fixtures, address).await?;
            assert!(once(99_999).is_some() && once(100_000).is_none(), "{scenario}");
            assert!(request(repeated(100_001)).is_some(), "{scenario}");
            assert_eq!(request(repeated(100_001)), request(once(1)), "{scenario}");
        }
        Ok(())
    }
}
