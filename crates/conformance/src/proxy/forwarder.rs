//! The forwarding part of the proxy: it passes requests and responses on, and copies them into the queue of the validator.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use boxoffice_openapi::response::{essence, is_json};
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyDataStream, BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::http_client::{IDLE_TIMEOUT, ReceivedResponse};

/// Largest body that is validated, in bytes. A larger one is only passed on.
pub const MAX_VALIDATED_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of connections. Further clients wait.
const MAX_CONNECTIONS: usize = 256;
/// Timeout of a request's head, and of an idle connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a connection to the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout between two parts of a response.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Time in which requests in progress may end after a stop.
const DRAIN_PERIOD: Duration = Duration::from_secs(5);
/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Headers that belong to one connection (RFC 9110, section 7.6.1), beside those that `Connection` names.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type ProxyBody = UnsyncBoxBody<Bytes, BoxError>;

/// A request that was forwarded.
pub struct Exchange {
    /// The head of the request, as the client sent it, with the path that is sent to the target.
    pub head: Parts,
    /// The body of the request; `None` if it is too large to be validated.
    pub body: Option<Bytes>,
    /// The response, or the reason why there is none.
    pub response: Result<ReceivedResponse, String>,
    /// False if the body of the response is not in `response`, because it is too large or has no known end.
    pub has_response_body: bool,
}

/// A running proxy. When it is dropped, it accepts no more connections, and the queue ends with the requests in progress, after five
/// seconds at the latest.
pub struct Forwarder {
    address: SocketAddr,
    /// Dropped to stop it.
    _stop: oneshot::Sender<Infallible>,
}

/// The state that all connections share.
struct Forwarding {
    client: Client,
    base_url: String,
    exchanges: mpsc::Sender<Exchange>,
}

impl Forwarder {
    /// Starts to forward requests to the server at `base_url`. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// Fails if the proxy can't listen on the address.
    pub async fn start(address: SocketAddr, base_url: &str, exchanges: mpsc::Sender<Exchange>) -> anyhow::Result<Self> {
        let socket = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
        let address = socket.local_addr()?;
        let client = Client::builder().redirect(Policy::none()).no_proxy().connect_timeout(CONNECT_TIMEOUT);
        let client = client.read_timeout(READ_TIMEOUT).pool_idle_timeout(IDLE_TIMEOUT).build()?;
        let forwarding = Arc::new(Forwarding { client, base_url: base_url.to_owned(), exchanges });
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(accept(socket, forwarding, stopped));
        Ok(Self { address, _stop: stop })
    }

