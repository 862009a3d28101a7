//! The database goes away under a load, and comes back.

use std::time::{Duration, Instant};

use boxoffice::db::Db;
use tokio::time::sleep;

use super::{check, crowd_of, fault, figure};
use crate::plain_tests;
use crate::support::{Cluster, World};

plain_tests![async
    postgresql_is_stopped_and_started,
    postgresql_is_killed_and_started,
    postgresql_stands_still_and_goes_on,
    another_program_holds_sqlites_write_lock,
];

/// A load before, during and after a fault of PostgreSQL's; how often 503 was answered.
async fn outage(name: &str, fail: fn(&mut Cluster), mend: fn(&mut Cluster)) -> usize {
    let Some(mut cluster) = Cluster::start() else { return usize::MAX };
    let world = World::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    let crowd = crowd_of(&world).await;

    let work = crowd.set_to_work(&world.address);
    sleep(Duration::from_secs(1)).await;
    fail(&mut cluster);
    sleep(fault(3)).await;
    mend(&mut cluster);
    let back = Instant::now();
    sleep(Duration::from_secs(3)).await;
    work.stop().await;

    let recovery = crowd.recovery(back);
    figure(format!("{name}: the last failure {:.2} s after the return; {}", recovery.as_secs_f64(), crowd.figures()));
    check(&world, &crowd).await;
    crowd.heard().unavailable.len()
}

async fn postgresql_is_stopped_and_started() {
    let unavailable = outage("PostgreSQL stopped", Cluster::stop, Cluster::begin).await;
    assert!(unavailable > 0);
}

async fn postgresql_is_killed_and_started() {
    let unavailable = outage("PostgreSQL killed", Cluster::kill, Cluster::begin).await;
    assert!(unavailable > 0);
}

/// A short while of it only makes everyone wait.
async fn postgresql_stands_still_and_goes_on() {
    outage("PostgreSQL frozen", Cluster::freeze, Cluster::thaw).await;
}

/// Longer than is waited for it.
async fn another_program_holds_sqlites_write_lock() {
    let world = World::on_sqlite().await;
    let crowd = crowd_of(&world).await;
    let other = Db::open(&world.database_url).await.unwrap();

    let work = crowd.set_to_work(&world.address);
    sleep(Duration::from_secs(1)).await;
    // Whoever comes first has it: it may take some attempts.
    let held = loop {
        if let Ok(held) = other.begin().await {
            break held;
        }
    };
    sleep(fault(7)).await;
    drop(held);
    other.close().await;
    let back = Instant::now();
    sleep(Duration::from_secs(3)).await;
    work.stop().await;

    let recovery = crowd.recovery(back);
    figure(format!("SQLite locked: the last failure {:.2} s after the return; {}", recovery.as_secs_f64(), crowd.figures()));
    check(&world, &crowd).await;
    assert!(!crowd.heard().unavailable.is_empty());
}
