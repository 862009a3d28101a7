//! The HTTP server: accepts connections, bounds them, and passes their requests to the dispatcher.
//!
//! hyper serves the connections instead of dropshot, whose server has no limits of connections and no way to change its error
//! bodies.

use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::num::NonZeroU64;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use boxoffice_openapi::Contract;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful;
use slog::{Logger, warn};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::access_log::AccessLog;
use crate::body_memory::BodyMemoryLimits;
use crate::client_ip::TrustedProxies;
use crate::connection_io::{ConnectionService, CountingIo};
use crate::connection_limits::{CloseReason, ConnectionLimits};
use crate::connections::{ConnectionGuard, Connections};
use crate::dispatcher::Dispatcher;
use crate::log::Throttle;
use crate::request_body::{BodyReader, BodyTimeouts};
use crate::request_handler::RequestHandler;
use crate::request_limit::RequestLimit;
use crate::shutdown::{GracefulShutdown, MIN_DRAIN_PERIOD};
use crate::tls::Certificate;

/// Pause after a connection could not be accepted, for example because there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time in which idle connections close by themselves when the server stops. A client of HTTP/2 answers a PING meanwhile.
const IDLE_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of requests in progress on one HTTP/2 connection.
const MAX_STREAMS: u32 = 100;
/// Bytes of request bodies that an HTTP/2 client may send on a stream before the server reads them.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The same on a connection.
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// Bytes of a request that HTTP/1.1 buffers on a connection: more than the largest head.
const CONNECTION_BUFFER: usize = 96 * 1024;
/// Bytes of a response that HTTP/2 buffers for one stream.
const STREAM_BUFFER: usize = 64 * 1024;

/// Address, certificate, limits and timeouts of a server.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The address.
    pub address: SocketAddr,
    /// An open socket of a service manager, which is used in place of the address. Connections wait in it while the server restarts.
    pub socket: Option<Arc<StdTcpListener>>,
    /// The certificate for TLS; without one, the server speaks plain HTTP.
    pub certificate: Option<Arc<Certificate>>,
    /// Timeouts of request bodies.
    pub body_timeouts: BodyTimeouts,
    /// Limits of the memory for request bodies.
    pub body_memory: BodyMemoryLimits,
    /// Limits of connections.
    pub connections: ConnectionLimits,
    /// Proxies that forward the address of a client and the identifier of a request. Their connections are not limited.
    pub trusted_proxies: TrustedProxies,
    /// One in this many successful requests has a line in the log at level `info`, as has each other request. `None`: all at level
    /// `debug`.
    pub access_log_sample: Option<NonZeroU64>,
    /// Time in which requests are still served after a stop begins, at least 250 ms.
    pub drain_period: Duration,
}

impl From<SocketAddr> for Listener {
    /// Plain HTTP with the default limits, no trusted proxies, and an access log at level `debug`.
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            socket: None,
            certificate: None,
            body_timeouts: BodyTimeouts::default(),
            body_memory: BodyMemoryLimits::default(),
            connections: ConnectionLimits::default(),
            trusted_proxies: TrustedProxies::default(),
            access_log_sample: None,
            drain_period: MIN_DRAIN_PERIOD,
        }
    }
}

/// A running server. It stops accepting connections when this is dropped.
#[derive(Debug)]
pub struct ServerHandle {
    address: SocketAddr,
    shutdown: Arc<GracefulShutdown>,
    connections: Arc<Connections>,
    requests: Arc<RequestLimit>,
    certificate: Option<Arc<Certificate>>,
    /// Dropped to accept no more connections.
    accepting: oneshot::Sender<()>,
    /// Dropped to stop the server.
    stop: oneshot::Sender<()>,
    /// True if the socket remains open after the server has stopped.
    is_socket_shared: bool,
    task: JoinHandle<()>,
}

impl ServerHandle {
    /// The address that it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counter of requests in flight.
    pub fn shutdown_state(&self) -> &Arc<GracefulShutdown> {
        &self.shutdown
    }

    /// The open connections.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// The requests in progress.
    pub fn requests(&self) -> &Arc<RequestLimit> {
        &self.requests
    }

    /// The certificate, if the server has one.
    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.as_ref()
    }

    /// Rejects new requests, finishes those in flight and stops the server.
    ///
    /// The socket is closed last, so that clients receive a response as long as they can connect. From the socket of a service
    /// manager no connection is accepted any more: it waits for the next server.
    ///
    /// # Errors
    /// Returns an error if the server panicked.
    pub async fn stop(self) -> anyhow::Result<()> {
        let accepting = (!self.is_socket_shared).then_some(self.accepting);
        self.shutdown.drain().await;
        drop(accepting);
        drop(self.stop);
        self.task.await.context("the server failed")
    }
}

