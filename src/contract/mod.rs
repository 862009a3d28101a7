//! The contract at run time: `spec/openapi.yaml` as a table of operations that knows who may call each, what a request
//! must look like, and which statuses it may be answered with.
//!
//! Nothing here knows the server: [`drift`] alone holds the two against each other.

mod cases;
pub mod drift;
mod request;
mod sample;
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, anyhow};
use serde_json::Value;

pub use cases::{Kind, Wrong, wrong_values};
pub use request::Arguments;
use request::{Body, Parameter};
pub use sample::{Direction, Sampler};
pub use schema::{compile, resolve};

use crate::auth::Scope;

/// The methods that a contract's operations have.
pub const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// An OpenAPI document, read for serving it.
#[derive(Debug)]
pub struct Contract {
    /// The document as it stands.
    pub document: Value,
    operations: BTreeMap<String, Operation>,
}

/// One operation of the contract.
#[derive(Debug)]
pub struct Operation {
    /// Its operationId, which is also the name of its endpoint.
    pub id: String,
    /// Its method, in capitals.
    pub method: String,
    /// Its path, with variables in braces.
    pub path: String,
    /// The scopes whose keys may call it (`x-scopes`).
    pub scopes: Vec<Scope>,
    /// Whether it asks for `X-API-Key`.
    pub needs_key: bool,
    /// Whether it asks for `X-Client-Version`.
    pub needs_version: bool,
    /// Every status that it may be answered with.
    pub statuses: BTreeSet<u16>,
    path_parameters: Vec<Parameter>,
    query_parameters: Vec<Parameter>,
    body: Option<Body>,
}

impl Contract {
    /// The contract that this program was built from.
    pub fn builtin() -> anyhow::Result<Self> {
        let document = serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/contract.json")))?;
        Self::new(document)
    }

    /// Reads a document.
    ///
    /// # Errors
    /// When an operation has no operationId, or a schema is none.
    pub fn new(document: Value) -> anyhow::Result<Self> {
        let mut operations = BTreeMap::new();
        let paths = document["paths"].as_object().context("the document has no paths")?;
        for (path, item) in paths {
            for method in METHODS {
                let Some(operation) = item.get(method) else { continue };
                let operation = Operation::new(&document, path, method, item, operation)
                    .with_context(|| format!("{} {path}", method.to_uppercase()))?;
                operations.insert(operation.id.clone(), operation);
            }
        }
        Ok(Self { document, operations })
    }

    /// The operation of this operationId.
    pub fn operation(&self, id: &str) -> Option<&Operation> {
        self.operations.get(id)
    }

    /// Every operation, by operationId.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.values()
    }
}

impl Operation {
    fn new(document: &Value, path: &str, method: &str, item: &Value, operation: &Value) -> anyhow::Result<Self> {
        let id = operation["operationId"].as_str().context("has no operationId")?.to_owned();
        let mut parameters = Vec::new();
        for list in [item.get("parameters"), operation.get("parameters")].into_iter().flatten() {
            parameters.extend(list.as_array().into_iter().flatten().map(|parameter| resolve(document, parameter)));
        }
        let placed = |place: &str| parameters.iter().filter(|parameter| parameter["in"] == place).collect::<Vec<_>>();
        let needs_version = placed("header").iter().any(|header| header["name"] == "X-Client-Version");
        let read = |place| placed(place).into_iter().map(Parameter::new).collect::<anyhow::Result<Vec<_>>>();
        let body = operation.get("requestBody").map(|body| Body::new(&resolve(document, body))).transpose()?;
        let security = operation.get("security").or_else(|| document.get("security"));
        let statuses = operation["responses"].as_object().context("has no responses")?;
        let statuses = statuses.keys().map(|status| status.parse().map_err(|_| anyhow!("{status} is no status")));
        let scopes = operation["x-scopes"].as_array().into_iter().flatten();
        Ok(Self {
            path: path.to_owned(),
            method: method.to_uppercase(),
            scopes: scopes.map(|scope| Ok(serde_json::from_value(scope.clone())?)).collect::<anyhow::Result<_>>()?,
            needs_key: security.and_then(Value::as_array).is_some_and(|schemes| !schemes.is_empty()),
            needs_version,
            statuses: statuses.collect::<anyhow::Result<_>>()?,
            path_parameters: read("path")?,
            query_parameters: read("query")?,
            body,
            id,
        })
    }

    /// The largest body that it takes, in bytes; `None` where it takes none.
    pub fn body_limit(&self) -> Option<usize> {
        self.body.as_ref().map(|body| body.limit)
    }
}
