//! The contract at run time: `spec/openapi.yaml` as a table of operations that knows who may call each, what a request
//! must look like, and which statuses it may be answered with.
//!
//! Nothing here knows the server: [`drift`] alone holds the two against each other.

pub mod answer;
pub mod cases;
pub mod drift;
mod path;
mod request;
mod sample;
mod schema;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use anyhow::Context;
use http::HeaderMap;
use serde_json::Value;

use answer::{Answer, Kind, Wrong};
use path::{Template, segments};
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
    operations: Vec<Operation>,
    by_id: HashMap<String, usize>,
    /// The operations by the length of their paths; those with literals go before those with variables.
    by_length: HashMap<usize, Vec<usize>>,
    /// What may stand before every path: the paths of the document's servers, but for the empty one, the longest first.
    prefixes: Vec<String>,
}

/// A request's path and method lead to no operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Astray {
    /// No such path.
    Path,
    /// The path has these methods alone.
    Method(Vec<String>),
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
    /// Its place in the document, as a JSON pointer.
    pub pointer: String,
    /// The scopes whose keys may call it (`x-scopes`).
    pub scopes: Vec<Scope>,
    /// Whether it asks for `X-API-Key`.
    pub needs_key: bool,
    /// Whether it asks for `X-Client-Version`.
    pub needs_version: bool,
    /// Every status that it may be answered with.
    pub statuses: BTreeSet<u16>,
    /// Every answer that it may give.
    pub answers: Vec<Answer>,
    template: Template,
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

    /// Reads a document from a file, YAML or JSON.
    ///
    /// # Errors
    /// When the file can't be read, or it is no such document.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let document = serde_yaml_ng::from_str(&text).with_context(|| format!("{} is no YAML", file.display()))?;
        Self::new(document).with_context(|| format!("{} can't be used", file.display()))
    }

    /// Reads a document.
    ///
    /// # Errors
    /// When it has no paths, or something of an operation is not as OpenAPI has it.
    pub fn new(document: Value) -> anyhow::Result<Self> {
        let mut operations = Vec::new();
        let paths = document["paths"].as_object().context("the document has no paths")?;
        for (path, item) in paths {
            for method in METHODS {
                let Some(operation) = item.get(method) else { continue };
                let operation = Operation::new(&document, path, method, item, operation);
                operations.push(operation.with_context(|| format!("{} {path}", method.to_uppercase()))?);
            }
        }
        let by_id = operations.iter().enumerate().map(|(index, operation)| (operation.id.clone(), index)).collect();
        let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, operation) in operations.iter().enumerate() {
            by_length.entry(operation.template.len()).or_default().push(index);
        }
        for indexes in by_length.values_mut() {
            indexes.sort_by_key(|index| &operations[*index].template);
        }
        Ok(Self { prefixes: prefixes(&document), document, operations, by_id, by_length })
    }

    /// The operation of this operationId.
    pub fn operation(&self, id: &str) -> Option<&Operation> {
        self.by_id.get(id).map(|index| &self.operations[*index])
    }

    /// Every operation, in the document's order.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter()
    }

    /// A requested path as the document writes paths: without the path of the server before it.
    pub fn without_prefix<'a>(&self, path: &'a str) -> &'a str {
        let rest = |prefix: &String| path.strip_prefix(prefix.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        self.prefixes.iter().find_map(rest).unwrap_or(path)
    }

    /// The operation of a method, in capitals, at a path without a prefix.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(&self, method: &str, path: &str) -> Result<&Operation, Astray> {
        let path: Vec<_> = segments(path).collect();
        let of_this_length = self.by_length.get(&path.len()).into_iter().flatten().map(|index| &self.operations[*index]);
        let mut at_path = of_this_length.filter(|operation| operation.template.matches(&path)).peekable();
        let Some(first) = at_path.peek() else { return Err(Astray::Path) };
        let template = &first.template;
        let at_path: Vec<_> = at_path.take_while(|operation| operation.template == *template).collect();
        let found = at_path.iter().find(|operation| operation.method == method).copied();
        found.ok_or_else(|| Astray::Method(at_path.iter().map(|operation| operation.method.clone()).collect()))
    }

    /// The operation that answers a method at a path, and all that is wrong with an answer of it. An operation that the contract
    /// doesn't have may answer as it likes.
    pub fn judge(
        &self,
        method: &str,
        path: &str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Option<(&Operation, Vec<Wrong>)> {
        let operation = self.find(method, self.without_prefix(path)).ok()?;
        Some((operation, operation.wrong(status, headers, body)))
    }
}

