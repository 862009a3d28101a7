//! Faults under load: the database goes away, the disk is full, the server is stopped or killed, and another server works beside
//! it.
//!
//! By default each test has a short form of a few seconds. `BOXOFFICE_FAULTS=full` makes the faults last longer, kills the server
//! 20 or 50 times instead of three times, and lets 10,000 users compete for tickets instead of 1,000. `BOXOFFICE_SEED` repeats a run;
//! the tests that use random numbers print their seed. Each test prints its figures to standard error:
//!
//! ```sh
//! BOXOFFICE_FAULTS=full TMPDIR=/dev/shm cargo test --test faults kills::
//! ```
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, clippy::allow_attributes, reason = "shared by several test binaries")]
mod support;

mod backup;
mod contention;
mod disk;
mod durability;
mod event_returns;
mod kills;
mod load;
mod mail_delivery;
mod money;
mod outage;
mod pooler;
mod retrying_client;
mod server;
mod standby;
mod stop;
mod upgrade;

use std::env;
use std::fmt::Display;
use std::io::{Write, stderr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use load::Load;

use crate::support::{TestApp, test_on, wait_until};

/// Returns a test's parameter: `short` by default, `full` with `BOXOFFICE_FAULTS=full`.
fn short_or_full<T>(short: T, full: T) -> T {
    if env::var("BOXOFFICE_FAULTS").is_ok_and(|form| form == "full") { full } else { short }
}

/// Returns the duration of a fault: this many seconds, and at least 10 in the full form.
fn fault_duration(seconds: u64) -> Duration {
    Duration::from_secs(short_or_full(seconds, seconds.max(10)))
}

/// Returns a test's random seed: `BOXOFFICE_SEED`, or a new one.
fn seed() -> u64 {
    env::var("BOXOFFICE_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap())
}

/// Prints a figure directly to standard error, which the test harness doesn't capture.
pub fn print_figure(text: impl Display) {
    // A closed standard error must not fail the test.
    let _ = writeln!(stderr(), "figure: {text}");
}

/// Prints how a load recovered after a fault.
fn print_recovery(name: &str, load: &Load, over: Instant) {
    let (first, last) = load.recovery(over);
    let (first, last) = (first.as_secs_f64(), last.as_secs_f64());
    print_figure(format!(
        "{name}: first success {first:.2} s after the fault, last failure {last:.2} s after it; {}",
        load.figures()
    ));
}

/// Creates a load of six users.
async fn create_load(app: &TestApp) -> Arc<Load> {
    Load::create(&app.address, &app.staff.key, &app.public_key, 6, 5000).await
}

/// Asserts that all acknowledged changes exist, that no response was wrong or lost, and that the gateway agrees with the ledger.
async fn check(app: &TestApp, load: &Load) {
    load.check(&mut app.state.db.read().await.unwrap()).await;
    assert!(load.records().lost.is_empty() && load.records().unconnected.is_empty(), "{}", load.figures());
    // Charges that could not be recorded are cancelled after a timeout.
    app.advance_clock(Duration::from_secs(3600));
    app.expire_due().await;
    app.check_gateway_balance().await;
}

#[test_on(sqlite, postgres)]
async fn load_without_fault_is_acknowledged_completely(app: TestApp) {
    let load = create_load(&app).await;

    let work = load.start(&app.address);
    tokio::time::sleep(fault_duration(1)).await;
    // On a slow machine, too, every kind of request must succeed once.
    wait_until(async || !load.records().transfers.is_empty()).await;
    work.stop().await;

    check(&app, &load).await;
    print_figure(format!("no fault: {}", load.figures()));
    assert!(load.records().unavailable.is_empty(), "503 without a fault");
}

#[test_on(sqlite, postgres)]
async fn missing_acknowledged_change_is_detected(app: TestApp) {
    let load = create_load(&app).await;
    let work = load.start(&app.address);
    wait_until(async || !load.records().payments.is_empty()).await;
    work.stop().await;

    app.execute_sql("update payments set status = 'Declined' where id = (select max(id) from payments)").await;
    let mut reader = app.state.db.read().await.unwrap();
    let panic = tokio::spawn(async move { load.check(&mut reader).await }).await.unwrap_err().into_panic();

    let message = panic.downcast::<String>().unwrap();
    assert!(message.contains("is missing") && message.contains("transactions differ"), "{message}");
}
