//! What the machine does to a server: what it stands on goes away, fills up or steps back, and it is told to stop, or killed; and
//! what a crowd does to it, and another server beside it.
//!
//! The gate runs these in a short form; variables of the environment make them longer: CONTRIBUTING has them. Each prints its
//! figure to standard error.

mod again;
mod clock;
mod crowd;
mod disk;
mod durability;
mod kills;
mod letters;
pub mod load;
mod money;
mod outage;
pub mod server;
mod stop;
mod two_servers;

use std::env;
use std::fmt::Display;
use std::io::{Write, stderr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use load::Crowd;

use crate::on_both_databases;
use crate::support::{World, eventually};

on_both_databases![a_load_leaves_what_it_was_told, what_was_acknowledged_and_is_gone_is_told];

/// What a variable of the environment says, which makes a test longer than it is among all the others.
pub fn setting<T: FromStr>(name: &str, otherwise: T) -> T {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// How long a fault lasts: so many seconds, or more where the environment says so.
pub fn fault(seconds: u64) -> Duration {
    Duration::from_secs(seconds.max(setting("BOXOFFICE_FAULT_SECONDS", 0)))
}

/// Tells a figure, past the harness that keeps what a test prints.
pub fn figure(what: impl Display) {
    // Where nobody can read it, the test still tells.
    let _ = writeln!(stderr(), "figure: {what}");
}

/// Tells how a load has fared with a fault that was over at a moment.
fn tell(name: &str, crowd: &Crowd, over: Instant) {
    let (first, last) = crowd.recovery(over);
    let (first, last) = (first.as_secs_f64(), last.as_secs_f64());
    figure(format!("{name}: done again {first:.2} s after it was over, the last failure {last:.2} s; {}", crowd.figures()));
}

/// Six buyers at a world's server.
async fn crowd_of(world: &World) -> Arc<Crowd> {
    Crowd::gather(&world.address, &world.staff.key, &world.public_key, 6, 5000).await
}

/// What was acknowledged is there, nothing was answered wrong or not at all, and the till has what the ledger says.
async fn check(world: &World, crowd: &Crowd) {
    crowd.check(&mut world.app.db.read().await.unwrap()).await;
    assert!(crowd.heard().lost.is_empty() && crowd.heard().unconnected.is_empty(), "{}", crowd.figures());
    // What was charged and could not be written down is undone once nobody can be waiting for it any more.
    world.advance(Duration::from_secs(3600));
    world.expire_due().await;
    world.check_till().await;
}

async fn a_load_leaves_what_it_was_told(world: World) {
    let crowd = crowd_of(&world).await;

    let work = crowd.set_to_work(&world.address);
    tokio::time::sleep(fault(2)).await;
    // However slow the machine is, everything is asked for.
    eventually(async || !crowd.heard().transfers.is_empty()).await;
    work.stop().await;

    check(&world, &crowd).await;
    figure(format!("a load and no fault: {}", crowd.figures()));
    assert!(crowd.heard().unavailable.is_empty(), "nothing was the matter");
}

async fn what_was_acknowledged_and_is_gone_is_told(world: World) {
    let crowd = crowd_of(&world).await;
    let work = crowd.set_to_work(&world.address);
    eventually(async || !crowd.heard().payments.is_empty()).await;
    work.stop().await;

    world.run_sql("update payments set status = 'Declined' where id = (select max(id) from payments)").await;
    let mut tx = world.app.db.read().await.unwrap();
    let told = tokio::spawn(async move { crowd.check(&mut tx).await }).await.unwrap_err().into_panic();

    let told = told.downcast::<String>().unwrap();
    assert!(told.contains("is not there") && told.contains("ledger"), "{told}");
}
