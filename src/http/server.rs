//! The list of endpoints, and the server that answers with them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use dropshot::{
    ApiDescription, ApiEndpoint, ApiEndpointVersions, Body, ConfigDropshot, HttpError, HttpServer, Path, RawRequest,
    RequestContext, ServerBuilder, ServerContext, SharedExtractor,
};
use http::{Method, Response};
use schemars::JsonSchema;
use semver::Version;
use serde::Deserialize;
use serde_json::Value;
use slog::Logger;

use super::doors::Doors;
use super::endpoints::Endpoints;
use super::front::{Backend, Front};
use crate::app::App;
use crate::contract::drift::Server;
use crate::contract::{Contract, METHODS};
use crate::error::Code;
use crate::log;

/// The endpoints as written, each with the refusals of its own: those that don't follow from its having a key,
/// arguments or a body.
pub struct Api {
    description: ApiDescription<Arc<App>>,
    refusals: BTreeMap<String, &'static [Code]>,
    open: BTreeSet<String>,
}

impl Api {
    /// No endpoints yet.
    pub fn new() -> Self {
        Self { description: ApiDescription::new(), refusals: BTreeMap::new(), open: BTreeSet::new() }
    }

    /// Adds an endpoint. `refusals` are the codes that its rules can give.
    ///
    /// # Panics
    /// When two endpoints cannot be told apart, which is a mistake in the code.
    pub fn add(&mut self, endpoint: impl Into<ApiEndpoint<Arc<App>>>, refusals: &'static [Code]) {
        let endpoint = endpoint.into();
        self.refusals.insert(endpoint.operation_id.clone(), refusals);
        #[expect(clippy::expect_used, reason = "a mistake in the code, seen at the first start")]
        self.description.register(endpoint).expect("endpoints can be told apart");
    }

    /// Adds an endpoint that asks for no key and no version: what a browser fetches by itself.
    pub fn add_open(&mut self, endpoint: impl Into<ApiEndpoint<Arc<App>>>, refusals: &'static [Code]) {
        let endpoint = endpoint.into();
        self.open.insert(endpoint.operation_id.clone());
        self.add(endpoint, refusals);
    }

    /// The server's side of the drift report: what dropshot emits for the endpoints, and the error statuses of each.
    ///
    /// # Errors
    /// When dropshot emits no JSON.
    pub fn emitted(&self) -> anyhow::Result<Server> {
        let openapi = self.description.openapi("boxoffice", Version::new(3, 0, 0)).json()?;
        let mut error_statuses = BTreeMap::new();
        let paths = openapi["paths"].as_object().context("dropshot emitted no paths")?;
        for item in paths.values() {
            for (method, operation) in METHODS.iter().filter_map(|method| Some((*method, item.get(method)?))) {
                let id = operation["operationId"].as_str().unwrap_or_default();
                error_statuses.insert(id.to_owned(), self.error_statuses(id, method, operation));
            }
        }
        Ok(Server { openapi, error_statuses })
    }

    /// The statuses that follow from what an operation takes, and those of its own rules.
    fn error_statuses(&self, id: &str, method: &str, operation: &Value) -> BTreeSet<u16> {
        let parameters = || operation["parameters"].as_array().into_iter().flatten();
        let has_body = operation.get("requestBody").is_some();
        let own = self.refusals.get(id).into_iter().copied().flatten().map(|code| code.status().as_u16());
        let mut statuses: BTreeSet<u16> = own.chain([500, 503]).collect();
        if !self.open.contains(id) {
            statuses.extend([401, 403, 412, 429]);
        }
        match method {
            // Who has it already asks only whether it has changed.
            "get" => statuses.extend([304]),
            "post" | "patch" => statuses.extend([409, 422]),
            _ => {}
        }
        if has_body || parameters().next().is_some() {
            statuses.insert(400);
        }
        if parameters().any(|parameter| parameter["in"] == "path" || parameter["name"] == "page") {
            statuses.insert(404);
        }
        if has_body {
            statuses.extend([408, 413, 415]);
        }
        statuses
    }
}

impl Default for Api {
    fn default() -> Self {
        Self::new()
    }
}

/// A server that answers.
pub struct Running<C: ServerContext> {
    server: HttpServer<C>,
    doors: Arc<Doors>,
}

impl<C: ServerContext> Running<C> {
    /// The address that it listens on, with the port that it was given.
    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// What every request passes.
    pub fn doors(&self) -> &Arc<Doors> {
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

/// Starts answering on `listen` with these endpoints, behind the front door.
///
/// # Errors
/// When the address cannot be had.
pub fn start(app: Arc<App>, api: Api, contract: Contract, listen: SocketAddr) -> anyhow::Result<Running<Arc<App>>> {
    let log = app.log.clone();
    serve(app, contract, Endpoints::new(api.description), listen, &log)
}

/// Starts answering on `listen` with what stands behind the front door.
///
/// # Errors
/// When the address cannot be had.
pub fn serve<B: Backend>(
    context: B::Context,
    contract: Contract,
    backend: B,
    listen: SocketAddr,
    log: &Logger,
) -> anyhow::Result<Running<B::Context>> {
    let doors = Arc::<Doors>::default();
    let front = Arc::new(Front::new(contract, backend, Arc::clone(&doors), log.clone()));
    let mut dispatcher = ApiDescription::new();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT"] {
        let front = Arc::clone(&front);
        let answer = move |rq: RequestContext<B::Context>, request: RawRequest| {
            let front = Arc::clone(&front);
            async move { Ok::<Response<Body>, HttpError>(front.answer(rq, request.into_inner()).await) }
        };
        let method = method.parse::<Method>()?;
        let name = format!("front_{method}");
        let mut endpoint = ApiEndpoint::new(name, answer, method, "application/json", "/{path:.*}", ApiEndpointVersions::All);
        // Declared without being extracted: the front door reads the path itself.
        endpoint.parameters = <Path<AnyPath> as SharedExtractor>::metadata(Default::default()).parameters;
        dispatcher.register(endpoint).map_err(|error| anyhow!(error))?;
    }
    let config = ConfigDropshot { bind_address: listen, ..ConfigDropshot::default() };
    let server = ServerBuilder::new(dispatcher, context, log::warnings_only(log)).config(config).start();
    let server = server.map_err(|error| anyhow!(error)).with_context(|| format!("cannot listen on {listen}"))?;
    Ok(Running { server, doors })
}

#[derive(Deserialize, JsonSchema)]
struct AnyPath {
    #[expect(dead_code, reason = "its schema declares the path variable; it is never read")]
    path: Vec<String>,
}
