//! Connections that make no progress, and too many of them.

use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use boxoffice::kernel::settings::{LimitSettings, Settings};
use boxoffice::server::RunningApp;
use boxoffice::state::App;
use boxoffice_http::traces::Tracer;
use boxoffice_http::{BodyTimeouts, ConnectionLimits, Listener, log};
use futures::future::{join, join_all};
use http::Request;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::raw::{request, send_raw};
use super::tls::Pair;
use crate::failures::LogBuffer;
use crate::support::{ANY_PORT, SecondServer, TestApp, fetch_url, test_on, wait_until};

const SHORT: Duration = Duration::from_millis(300);
/// A timeout that no test reaches.
pub const LONG: Duration = Duration::from_secs(600);

/// Limits whose timeouts a test never reaches.
fn patient() -> ConnectionLimits {
    ConnectionLimits { head_timeout: LONG, idle_timeout: LONG, send_timeout: LONG, ..ConnectionLimits::default() }
}

async fn start(app: &TestApp, connections: ConnectionLimits) -> SecondServer {
    let body_timeouts = BodyTimeouts { total: LONG, idle: LONG };
    let listener = Listener { connections, body_timeouts, ..ANY_PORT.into() };
    app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await
}

/// Connects with HTTP/2. `window` is the number of bytes of a response that the server may send before they are read; `None` for the
/// default. The second result ends when the connection is closed.
async fn connect_http_2(server: SocketAddr, window: Option<u32>) -> (SendRequest<Empty<Bytes>>, JoinHandle<hyper::Result<()>>) {
    let stream = TcpStream::connect(server).await.unwrap();
    let mut client = http2::Builder::new(TokioExecutor::new());
    let client = client.initial_stream_window_size(window);
    let (sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

/// Builds a GET for HTTP/2.
fn get(app: &TestApp, path: &str) -> Request<Empty<Bytes>> {
    let get = Request::get(format!("http://x{path}")).header("X-API-Key", &app.public_key);
    get.header("X-Client-Version", "3.0.0").body(Empty::new()).unwrap()
}

/// Awaits something that must happen long before a timeout of [`LONG`].
pub async fn await_early<T>(something: impl Future<Output = T>) -> T {
    timeout(LONG / 10, something).await.expect("in time")
}

/// Waits until the server closes the connection, and returns what it sent before.
async fn read_to_end(mut connection: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _closed_or_reset = await_early(connection.read_to_end(&mut bytes)).await;
    bytes
}

fn get_time(app: &TestApp) -> String {
    format!("GET /time HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nX-Client-Version: 3.0.0\r\n\r\n", app.public_key)
}

/// Sends a request on an open connection, and returns the status.
async fn ask(connection: &mut TcpStream, app: &TestApp) -> String {
    connection.write_all(get_time(app).as_bytes()).await.unwrap();
    let mut response = vec![0; 4096];
    let length = await_early(connection.read(&mut response)).await.unwrap();
    String::from_utf8_lossy(&response[..length.min(12)]).into_owned()
}

#[test_on(sqlite, postgres)]
async fn closes_connection_without_complete_head(app: TestApp) {
    let server = start(&app, ConnectionLimits { head_timeout: SHORT, ..patient() }).await;
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    // HEADERS of stream 1 with END_STREAM but without END_HEADERS: `:method: GET`.
    const OPEN_HEADERS: &[u8] = &[0, 0, 1, 1, 1, 0, 0, 0, 1, 0x82];
    let beginnings: [&[u8]; 8] = [
        b"",
        b"P",
        b"GET /ti",
        b"GET /time HTTP/1.1\r\nHost: x\r\n",
        &PREFACE[..16],
        PREFACE,
        &[PREFACE, SETTINGS].concat(),
        &[PREFACE, SETTINGS, OPEN_HEADERS].concat(),
    ];

    for beginning in beginnings {
        let mut connection = TcpStream::connect(server.server).await.unwrap();
        connection.write_all(beginning).await.unwrap();
        let response = read_to_end(connection).await;
        assert!(!response.starts_with(b"HTTP/1.1 200"), "{}", beginning.escape_ascii());
    }
}

#[test_on(sqlite, postgres)]
async fn closes_unfinished_handshake(app: TestApp) {
    let folder = tempfile::tempdir().unwrap();
    let connections = ConnectionLimits { head_timeout: SHORT, ..patient() };
    let listener = Listener { certificate: Some(Pair::write(folder.path()).open()), connections, ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await;

    // The beginning of a TLS record with a ClientHello.
    for beginning in [b"".as_slice(), &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]] {
        let mut connection = TcpStream::connect(server.server).await.unwrap();
        connection.write_all(beginning).await.unwrap();
        read_to_end(connection).await;
    }
}

#[test_on(sqlite, postgres)]
async fn closes_idle_connection(app: TestApp) {
    let server = start(&app, ConnectionLimits { idle_timeout: SHORT, ..patient() }).await;

    let mut first = TcpStream::connect(server.server).await.unwrap();
    assert_eq!(ask(&mut first, &app).await, "HTTP/1.1 200");
    read_to_end(first).await;

    let (mut sender, connection) = connect_http_2(server.server, None).await;
    assert_eq!(sender.send_request(get(&app, "/time")).await.unwrap().status(), 200);
    let _closed_or_reset = await_early(connection).await.unwrap();
}

/// Makes the list of events larger than the buffers of a connection.
pub(super) async fn create_large_events(app: &TestApp, count: usize) {
    let (_, host) = app.sign_up_with_host("kofi").await;
    for _ in 0..count {
        app.create_listed_event(&host, &[crate::support::section("Floor", 20.0, 10)]).await;
    }
    app.execute_sql(if app.database_url.starts_with("sqlite") {
        "update sections set description = printf('%.*c', 400000, 'x')"
    } else {
        "update sections set description = repeat('x', 400000)"
    })
    .await;
}

#[test_on(sqlite, postgres)]
async fn closes_connection_of_client_that_does_not_read(app: TestApp) {
    create_large_events(&app, 5).await;
    let server = start(&app, ConnectionLimits { send_timeout: SHORT, ..patient() }).await;

    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut connection = socket.connect(server.server).await.unwrap();
    for _ in 0..20 {
        connection.write_all(get_time(&app).replace("/time", "/events").as_bytes()).await.unwrap();
    }
    // After the server has closed the connection, it rejects what is sent.
    await_early(async {
        while connection.write_all(b"G").await.is_ok() {
            sleep(SHORT / 10).await;
        }
    })
    .await;

    // Smaller than the response, so that it can't be sent without being read.
    let (mut sender, connection) = connect_http_2(server.server, Some(64 * 1024)).await;
    let response = sender.send_request(get(&app, "/events")).await.unwrap();
    assert_eq!(response.status(), 200);
    let _closed_or_reset = await_early(connection).await.unwrap();
    drop(response);
}

/// A client of HTTP/2 can request a hundred responses on each connection, and read none of them.
#[test_on(sqlite, postgres)]
async fn bounds_small_responses_that_are_not_read(app: TestApp) {
    let limits = ConnectionLimits { unsent: 4000, ..patient() };
    let server = start(&app, limits).await;
    let (mut sender, connection) = connect_http_2(server.server, Some(0)).await;
    let mut unread = Vec::new();
    // About 3 KB each.
    for _ in 0..2 {
        unread.push(sender.send_request(get(&app, "/countries")).await.unwrap());
    }
    assert!(unread.iter().all(|response| response.status() == 200), "twice the limit: {unread:?}");
    let lines = [&*format!("X-API-Key: {}", app.public_key), "X-Client-Version: 3.0.0"];
    let status = async || send_raw(server.server, &request("GET /countries", &lines, "")).await.unwrap().status;

    assert_eq!(status().await, 503);
    await_early(async {
        while !connection.is_finished() {
            assert!([200, 503].contains(&status().await));
            sleep(SHORT / 10).await;
        }
    })
    .await;
    assert_eq!(status().await, 200);
    drop(unread);
}

/// There is no memory for the response of 3 KB, so an error is sent in its place.
#[test_on(sqlite, postgres)]
async fn logs_the_response_that_was_sent(app: TestApp) {
    let lines = LogBuffer::default();
    let connections = ConnectionLimits { unsent: 1000, ..patient() };
    let listener = Listener { connections, access_log_sample: NonZeroU64::new(1), ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), lines.logger(), listener).await;
    let headers = [&*format!("X-API-Key: {}", app.public_key), "X-Client-Version: 3.0.0"];

    let response = send_raw(server.server, &request("GET /countries", &headers, "")).await.unwrap();

    assert_eq!((response.status, response.code(), response.header("retry-after")), (503, "server.unavailable", "1"));
    let line = lines.lines().into_iter().find(|line| line["request"] == response.header("x-request-id")).unwrap();
    assert_eq!((&line["status"], &line["code"]), (&json!(503), &json!("server.unavailable")), "{line}");
    let metrics = server.state.metrics.encode().unwrap();
    assert!(
        metrics.contains(r#"boxoffice_request_duration_seconds_count{operation="country_list",status="503"} 1"#),
        "{metrics}"
    );
}

/// After a GOAWAY, a client of HTTP/2 knows which of its requests were not processed.
#[test_on(sqlite, postgres)]
async fn stop_sends_goaway_to_idle_connections(app: TestApp) {
    const PREFACE_AND_SETTINGS: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    const GOAWAY: u8 = 7;
    let server = start(&app, patient()).await;
    let mut connections = Vec::new();
    for _ in 0..100 {
        let mut connection = TcpStream::connect(server.server).await.unwrap();
        connection.write_all(PREFACE_AND_SETTINGS).await.unwrap();
        // The server has sent its own settings.
        await_early(connection.readable()).await.unwrap();
        connections.push(connection);
    }

    let (received, ()) = join(join_all(connections.into_iter().map(read_to_end)), server.stop()).await;

    for frames in received {
        let (mut types, mut rest) = (Vec::new(), frames.as_slice());
        while let [first, second, third, frame_type, _, _, _, _, _, payload @ ..] = rest {
            types.push(*frame_type);
            rest = &payload[usize::from(*first) << 16 | usize::from(*second) << 8 | usize::from(*third)..];
        }
        assert!(types.contains(&GOAWAY), "{types:?}");
    }
}

/// Begins a request whose body doesn't arrive.
async fn begin_request(server: SocketAddr, app: &TestApp) -> TcpStream {
    let mut connection = TcpStream::connect(server).await.unwrap();
    let head = get_time(app)
        .replace("GET /time", "POST /lookups")
        .replace("\r\n\r\n", "\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n");
    connection.write_all(head.as_bytes()).await.unwrap();
    connection
}

/// Returns whether the server answers a request on a new connection.
async fn is_served(server: SocketAddr, app: &TestApp) -> bool {
    let lines = [&*format!("X-API-Key: {}", app.public_key), "X-Client-Version: 3.0.0"];
    send_raw(server, &request("GET /time", &lines, "")).await.is_some_and(|response| response.status == 200)
}

#[test_on(sqlite, postgres)]
async fn serves_new_connections_in_place_of_idle_ones(app: TestApp) {
    let server = start(&app, ConnectionLimits { maximum: Some(5), ..patient() }).await;
    let mut busy = begin_request(server.server, &app).await;
    // Until it is busy, it may be the oldest idle connection.
    wait_until(async || server.in_flight() == 1).await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(TcpStream::connect(server.server).await.unwrap());
    }

    assert!(is_served(server.server, &app).await);
    read_to_end(idle.remove(0)).await;
    busy.write_all(br#"{"x": 123}"#).await.unwrap();
    let mut status = [0; 12];
    await_early(busy.read_exact(&mut status)).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 400", "a request in progress is finished");
}

#[test_on(sqlite, postgres)]
async fn limits_connections_of_address(app: TestApp) {
    let limited = start(&app, ConnectionLimits { per_address: 2, ..patient() }).await;
    let trusted_proxies = "127.0.0.0/8".parse().unwrap();
    let limits = LimitSettings { trusted_proxies, ..app.state.settings.limits.clone() };
    let settings = Settings { limits, ..app.state.settings.clone() };
    let listener = Listener { connections: ConnectionLimits { per_address: 2, ..patient() }, ..ANY_PORT.into() };
    let proxied = app.start_second_server_on(settings, log::silent(), listener).await;
    let mut busy = Vec::new();
    for server in [&limited, &limited, &proxied, &proxied] {
        busy.push(begin_request(server.server, &app).await);
    }
    wait_until(async || limited.in_flight() == 2 && proxied.in_flight() == 2).await;

    assert!(!is_served(limited.server, &app).await);
    assert!(is_served(proxied.server, &app).await);
}

/// The clients are behind a proxy that the server doesn't trust.
#[test_on(sqlite, postgres)]
async fn metrics_and_log_show_connections_closed_at_a_limit(app: TestApp) {
    let log = LogBuffer::default();
    let state = App::open(&app.database_url, app.state.settings.clone(), log.logger(), Tracer::default()).await.unwrap();
    let connections = ConnectionLimits { per_address: 3, ..patient() };
    let listener = Listener { connections, body_timeouts: BodyTimeouts { total: LONG, idle: LONG }, ..ANY_PORT.into() };
    let platform = RunningApp::start_with_admin(state, listener, Some(ANY_PORT.into())).unwrap();
    let admin = platform.admin_address().unwrap();
    let metrics = async || fetch_url(&format!("http://{admin}/metrics")).await.text().await.unwrap();
    let mut uploads = Vec::new();
    for _ in 0..3 {
        uploads.push(begin_request(platform.address(), &app).await);
    }
    wait_until(async || metrics().await.contains("boxoffice_requests_in_flight 3\n")).await;

    for _ in 0..5 {
        read_to_end(TcpStream::connect(platform.address()).await.unwrap()).await;
    }

    let text = metrics().await;
    let has = |line: &str| text.contains(&format!("boxoffice_{line}\n"));
    assert!(has(r#"connections_closed_total{reason="address_limit"} 5"#) && has("connections 3"), "{text}");
    assert!(has(r#"connections_closed_total{reason="connection_limit"} 0"#), "{text}");
    assert!(has("requests_in_progress 0") && has("max_requests 1024"), "the bodies have not arrived: {text}");
    let lines = log.lines();
    let line = lines.iter().find(|line| line["msg"] == "too many connections are open; new ones are closed").unwrap();
    let facts = ["client", "setting", "suppressed"].map(|name| line[name].clone());
    assert_eq!(facts, [json!("127.0.0.1"), json!("--max-connections-per-address"), json!(0)]);
}
