//! The contract at run time: `spec/openapi.yaml`, or any OpenAPI 3.0 document, as a table of operations that knows who may call
//! each, what a request must look like, and what it may be answered with.
//!
//! Nothing here knows the server: [`drift`] alone holds the two against each other.

pub mod response;
mod request_body;
pub mod invalid_values;
mod charset_policy;
pub mod drift;
mod error;
mod formats;
mod json;
mod schema_registry;
mod parameter;
mod path;
mod resolver;
mod request;
mod sample;
mod schema;
mod scope;
mod security;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use http::HeaderMap;
use serde_json::{Map, Value};

use response::{ResponseSpec, Violation, ViolationKind};
pub use request_body::{RequestBody, is_blank};
pub use parameter::{Parameter, ParameterLocation, Style};
pub use path::{PathTemplate, segments};
use resolver::{References, remove_unsupported};
pub use resolver::{escape, resolve};
pub use request::ParsedRequest;
pub use sample::Sampler;
pub use schema::{Direction, Schema, compile, to_plain_string};
pub use security::SecurityScheme;

pub use error::{FieldError, FieldErrorKind, RequestError};
pub use formats::{parse_birth_date, parse_date_time};
pub use scope::Scope;

/// The methods that a contract's operations have.
pub const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// An OpenAPI document, read for serving it.
#[derive(Debug)]
pub struct Contract {
    /// The document as it stands, but for patterns that can't be read.
    pub document: Value,
    /// What of the document is not held to, in sentences for whoever has chosen it.
    pub warnings: Vec<String>,
    operations: Vec<Operation>,
    by_id: HashMap<String, usize>,
    /// By how many segments paths have: the operations of each, paths with literals before those with variables.
    by_length: Vec<Vec<Vec<usize>>>,
    /// What may stand before every path: the paths of the document's servers, but for the empty one, the longest first.
    prefixes: Vec<String>,
}

/// A request's path and method lead to no operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    /// No such path.
    NotFound,
    /// The path has these methods alone.
    MethodNotAllowed(Vec<String>),
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
    /// What it is for, in a line.
    pub summary: String,
    /// What it is grouped under.
    pub tags: Vec<String>,
    /// The scopes whose keys may call it (`x-scopes`).
    pub scopes: Vec<Scope>,
    /// Whether it asks for a key: on the platform, `X-API-Key`.
    pub needs_key: bool,
    /// How a request may prove itself: by any one of these, each of which is everything that it takes together. One that takes
    /// nothing lets everybody in, as does none at all.
    pub security: Vec<Vec<SecurityScheme>>,
    /// Whether it asks for `X-Client-Version`.
    pub needs_version: bool,
    /// The argument that tells whose password or code it tries, or whom it asks for (`x-guessing`): a variable of its path, or a
    /// property of its body. Only what can be used for guessing has one.
    pub credential_param: Option<String>,
    /// Whether its answer carries a key or a code that no cache may keep (`x-secret`).
    pub is_secret: bool,
    /// Every status that it may be answered with.
    pub statuses: BTreeSet<u16>,
    /// Every answer that it may give.
    pub answers: Vec<ResponseSpec>,
    /// What a request says beside its body, in the document's order.
    pub parameters: Vec<Parameter>,
    /// The body that it takes, if any.
    pub body: Option<RequestBody>,
    /// Its path, to be held against requested ones.
    pub template: PathTemplate,
    /// Whether it is the platform's own, as its `x-scopes` say: then the platform's rules of what is blank hold.
    is_builtin: bool,
}

