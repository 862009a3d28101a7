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

use crate::detach_on_drop::DetachOnDrop;
use crate::dispatcher::{Dispatcher, RequestHandler};
use crate::log;
use crate::request_body::BodyTimeouts;
use crate::request_head::{self, UnroutableRequestFilter};
use crate::shutdown::GracefulShutdown;
use crate::tls::Certificate;

/// Where a server listens, and how it takes what comes.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The address.
    pub address: SocketAddr,
    /// The certificate for TLS; without one, HTTP is spoken in clear.
    pub certificate: Option<Arc<Certificate>>,
    /// How long a body may take.
    pub body_time: BodyTimeouts,
}

impl From<SocketAddr> for Listener {
    /// In clear, with the usual times.
    fn from(address: SocketAddr) -> Self {
        Self { address, certificate: None, body_time: BodyTimeouts::default() }
    }
}

/// A server that answers.
pub struct ServerHandle<C: ServerContext> {
    server: HttpServer<C>,
    doors: Arc<GracefulShutdown>,
}

impl<C: ServerContext> ServerHandle<C> {
    /// The address that it listens on, with the port that it was given.
    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// What every request passes.
    pub fn doors(&self) -> &Arc<GracefulShutdown> {
        &self.doors
    }

    /// Takes no more requests, finishes those under way, and ends. dropshot leaves its socket open to the end and takes nobody from
    /// it, so that whoever connects would wait for nothing: it is therefore told last.
    ///
    /// # Errors
    /// When the server had failed.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.doors.close().await;
        self.server.close().await.map_err(|error| anyhow!(error))
    }
}

/// Starts answering with what stands behind the front door.
///
/// # Errors
/// When the address cannot be had.
pub fn serve<B: RequestHandler>(
    context: B::Context,
    contract: Contract,
    backend: B,
    listener: impl Into<Listener>,
    log: &Logger,
) -> anyhow::Result<ServerHandle<B::Context>> {
    let Listener { address, certificate, body_time } = listener.into();
    let doors = Arc::<GracefulShutdown>::default();
    let front = Dispatcher::new(contract, backend, Arc::clone(&doors), body_time, certificate.is_some(), log.clone());
    let front = Arc::new(front);
    let mut dispatcher = ApiDescription::new();
    for method in request_head::METHODS {
        let front = Arc::clone(&front);
        let answer = move |rq: RequestContext<B::Context>, request: RawRequest| {
            DetachOnDrop::new(Arc::clone(&front).answer(rq, request.into_inner()).map(Ok::<_, HttpError>))
        };
        let method = method.parse::<Method>()?;
        let name = format!("front_{method}");
        let mut endpoint = ApiEndpoint::new(name, answer, method, "application/json", "/{path:.*}", ApiEndpointVersions::All);
        // Declared without being extracted: the front door reads the path itself.
        endpoint.parameters = <Path<AnyPath> as SharedExtractor>::metadata(Default::default()).parameters;
        dispatcher.register(endpoint).map_err(|error| anyhow!(error))?;
    }
    // Whoever goes away cancels nothing all the same: see `Outliving`, which costs less than dropshot's task for every request.
    let default_handler_task_mode = HandlerTaskMode::CancelOnDisconnect;
    let config = ConfigDropshot { bind_address: address, default_handler_task_mode, ..ConfigDropshot::default() };
    let tls = certificate.map(Certificate::server_config).transpose()?.map(ConfigTls::Dynamic);
    let server = ServerBuilder::new(dispatcher, context, log::of_dropshot(log)).config(config).tls(tls);
    let server = server.version_policy(VersionPolicy::Dynamic(Box::new(UnroutableRequestFilter(front)))).start();
    let server = server.map_err(|error| anyhow!(error)).with_context(|| format!("cannot listen on {address}"))?;
    Ok(ServerHandle { server, doors })
}

#[derive(Deserialize, JsonSchema)]
struct AnyPath {
    #[expect(dead_code, reason = "its schema declares the path variable; it is never read")]
    path: Vec<String>,
}
