//! The HTTP server: dropshot with one endpoint that passes every request to the dispatcher.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use boxoffice_openapi::Contract;
use dropshot::{
    ApiDescription, ApiEndpoint, ApiEndpointVersions, ConfigDropshot, ConfigTls, HandlerTaskMode, HttpError, HttpServer, Path,
    RawRequest, RequestContext, ServerBuilder, ServerContext, SharedExtractor, VersionPolicy,
};
use futures::FutureExt;
use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use slog::Logger;

use crate::body_memory::BodyMemoryLimits;
use crate::detach_on_drop::DetachOnDrop;
use crate::dispatcher::{Dispatcher, RequestHandler};
use crate::log;
use crate::request_body::{BodyReader, BodyTimeouts};
use crate::request_head::{self, UnroutableRequestFilter};
use crate::shutdown::GracefulShutdown;
use crate::tls::Certificate;

/// Address, certificate, limits and timeouts of a server.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The address.
    pub address: SocketAddr,
    /// The certificate for TLS; without one, the server speaks plain HTTP.
    pub certificate: Option<Arc<Certificate>>,
    /// Timeouts of request bodies.
    pub body_timeouts: BodyTimeouts,
    /// Limits of the memory for request bodies.
    pub body_memory: BodyMemoryLimits,
}

impl From<SocketAddr> for Listener {
    /// Plain HTTP with the default limits.
    fn from(address: SocketAddr) -> Self {
        Self { address, certificate: None, body_timeouts: BodyTimeouts::default(), body_memory: BodyMemoryLimits::default() }
    }
}

/// A running server.
pub struct ServerHandle<C: ServerContext> {
    server: HttpServer<C>,
    shutdown: Arc<GracefulShutdown>,
}

impl<C: ServerContext> ServerHandle<C> {
    /// The address that it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// The counter of requests in flight.
    pub fn shutdown_state(&self) -> &Arc<GracefulShutdown> {
        &self.shutdown
    }

    /// Rejects new requests, finishes those in flight and stops the server.
    ///
    /// dropshot is closed last: while it closes, its socket stays open but accepts no connection, so that clients would hang.
    ///
    /// # Errors
    /// The error with which the server failed before.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.drain().await;
        self.server.close().await.map_err(|error| anyhow!(error))
    }
}

/// Starts a server that dispatches requests to a handler.
///
/// # Errors
/// Returns an error if the server cannot listen on the address.
pub fn serve<H: RequestHandler>(
    context: H::Context,
    contract: Arc<Contract>,
    handler: H,
    listener: impl Into<Listener>,
    log: &Logger,
) -> anyhow::Result<ServerHandle<H::Context>> {
    let Listener { address, certificate, body_timeouts, body_memory } = listener.into();
    let shutdown = Arc::<GracefulShutdown>::default();
    let bodies = BodyReader::new(body_timeouts, body_memory);
    let dispatcher = Dispatcher::new(contract, handler, Arc::clone(&shutdown), bodies, certificate.is_some(), log.clone());
    let dispatcher = Arc::new(dispatcher);
    let mut api = ApiDescription::new();
    for method in request_head::METHODS {
        let dispatcher = Arc::clone(&dispatcher);
        let dispatch = move |context: RequestContext<H::Context>, request: RawRequest| {
            DetachOnDrop::new(Arc::clone(&dispatcher).respond(context, request.into_inner()).map(Ok::<_, HttpError>))
        };
        let method = method.parse::<Method>()?;
        let name = format!("dispatch_{method}");
        let mut endpoint = ApiEndpoint::new(name, dispatch, method, "application/json", "/{path:.*}", ApiEndpointVersions::All);
        // Declared but not extracted: the dispatcher parses the path itself.
        endpoint.parameters = <Path<AnyPath> as SharedExtractor>::metadata(Default::default()).parameters;
        api.register(endpoint).map_err(|error| anyhow!(error))?;
    }
    // A disconnect cancels nothing, because of `DetachOnDrop`. That costs less than dropshot's other mode, a task per request.
    let default_handler_task_mode = HandlerTaskMode::CancelOnDisconnect;
    let config = ConfigDropshot { bind_address: address, default_handler_task_mode, ..ConfigDropshot::default() };
    let tls = certificate.map(Certificate::server_config).transpose()?.map(ConfigTls::Dynamic);
    let server = ServerBuilder::new(api, context, log::for_dropshot(log)).config(config).tls(tls);
    let server = server.version_policy(VersionPolicy::Dynamic(Box::new(UnroutableRequestFilter(dispatcher)))).start();
    let server = server.map_err(|error| anyhow!(error)).with_context(|| format!("cannot listen on {address}"))?;
    Ok(ServerHandle { server, shutdown })
}

#[derive(Deserialize, JsonSchema)]
struct AnyPath {
    #[expect(dead_code, reason = "its schema declares the path variable")]
    path: Vec<String>,
}
