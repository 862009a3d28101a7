//! The server is killed (SIGKILL) repeatedly while it returns all orders of a cancelled event: every order is refunded once.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use boxoffice::kernel::types::clock::Clock;
use boxoffice_client::{Client, types};
use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::kills::Site;
use super::load::Load;
use super::{print_figure, seed, short_or_full};
use crate::support::server_process::ServerProcess;
use crate::support::{FakeGateway, check_invariants, postgres, wait_until};

/// Requests that order at the same time.
const BUYERS: i64 = 5;
/// Tickets in an order. They cost 45.50 each, and their fees are 0.99 each.
const TICKETS: i64 = 2;
/// The amount of an order in minor units.
const AMOUNT: i64 = TICKETS * (4550 + 99);
/// More than the time for which a killed server holds the lease of the job.
const LEASE: Duration = Duration::from_secs(60);

/// A busy machine may kill a server too late, when all orders were returned. The test is then repeated with more orders.
const ORDER_FACTORS: [i64; 4] = [1, 2, 4, 8];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_are_refunded_once_after_kills_on_sqlite() {
    for factor in ORDER_FACTORS {
        if return_and_kill("SQLite", &Site::open(None), factor).await {
            return;
        }
    }
    panic!("every return of the orders ended before the last kill");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_are_refunded_once_after_kills_on_postgres() {
    for factor in ORDER_FACTORS {
        let Some(database) = postgres::new_database().await else { return };
        if return_and_kill("PostgreSQL", &Site::open(Some(&database.url)), factor).await {
            return;
        }
    }
    panic!("every return of the orders ended before the last kill");
}

/// Orders and pays.
async fn buy(staff: &Client, section: &str) {
    let items = HashMap::from([(section.to_owned(), TICKETS)]);
    let order = staff.order_create().body_map(|body| body.items(items)).send().await.unwrap();
    let payment = staff.order_payment_create().order(order.number.as_str());
    let payment = payment.body_map(|body| body.method(types::PaymentMethod::Card).token("tok_approve".to_owned()));
    payment.send().await.unwrap();
}

/// Returns whether every server was killed before all orders were returned.
async fn return_and_kill(what: &str, site: &Site, factor: i64) -> bool {
    let (kills, orders_of_buyer, seed): (u32, i64, u64) = (short_or_full(3, 20), factor * short_or_full(20, 100), seed());
    let (mut random, orders) = (StdRng::seed_from_u64(seed), BUYERS * orders_of_buyer);
    let gateway = FakeGateway::default();
    let gateway_address = gateway.listen().await;
    // The clock of each server is ahead of the one before, so that it doesn't wait for the end of its lease.
    let start = |kills: u32| ServerProcess::start(site.command_with_gateway(gateway_address, LEASE * kills));
    let mut server = start(0);
    let load = Load::create(&server.address, &site.administrators_key, &site.public_key, 1, 10_000).await;
    let staff = Client::connect(&server.address, &site.administrators_key).unwrap();
    join_all((0..BUYERS).map(async |_| {
        for _ in 0..orders_of_buyer {
            buy(&staff, &load.sections[0]).await;
        }
    }))
    .await;
    assert_eq!(gateway.balances().values().sum::<i64>(), orders * AMOUNT);
    staff.event_cancellation_create().event(&load.event).send().await.unwrap();
    staff.event_return_create().event(&load.event).body_map(|body| body).send().await.unwrap();

    let db = site.db().await;
    let run = async || {
        let run = "select status, orders, tickets, amount from event_returns";
        let runs: Vec<(String, i64, i64, i64)> = db.read().await.unwrap().query(run).all().await.unwrap();
        runs[0].clone()
    };
    let (mut killed_at, mut returned) = (Vec::new(), 0);
    for kill in 1..=kills {
        // The first server is killed at once, because its job may wait for seconds. The others start with the job.
        let more = if kill == 1 { 0 } else { random.random_range(1..=10) };
        let is_returned = |(status, orders, ..): (String, i64, i64, i64)| orders >= returned + more || status != "Running";
        wait_until(async || is_returned(run().await)).await;
        server.signal("KILL");
        server.wait();
        let (status, orders, ..) = run().await;
        server = start(kill);
        if status != "Running" {
            break;
        }
        returned = orders;
        killed_at.push(orders);
    }
    let owed = "select count(*) from refunds where status = 'Owed'";
    wait_until(async || run().await.0 == "Done" && db.read().await.unwrap().query(owed).scalar::<i64>().await.unwrap() == 0)
        .await;

    assert_eq!(run().await, ("Done".to_owned(), orders, orders * TICKETS, orders * AMOUNT));
    let mut reader = db.read().await.unwrap();
    let refunded: Vec<(String, i64, i64)> = reader
        .query(
            "select o.status, count(*), cast(sum(r.amount) as bigint) from orders o join refunds r on r.order_id = o.id
             group by o.id, o.status",
        )
        .all()
        .await
        .unwrap();
    assert_eq!(i64::try_from(refunded.len()).unwrap(), orders);
    assert!(refunded.iter().all(|order| *order == ("Returned".to_owned(), 1, AMOUNT)), "{refunded:?}");
    assert_eq!((gateway.balances(), gateway.snapshot().1.len()), (BTreeMap::new(), refunded.len()));
    assert_eq!(check_invariants(&mut reader, Clock::default().now()).await, [""; 0]);
    print_figure(format!(
        "{what}: killed after the return of {killed_at:?} of {orders} orders; each was refunded once (BOXOFFICE_SEED={seed})"
    ));
    killed_at.len() == kills as usize
}
