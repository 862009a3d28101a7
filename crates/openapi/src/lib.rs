//! An OpenAPI 3 document at run time, as a table of operations.
//!
//! [`Contract`] parses a document once, for example `spec/openapi.yaml`. The server, the mock server and the conformance tests then
//! share one interpretation of it: they route requests, validate requests and responses, and generate sample data with it.
//!
//! ```text
//! files ── source ──► document ── dialect (3.1, mistakes) ── resolver (follows $ref) ──► Contract ── find(method, path) ──► Operation
//!
//! Operation ─┬─ check: request ──► ParsedRequest
//!            └─ violations: response ──► Violation …
//!
//! schema ─┬─ Schema: validation, compiled on first use
//!         ├─ Sampler: valid values
//!         └─ invalid_values_for: invalid values
//! ```
//!
//! The crate doesn't depend on the server. [`drift`] compares the document with the one that the server's code generates.

mod builtin_object;
pub mod callback;
mod charset_policy;
mod composition;
mod cycles;
mod deprecation;
mod dialect;
pub mod diff;
pub mod drift;
mod error;
mod formats;
pub mod invalid_values;
mod json;
mod multipart;
mod operation;
pub mod paging;
mod parameter;
mod path;
mod request;
mod request_body;
mod resolver;
pub mod response;
mod sample;
mod schema;
mod schema_errors;
mod schema_registry;
mod scope;
mod security;
mod source;
mod subtypes;
mod urlencoded_form;
mod value_kind;
mod yaml;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use http::HeaderMap;
use serde_json::{Map, Value};

use operation::Route;
use resolver::References;
use response::Violation;

pub use builtin_object::{is_blank, is_blank_text};
pub use charset_policy::{AllowedCharacters, is_forbidden};
pub use deprecation::Deprecation;
pub use error::{FieldError, FieldErrorKind, RequestError};
pub use formats::{BIRTH_DATE_DESCRIPTION, parse_birth_date, parse_date_time};
pub use json::repeated_name;
pub use operation::Operation;
pub use parameter::{Parameter, ParameterLocation, Style};
pub use path::{PathTemplate, segments};
pub use request::ParsedRequest;
pub use request_body::RequestBody;
pub use resolver::{MAX_REFERENCE_CHAIN, escape, resolve};
pub use sample::{ExampleUse, PNG_PIXEL, Sampler};
pub use schema::{Direction, EXTENSIBLE_ENUM, Schema, compile, counted, field_values, to_plain_string};
pub use scope::Scope;
pub use security::SecurityScheme;

/// The HTTP methods of the operations that are served.
pub const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Maximum number of addresses of a server whose variables have listed values.
const MAX_SERVER_URLS: usize = 1_000;

/// The other methods whose operations a path item can contain.
const UNSUPPORTED_METHODS: [&str; 4] = ["head", "options", "trace", "query"];

/// An OpenAPI document, parsed for routing and validation.
#[derive(Debug)]
pub struct Contract {
    /// The parsed document, in the dialect of this crate: schemas of OpenAPI 3.1 are converted, and broken parts are removed.
    pub document: Value,
    /// Parts of the document that are ignored, one sentence each for the operator.
    pub warnings: Vec<String>,
    /// The files that the document was read from, its own file first. Empty if it was not read from a file.
    pub files: Vec<PathBuf>,
    operations: Vec<Operation>,
    by_id: HashMap<String, usize>,
    /// By number of path segments: the operations of each path, paths with literals before those with variables.
    by_length: Vec<Vec<Vec<usize>>>,
    /// The non-empty base paths of the document's servers, longest first.
    prefixes: Vec<String>,
}

/// The reason why no operation matches a request's method and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    /// No such path.
    NotFound,
    /// The path exists, but only with these methods.
    MethodNotAllowed(Vec<String>),
}

