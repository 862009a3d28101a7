//! Outages of the database under load.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use boxoffice::kernel::db::Db;
use futures::future::{join, join_all};
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::time::sleep;

use super::load::{Load, connect_without_retries};
use super::{check, create_load, fault_duration, print_recovery};
use crate::support::server_process::{ServerProcess, boxoffice};
use crate::support::{PgCluster, TestApp, card_payment, section, wait_until};

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
    /// True if connections are closed instead of staying open without traffic.
    closes: Arc<AtomicBool>,
}

impl Line {
    async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_cut, cut) = watch::channel(false);
        let closes = Arc::new(AtomicBool::new(false));
        let closing = Arc::clone(&closes);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (socket, mut cut, closing) = (socket.clone(), cut.clone(), Arc::clone(&closing));
                tokio::spawn(async move {
                    if !*cut.borrow_and_update() {
                        let mut server = UnixStream::connect(socket).await.unwrap();
                        tokio::select! {
                            _ = copy_bidirectional(&mut client, &mut server) => return,
                            _ = cut.changed() => {}
                        }
                    }
                    if closing.load(Ordering::Relaxed) {
                        return;
                    }
                    // Stays open without traffic.
                    std::future::pending::<()>().await;
                });
            }
        });
        Self { port, is_cut, closes }
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

/// HAProxy accepts connections and closes them while no server is the primary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_without_a_server_is_an_outage() {
    let Some(cluster) = PgCluster::create() else { return };
    let line = Line::to(cluster.socket()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", line.port);
    let app = TestApp::start(&url, tempfile::tempdir().unwrap()).await;
    let held = join_all((0..16).map(|_| app.state.db.begin())).await;
    line.closes.store(true, Ordering::Relaxed);
    // Dropping them after the cut closes all connections of the pool.
    line.is_cut.send_replace(true);
    drop(held);

    let closed = app.request("GET", "/regions").send().await;
    line.closes.store(false, Ordering::Relaxed);
    line.is_cut.send_replace(false);
    let back = app.request("GET", "/regions").send().await;

    assert_eq!((closed.status, closed.headers.contains_key("retry-after"), back.status), (503, true, 200));
}

/// The administrator of the database ends all connections. The server opens new ones, and stays ready: a load balancer would otherwise
/// take all servers out of service at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_stays_ready_when_the_database_closes_its_connections() {
    let Some(cluster) = PgCluster::create() else { return };
    let app = TestApp::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    let mut other = PgConnection::connect(&cluster.url).await.unwrap();
    let mut statuses = Vec::new();
    for _ in 0..5 {
        // The pool does not ping connections that were used a moment ago.
        join_all((0..10).map(|_| async { app.request("GET", "/regions").send().await.status })).await;
        sqlx::raw_sql(
            "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
        )
        .execute(&mut other)
        .await
        .unwrap();
        statuses.push(app.request("GET", "/readyz").send().await.status);
    }
    assert_eq!(statuses, [200; 5]);
}

/// A statement waits for a lock for longer than the server waits for the statement. It must end in the database, too: it would keep
/// its connection, and the locks of its transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_statement_ends_in_the_database() {
    let Some(cluster) = PgCluster::create() else { return };
    let app = TestApp::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    let region = app.create_region().await;
    let mut other = PgConnection::connect(&cluster.url).await.unwrap();
    sqlx::raw_sql("begin; select id from regions for update").execute(&mut other).await.unwrap();
    let waiting = async || {
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
        app.state.db.read().await.unwrap().query(waiting).scalar::<i64>().await.unwrap()
    };

    let change = app.request("PUT", &region).key(&app.staff.key).json(&json!({ "name": "Volta" }));
    let (change, ()) = join(change.send(), wait_until(async || waiting().await == 1)).await;
    wait_until(async || waiting().await == 0).await;

    assert_eq!((change.status, change.headers.contains_key("retry-after")), (503, true));
}

/// PostgreSQL rejects connections, as after a change of a password, a role or the rules in `pg_hba.conf`. That is no mistake in the
/// program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_connections_are_an_outage() {
    let Some(cluster) = PgCluster::create() else { return };
    let app = TestApp::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    let options: PgConnectOptions = cluster.url.parse().unwrap();
    let mut other = PgConnection::connect_with(&options.database("template1")).await.unwrap();
    let mut execute = async |sql: &'static str| sqlx::raw_sql(sql).execute(&mut other).await.map(|_| ()).unwrap();

    execute("alter database postgres with allow_connections false").await;
    execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'postgres'").await;
    // The pool pings connections that were idle for a second, and replaces those that are closed.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let rejected = app.request("GET", "/accounts").key(&app.staff.key).send().await;
    execute("alter database postgres with allow_connections true").await;
    let accepted = app.request("GET", "/accounts").key(&app.staff.key).send().await;

    assert_eq!((rejected.status, rejected.headers.contains_key("retry-after")), (503, true), "{}", rejected.body);
    assert_eq!(accepted.status, 200);
}

