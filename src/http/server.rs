//! The list of endpoints, and the server that answers with them.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use dropshot::{
    ApiDescription, ApiEndpoint, ApiEndpointVersions, ConfigDropshot, ConfigTls, HandlerTaskMode, HttpError, HttpServer, Path,
    RawRequest, RequestContext, ServerBuilder, ServerContext, SharedExtractor, VersionPolicy,
};
use futures::FutureExt;
use http::Method;
use schemars::JsonSchema;
use semver::Version;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slog::Logger;

use super::body::BodyTimeouts;
use super::doors::GracefulShutdown;
use super::endpoints::{AppHandler, Endpoint};
use super::front::{Dispatcher, RequestHandler};
use super::head::{self, UnroutableRequestFilter};
use super::limits::Limits;
use super::outliving::DetachOnDrop;
use super::protocol::EndpointMetadata;
use super::reading::{PreconditionContext, PreconditionRegistry};
use super::tls::Certificate;
use crate::app::App;
use crate::contract::{Contract, METHODS};
use crate::error::{Code, Result};
use crate::log;

/// The endpoints as written, each with the refusals of its own: those that don't follow from its having a key,
/// arguments or a body.
pub struct Routes {
    description: ApiDescription<Arc<App>>,
    refusals: HashMap<String, &'static [Code]>,
    endpoints: HashMap<String, Arc<Endpoint>>,
    readings: PreconditionRegistry,
}

impl Routes {
    /// No endpoints yet.
    pub fn new() -> Self {
        Self {
            description: ApiDescription::new(),
            refusals: HashMap::new(),
            endpoints: HashMap::new(),
            readings: PreconditionRegistry::default(),
        }
    }

    /// Adds an endpoint. `refusals` are the codes that its rules can give.
    ///
    /// # Panics
    /// When two endpoints cannot be told apart, which is a mistake in the code.
    pub fn add(&mut self, endpoint: impl Into<ApiEndpoint<Arc<App>>>, refusals: &'static [Code]) {
        self.register(endpoint.into(), refusals, |protocol| protocol);
    }

    fn register(
        &mut self,
        endpoint: ApiEndpoint<Arc<App>>,
        refusals: &'static [Code],
        told: fn(EndpointMetadata) -> EndpointMetadata,
    ) {
        let protocol = told(EndpointMetadata::new(&endpoint));
        self.refusals.insert(endpoint.operation_id.clone(), refusals);
        self.endpoints.insert(endpoint.operation_id.clone(), Endpoint::new(&endpoint, protocol));
        #[expect(clippy::expect_used, reason = "a mistake in the code, seen at the first start")]
        self.description.register(endpoint).expect("endpoints can be told apart");
    }

    /// Adds the endpoint by which a resource is read that others at its path change, under the condition of `If-Match`. `read`
    /// gives what the endpoint answers, for whoever sends such a condition.
    pub fn add_resource<P, T, F>(
        &mut self,
        endpoint: impl Into<ApiEndpoint<Arc<App>>>,
        refusals: &'static [Code],
        read: impl Fn(PreconditionContext, P) -> F + Send + Sync + 'static,
    ) where
        P: DeserializeOwned,
        T: Serialize,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let endpoint = endpoint.into();
        self.readings.add(&endpoint.path, read);
        self.add(endpoint, refusals);
    }

    /// Adds an endpoint that asks for no key and no version: what a browser fetches by itself.
    pub fn add_open(&mut self, endpoint: impl Into<ApiEndpoint<Arc<App>>>, refusals: &'static [Code]) {
        self.register(endpoint.into(), refusals, EndpointMetadata::public);
    }

    /// Adds an endpoint that changes something though its method is GET.
    pub fn add_changing(&mut self, endpoint: impl Into<ApiEndpoint<Arc<App>>>, refusals: &'static [Code]) {
        self.register(endpoint.into(), refusals, EndpointMetadata::mutating);
    }

    /// The server's side of the drift report: what dropshot emits for the endpoints, with how each is served.
    ///
    /// # Errors
    /// When dropshot emits no JSON.
    pub fn openapi(&self) -> anyhow::Result<Value> {
        let mut openapi = self.description.openapi("boxoffice", Version::new(3, 0, 0)).json()?;
        let errors = openapi["components"]["responses"].clone();
        for item in openapi["paths"].as_object_mut().context("dropshot emitted no paths")?.values_mut() {
            for method in METHODS {
                let Some(operation) = item.get_mut(method) else { continue };
                let id = operation["operationId"].as_str().unwrap_or_default();
                let (Some(endpoint), Some(refusals)) = (self.endpoints.get(id), self.refusals.get(id)) else { continue };
                endpoint.protocol.describe(operation, refusals, &self.readings, &errors);
            }
        }
        Ok(openapi)
    }
}

impl Default for Routes {
    fn default() -> Self {
        Self::new()
    }
}

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

/// Starts answering with these endpoints, behind the front door.
///
/// # Errors
/// When the address cannot be had.
pub fn start(
    app: Arc<App>,
    api: Routes,
    contract: Contract,
    listener: impl Into<Listener>,
) -> anyhow::Result<ServerHandle<Arc<App>>> {
    let log = app.log.clone();
    let limits = Limits::new(app.settings.limits.keys, app.settings.limits.guesses);
    serve(app, contract, AppHandler { endpoints: api.endpoints, readings: api.readings, limits }, listener, &log)
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
    for method in head::METHODS {
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
