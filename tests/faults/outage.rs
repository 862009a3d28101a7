//! Outages of the database under load.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use boxoffice::kernel::db::Db;
use futures::future::{join, join_all};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::time::sleep;

use super::load::Load;
use super::{check, create_load, fault_duration, print_recovery};
use crate::support::{PgCluster, TestApp};

/// Runs a load before, during and after a fault of PostgreSQL, and returns the number of 503 responses.
async fn outage(name: &str, fail: fn(&mut PgCluster), mend: fn(&mut PgCluster)) -> usize {
    let Some(mut cluster) = PgCluster::create() else { return usize::MAX };
    let app = TestApp::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    let load = create_load(&app).await;

    let work = load.start(&app.address);
    sleep(Duration::from_secs(1)).await;
    fail(&mut cluster);
    sleep(fault_duration(3)).await;
    mend(&mut cluster);
    let back = Instant::now();
    load.wait_for_recovery(back).await;
    work.stop().await;

    print_recovery(name, &load, back);
    check(&app, &load).await;
    load.records().unavailable.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_restart_of_postgres() {
    let unavailable = outage("PostgreSQL stopped", PgCluster::stop, PgCluster::start).await;
    assert!(unavailable > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_kill_of_postgres() {
    let unavailable = outage("PostgreSQL killed", PgCluster::kill, PgCluster::start).await;
    assert!(unavailable > 0);
}

/// A short pause delays the responses only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_pause_of_postgres() {
    outage("PostgreSQL paused", PgCluster::pause, PgCluster::resume).await;
}

/// A proxy in front of PostgreSQL's socket. When it is cut, existing connections stay open without any traffic, as in a network
/// failure. After the repair, new connections work.
struct Line {
    port: u16,
    is_cut: watch::Sender<bool>,
}

impl Line {
    async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_cut, cut) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (socket, mut cut) = (socket.clone(), cut.clone());
                tokio::spawn(async move {
                    if !*cut.borrow_and_update() {
                        let mut server = UnixStream::connect(socket).await.unwrap();
                        tokio::select! {
                            _ = copy_bidirectional(&mut client, &mut server) => return,
                            _ = cut.changed() => {}
                        }
                    }
                    // Stays open without traffic.
                    std::future::pending::<()>().await;
                });
            }
        });
        Self { port, is_cut }
    }
}

/// Requests in progress during the cut hold their pooled connections. After the repair enough connections must be free again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_network_outage_to_postgres() {
    let Some(cluster) = PgCluster::create() else { return };
    let line = Line::to(cluster.socket()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", line.port);
    let app = TestApp::start(&url, tempfile::tempdir().unwrap()).await;
    let load = Load::create(&app.address, &app.staff.key, &app.public_key, 20, 5000).await;

    let work = load.start(&app.address);
    sleep(Duration::from_secs(1)).await;
    let mut waiting = app.state.db.begin().await.unwrap();
    line.is_cut.send_replace(true);
    let (unanswered, ()) = join(waiting.query("select count(*) from orders").scalar::<i64>(), sleep(fault_duration(14))).await;
    drop(waiting);
    line.is_cut.send_replace(false);
    let back = Instant::now();
    load.wait_for_recovery(back).await;
    work.stop().await;

    print_recovery("PostgreSQL unreachable", &load, back);
    check(&app, &load).await;
    // No dead connection has kept its place in the pool.
    let acquired = join_all((0..16).map(|_| app.state.db.read())).await;
    assert!(acquired.iter().all(Result::is_ok), "16 connections are free");
    assert!(!load.records().unavailable.is_empty() && unanswered.is_err());
}

/// The lock lasts longer than the timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_write_lock_of_other_process() {
    let app = TestApp::on_sqlite().await;
    let load = create_load(&app).await;
    let other = Db::open(&app.database_url).await.unwrap();

    let work = load.start(&app.address);
    sleep(Duration::from_secs(1)).await;
    // The lock may need several attempts under load.
    let held = loop {
        if let Ok(held) = other.begin().await {
            break held;
        }
    };
    sleep(fault_duration(7)).await;
    drop(held);
    other.close().await;
    let back = Instant::now();
    load.wait_for_recovery(back).await;
    work.stop().await;

    print_recovery("SQLite locked", &load, back);
    check(&app, &load).await;
    assert!(!load.records().unavailable.is_empty());
}