/// A server freezes in a transaction, as on a machine that is suspended, and its connections stay open. PostgreSQL ends the transaction
/// before the requests give up that wait for its locks on another server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_wait_for_a_frozen_server() {
    let Some(cluster) = PgCluster::create() else { return };
    let app = TestApp::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Stalls", 100.0, 2)]).await;
    let efua = app.sign_up("efua").await;
    let folder = tempfile::tempdir().unwrap();
    let mut command = boxoffice(folder.path(), &["serve"]);
    command.env("DATABASE_URL", &cluster.url);
    let server = ServerProcess::start(command);
    let client = connect_without_retries(&server.address, &ama.key);
    let items = HashMap::from([(event.sections[0].clone(), 1)]);
    let mut other = PgConnection::connect(&cluster.url).await.unwrap();

    sqlx::raw_sql("begin; select id from sections for update").execute(&mut other).await.unwrap();
    let frozen = tokio::spawn(async move { client.order_create().body_map(|body| body.items(items)).send().await });
    app.wait_for_lock_waits(1).await;
    server.signal("STOP");
    sqlx::raw_sql("rollback").execute(&mut other).await.unwrap();
    let holding = "select count(*) from pg_stat_activity where state = 'idle in transaction'";
    // One of its jobs may be in a transaction, too.
    wait_until(async || app.scalar::<i64>(holding).await >= 1).await;
    let order = app.request("POST", "/orders").key(&efua.key).json(&json!({ "items": { &event.sections[0]: 2 } }));
    let order = order.send().await;

    assert_eq!(order.status, 201, "{}", order.body);
    server.signal("CONT");
    let frozen = frozen.await.unwrap().unwrap_err();
    assert!([Some(409), Some(503)].contains(&frozen.status().map(|status| status.as_u16())), "{frozen:?}");
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 2));
}

/// An operator ends a statement that waits for a lock, and then limits how long statements may wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_statement_can_be_sent_again() {
    let Some(cluster) = PgCluster::create() else { return };
    let mut other = PgConnection::connect(&cluster.url).await.unwrap();
    let mut execute = async |sql: &'static str| sqlx::raw_sql(sql).execute(&mut other).await.map(|_| ()).unwrap();
    let change = async |app: &TestApp, region: &str| {
        app.request("PUT", region).key(&app.staff.key).json(&json!({ "name": "Volta" })).send().await
    };

    let app = TestApp::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    let region = app.create_region().await;
    execute("begin; select id from regions for update").await;
    let cancel = async {
        app.wait_for_lock_waits(1).await;
        execute("select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'").await;
    };
    let (cancelled, ()) = join(change(&app, &region), cancel).await;
    execute("rollback; alter database postgres set lock_timeout = '100ms'").await;
    execute("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
        .await;
    // The pool pings connections that were idle for a second, and replaces those that are closed. New ones have the limit.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    execute("begin; select id from regions for update").await;
    let timed_out = change(&app, &region).await;
    execute("rollback").await;
    let accepted = change(&app, &region).await;

    for rejected in [cancelled, timed_out] {
        assert_eq!((rejected.status, rejected.headers.contains_key("retry-after")), (503, true));
    }
    assert_eq!(accepted.status, 200);
}

/// After a failover, connections that lead to the former primary still read, and reject changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaves_connections_that_have_become_read_only() {
    let Some(cluster) = PgCluster::create() else { return };
    let app = TestApp::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    let mut other = PgConnection::connect(&cluster.url).await.unwrap();
    let mut execute = async |sql: &'static str| sqlx::raw_sql(sql).execute(&mut other).await.map(|_| ()).unwrap();
    let region = async |name: &str| {
        let request = app.request("POST", "/regions").key(&app.staff.key);
        request.json(&json!({ "name": name, "country": "Ghana" })).send().await
    };

    execute("alter database postgres set default_transaction_read_only = on").await;
    execute("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
        .await;
    // A closed connection is a different failure. The pool pings those that were idle for a second, and replaces them.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    // Several connections of the pool become read-only.
    join_all((0..10).map(|_| async { app.request("GET", "/regions").send().await.status })).await;
    let rejected = region("Volta").await;
    execute("alter database postgres set default_transaction_read_only = off").await;
    let accepted = region("Oti").await;

    assert_eq!((rejected.status, rejected.headers.contains_key("retry-after")), (503, true));
    assert_eq!(accepted.status, 201, "new connections are opened");
}

/// The database fails between the two transactions of a payment, as in a failover. The client sends the request again with the same
/// key: it succeeds soon after the database is back, and not after the lease of the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payment_can_be_sent_again_after_an_outage() {
    let Some(mut cluster) = PgCluster::create() else { return };
    let app = TestApp::start(&cluster.url, tempfile::tempdir().unwrap()).await;
    let (_, ama, event) = app.create_sale(&[section("Stalls", 100.0, 2)]).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
    let pay = async || {
        let request = app.request("POST", &format!("{order}/payments")).key(&ama.key).json(&card_payment());
        request.header("idempotency-key", "outage").send().await
    };

    app.gateway.block();
    let (lost, ()) = join(pay(), async {
        app.gateway.wait_for_charges(1).await;
        cluster.kill();
        app.gateway.unblock();
    })
    .await;
    let without_database = pay().await;
    cluster.start();
    wait_until(async || pay().await.status == 201).await;

    assert_eq!((lost.status, without_database.status), (503, 503));
    assert_eq!(pay().await.status, 201, "the response is stored");
    assert_eq!((app.payments(&order).await, app.gateway.total()), (vec![(203.98, "Confirmed".to_owned())], 203.98));
    assert_eq!(app.gateway.charge_count(), 2, "the charge with an unknown result was cancelled");
    app.assert_invariants().await;
    app.check_gateway_balance().await;
}
