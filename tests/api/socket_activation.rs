//! A socket of a service manager, in which connections wait while the server restarts.

use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;

use boxoffice_http::{Listener, log};
use futures::poll;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{ANY_PORT, TestApp, fetch_url, test_on};

#[test_on(sqlite, postgres)]
async fn connection_during_stop_waits_for_next_server(app: TestApp) {
    let socket = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
    let start = async || {
        let listener = Listener { socket: Some(Arc::clone(&socket)), ..ANY_PORT.into() };
        app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await
    };
    let first = start().await;
    assert_eq!(fetch_url(&format!("http://{}/healthz", first.server)).await.status().as_u16(), 200);

    let mut stopping = pin!(first.stop());
    assert!(poll!(&mut stopping).is_pending());
    let mut client = TcpStream::connect(socket.local_addr().unwrap()).await.unwrap();
    client.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    stopping.await;
    let mut early = [0; 1];
    let is_waiting = client.try_read(&mut early).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    let _second = start().await;
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();

    assert!(is_waiting, "the server that stops has answered");
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
}
