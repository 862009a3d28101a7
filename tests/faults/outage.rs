//! The database goes away under a load, and comes back.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use boxoffice::db::Db;
use futures::future::{join, join_all};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::time::sleep;

use super::load::Crowd;
use super::{check, crowd_of, fault_duration, tell};
use crate::support::{PgCluster, TestApp};

/// A load before, during and after a fault of PostgreSQL's; how often 503 was answered.
async fn outage(name: &str, fail: fn(&mut PgCluster), mend: fn(&mut PgCluster)) -> usize {
    let Some(mut cluster) = PgCluster::create() else { return usize::MAX };
    let app = TestApp::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    let crowd = crowd_of(&app).await;

    let work = crowd.set_to_work(&app.address);
    sleep(Duration::from_secs(1)).await;
    fail(&mut cluster);
    sleep(fault_duration(3)).await;
    mend(&mut cluster);
    let back = Instant::now();
    sleep(Duration::from_secs(3)).await;
    work.stop().await;

    tell(name, &crowd, back);
    check(&app, &crowd).await;
    crowd.heard().unavailable.len()
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

/// A short while of it only makes everyone wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_pause_of_postgres() {
    outage("PostgreSQL frozen", PgCluster::pause, PgCluster::resume).await;
}

/// A way to PostgreSQL's socket that can be cut: from then on nothing passes on the connections that there are, and nobody is told,
/// as when a machine's network fails. Once it is mended, new connections pass.
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
                    // Held open, and silent, for good.
                    std::future::pending::<()>().await;
                });
            }
        });
        Self { port, is_cut }
    }
}

/// Everyone who was waiting for an answer when the line was cut takes a place in the pool along: enough of them must be free again
/// when it is mended, or nobody would be served any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_network_outage_to_postgres() {
    let Some(cluster) = PgCluster::create() else { return };
    let line = Line::to(cluster.socket()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", line.port);
    let app = TestApp::start(&url, tempfile::tempdir().unwrap()).await;
    let crowd = Crowd::gather(&app.address, &app.staff.key, &app.public_key, 20, 5000).await;

    let work = crowd.set_to_work(&app.address);
    sleep(Duration::from_secs(1)).await;
    let mut waiting = app.state.db.begin().await.unwrap();
    line.is_cut.send_replace(true);
    let (unanswered, ()) = join(waiting.query("select count(*) from orders").scalar::<i64>(), sleep(fault_duration(14))).await;
    drop(waiting);
    line.is_cut.send_replace(false);
    let back = Instant::now();
    sleep(Duration::from_secs(5)).await;
    work.stop().await;

    tell("PostgreSQL cut off", &crowd, back);
    check(&app, &crowd).await;
    // No connection that is silent for good has kept its place.
    let taken = join_all((0..16).map(|_| app.state.db.read())).await;
    assert!(taken.iter().all(|place| place.is_ok()), "16 places are free");
    assert!(!crowd.heard().unavailable.is_empty() && unanswered.is_err());
}

/// Longer than is waited for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_write_lock_of_other_process() {
    let app = TestApp::on_sqlite().await;
    let crowd = crowd_of(&app).await;
    let other = Db::open(&app.database_url).await.unwrap();

    let work = crowd.set_to_work(&app.address);
    sleep(Duration::from_secs(1)).await;
    // Whoever comes first has it: it may take some attempts.
    let held = loop {
        if let Ok(held) = other.begin().await {
            break held;
        }
    };
    sleep(fault_duration(7)).await;
    drop(held);
    other.close().await;
    let back = Instant::now();
    sleep(Duration::from_secs(3)).await;
    work.stop().await;

    tell("SQLite locked", &crowd, back);
    check(&app, &crowd).await;
    assert!(!crowd.heard().unavailable.is_empty());
}
