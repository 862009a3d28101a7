//! A reverse proxy between everyone in a test and the server: it changes nothing, and holds every answer to the contract.
//! A failure inside, which the contract describes for every operation, is wrong all the same where the test expects none.
//!
//! Whoever asks, the generated client, plain HTTP or a browser, is so held alike; the client alone would throw away what it
//! doesn't know.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use libtest_mimic::Completion;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::contract::{CONTRACT, judge};
use super::coverage;
use super::notes::Notes;

/// A connection that has been idle for longer is not used again: the server may be closing it at that moment, and the request
/// be lost.
const FRESH: Duration = Duration::from_secs(1);

/// The way to a server of one client's connection, kept open as long as that is.
struct Way {
    server: SocketAddr,
    /// And when it was used last.
    connection: Mutex<Option<(SendRequest<Incoming>, Instant)>>,
    notes: Notes,
}

/// Starts a proxy before a server, which notes what is wrong; gives its address.
pub async fn before(server: SocketAddr, notes: Notes) -> io::Result<SocketAddr> {
    before_all(vec![server], notes).await
}

/// The same before several servers: one request goes to one of them, the next to the next, whoever sends it.
pub async fn before_all(servers: Vec<SocketAddr>, notes: Notes) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let turn = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let way = |&server: &_| Way { server, connection: Mutex::default(), notes: notes.clone() };
            tokio::spawn(serve(client, servers.iter().map(way).collect(), Arc::clone(&turn)));
        }
    });
    Ok(address)
}

async fn serve(client: TcpStream, ways: Vec<Way>, turn: Arc<AtomicUsize>) -> anyhow::Result<()> {
    client.set_nodelay(true)?;
    let ways = Arc::new(ways);
    let pass = service_fn(move |request| {
        let (ways, next) = (Arc::clone(&ways), turn.fetch_add(1, Ordering::Relaxed));
        async move { ways[next % ways.len()].pass(request).await }
    });
    hyper::server::conn::http1::Builder::new().preserve_header_case(true).serve_connection(TokioIo::new(client), pass).await?;
    Ok(())
}

impl Way {
    /// Passes a request on and its answer back. An error ends the client's connection, as the server ended ours.
    async fn pass(&self, request: Request<Incoming>) -> anyhow::Result<Response<Full<Bytes>>> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        // Until the answer is whole: a client that doesn't wait for one answer can't have the next.
        let mut connection = self.connection.lock().await;
        let mut server = match connection.take() {
            Some((server, used)) if used.elapsed() < FRESH => server,
            _ => self.connect().await?,
        };
        if server.ready().await.is_err() {
            server = self.connect().await?;
        }
        let (head, body) = server.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        *connection = Some((server, Instant::now()));
        let judged = judge(&CONTRACT, (method.as_str(), &path), head.status.as_u16(), &head.headers, &body);
        if let Some((operation, wrong)) = judged {
            if wrong.is_empty() {
                coverage::saw(operation, head.status.as_u16());
            }
            self.notes.answered_wrong(wrong);
        }
        if head.status == StatusCode::INTERNAL_SERVER_ERROR {
            self.notes.failed(|| format!("500 ({method} {path})"));
        }
        Ok(Response::from_parts(head, Full::new(body)))
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Incoming>> {
        let server = TcpStream::connect(self.server).await?;
        server.set_nodelay(true)?;
        let builder = &mut hyper::client::conn::http1::Builder::new();
        let (sender, connection) = builder.preserve_header_case(true).handshake(TokioIo::new(server)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

crate::plain_tests![async
    what_passes_is_not_changed,
    a_wrong_answer_fails_a_test_that_passed,
    a_failure_fails_a_test_that_does_not_expect_it,
];

/// A server that answers these bytes to a request of these; gives the proxy before it, and what the server was sent.
async fn server_of(request: &[u8], answer: &'static [u8], notes: &Notes) -> (SocketAddr, JoinHandle<Vec<u8>>) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = before(server.local_addr().unwrap(), notes.clone()).await.unwrap();
    let mut received = vec![0; request.len()];
    let received = tokio::spawn(async move {
        let (mut proxy, _) = server.accept().await.unwrap();
        proxy.read_exact(&mut received).await.unwrap();
        proxy.write_all(answer).await.unwrap();
        proxy.read_to_end(&mut received).await.unwrap();
        received
    });
    (address, received)
}

/// What is answered to these bytes.
async fn send(address: SocketAddr, request: &[u8], length: usize) -> Vec<u8> {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(request).await.unwrap();
    let mut answer = vec![0; length];
    client.read_exact(&mut answer).await.unwrap();
    answer
}

async fn what_passes_is_not_changed() {
    let request = b"PUT /v3/zones/%31?x=%20&x=+ HTTP/1.1\r\nhOST: boxoffice.example\r\nX-Odd: A\r\nx-twice: 1\r\nx-twice: 2\r\n\
        Content-Length: 4\r\n\r\n\0\xffhi";
    let answer =
        b"HTTP/1.1 418 Short and stout\r\ndate: Sat, 21 Nov 2026 00:00:00 GMT\r\nX-Odd: B\r\nx-twice: 1\r\nx-twice: 2\r\n\
        Content-Length: 3\r\n\r\n\xfe\0!";
    let (address, received) = server_of(request, answer, &Notes::default()).await;

    let answered = send(address, request, answer.len()).await;

    assert_eq!(answered.escape_ascii().to_string(), answer.escape_ascii().to_string());
    assert_eq!(received.await.unwrap().escape_ascii().to_string(), request.escape_ascii().to_string());
}

async fn a_wrong_answer_fails_a_test_that_passed() {
    let notes = Notes::default();
    let request = b"GET /time HTTP/1.1\r\nHost: x\r\n\r\n";
    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"utc\":\"1\"}";
    let (address, _) = server_of(request, answer, &notes).await;
    assert!(notes.outcome(Ok(Completion::Completed)).is_ok());

    send(address, request, answer.len()).await;

    let failed = notes.outcome(Ok(Completion::Completed)).err().unwrap();
    let told = failed.message().unwrap();
    assert!(told.starts_with("wrong answer: time_get 200 body/utc: "), "{told}");
}

async fn a_failure_fails_a_test_that_does_not_expect_it() {
    let (unprepared, prepared) = (Notes::default(), Notes::default());
    prepared.expect_failures();
    let request = b"GET /time HTTP/1.1\r\nHost: x\r\n\r\n";
    let answer = b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: 37\r\n\r\n\
        {\"message\":\"x\",\"code\":\"server.error\"}";
    for notes in [&unprepared, &prepared] {
        let (address, _) = server_of(request, answer, notes).await;
        send(address, request, answer.len()).await;
    }

    let failed = unprepared.outcome(Ok(Completion::Completed)).err().unwrap();
    assert_eq!(failed.message(), Some("wrong answer: 500 (GET /time) is a failure that the test doesn't expect"));
    assert!(prepared.outcome(Ok(Completion::Completed)).is_ok());
}
