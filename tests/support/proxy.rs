//! A reverse proxy in front of each test server. It changes nothing, and checks every response against the contract.
//!
//! The proxy sees the responses to all clients of a test, and more of them than the generated client, which ignores unknown
//! properties. A 500 response, which every operation declares, is recorded as a failure too, unless the test allows it.

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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::coverage;
use super::failures::TestFailures;
use super::operations::CLOSED_CONTRACT;

/// A connection that was idle for longer is not reused: the server may be closing it at that moment, and the request be lost.
const MAX_IDLE: Duration = Duration::from_secs(1);

/// The connection to a server on behalf of one client connection.
struct Upstream {
    server: SocketAddr,
    /// The open connection and the time of its last use.
    connection: Mutex<Option<(SendRequest<Incoming>, Instant)>>,
    failures: TestFailures,
}

/// Starts a proxy in front of a server, and returns its address.
pub async fn start_proxy(server: SocketAddr, failures: TestFailures) -> io::Result<SocketAddr> {
    start_balancing_proxy(vec![server], failures).await
}

/// Starts a proxy in front of several servers, which receive the requests in turn, and returns its address.
pub async fn start_balancing_proxy(servers: Vec<SocketAddr>, failures: TestFailures) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let next = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let upstream = |&server: &_| Upstream { server, connection: Mutex::default(), failures: failures.clone() };
            tokio::spawn(serve(client, servers.iter().map(upstream).collect(), Arc::clone(&next)));
        }
    });
    Ok(address)
}

async fn serve(client: TcpStream, upstreams: Vec<Upstream>, next: Arc<AtomicUsize>) -> anyhow::Result<()> {
    client.set_nodelay(true)?;
    let upstreams = Arc::new(upstreams);
    let forward = service_fn(move |request| {
        let (upstreams, index) = (Arc::clone(&upstreams), next.fetch_add(1, Ordering::Relaxed));
        async move { upstreams[index % upstreams.len()].forward(request).await }
    });
    let client = TokioIo::new(client);
    hyper::server::conn::http1::Builder::new().preserve_header_case(true).serve_connection(client, forward).await?;
    Ok(())
}

impl Upstream {
    /// Forwards a request and its response. An error closes the client's connection, as the server closed ours.
    async fn forward(&self, request: Request<Incoming>) -> anyhow::Result<Response<Full<Bytes>>> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        // Locked until the response is complete: requests of one connection are served one after the other.
        let mut connection = self.connection.lock().await;
        let mut server = match connection.take() {
            Some((server, used)) if used.elapsed() < MAX_IDLE => server,
            _ => self.connect().await?,
        };
        if server.ready().await.is_err() {
            server = self.connect().await?;
        }
        let (head, body) = server.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        *connection = Some((server, Instant::now()));
        self.check(method.as_str(), &path, head.status, &head.headers, &body);
        Ok(Response::from_parts(head, Full::new(body)))
    }

    /// Records what is wrong with a response, or that its status was seen.
    fn check(&self, method: &str, path: &str, status: StatusCode, headers: &http::HeaderMap, body: &[u8]) {
        let (status, is_server_error) = (status.as_u16(), status == StatusCode::INTERNAL_SERVER_ERROR);
        if let Some((operation, violations)) = CLOSED_CONTRACT.validate_response(method, path, status, headers, body) {
            if violations.is_empty() {
                coverage::record(&operation.id, status);
            }
            let violations = violations.into_iter().map(|violation| violation.text);
            self.failures.record(violations.map(|text| format!("{} {status} {text} ({method} {path})", operation.id)));
        }
        if is_server_error {
            self.failures.record_server_error(&format!("{method} {path}"));
        }
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
