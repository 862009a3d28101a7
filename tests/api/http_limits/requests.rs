//! The limit of requests in progress.

use std::sync::Arc;
use std::time::Duration;

use boxoffice::server::RunningApp;
use boxoffice_http::{ConnectionLimits, Listener, log};
use futures::StreamExt;
use futures::future::join;
use futures::stream::FuturesUnordered;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::{ANY_PORT, PASSWORD, Response, SecondServer, TestApp, card_payment, fetch_url, test_on};

async fn time(app: &TestApp, server: &SecondServer) -> Response {
    app.request("GET", "/time").at(server.address).send().await
}

/// Waits until the server refuses requests, or serves them again, and returns the last response.
async fn wait_for(app: &TestApp, server: &SecondServer, status: u16) -> Response {
    let waiting = async {
        loop {
            let response = time(app, server).await;
            if response.status == status {
                return response;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.expect("in time")
}

/// Starts a server for two requests at the same time.
async fn start_server(app: &TestApp) -> SecondServer {
    let connections = ConnectionLimits { requests: 2, ..ConnectionLimits::default() };
    let listener = Listener { connections, ..ANY_PORT.into() };
    app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await
}

#[test_on(sqlite, postgres)]
async fn requests_beyond_the_limit_are_refused_at_once(app: TestApp) {
    let server = start_server(&app).await;
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST /accounts HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nX-Client-Version: 3.0.0\r\n\
             Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{{",
            app.public_key
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        slow.push(connection);
    }
    assert_eq!(time(&app, &server).await.status, 200, "clients that are still sending don't count");
    let blocking = app.begin_with_lock("lock table accounts in exclusive mode").await;
    let sign_up = async |name: &str| {
        let body = json!({ "username": name, "email": format!("{name}@example.com"), "password": PASSWORD });
        loop {
            let response = app.request("POST", "/accounts").at(server.address).json(&body).send().await;
            // `wait_for` may have taken the second place with a request that the server serves.
            if response.status != 503 {
                return response;
            }
        }
    };

    let while_blocked = async {
        let refused = wait_for(&app, &server, 503).await;
        let wrong_key = app.request("GET", "/time").at(server.address).key("no key").send().await;
        let ready = app.request("GET", "/readyz").at(server.address).send().await;
        drop(blocking);
        (refused, wrong_key, ready)
    };
    let (ama, kofi, (refused, wrong_key, ready)) = tokio::join!(sign_up("ama"), sign_up("kofi"), while_blocked);

    assert_eq!((refused.code(), refused.header("retry-after")), ("server.unavailable", "1"), "{}", refused.body);
    assert_eq!(wrong_key.status, 503, "before anything else is checked");
    assert_eq!(ready.status, 200, "the server is alive");
    assert_eq!((ama.status, kofi.status), (201, 201), "{} {}", ama.body, kofi.body);
    assert_eq!(wait_for(&app, &server, 200).await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn requests_whose_keys_are_checked_are_limited(app: TestApp) {
    let server = start_server(&app).await;
    let mut blocking = app.state.db.begin().await.unwrap();
    if !blocking.is_postgres() {
        // Nothing blocks a reader of SQLite.
        return;
    }
    blocking.query("lock table api_keys in access exclusive mode").execute().await.unwrap();
    let with_unknown_key = async |number: usize| {
        let response = app.request("GET", "/time").at(server.address).key(&format!("unknown {number}")).send().await;
        (response.status, response.body.to_string())
    };
    // The keys of 16 are checked at the same time.
    let mut requests: FuturesUnordered<_> = (0..17).map(with_unknown_key).collect();

    let (status, body) = requests.next().await.unwrap();
    drop(blocking);
    let others: Vec<_> = requests.map(|(status, _)| status).collect().await;

    assert!(status == 503 && body.contains("The server is busy"), "{status} {body}");
    assert_eq!(others, [403; 16]);
}

#[test_on(sqlite, postgres)]
async fn metrics_show_requests_in_progress(app: TestApp) {
    let (ama, _, order) = app.create_order(2).await;
    let connections = ConnectionLimits { requests: 7, ..ConnectionLimits::default() };
    let listener = Listener { connections, ..ANY_PORT.into() };
    let platform = RunningApp::start_with_admin(Arc::clone(&app.state), listener, Some(ANY_PORT.into())).unwrap();
    let admin = platform.admin_address().unwrap();
    let metrics = async || fetch_url(&format!("http://{admin}/metrics")).await.text().await.unwrap();
    app.gateway.block();
    let pay = app.request("POST", &format!("{order}/payments")).at(platform.address()).key(&ama.key);
    let pay = pay.json(&card_payment()).send();
    let observe = async {
        app.gateway.wait_for_charges(1).await;
        let while_blocked = metrics().await;
        app.gateway.unblock();
        while_blocked
    };

    let (paid, while_blocked) = join(pay, observe).await;

    assert_eq!(paid.status, 201, "{}", paid.body);
    let has = |text: &str, line: &str| text.contains(&format!("boxoffice_{line}\n"));
    assert!(has(&while_blocked, "requests_in_progress 1") && has(&while_blocked, "max_requests 7"), "{while_blocked}");
    assert!(has(&metrics().await, "requests_in_progress 0"));
}
