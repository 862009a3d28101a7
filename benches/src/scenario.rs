//! What is asked of the server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use boxoffice::kernel::db::Db;
use bytes::Bytes;
use clap::ValueEnum;
use http::Method;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::drive::{Ask, Asks, Load, drive};
use crate::world::{BUYER, BUYERS, GATE, PASSWORD, World, refused};

/// Open orders that a buyer may have.
const OPEN_MAXIMUM: u64 = 10;
/// Serials in an admission of many.
const BATCH: u64 = 100;
/// Buyers for each scenario that places orders, so that none of them uses up another's.
const SHARE: u64 = BUYERS as u64 / 4;
/// Which share of them pays.
const PAYING: u64 = 2;
/// Sections over which orders are spread.
const SPREAD: u64 = 1000;
/// Admissions of single tickets begin here; those of many have what is before.
const SINGLES: u64 = GATE as u64 * 4 / 5;

/// What the server is loaded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Scenario {
    /// GET a listed event with 5 sections
    ReadEvent,
    /// GET the first 25 of 10,000 published events
    ListPublished,
    /// GET page 200 of them
    ListDeep,
    /// POST a session
    Login,
    /// POST an order of one ticket, everyone of the same section
    OnSaleHot,
    /// POST an order of one ticket, over 1,000 sections
    OnSaleSpread,
    /// POST the payment of an open order
    Pay,
    /// GET five of a customer's tickets
    Wallet,
    /// POST the admission of one ticket
    Scan,
    /// POST the admission of 100 tickets
    ScanBatch,
    /// 55 % events, 20 % lists, 10 % wallets, 14 % orders, 1 % log-ins
    Mixed,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

impl Scenario {
    /// Its requests to a server; those of [`Pay`](Self::Pay) are of orders that are placed now.
    ///
    /// # Errors
    /// When no order can be placed.
    pub async fn asks(self, world: &Arc<World>, address: SocketAddr) -> anyhow::Result<Asks> {
        if self == Self::Pay {
            return payments(world, address).await;
        }
        let world = Arc::clone(world);
        // The same ways in each run.
        let mut rng = StdRng::seed_from_u64(1);
        let ways: Vec<u8> = (0..10_007).map(|_| rng.random_range(0..100)).collect();
        Ok(Arc::new(move |n| {
            let way = ways[n as usize % ways.len()];
            match (self, way) {
                (Self::Mixed, 0..55) => Self::ReadEvent.ask(&world, n),
                (Self::Mixed, 55..75) => Self::ListPublished.ask(&world, n),
                (Self::Mixed, 75..85) => Self::Wallet.ask(&world, n),
                (Self::Mixed, 85..99) => order(&world, 3, n, world.spread(n % SPREAD)),
                (Self::Mixed, _) => Self::Login.ask(&world, n),
                _ => self.ask(&world, n),
            }
        }))
    }

    /// Its `n`th request, where those don't depend on each other.
    fn ask(self, world: &World, n: u64) -> Option<Ask> {
        let buyer = &world.buyers[(n * 7919 % BUYERS as u64) as usize];
        let get = |path: String| Some(Ask { method: Method::GET, path, key: Arc::clone(&buyer.key), body: Bytes::new() });
        match self {
            Self::ReadEvent => get(format!("/v3/events/{}", world.event)),
            Self::ListPublished => get("/v3/published-events?records=25".to_owned()),
            Self::ListDeep => get("/v3/published-events?records=25&page=200".to_owned()),
            // So many are everyone's, however many orders there are: who has more is not to be shown more.
            Self::Wallet => get(format!("/v3/accounts/{}/tickets?records=5", buyer.number)),
            Self::Login => {
                let body = json!({ "identification": format!("buyer-{}", n % BUYERS as u64), "password": PASSWORD });
                Some(post("/v3/sessions".to_owned(), &world.public_key, &body))
            }
            Self::OnSaleHot => order(world, 0, n, world.hot.clone()),
            Self::OnSaleSpread => order(world, 1, n, world.spread(n % SPREAD)),
            Self::Scan => (SINGLES + n < GATE as u64).then(|| admission(world, SINGLES + n..SINGLES + n + 1)),
            Self::ScanBatch => ((n + 1) * BATCH <= SINGLES).then(|| admission(world, n * BATCH..(n + 1) * BATCH)),
            Self::Pay | Self::Mixed => None,
        }
    }
}

fn post(path: String, key: &Arc<str>, body: &Value) -> Ask {
    Ask { method: Method::POST, path, key: Arc::clone(key), body: body.to_string().into() }
}

/// An order of one ticket by one of a share of the buyers, each of whom comes [`OPEN_MAXIMUM`] times.
fn order(world: &World, share: u64, n: u64, section: String) -> Option<Ask> {
    let buyer = &world.buyers[(share * SHARE + n % SHARE) as usize];
    (n < SHARE * OPEN_MAXIMUM).then(|| post("/v3/orders".to_owned(), &buyer.key, &json!({ "items": { section: 1 } })))
}

fn admission(world: &World, tickets: std::ops::Range<u64>) -> Ask {
    let serials: Vec<String> = tickets.map(|n| world.serial(n)).collect();
    post(format!("/v3/events/{}/admissions", world.event), &world.staff_key, &json!({ "serials": serials, "device": "Gate A" }))
}

/// Payments of orders that are placed before, each by whoever has placed it.
async fn payments(world: &Arc<World>, address: SocketAddr) -> anyhow::Result<Asks> {
    let begin = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?;
    let placing = Arc::clone(world);
    let place: Asks = Arc::new(move |n| order(&placing, PAYING, n, placing.spread(n % SPREAD)));
    let load = Load { address, connections: 32, warm_up: Duration::ZERO, time: Duration::from_secs(5), rate: None };
    drive(&load, &place, || ()).await?;
    let db = Db::open(&world.database_url).await?;
    let placed = "select id, account_id from orders where status = 'Placed' and account_id between $1 and $2 and placed >= $3";
    let first = BUYER + (PAYING * SHARE) as i64;
    let placed =
        db.read().await.map_err(refused)?.query(placed).bind(first).bind(first + SHARE as i64 - 1).bind(begin).all().await;
    let placed: Vec<(i64, i64)> = placed.map_err(refused)?;
    db.close().await;
    let by_card = json!({ "method": "card", "token": "tok_approve" });
    let pay = |(order, account): (i64, i64)| {
        post(format!("/v3/orders/{order:014}/payments"), &world.buyers[(account - BUYER) as usize].key, &by_card)
    };
    let mut open: Vec<Ask> = placed.into_iter().map(pay).collect();
    open.shuffle(&mut StdRng::seed_from_u64(2));
    Ok(Arc::new(move |n| open.get(n as usize).cloned()))
}