/// Starts a server that dispatches requests to a handler. Must be called in a tokio runtime.
///
/// # Errors
/// Returns an error if the server cannot listen on the address.
pub fn serve<H: RequestHandler>(
    contract: Arc<Contract>,
    handler: H,
    listener: impl Into<Listener>,
    log: &Logger,
) -> anyhow::Result<ServerHandle> {
    let listener = listener.into();
    let socket = open_socket(&listener).with_context(|| format!("cannot listen on {}", listener.address))?;
    let address = socket.local_addr()?;
    let shutdown = Arc::new(GracefulShutdown::new(listener.drain_period));
    let requests = Arc::new(RequestLimit::new(listener.connections.requests, log.clone()));
    let dispatcher = Dispatcher {
        contract,
        tracer: handler.tracer(),
        handler,
        shutdown: Arc::clone(&shutdown),
        bodies: BodyReader::new(listener.body_timeouts, listener.body_memory),
        requests: Arc::clone(&requests),
        trusted_proxies: listener.trusted_proxies.clone(),
        is_tls: listener.certificate.is_some(),
        log: log.clone(),
        access_log: AccessLog::new(listener.access_log_sample),
        outage: Throttle::default(),
    };
    let is_socket_shared = listener.socket.is_some();
    let certificate = listener.certificate;
    let tls = certificate.clone().map(Certificate::server_config).transpose()?;
    let connections = Connections::new(listener.connections, listener.trusted_proxies);
    let acceptor = Acceptor {
        http: http_builder(connections.limits()),
        dispatcher: Arc::new(dispatcher),
        tls: tls.map(|config| TlsAcceptor::from(Arc::new(config))),
        connections: Arc::clone(&connections),
        log: log.clone(),
    };
    let (accepting, accepting_stopped) = oneshot::channel();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(acceptor.run(socket, accepting_stopped, stopped));
    Ok(ServerHandle { address, shutdown, connections, requests, certificate, accepting, stop, is_socket_shared, task })
}

fn open_socket(listener: &Listener) -> io::Result<TcpListener> {
    let socket = match &listener.socket {
        Some(socket) => socket.try_clone()?,
        None => StdTcpListener::bind(listener.address)?,
    };
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

/// Returns the settings of HTTP/1.1 and HTTP/2.
fn http_builder(limits: &ConnectionLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // `Connection::wait_for_end` has the timeout of the first head. This one includes the time between two requests.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.idle_timeout);
    // Always in parts, so that hyper doesn't copy responses that wait to be sent.
    builder.http1().writev(true).max_buf_size(CONNECTION_BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.idle_timeout)
        .keep_alive_timeout(limits.head_timeout)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(STREAM_BUFFER);
    builder
}

/// Accepts connections and serves them.
struct Acceptor<H> {
    http: auto::Builder<TokioExecutor>,
    dispatcher: Arc<Dispatcher<H>>,
    tls: Option<TlsAcceptor>,
    connections: Arc<Connections>,
    log: Logger,
}

impl<H: RequestHandler> Acceptor<H> {
    /// Accepts connections until the sender of `accepting` is dropped. When that of `stopped` is, too, waits for those with requests
    /// in progress.
    async fn run(self, socket: TcpListener, mut accepting: oneshot::Receiver<()>, stopped: oneshot::Receiver<()>) {
        let graceful = graceful::GracefulShutdown::new();
        let (acceptor, errors, refusals) = (Arc::new(self), Throttle::default(), Throttle::default());
        loop {
            let accepted = tokio::select! {
                biased;
                _ = &mut accepting => break,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => match acceptor.connections.open(peer.ip()) {
                    Ok(guard) => {
                        tokio::spawn(Arc::clone(&acceptor).serve(stream, peer, guard, graceful.watcher()));
                    }
                    // Dropping the stream closes it.
                    Err(reason) => {
                        if let Some(suppressed) = refusals.line() {
                            let is_of_address = reason == CloseReason::AddressLimit;
                            let setting = if is_of_address { "--max-connections-per-address" } else { "--max-connections" };
                            warn!(acceptor.log, "too many connections are open; new ones are closed";
                                "client" => %peer.ip().to_canonical(), "setting" => setting, "suppressed" => suppressed);
                        }
                    }
                },
                Err(error) => {
                    if let Some(suppressed) = errors.line() {
                        warn!(acceptor.log, "cannot accept a connection"; "error" => %error, "suppressed" => suppressed);
                    }
                    acceptor.connections.evict_idle();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(socket);
        let _dropped = stopped.await;
        // Idle connections close by themselves, those of HTTP/2 with GOAWAY.
        let mut closed = pin!(graceful.shutdown());
        if timeout(IDLE_CLOSE_TIMEOUT, &mut closed).await.is_err() {
            // The others have an incomplete handshake or head, or their client does not answer.
            acceptor.connections.evict_all_idle();
            closed.await;
        }
    }

    /// Serves a connection until it ends, is idle for too long or makes no progress.
    async fn serve(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, guard: ConnectionGuard, watcher: graceful::Watcher) {
        let end = guard.wait_for_end();
        let requests = async {
            // Without it, the last part of a response may wait for the client's acknowledgment of the part before.
            let _best_effort = stream.set_nodelay(true);
            let io = CountingIo { socket: stream, connection: Arc::clone(&guard.connection) };
            match &self.tls {
                None => self.serve_requests(io, peer, &guard, watcher).await,
                Some(tls) => {
                    // A failed handshake concerns only the client.
                    let Ok(io) = tls.accept(io).await else { return };
                    self.serve_requests(io, peer, &guard, watcher).await;
                }
            }
        };
        tokio::select! {
            biased;
            () = requests => {}
            () = end => {}
        }
    }

    async fn serve_requests<T>(&self, io: T, peer: SocketAddr, guard: &ConnectionGuard, watcher: graceful::Watcher)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = ConnectionService {
            dispatcher: Arc::clone(&self.dispatcher),
            peer: peer.ip(),
            connection: Arc::clone(&guard.connection),
            connections: Arc::clone(&self.connections),
        };
        // An error concerns only the client.
        let _closed = watcher.watch(self.http.serve_connection(TokioIo::new(io), service).into_owned()).await;
    }
}
