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
use super::handler::{AppHandler, Endpoint};
use super::front::{Dispatcher, RequestHandler};
use super::head::{self, UnroutableRequestFilter};
use super::rate_limit::Limits;
use super::outliving::DetachOnDrop;
use super::endpoint_metadata::EndpointMetadata;
use super::precondition::{PreconditionContext, PreconditionRegistry};
use super::tls::Certificate;
use crate::state::App;
use boxoffice_openapi::{Contract, METHODS};
use boxoffice_http::error::{Code, Result};
use boxoffice_http::log;

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

