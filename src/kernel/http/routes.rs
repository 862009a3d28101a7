//! The table of endpoints.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::Context as _;
use boxoffice_http::rate_limit::Limits;
use boxoffice_http::{Listener, ServerHandle, serve};
use boxoffice_openapi::{Contract, METHODS};
use dropshot::{ApiDescription, StubContext};
use http::Method;
use semver::Version;
use serde_json::Value;

use super::endpoint::Endpoint;
use super::handler::{AppHandler, AppState, OutsideContractFn};

/// The endpoints of the application.
pub struct Routes<A> {
    /// By operationId.
    endpoints: HashMap<String, Arc<Endpoint<A>>>,
    outside_contract: HashMap<&'static str, OutsideContractFn<A>>,
    /// Schemas of properties of the error body, for the emitted document.
    error_properties: Vec<(&'static str, Value)>,
}

impl<A: AppState> Routes<A> {
    /// An empty table.
    pub fn new() -> Self {
        Self { endpoints: HashMap::new(), outside_contract: HashMap::new(), error_properties: Vec::new() }
    }

    /// Adds endpoints with a tag of the contract.
    pub fn add(&mut self, tag: &str, endpoints: impl IntoIterator<Item = Endpoint<A>>) {
        for endpoint in endpoints {
            let endpoint = Endpoint { tag: tag.to_owned(), ..endpoint };
            self.endpoints.insert(endpoint.operation_id.clone(), Arc::new(endpoint));
        }
    }

    /// Adds a resource that the contract doesn't have, such as a health check. Its GET needs no API key.
    pub fn add_outside_contract(&mut self, path: &'static str, respond: OutsideContractFn<A>) {
        self.outside_contract.insert(path, respond);
    }

    /// Sets the schema of a property of the error body in the emitted document, where the HTTP layer has none or a wider one.
    pub fn set_error_property(&mut self, name: &'static str, schema: Value) {
        self.error_properties.push((name, schema));
    }

    /// Returns the endpoints, by operationId.
    pub(super) fn into_endpoints(self) -> HashMap<String, Arc<Endpoint<A>>> {
        self.endpoints
    }

    /// Returns the endpoints that read a resource, by path.
    fn readers(&self) -> HashMap<String, Arc<Endpoint<A>>> {
        let readers = self.endpoints.values().filter(|endpoint| *endpoint.metadata.method() == Method::GET);
        readers.map(|endpoint| (endpoint.metadata.path().to_owned(), Arc::clone(endpoint))).collect()
    }

    /// Returns the OpenAPI document that dropshot emits for the endpoints, completed with their HTTP behavior. Drift compares it
    /// with the contract.
    ///
    /// # Errors
    /// Returns an error if two endpoints have the same method and path, or dropshot emits no JSON.
    pub fn openapi(&self) -> anyhow::Result<Value> {
        let mut description: ApiDescription<StubContext> = ApiDescription::new();
        // Sorted, so that the document is the same each time.
        for (id, endpoint) in self.endpoints.iter().collect::<BTreeMap<_, _>>() {
            let mut described = (endpoint.describe)(id, endpoint.metadata.method().clone(), endpoint.metadata.path());
            described.tags = vec![endpoint.tag.clone()];
            description.register(described)?;
        }
        let readers = self.readers();
        let mut openapi = description.openapi("boxoffice", Version::new(3, 0, 0)).json()?;
        for (name, schema) in &self.error_properties {
            openapi["components"]["schemas"]["Error"]["properties"][name] = schema.clone();
        }
        let error_responses = openapi["components"]["responses"].clone();
        for item in openapi["paths"].as_object_mut().context("dropshot emitted no paths")?.values_mut() {
            for method in METHODS {
                let Some(operation) = item.get_mut(method) else { continue };
                let id = operation["operationId"].as_str().unwrap_or_default();
                let Some(endpoint) = self.endpoints.get(id) else { continue };
                let is_conditional = endpoint.metadata.is_conditional(readers.contains_key(endpoint.metadata.path()));
                endpoint.metadata.describe(operation, endpoint.errors, is_conditional, &error_responses);
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
) -> anyhow::Result<ServerHandle> {
    let (log, limits) = (app.kernel().log.clone(), &app.kernel().settings.limits);
    let limits = Limits::new(limits.keys, limits.guesses);
    let trusted_proxies = app.kernel().settings.limits.trusted_proxies.clone();
    let listener = Listener { trusted_proxies, ..listener.into() };
    let readers = routes.readers();
    serve(
        contract,
        AppHandler { app, endpoints: routes.endpoints, readers, outside_contract: routes.outside_contract, limits },
        listener,
        &log,
    )
}