impl Operation {
    fn new(document: &Value, path: &str, method: &str, item: &Value, operation: &Value) -> anyhow::Result<Self> {
        let id = operation["operationId"].as_str().map_or_else(|| format!("{method} {path}"), str::to_owned);
        let pointer = format!("/paths/{}/{method}", answer::escape(path));
        let mut parameters = Vec::new();
        for list in [item.get("parameters"), operation.get("parameters")].into_iter().flatten() {
            parameters.extend(list.as_array().into_iter().flatten().map(|parameter| resolve(document, parameter)));
        }
        let placed = |place: &str| parameters.iter().filter(|parameter| parameter["in"] == place).collect::<Vec<_>>();
        let needs_version = placed("header").iter().any(|header| header["name"] == "X-Client-Version");
        let read = |place| placed(place).into_iter().map(Parameter::new).collect::<anyhow::Result<Vec<_>>>();
        let body = operation.get("requestBody").map(|body| Body::new(&resolve(document, body))).transpose()?;
        let security = operation.get("security").or_else(|| document.get("security"));
        let responses = operation["responses"].as_object().context("has no responses")?;
        let answer =
            |(status, node): (&String, &Value)| Answer::new(document, format!("{pointer}/responses/{status}"), status, node);
        let scopes = operation["x-scopes"].as_array().into_iter().flatten();
        Ok(Self {
            path: path.to_owned(),
            method: method.to_uppercase(),
            scopes: scopes.map(|scope| Ok(serde_json::from_value(scope.clone())?)).collect::<anyhow::Result<_>>()?,
            needs_key: security.and_then(Value::as_array).is_some_and(|schemes| !schemes.is_empty()),
            needs_version,
            statuses: responses.keys().filter_map(|status| status.parse().ok()).collect(),
            answers: responses.iter().map(answer).collect::<anyhow::Result<_>>()?,
            template: Template::new(path),
            path_parameters: read("path")?,
            query_parameters: read("query")?,
            body,
            id,
            pointer,
        })
    }

    /// The answer that the document declares for a status: the one that names it most closely.
    pub fn answer(&self, status: u16) -> Option<&Answer> {
        let declared = self.answers.iter().filter(|answer| answer.statuses.contains(&status));
        declared.min_by_key(|answer| answer.statuses.end() - answer.statuses.start())
    }

    /// All that is wrong with an answer.
    pub fn wrong(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Vec<Wrong> {
        self.answer(status).map_or_else(
            || {
                let text = format!("may not be answered: {}", String::from_utf8_lossy(body));
                let (pointer, gist) = (format!("{}/responses", self.pointer), "is not declared".to_owned());
                vec![Wrong { kind: Kind::Status, pointer, text, gist }]
            },
            |answer| answer.wrong(headers, body),
        )
    }

    /// The largest body that it takes, in bytes; `None` where it takes none.
    pub fn body_limit(&self) -> Option<usize> {
        self.body.as_ref().map(|body| body.limit)
    }
}

/// The paths of the document's servers, with the defaults of their variables.
fn prefixes(document: &Value) -> Vec<String> {
    let path_of = |server: &Value| {
        let mut url = server["url"].as_str()?.to_owned();
        for (name, variable) in server["variables"].as_object().into_iter().flatten() {
            url = url.replace(&format!("{{{name}}}"), variable["default"].as_str().unwrap_or_default());
        }
        let path = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest.find('/').map_or("", |slash| &rest[slash..]));
        Some(path.trim_end_matches('/').to_owned()).filter(|path| path.starts_with('/'))
    };
    let mut prefixes: Vec<_> = document["servers"].as_array().into_iter().flatten().filter_map(path_of).collect();
    prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
    prefixes
}