impl Contract {
    /// Reads an OpenAPI 3.0 document from a file, YAML or JSON.
    ///
    /// # Errors
    /// When the file can't be read, or it is no such document.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        // All JSON is YAML, but a large document is read much faster as what it is, and its faults are told better.
        let text = text.trim_start_matches('\u{feff}');
        let is_json = text.trim_start().starts_with('{');
        let read_yaml = |no_json: serde_json::Error| {
            serde_yaml_ng::from_str(text).map_err(|no_yaml| if is_json { anyhow!(no_json) } else { anyhow!(no_yaml) })
        };
        let document = serde_json::from_str(text).or_else(read_yaml);
        let document = document.with_context(|| format!("{} is neither YAML nor JSON", file.display()))?;
        Self::new(document).with_context(|| format!("{} can't be used", file.display()))
    }

    /// Reads an OpenAPI 3.0 document.
    ///
    /// # Errors
    /// When it is of another version, has no paths, or something of an operation is not as OpenAPI has it.
    pub fn new(mut document: Value) -> anyhow::Result<Self> {
        check_version(&document)?;
        let mut warnings = remove_unsupported(&mut document);
        let references = References::read(&document)?;
        let mut operations = Vec::new();
        let paths = document["paths"].as_object().context("the document has no paths")?;
        let lost = paths.keys().filter(|path| !path.starts_with('/') && !path.starts_with("x-"));
        warnings.extend(lost.map(|path| format!("the path {path} is left out: it must begin with /")));
        for (path, item) in paths.iter().filter(|(path, _)| path.starts_with('/')) {
            let item = references.follow(item);
            for (method, operation) in METHODS.iter().filter_map(|method| Some((method, item.get(method)?))) {
                let operation = Operation::new(&references, &document, (path, method), item, operation, &mut warnings);
                operations.push(operation.with_context(|| format!("{} {path}", method.to_uppercase()))?);
            }
            let unserved = ["head", "options", "trace"].iter().filter(|method| item.get(method).is_some());
            warnings
                .extend(unserved.map(|method| format!("{} {path} is left out: the method isn't served", method.to_uppercase())));
        }
        let by_id = operations.iter().enumerate().map(|(index, operation)| (operation.id.clone(), index)).collect();
        let by_length = by_length(&operations);
        Ok(Self { prefixes: prefixes(&document), document, warnings, operations, by_id, by_length })
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

    /// The operation of a method, in capitals or not, at a path without a prefix.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(&self, method: &str, path: &str) -> Result<&Operation, RouteError> {
        let path: Vec<_> = segments(path).collect();
        let paths = self.by_length.get(path.len()).map(Vec::as_slice).unwrap_or_default();
        let operation = |index: &usize| &self.operations[*index];
        let is_asked_for = |indexes: &&Vec<usize>| indexes.first().is_some_and(|first| operation(first).template.matches(&path));
        let at_path = paths.iter().find(is_asked_for).ok_or(RouteError::NotFound)?;
        let found = at_path.iter().map(operation).find(|operation| operation.method.eq_ignore_ascii_case(method));
        found.ok_or_else(|| RouteError::MethodNotAllowed(at_path.iter().map(|index| operation(index).method.clone()).collect()))
    }

    /// The operation that answers a method at a path, and all that is wrong with an answer of it. An operation that the contract
    /// doesn't have may answer as it likes.
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

impl Operation {
    fn new<'a>(
        references: &References<'a>,
        document: &'a Value,
        (path, method): (&str, &str),
        item: &'a Value,
        operation: &'a Value,
        warnings: &mut Vec<String>,
    ) -> anyhow::Result<Self> {
        let text = |key: &str| operation[key].as_str().map(str::to_owned);
        let pointer = format!("/paths/{}/{method}", escape(path));
        let parameters = parameters(references, item, operation)?;
        let own_scopes = operation["x-scopes"].as_array();
        let mut scopes = Vec::new();
        for scope in own_scopes.into_iter().flatten() {
            match serde_json::from_value(scope.clone()) {
                Ok(scope) => scopes.push(scope),
                Err(_) => warnings.push(format!("{} {path}: the scope {scope} is not known", method.to_uppercase())),
            }
        }
        let is_own = own_scopes.is_some();
        let body = operation.get("requestBody").map(|body| RequestBody::new(references, references.follow(body), is_own));
        let security = security::alternatives(references, document, operation)?;
        let responses = operation["responses"].as_object().context("has no responses")?;
        let responses = || responses.iter().filter(|(status, _)| !status.starts_with("x-"));
        if responses().next().is_none() {
            warnings.push(format!("{} {path} declares no answer, and is answered with a failure", method.to_uppercase()));
        }
        let answer = |(status, node): (&String, &'a Value)| {
            ResponseSpec::new(references, format!("{pointer}/responses/{status}"), status, node)
        };
        Ok(Self {
            id: text("operationId").unwrap_or_else(|| format!("{method} {path}")),
            path: path.to_owned(),
            method: method.to_uppercase(),
            summary: text("summary").unwrap_or_default(),
            tags: serde_json::from_value(operation["tags"].clone()).unwrap_or_default(),
            scopes,
            needs_key: !security.is_empty() && security.iter().all(|all| !all.is_empty()),
            needs_version: is_own && parameters.iter().any(|parameter| parameter.name == "X-Client-Version"),
            security,
            credential_param: text("x-guessing"),
            is_secret: operation["x-secret"] == true,
            statuses: responses().filter_map(|(status, _)| status.parse().ok()).collect(),
            answers: responses().map(answer).collect::<anyhow::Result<_>>()?,
            // Told elsewhere in the document (OpenAPI 3.0, Parameter Object), or asked for by the front door.
            parameters: parameters.into_iter().filter(|parameter| !is_checked_elsewhere(parameter, is_own)).collect(),
            body: body.transpose()?,
            template: PathTemplate::new(path),
            is_builtin: is_own,
            pointer,
        })
    }

    /// The answer that the document declares for a status: the one that names it most closely.
    pub fn answer(&self, status: u16) -> Option<&ResponseSpec> {
        let declared = self.answers.iter().filter(|answer| answer.statuses.contains(&status));
        declared.min_by_key(|answer| answer.statuses.end() - answer.statuses.start())
    }

    /// All that is wrong with an answer.
    pub fn violations(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Vec<Violation> {
        self.answer(status).map_or_else(
            || {
                let text = format!("may not be answered: {}", String::from_utf8_lossy(body));
                let (pointer, normalized) = (format!("{}/responses", self.pointer), "is not declared".to_owned());
                vec![Violation { kind: ViolationKind::Status, pointer, text, normalized }]
            },
            |answer| answer.wrong(headers, body),
        )
    }

    /// The examples of its body in a media type, by name; one that has none is called `example`.
    pub fn request_examples(&self, media_type: &str) -> Map<String, Value> {
        let contents = self.body.as_ref().map(|body| body.contents.as_slice()).unwrap_or_default();
        let content = contents.iter().find(|content| response::matches_range(&content.media_type, media_type));
        content.map(|content| content.examples.clone()).unwrap_or_default()
    }

    /// Whether it has a parameter of this name.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter.name == name)
    }

    /// The largest body that it takes, in bytes; `None` where it takes none.
    pub fn body_limit(&self) -> Option<usize> {
        self.body.as_ref().map(|body| body.limit)
    }
}