impl Contract {
    /// Loads an OpenAPI 3 document from a YAML or JSON file, with the files that it refers to. A folder stands for the document in
    /// it.
    ///
    /// # Errors
    /// If the file can't be read or parsed, or [`Contract::new`] rejects the document.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let source = source::read(file)?;
        let mut contract = Self::new(source.document).with_context(|| format!("{} can't be used", file.display()))?;
        contract.warnings.splice(0..0, source.warnings);
        contract.files = source.files;
        Ok(contract)
    }

    /// Builds the operation table of an OpenAPI 3 document. A broken part is left out, with a warning.
    ///
    /// # Errors
    /// If the document has another version, or neither paths nor another part with operations.
    pub fn new(mut document: Value) -> anyhow::Result<Self> {
        let version = source::version(&document)?;
        let mut warnings = dialect::convert(&mut document, &version);
        if ["paths", "webhooks", "components"].iter().all(|part| !document[part].is_object()) {
            bail!("the document has no paths");
        }
        let references = References::read(&document);
        let (mut operations, mut path_by_route): (Vec<Operation>, BTreeMap<Route, &str>) = Default::default();
        let paths = document["paths"].as_object().into_iter().flatten();
        for (path, item) in paths.filter(|(path, _)| !path.starts_with("x-")) {
            let problem = match path.starts_with('/') {
                false => Some("it must begin with /"),
                true => path.contains(['#', '?']).then_some("a path has no query or fragment"),
            };
            if let Some(problem) = problem {
                warnings.push(format!("the path {path} is left out: {problem}"));
                continue;
            }
            let item = references.follow(item);
            for (method, operation) in METHODS.iter().filter_map(|method| Some((method, item.get(method)?))) {
                let operation = Operation::new(&references, &document, (path, method), item, operation, &mut warnings);
                match path_by_route.entry(operation.route()) {
                    Entry::Occupied(first) => warnings.push(format!(
                        "{} {path} is left out: its path is the same as {}, apart from the names of variables",
                        operation.method,
                        first.get()
                    )),
                    Entry::Vacant(entry) => {
                        entry.insert(path);
                        operations.push(operation);
                    }
                }
            }
            let additional = item["additionalOperations"].as_object().into_iter().flat_map(Map::keys).map(String::as_str);
            let unsupported = UNSUPPORTED_METHODS.into_iter().filter(|method| item.get(method).is_some()).chain(additional);
            let reason = |method: &str| match method {
                "head" => "HEAD is served like GET",
                "options" => "OPTIONS is served from the list of the other methods",
                _ => "the method isn't served",
            };
            let warning = |method: &str| format!("{} {path} is left out: {}", method.to_uppercase(), reason(method));
            warnings.extend(unsupported.map(warning));
        }
        if document["webhooks"].is_object() {
            warnings.push("the webhooks are left out: the server doesn't send requests".to_owned());
        }
        if operations.is_empty() {
            warnings.push("the document has no operations".to_owned());
        }
        rename_repeated_ids(&mut operations, &mut warnings);
        let by_id = operations.iter().enumerate().map(|(index, operation)| (operation.id.clone(), index)).collect();
        let by_length = by_length(&operations);
        let prefixes = prefixes(&references, &document);
        Ok(Self { prefixes, document, warnings, files: Vec::new(), operations, by_id, by_length })
    }

    /// Rejects amounts with decimals in the bodies of requests, with this error message. An amount is a property of the built-in document
    /// whose values are multiples of a decimal fraction.
    pub fn require_whole_amounts(&mut self, message: &str) {
        let bodies = self.operations.iter_mut().filter_map(|operation| operation.body.as_mut());
        bodies.for_each(|body| body.require_whole_amounts(message));
    }

    /// Returns the operation with this `operationId`.
    pub fn operation(&self, id: &str) -> Option<&Operation> {
        self.by_id.get(id).map(|index| &self.operations[*index])
    }

    /// Iterates over all operations, in the document's order.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter()
    }

    /// Strips the base path of a server in the document from a request's path.
    pub fn without_prefix<'a>(&self, path: &'a str) -> &'a str {
        let strip = |prefix: &String| path.strip_prefix(prefix.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        self.prefixes.iter().find_map(strip).unwrap_or(path)
    }

    /// Returns the operation for a method, in any case, and a path without a prefix. In the built-in document, additional slashes don't
    /// matter.
    ///
    /// # Errors
    /// If no operation matches.
    pub fn find(&self, method: &str, path: &str) -> Result<&Operation, RouteError> {
        self.find_by(method, path, |operation| operation.is_builtin || operation.template.has_slashes_of(path))
    }

    /// Returns the operation like [`Contract::find`], or else one whose path differs in its slashes. Servers link to both forms.
    ///
    /// # Errors
    /// If no operation matches.
    pub fn find_ignoring_slashes(&self, method: &str, path: &str) -> Result<&Operation, RouteError> {
        self.find(method, path).or_else(|error| match error {
            RouteError::NotFound => self.find_by(method, path, |_| true),
            RouteError::MethodNotAllowed(_) => Err(error),
        })
    }

    /// Returns the operation for a method and the segments of a path, if `is_match` accepts the operations there.
    fn find_by(&self, method: &str, path: &str, is_match: impl Fn(&Operation) -> bool) -> Result<&Operation, RouteError> {
        let segments: Vec<_> = segments(path).collect();
        let paths = self.by_length.get(segments.len()).map(Vec::as_slice).unwrap_or_default();
        let operation = |index: &usize| &self.operations[*index];
        let is_at_path = |indexes: &&Vec<usize>| {
            indexes.first().map(operation).is_some_and(|first| first.template.matches(&segments) && is_match(first))
        };
        let at_path = paths.iter().find(is_at_path).ok_or(RouteError::NotFound)?;
        let found = at_path.iter().map(operation).find(|operation| operation.method.eq_ignore_ascii_case(method));
        found.ok_or_else(|| RouteError::MethodNotAllowed(at_path.iter().map(|index| operation(index).method.clone()).collect()))
    }

    /// Returns the operation at a method and path, with all violations of a response to it. `None` if no operation matches, because
    /// the document then doesn't restrict the response. For tests.
    pub fn validate_response(
        &self,
        method: &str,
        path: &str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Option<(&Operation, Vec<Violation>)> {
        let operation = self.find(method, self.without_prefix(path)).ok()?;
        Some((operation, operation.violations(status, headers, body)))
    }
}

