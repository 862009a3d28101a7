//! Graceful shutdown of the program.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use boxoffice::kernel::db::Db;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::load::Load;
use super::{fault_duration, print_figure};
use crate::support::server_process::{ServerProcess, boxoffice, create_keys};
use crate::support::{postgres, wait_until};

fn serve(folder: &Path, url: &str, arguments: &[&str]) -> ServerProcess {
    ServerProcess::start(boxoffice(folder, &[&["serve", "--database", url], arguments].concat()))
}

/// The number of users when the server is stopped.
const BUYERS: usize = 6;

async fn stop_under_load(url: &str, folder: &Path) {
    let (staff, public_client) = create_keys(folder, url);
    let server = serve(folder, url, &[]);
    let load = Load::create(&server.address, &staff, &public_client, BUYERS, 5000).await;

    let work = load.start(&server.address);
    sleep(fault_duration(2)).await;
    // On a slow machine, too, every kind of request has succeeded once.
    wait_until(async || !load.records().transfers.is_empty()).await;
    let requests = Instant::now();
    server.signal("TERM");
    let (_, ended, log) = spawn_blocking(|| server.wait()).await.unwrap();
    let took = requests.elapsed();
    work.stop().await;

    print_figure(format!("SIGTERM under a load: ended after {:.2} s; {}", took.as_secs_f64(), load.figures()));
    assert!(ended.success(), "{log:#?}");
    // After a graceful exit no request in progress is lost. A connection that is opened at the moment of the exit may be closed
    // before its request is read: at most one per user.
    assert!(load.records().lost.len() <= BUYERS, "requests were left without an answer");
    let db = Db::open(url).await.unwrap();
    load.check(&mut db.read().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_under_load_loses_nothing_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
    stop_under_load(&url, folder.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_under_load_loses_nothing_on_postgres() {
    let Some(database) = postgres::new_database().await else { return };
    stop_under_load(&database.url, tempfile::tempdir().unwrap().path()).await;
}

/// A server that receives SIGTERM while it has half of a request.
struct Half {
    server: ServerProcess,
    address: String,
    connection: TcpStream,
    /// True if a request before the rejections was answered with `Connection: close`.
    heard_last_call: bool,
    _folder: TempDir,
}

const BODY: &str = r#"{"email": "nobody@example.com"}"#;

impl Half {
    async fn of_a_request(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
        let (_, key) = create_keys(folder.path(), &url);
        let server = serve(folder.path(), &url, arguments);
        let address = server.address.strip_prefix("http://").unwrap().to_owned();
        let mut connection = TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST /verifications HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nX-Client-Version: 3.0.0\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            BODY.len()
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        // The request is in progress once the server wants its body.
        assert_eq!(read(&mut connection).await.unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
        connection.write_all(&BODY.as_bytes()[..10]).await.unwrap();
        server.signal("TERM");
        // Past the period in which new requests are still served.
        let mut heard_last_call = false;
        loop {
            // A server that has ended meanwhile accepts no connection.
            let Ok(response) = try_get(&address, "/time").await else { break };
            if response.starts_with("HTTP/1.1 503 ") {
                break;
            }
            heard_last_call |= response.contains("connection: close\r\n");
            sleep(Duration::from_millis(20)).await;
        }
        Self { server, address, connection, heard_last_call, _folder: folder }
    }
}

/// Sends a request for the time on a new connection, and returns the response.
async fn get(address: &str) -> String {
    try_get(address, "/time").await.unwrap()
}

/// Sends a GET on a new connection, and returns the response.
async fn try_get(address: &str, path: &str) -> io::Result<String> {
    let mut connection = TcpStream::connect(address).await?;
    connection.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await?;
    read(&mut connection).await
}

/// Reads the head of the next response.
async fn read(connection: &mut TcpStream) -> io::Result<String> {
    let mut response = vec![0; 4096];
    let length = connection.read(&mut response).await?;
    Ok(String::from_utf8(response[..length].to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_finishes_open_requests_and_rejects_new_ones() {
    let mut half = Half::of_a_request(&[]).await;

    let rejected = get(&half.address).await;
    half.connection.write_all(&BODY.as_bytes()[10..]).await.unwrap();
    let finished = read(&mut half.connection).await.unwrap();
    let (_, ended, log) = half.server.wait();

    for part in ["retry-after: 1\r\n", "connection: close\r\n", "x-content-type-options: nosniff\r\n", "The server is stopping."]
    {
        assert!(rejected.contains(part), "{rejected}");
    }
    // The path is unknown.
    assert!(finished.starts_with("HTTP/1.1 404 ") && finished.contains("connection: close\r\n"), "{finished}");
    assert!(ended.success(), "{log:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_serves_requests_until_load_balancers_have_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
    let server = serve(folder.path(), &url, &["--drain-seconds", "600"]);
    let address = server.address.strip_prefix("http://").unwrap().to_owned();
    let readiness = async || try_get(&address, "/readyz").await.unwrap();
    assert!(readiness().await.starts_with("HTTP/1.1 200 "));

    server.signal("TERM");
    wait_until(async || readiness().await.starts_with("HTTP/1.1 503 ")).await;
    // Later than the shortest period.
    sleep(Duration::from_secs(1)).await;
    let served = get(&address).await;

    assert!(served.starts_with("HTTP/1.1 412 ") && served.contains("connection: close\r\n"), "{served}");
    drop(server);
    serve(folder.path(), &url, &["--drain-seconds", "3"]).stop();
}

/// A busy machine may miss the short period, but not repeatedly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_announces_connection_close_before_rejecting() {
    for _ in 0..5 {
        if Half::of_a_request(&[]).await.heard_last_call {
            return;
        }
    }
    panic!("no response had `Connection: close`");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_aborts_requests_after_grace_period() {
    let half = Half::of_a_request(&["--grace-seconds", "1"]).await;

    let (_, ended, log) = half.server.wait();

    assert_eq!(ended.code(), Some(1));
    let expected = "boxoffice: the grace period is over (requests cancelled: 1)";
    assert!(log.iter().any(|line| line == expected), "{log:#?}");
}

/// Without requests in progress, none is cancelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_without_a_grace_period_succeeds() {
    let stop = || {
        let folder = tempfile::tempdir().unwrap();
        ServerProcess::start(boxoffice(folder.path(), &["serve", "--grace-seconds", "0"])).stop();
    };
    spawn_blocking(stop).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_signal_stops_immediately() {
    let half = Half::of_a_request(&["--grace-seconds", "3600"]).await;

    half.server.signal("TERM");
    let (_, ended, log) = half.server.wait();

    assert_eq!(ended.code(), Some(1));
    let expected = "boxoffice: stopped by a second signal (requests cancelled: 1)";
    assert!(log.iter().any(|line| line == expected), "{log:#?}");
}

/// Several servers at once, so that some are delayed right after they have logged their address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_right_after_start_stops_gracefully() {
    let at_once = |command| {
        spawn_blocking(move || {
            let folder = tempfile::tempdir().unwrap();
            ServerProcess::start(boxoffice(folder.path(), &[command])).stop()
        })
    };
    let requests: Vec<_> = ["serve"; 4].into_iter().chain(["mock"; 12]).map(at_once).collect();

    for server in requests {
        server.await.unwrap();
    }
}