/// Refuses a document that says that it is of another version. Nothing in the rest of it would be as it is read here.
fn check_version(document: &Value) -> anyhow::Result<()> {
    if let Some(version) = document.get("swagger") {
        bail!("it is Swagger {version}, not OpenAPI 3.0; convert it first: npx swagger2openapi FILE -o openapi.yaml");
    }
    match document.get("openapi").map(|version| version.as_str().unwrap_or_default()) {
        Some(version) if version != "3.0" && !version.starts_with("3.0.") => bail!(
            "it is OpenAPI {version}, not 3.0; convert it first: \
             npx @apiture/openapi-down-convert --input FILE --output openapi.yaml"
        ),
        _ => Ok(()),
    }
}

/// The parameters of an operation. Its own go before those of its path of the same name and place.
fn parameters<'a>(references: &References<'a>, item: &'a Value, operation: &'a Value) -> anyhow::Result<Vec<Parameter>> {
    let mut parameters: Vec<Parameter> = Vec::new();
    for node in [&item["parameters"], &operation["parameters"]].into_iter().filter_map(Value::as_array).flatten() {
        let parameter = Parameter::new(references, references.follow(node))?;
        match parameters.iter_mut().find(|known| (&known.name, known.place) == (&parameter.name, parameter.place)) {
            Some(known) => *known = parameter,
            None => parameters.push(parameter),
        }
    }
    Ok(parameters)
}

fn is_checked_elsewhere(parameter: &Parameter, is_own: bool) -> bool {
    let everywhere = ["accept", "content-type", "authorization"];
    let own = if is_own { ["x-client-version", "x-api-key"].as_slice() } else { &[] };
    let is = |name: &&str| parameter.name.eq_ignore_ascii_case(name);
    parameter.place == ParameterLocation::Header && everywhere.iter().chain(own).any(is)
}

/// For each number of segments, the operations of each path: literals go before variables.
fn by_length(operations: &[Operation]) -> Vec<Vec<Vec<usize>>> {
    let shape = |index: &usize| &operations[*index].template.shape;
    let mut indexes: Vec<_> = (0..operations.len()).collect();
    indexes.sort_by_key(shape);
    let mut by_length = vec![Vec::new(); indexes.iter().map(|index| shape(index).len() + 1).max().unwrap_or_default()];
    for at_path in indexes.chunk_by(|one, other| shape(one) == shape(other)) {
        by_length[shape(&at_path[0]).len()].push(at_path.to_vec());
    }
    by_length
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests;