/// Names the operations by method and path whose `operationId` another operation has.
fn rename_repeated_ids(operations: &mut [Operation], warnings: &mut Vec<String>) {
    let mut ids = BTreeSet::new();
    for operation in operations {
        if !ids.insert(operation.id.clone()) {
            let (method, path) = (&operation.method, &operation.path);
            let name = format!("{} {path}", method.to_lowercase());
            warnings.push(format!(
                "{method} {path}: another operation has the operationId {}: `{name}` is used instead",
                operation.id
            ));
            operation.id = name;
        }
    }
}

/// Groups operations by number of path segments, then by path. Literals sort before variables.
fn by_length(operations: &[Operation]) -> Vec<Vec<Vec<usize>>> {
    let key = |index: &usize| {
        let template = &operations[*index].template;
        (&template.shape, template.ends_with_slash)
    };
    let mut indexes: Vec<_> = (0..operations.len()).collect();
    indexes.sort_by_key(key);
    let length = |index: &usize| key(index).0.len();
    let mut by_length = vec![Vec::new(); indexes.iter().map(|index| length(index) + 1).max().unwrap_or_default()];
    for at_path in indexes.chunk_by(|one, other| key(one) == key(other)) {
        by_length[length(&at_path[0])].push(at_path.to_vec());
    }
    by_length
}

/// Returns the base paths of the document's servers, longest first. Those of a path or an operation are used for all of them, unless a
/// path of the document begins with one. Server variables have each of their listed values, or else the default value.
fn prefixes<'a>(references: &References<'a>, document: &'a Value) -> Vec<String> {
    let servers = |node: &'a Value| node["servers"].as_array().into_iter().flatten();
    let base_paths = |node| servers(node).flat_map(base_paths_of);
    let paths = || document["paths"].as_object().into_iter().flatten();
    let items = || paths().map(|(_, item)| references.follow(item));
    let operations = items().flat_map(|item| METHODS.iter().filter_map(|method| item.get(method)));
    let own = items().chain(operations).flat_map(base_paths);
    let is_path = |prefix: &String| paths().any(|(path, _)| path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/')));
    let mut prefixes: Vec<String> = base_paths(document).chain(own.filter(|prefix| !is_path(prefix))).collect();
    prefixes.retain(|prefix| prefix.starts_with('/'));
    prefixes.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    prefixes.dedup();
    prefixes
}

/// Returns the base paths of a server, one for each combination of the listed values of its variables.
fn base_paths_of(server: &Value) -> Vec<String> {
    let Some(url) = server["url"].as_str() else { return Vec::new() };
    let mut urls = vec![url.to_owned()];
    for (name, variable) in server["variables"].as_object().into_iter().flatten() {
        let name = format!("{{{name}}}");
        let default = [variable["default"].as_str().unwrap_or_default()];
        let listed = variable["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let values: Vec<&str> = default.into_iter().chain(listed).collect();
        let with_values = |url: String| match url.contains(&name) {
            true => values.iter().map(|value| url.replace(&name, value)).collect(),
            false => vec![url],
        };
        urls = urls.into_iter().flat_map(with_values).take(MAX_SERVER_URLS).collect();
    }
    urls.iter().map(|url| base_path(url).trim_end_matches('/').to_owned()).collect()
}

/// Returns the addresses of the servers of a document, a path or an operation, without a slash at the end. Server variables have their
/// default values.
fn server_urls(node: &Value) -> Vec<String> {
    let url_of = |server: &Value| {
        let mut url = server["url"].as_str()?.to_owned();
        for (name, variable) in server["variables"].as_object().into_iter().flatten() {
            url = url.replace(&format!("{{{name}}}"), variable["default"].as_str().unwrap_or_default());
        }
        Some(url.trim_end_matches('/').to_owned())
    };
    node["servers"].as_array().into_iter().flatten().filter_map(url_of).collect()
}

/// Returns the path of a server's address, which may have no scheme and host.
fn base_path(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest.find('/').map_or("", |slash| &rest[slash..]))
}
