//! The table of endpoints.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context as _;
use boxoffice_http::error::{Code, Result};
use boxoffice_http::rate_limit::Limits;
use boxoffice_http::{Listener, ServerHandle, serve};
use boxoffice_openapi::{Contract, METHODS};
use dropshot::{ApiDescription, ApiEndpoint};
use futures::FutureExt;
use semver::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::endpoint_metadata::EndpointMetadata;
use super::handler::{AccessCheck, AppHandler, AppState, Endpoint};
use super::precondition::{PreconditionContext, PreconditionRegistry};
use crate::kernel::auth::Caller;
use crate::kernel::context::Context;

/// The endpoints, each with the error codes of its own rules. Codes that follow from authentication, arguments or a body are
/// added by `EndpointMetadata`.
pub struct Routes<A: AppState> {
    description: ApiDescription<Arc<A>>,
    errors: HashMap<String, &'static [Code]>,
    endpoints: HashMap<String, Arc<Endpoint<A>>>,
    preconditions: PreconditionRegistry<A>,
    access_checks: HashMap<String, AccessCheck<A>>,
}

impl<A: AppState> Routes<A> {
    /// An empty table.
    pub fn new() -> Self {
        Self {
            description: ApiDescription::new(),
            errors: HashMap::new(),
            endpoints: HashMap::new(),
            preconditions: PreconditionRegistry::default(),
            access_checks: HashMap::new(),
        }
    }

    /// Adds an endpoint. `errors` are the codes that its rules can return.
    ///
    /// # Panics
    /// Panics if two endpoints have the same method and path, which is a mistake in the code.
    pub fn add(&mut self, endpoint: impl Into<ApiEndpoint<Arc<A>>>, errors: &'static [Code]) {
        self.register(endpoint.into(), errors, |metadata| metadata);
    }

    /// Adds an endpoint that reads a resource. PUT and DELETE on its path support `If-Match`: `read` returns the body of the GET.
    pub fn add_resource<P, T, F>(
        &mut self,
        endpoint: impl Into<ApiEndpoint<Arc<A>>>,
        errors: &'static [Code],
        read: impl Fn(PreconditionContext<A>, P) -> F + Send + Sync + 'static,
    ) where
        P: DeserializeOwned,
        T: Serialize,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let endpoint = endpoint.into();
        self.preconditions.add(&endpoint.path, read);
        self.add(endpoint, errors);
    }

    /// Adds an endpoint that changes a resource and accepts images. Before a large body is read, `check` decides if the caller may
    /// change the resource.
    pub fn add_upload<P, F>(
        &mut self,
        endpoint: impl Into<ApiEndpoint<Arc<A>>>,
        errors: &'static [Code],
        check: impl Fn(Context<A>, Caller, P) -> F + Send + Sync + 'static,
    ) where
        P: DeserializeOwned,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let endpoint = endpoint.into();
        let check = move |ctx, caller, variables| {
            let checked = serde_json::from_value(Value::Object(variables)).map(|path| check(ctx, caller, path));
            async move { checked.map_err(anyhow::Error::from)?.await }.boxed()
        };
        self.access_checks.insert(endpoint.operation_id.clone(), Box::new(check));
        self.add(endpoint, errors);
    }

    /// Adds an endpoint that needs neither an API key nor a client version: a browser requests it by itself.
    pub fn add_public(&mut self, endpoint: impl Into<ApiEndpoint<Arc<A>>>, errors: &'static [Code]) {
        self.register(endpoint.into(), errors, EndpointMetadata::public);
    }

    /// Adds an endpoint that changes something although its method is GET.
    pub fn add_mutating(&mut self, endpoint: impl Into<ApiEndpoint<Arc<A>>>, errors: &'static [Code]) {
        self.register(endpoint.into(), errors, EndpointMetadata::mutating);
    }

    fn register(
        &mut self,
        endpoint: ApiEndpoint<Arc<A>>,
        errors: &'static [Code],
        adjust: fn(EndpointMetadata) -> EndpointMetadata,
    ) {
        let metadata = adjust(EndpointMetadata::new(&endpoint));
        self.errors.insert(endpoint.operation_id.clone(), errors);
        self.endpoints.insert(endpoint.operation_id.clone(), Endpoint::new(&endpoint, metadata));
        #[expect(clippy::expect_used, reason = "a mistake in the code, seen at the first start")]
        self.description.register(endpoint).expect("endpoints have different methods or paths");
    }

    /// Returns the OpenAPI document that dropshot emits for the endpoints, completed with their HTTP behavior. Drift compares it
    /// with the contract.
    ///
    /// # Errors
    /// Returns an error if dropshot emits no JSON.
    pub fn openapi(&self) -> anyhow::Result<Value> {
        let mut openapi = self.description.openapi("boxoffice", Version::new(3, 0, 0)).json()?;
        let error_responses = openapi["components"]["responses"].clone();
        for item in openapi["paths"].as_object_mut().context("dropshot emitted no paths")?.values_mut() {
            for method in METHODS {
                let Some(operation) = item.get_mut(method) else { continue };
                let id = operation["operationId"].as_str().unwrap_or_default();
                let (Some(endpoint), Some(errors)) = (self.endpoints.get(id), self.errors.get(id)) else { continue };
                let is_conditional = endpoint.metadata.is_conditional(self.preconditions.has(endpoint.metadata.path()));
                endpoint.metadata.describe(operation, errors, is_conditional, &error_responses);
            }
        }
        Ok(openapi)
    }
}

impl<A: AppState> Default for Routes<A> {
    fn default() -> Self {
        Self::new()
    }
}

/// Starts a server with these endpoints.
///
/// # Errors
/// Returns an error if it can't listen on the address.
pub fn start<A: AppState>(
    app: Arc<A>,
    routes: Routes<A>,
    contract: Arc<Contract>,
    listener: impl Into<Listener>,
) -> anyhow::Result<ServerHandle<Arc<A>>> {
    let (log, limits) = (app.kernel().log.clone(), &app.kernel().settings.limits);
    let limits = Limits::new(limits.keys, limits.guesses);
    let Routes { endpoints, preconditions, access_checks, .. } = routes;
    let handler = AppHandler { endpoints, preconditions, access_checks, limits };
    serve(app, contract, handler, listener, &log)
}
