//! The program is told to stop.

use std::path::Path;
use std::time::{Duration, Instant};

use boxoffice::db::Db;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::load::Crowd;
use super::{fault_duration, figure};
use crate::support::postgres;
use crate::support::server_process::{ServerProcess, boxoffice, create_keys};

fn serve(folder: &Path, url: &str, arguments: &[&str]) -> ServerProcess {
    ServerProcess::start(boxoffice(folder, &[&["serve", "--database", url], arguments].concat()))
}

/// How many are buying when the server is told to stop.
const BUYERS: usize = 6;

async fn stop_under_load(url: &str, folder: &Path) {
    let (staff, anyone) = create_keys(folder, url);
    let server = serve(folder, url, &[]);
    let crowd = Crowd::gather(&server.address, &staff, &anyone, BUYERS, 5000).await;

    let work = crowd.set_to_work(&server.address);
    sleep(fault_duration(2)).await;
    let asked = Instant::now();
    server.signal("TERM");
    let (_, ended, log) = spawn_blocking(|| server.wait()).await.unwrap();
    let took = asked.elapsed();
    work.stop().await;

    figure(format!("SIGTERM under a load: ended after {:.2} s; {}", took.as_secs_f64(), crowd.figures()));
    assert!(ended.success(), "{log:#?}");
    // It ended well, so nothing that it had read was cut. But a connection that is opened in the very moment of the end may be
    // closed before its request is read: at most one for each buyer, who asks one thing at a time.
    assert!(crowd.heard().lost.len() <= BUYERS, "requests were left without an answer");
    let db = Db::open(url).await.unwrap();
    crowd.check(&mut db.read().await.unwrap()).await;
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

/// A server that is told to stop while it has half of a request.
struct Half {
    server: ServerProcess,
    address: String,
    connection: TcpStream,
    /// Whether somebody who came before the others were refused was answered, and told that the connection closes.
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
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            BODY.len()
        );
        connection.write_all(format!("{head}{}", &BODY[..10]).as_bytes()).await.unwrap();
        // It has read the head once it answers to somebody who came later.
        assert!(get(&address).await.starts_with("HTTP/1.1 412 "));
        sleep(Duration::from_millis(200)).await;
        server.signal("TERM");
        // Past the moment in which everyone is served still.
        let mut heard_last_call = false;
        loop {
            let answer = get(&address).await;
            if answer.starts_with("HTTP/1.1 503 ") {
                break;
            }
            heard_last_call |= answer.contains("connection: close\r\n");
            sleep(Duration::from_millis(20)).await;
        }
        Self { server, address, connection, heard_last_call, _folder: folder }
    }
}

/// What is answered to a new connection's request for the time.
async fn get(address: &str) -> String {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(b"GET /time HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    read(&mut connection).await
}

/// The next answer's head, and what came along.
async fn read(connection: &mut TcpStream) -> String {
    let mut answer = vec![0; 4096];
    let length = connection.read(&mut answer).await.unwrap();
    String::from_utf8(answer[..length].to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_finishes_open_requests_and_rejects_new_ones() {
    let mut half = Half::of_a_request(&[]).await;

    let refused = get(&half.address).await;
    half.connection.write_all(&BODY.as_bytes()[10..]).await.unwrap();
    let finished = read(&mut half.connection).await;
    let (_, ended, log) = half.server.wait();

    for part in ["retry-after: 1\r\n", "connection: close\r\n", "x-content-type-options: nosniff\r\n", "The server is stopping."]
    {
        assert!(refused.contains(part), "{refused}");
    }
    // Nobody has that address.
    assert!(finished.starts_with("HTTP/1.1 404 ") && finished.contains("connection: close\r\n"), "{finished}");
    assert!(ended.success(), "{log:#?}");
}

/// A busy machine may oversleep the moment, but not time after time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_announces_connection_close_before_rejecting() {
    for _ in 0..5 {
        if Half::of_a_request(&[]).await.heard_last_call {
            return;
        }
    }
    panic!("nobody was told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_aborts_requests_after_grace_period() {
    let half = Half::of_a_request(&["--grace-seconds", "1"]).await;

    let (_, ended, log) = half.server.wait();

    assert_eq!(ended.code(), Some(1));
    let told = "boxoffice: the time of grace is over: 1 requests under way were cut";
    assert!(log.iter().any(|line| line == told), "{log:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_signal_stops_immediately() {
    let half = Half::of_a_request(&["--grace-seconds", "3600"]).await;

    half.server.signal("TERM");
    let (_, ended, log) = half.server.wait();

    assert_eq!(ended.code(), Some(1));
    let told = "boxoffice: it was asked again to stop: 1 requests under way were cut";
    assert!(log.iter().any(|line| line == told), "{log:#?}");
}

/// Several at once, so that some are held up just after they told it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_right_after_start_stops_gracefully() {
    let at_once = |command| {
        spawn_blocking(move || {
            let folder = tempfile::tempdir().unwrap();
            ServerProcess::start(boxoffice(folder.path(), &[command])).stop()
        })
    };
    let asked: Vec<_> = ["serve"; 4].into_iter().chain(["mock"; 12]).map(at_once).collect();

    for server in asked {
        server.await.unwrap();
    }
}