    /// Returns the address that it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts connections until the sender of `stopped` is dropped.
async fn accept(socket: TcpListener, forwarding: Arc<Forwarding>, mut stopped: oneshot::Receiver<Infallible>) {
    let (graceful, permits) = (GracefulShutdown::new(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    // Ends the tasks of the connections that are still open after the drain period.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = async {
                // The semaphore is never closed.
                let permit = Arc::clone(&permits).acquire_owned().await;
                Ok::<_, io::Error>((socket.accept().await?.0, permit))
            } => accepted,
            _ = &mut stopped => break,
        };
        while connections.try_join_next().is_some() {}
        let Ok((stream, permit)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let connection = serve(stream, Arc::clone(&forwarding), &graceful);
        connections.spawn(async move {
            let _permit = permit;
            connection.await;
        });
    }
    drop((socket, forwarding));
    let _too_slow = timeout(DRAIN_PERIOD, graceful.shutdown()).await;
}

/// Serves a connection.
fn serve(stream: TcpStream, forwarding: Arc<Forwarding>, graceful: &GracefulShutdown) -> impl Future<Output = ()> + use<> {
    let service = service_fn(move |request| {
        let forwarding = Arc::clone(&forwarding);
        async move { Ok::<_, Infallible>(forwarding.forward(request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
    async move {
        // An error concerns only the client.
        let _closed = connection.await;
    }
}

impl Forwarding {
    /// Forwards a request, and returns the response. An exchange is validated once its response has arrived.
    async fn forward(&self, request: Request<Incoming>) -> Response<ProxyBody> {
        let (mut head, body) = request.into_parts();
        head.uri = resolve_path(&head.uri);
        let mut stream = BodyDataStream::new(body).map_err(BoxError::from).boxed();
        let (body, rest) = match buffer(&mut stream).await {
            Ok(BufferedBody::Complete(body)) => (Some(body.clone()), reqwest::Body::from(body)),
            Ok(BufferedBody::Beginning(beginning)) => {
                (None, reqwest::Body::wrap_stream(stream::iter([Ok(beginning)]).chain(stream)))
            }
            // The client has closed the connection, or its body is malformed.
            Err(error) => return error_response(StatusCode::BAD_REQUEST, &format!("The request's body can't be read: {error}")),
        };
        let sent = self.send(&head, rest, body.is_none()).await;
        let mut exchange = Exchange { head, body, response: Err(String::new()), has_response_body: false };
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                let status = if error.is_timeout() { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::BAD_GATEWAY };
                let reason = format!("{:#}", anyhow::Error::from(error.without_url()));
                exchange.response = Err(reason.clone());
                self.finish(exchange).await;
                return error_response(status, &format!("The target does not respond: {reason}"));
            }
        };
        let (status, mut headers) = (response.status(), response.headers().clone());
        let mut received = ReceivedResponse { status: status.as_u16(), headers: headers.clone(), body: Bytes::new() };
        let is_buffered = is_buffered(&headers, response.content_length());
        let mut stream = response.bytes_stream().map_err(BoxError::from).boxed();
        let buffered = if is_buffered { buffer(&mut stream).await } else { Ok(BufferedBody::Beginning(Bytes::new())) };
        remove_hop_by_hop(&mut headers);
        let body: ProxyBody = match buffered {
            Ok(BufferedBody::Complete(body)) => {
                received.body = body.clone();
                exchange.has_response_body = true;
                exchange.response = Ok(received);
                Full::new(body).map_err(|never| match never {}).boxed_unsync()
            }
            Ok(BufferedBody::Beginning(beginning)) => {
                exchange.response = Ok(received);
                StreamBody::new(stream::iter([Ok(beginning)]).chain(stream).map_ok(Frame::data)).boxed_unsync()
            }
            Err(error) => {
                let reason = format!("the response is incomplete: {error}");
                exchange.response = Err(reason.clone());
                self.finish(exchange).await;
                return error_response(StatusCode::BAD_GATEWAY, &reason);
            }
        };
        self.finish(exchange).await;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    /// Sends a request to the target.
    async fn send(&self, head: &Parts, body: reqwest::Body, is_streamed: bool) -> reqwest::Result<reqwest::Response> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut headers = head.headers.clone();
        remove_hop_by_hop(&mut headers);
        // A compressed response could not be validated. Without the header, the server may choose any coding (RFC 9110, section 12.5.3).
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // These are set for the target.
        for name in [header::EXPECT, header::HOST] {
            headers.remove(name);
        }
        if !is_streamed {
            headers.remove(header::CONTENT_LENGTH);
        }
        headers.append(header::VIA, HeaderValue::from_static("1.1 boxoffice-proxy"));
        let mut request = self.client.request(head.method.clone(), format!("{}{path}", self.base_url)).headers(headers);
        let has_body = head.headers.contains_key(header::CONTENT_LENGTH) || head.headers.contains_key(header::TRANSFER_ENCODING);
        if has_body {
            request = request.body(body);
        }
        request.send().await
    }

    /// Passes an exchange to the validator. Waits if the queue is full.
    async fn finish(&self, exchange: Exchange) {
        // The validator has ended only if the proxy stops.
        let _stopped = self.exchanges.send(exchange).await;
    }
}

/// Returns a URI whose path is sent unchanged: `.` and `..` are resolved, and other characters than those of a URL are percent-encoded.
fn resolve_path(uri: &Uri) -> Uri {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let url = Url::parse(&format!("http://localhost{path}")).ok().filter(|_| path.starts_with('/'));
    let resolved = url.and_then(|url| {
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{query}", url.path()).parse().ok()
    });
    resolved.unwrap_or_else(|| uri.clone())
}

/// A body that was read up to a limit.
enum BufferedBody {
    Complete(Bytes),
    /// More than [`MAX_VALIDATED_BYTES`]. The rest was not read.
    Beginning(Bytes),
}

/// Reads a body into memory, at most [`MAX_VALIDATED_BYTES`] and one part.
async fn buffer(body: &mut (impl Stream<Item = Result<Bytes, BoxError>> + Unpin)) -> Result<BufferedBody, BoxError> {
    let mut buffer = BytesMut::new();
    while let Some(part) = body.next().await {
        buffer.extend_from_slice(&part?);
        if buffer.len() > MAX_VALIDATED_BYTES {
            return Ok(BufferedBody::Beginning(buffer.freeze()));
        }
    }
    Ok(BufferedBody::Complete(buffer.freeze()))
}

/// Returns whether a response is read before it is passed on: JSON, and what is known to be small. The others may have no end, such as
/// a stream of events.
fn is_buffered(headers: &HeaderMap, length: Option<u64>) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    is_json(essence(media_type)) || length.is_some_and(|length| length <= MAX_VALIDATED_BYTES as u64)
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<_> =
        named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse::<HeaderName>().ok()).collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Returns an error of the proxy itself.
fn error_response(status: StatusCode, message: &str) -> Response<ProxyBody> {
    let body = json!({ "message": message, "code": "proxy.failed" }).to_string();
    let mut response = Response::new(Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
