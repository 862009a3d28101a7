//! The proxy of the test suite itself: it forwards bytes unchanged, and records wrong responses.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::support::{TestFailures, start_proxy};

/// Starts a server that sends `response` after a request as long as `request`, with a proxy in front of it. Returns the proxy's
/// address and the bytes that the server receives.
async fn start_server(request: &[u8], response: &'static [u8], failures: &TestFailures) -> (SocketAddr, JoinHandle<Vec<u8>>) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = start_proxy(server.local_addr().unwrap(), failures.clone()).await.unwrap();
    let mut received = vec![0; request.len()];
    let received = tokio::spawn(async move {
        let (mut proxy, _) = server.accept().await.unwrap();
        proxy.read_exact(&mut received).await.unwrap();
        proxy.write_all(response).await.unwrap();
        proxy.read_to_end(&mut received).await.unwrap();
        received
    });
    (address, received)
}

/// Sends these bytes, and returns the first `length` bytes of the response.
async fn send(address: SocketAddr, request: &[u8], length: usize) -> Vec<u8> {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(request).await.unwrap();
    let mut response = vec![0; length];
    client.read_exact(&mut response).await.unwrap();
    response
}

#[tokio::test]
async fn forwards_bytes_unchanged() {
    let request = b"PUT /v3/zones/%31?x=%20&x=+ HTTP/1.1\r\nhOST: boxoffice.example\r\nX-Odd: A\r\nx-twice: 1\r\nx-twice: 2\r\n\
        Content-Length: 4\r\n\r\n\0\xffhi";
    let response =
        b"HTTP/1.1 418 Short and stout\r\ndate: Sat, 21 Nov 2026 00:00:00 GMT\r\nX-Odd: B\r\nx-twice: 1\r\nx-twice: 2\r\n\
        Content-Length: 3\r\n\r\n\xfe\0!";
    let (address, received) = start_server(request, response, &TestFailures::default()).await;

    let forwarded = send(address, request, response.len()).await;

    assert_eq!(forwarded.escape_ascii().to_string(), response.escape_ascii().to_string());
    assert_eq!(received.await.unwrap().escape_ascii().to_string(), request.escape_ascii().to_string());
}

#[tokio::test]
async fn records_response_that_violates_contract() {
    let failures = TestFailures::default();
    let request = b"GET /time HTTP/1.1\r\nHost: x\r\n\r\n";
    let response = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"utc\":\"1\"}";
    let (address, _) = start_server(request, response, &failures).await;
    assert_eq!(failures.list(), [""; 0]);

    send(address, request, response.len()).await;

    let [body, header] = failures.list().try_into().unwrap();
    assert!(body.starts_with("time_get 200 body/utc: "), "{body}");
    assert_eq!(header, "time_get 200 lacks the header ETag (GET /time)");
}

#[tokio::test]
async fn records_unexpected_server_error() {
    let (failures, allowing) = (TestFailures::default(), TestFailures::default());
    allowing.allow_server_errors();
    let request = b"GET /time HTTP/1.1\r\nHost: x\r\n\r\n";
    let response = b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: 37\r\n\r\n\
        {\"message\":\"x\",\"code\":\"server.error\"}";
    for failures in [&failures, &allowing] {
        let (address, _) = start_server(request, response, failures).await;
        send(address, request, response.len()).await;
    }

    assert_eq!(failures.list(), ["500 (GET /time) in a test that doesn't call `allow_server_errors`"]);
    assert_eq!(allowing.list(), [""; 0]);
}

#[tokio::test]
#[should_panic(expected = "wrong responses:\ntime_get 200")]
async fn recorded_failure_fails_test_with_passing_body() {
    let failures = TestFailures::default();
    let _check = crate::support::FailureCheck(failures.clone());

    failures.record(["time_get 200 is wrong".to_owned()]);
}
