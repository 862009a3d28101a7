//! Operations of the document.

use std::collections::BTreeSet;

use http::HeaderMap;
use serde_json::{Map, Value};

use crate::callback::{self, Callback};
use crate::deprecation::Deprecation;
use crate::parameter::{Parameter, ParameterLocation};
use crate::path::{PathTemplate, Segment};
use crate::request_body::RequestBody;
use crate::resolver::{References, escape};
use crate::response::{self, ResponseSpec, Violation, ViolationKind};
use crate::scope::Scope;
use crate::security::{self, SecurityScheme};

/// An operation of the document.
#[derive(Debug)]
pub struct Operation {
    /// The `operationId`, which is also the name of the server's endpoint.
    pub id: String,
    /// The method, in capitals.
    pub method: String,
    /// The path, with variables in braces.
    pub path: String,
    /// Location in the document, as a JSON pointer.
    pub pointer: String,
    /// The one-line summary.
    pub summary: String,
    /// The tags that group operations.
    pub tags: Vec<String>,
    /// The scopes whose keys may call it (`x-scopes`).
    pub scopes: Vec<Scope>,
    /// True if a credential is required: in the built-in document, `X-API-Key`.
    pub needs_key: bool,
    /// Alternative security requirements. A request must satisfy all schemes of one of them. An empty alternative allows anonymous
    /// requests, and so does an empty list.
    pub security: Vec<Vec<SecurityScheme>>,
    /// True if `X-Client-Version` is declared.
    pub needs_version: bool,
    /// The argument that identifies the target of a guess (`x-guessing`): the account whose password or code the request tries. It
    /// is a path variable or a body property. `None` if the operation can't be used for guessing.
    pub guessing_argument: Option<String>,
    /// True if the response contains a key or a code that must not be cached (`x-secret`).
    pub is_secret: bool,
    /// The dates of a deprecated operation.
    pub deprecation: Option<Deprecation>,
    /// Every declared status.
    pub statuses: BTreeSet<u16>,
    /// Every declared response.
    pub responses: Vec<ResponseSpec>,
    /// The parameters that are validated here, in the document's order.
    pub parameters: Vec<Parameter>,
    /// The request body, if one is declared.
    pub body: Option<RequestBody>,
    /// The requests that a server sends because of this one.
    pub callbacks: Vec<Callback>,
    /// The parsed path, for matching requests.
    pub template: PathTemplate,
    /// True if it belongs to the built-in document, which is recognized by `x-scopes`. Its rules for blank values and for invalid
    /// path variables then apply.
    pub is_builtin: bool,
}

/// The method, the form of the path, and true if it ends with a slash. Requests to two operations with the same route look the same.
pub(crate) type Route = (String, Vec<Segment>, bool);

impl Operation {
    pub(crate) fn new<'a>(
        references: &References<'a>,
        document: &'a Value,
        (path, method): (&str, &str),
        item: &'a Value,
        operation: &'a Value,
        warnings: &mut Vec<String>,
    ) -> Self {
        let name = format!("{} {path}", method.to_uppercase());
        let mut warn = |warning: String| warnings.push(format!("{name}: {warning}"));
        let text = |key: &str| operation[key].as_str().map(str::to_owned);
        let pointer = format!("/paths/{}/{method}", escape(path));
        let template = PathTemplate::new(path);
        let parameters = parameters(references, item, operation, &template, &mut warn);
        let scopes = scopes(operation, &mut warn);
        let is_builtin = operation["x-scopes"].is_array();
        let body = operation.get("requestBody").map(|body| RequestBody::new(references, references.follow(body), is_builtin));
        let body = body.and_then(|body| body.map_err(|error| warn(format!("the body is not validated: {error:#}"))).ok());
        let security = security::alternatives(references, document, operation, &mut warn);
        let responses = responses(references, &pointer, operation, &mut warn);
        let deprecation = Deprecation::read(operation, is_builtin).unwrap_or_else(|error| {
            warn(format!("it is not deprecated: {error:#}"));
            None
        });
        if responses.is_empty() {
            warn("it declares no response: the server returns an error".to_owned());
        }
        Self {
            id: text("operationId").unwrap_or_else(|| format!("{method} {path}")),
            path: path.to_owned(),
            method: method.to_uppercase(),
            summary: text("summary").unwrap_or_default(),
            tags: serde_json::from_value(operation["tags"].clone()).unwrap_or_default(),
            scopes,
            needs_key: !security.is_empty() && security.iter().all(|all| !all.is_empty()),
            needs_version: is_builtin && parameters.iter().any(|parameter| parameter.name == "X-Client-Version"),
            security,
            guessing_argument: text("x-guessing"),
            is_secret: operation["x-secret"] == true,
            deprecation,
            statuses: responses.iter().filter_map(ResponseSpec::status).collect(),
            responses,
            parameters: parameters.into_iter().filter(|parameter| !is_checked_elsewhere(parameter, is_builtin)).collect(),
            body,
            template,
            callbacks: callback::read(references, &pointer, operation, warnings),
            is_builtin,
            pointer,
        }
    }

    /// Returns what requests to it are recognized by.
    pub(crate) fn route(&self) -> Route {
        (self.method.clone(), self.template.shape.clone(), self.template.ends_with_slash)
    }

    /// Returns the declared response for a status: the exact status wins over `4XX`, and `4XX` over `default`.
    pub fn response_for(&self, status: u16) -> Option<&ResponseSpec> {
        let declared = self.responses.iter().filter(|response| response.statuses.contains(&status));
        declared.min_by_key(|response| response.statuses.end() - response.statuses.start())
    }

    /// Returns if the document declares a status, by itself or by its range such as `4XX`. `default` declares none.
    pub fn declares(&self, status: u16) -> bool {
        self.response_for(status).is_some_and(|response| !response.is_default())
    }

    /// Returns all differences between a response and the document.
    pub fn violations(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Vec<Violation> {
        self.response_for(status).map_or_else(|| vec![self.undeclared(body)], |response| response.violations(headers, body))
    }

    /// Returns the violation of a response with this body whose status the document doesn't declare.
    pub fn undeclared(&self, body: &[u8]) -> Violation {
        Violation {
            kind: ViolationKind::Status,
            pointer: format!("{}/responses", self.pointer),
            text: match body {
                [] => "is not declared, and has no body".to_owned(),
                body => format!("is not declared: {}", String::from_utf8_lossy(body)),
            },
            normalized: "is not declared".to_owned(),
        }
    }

    /// Returns the examples of the request body in a media type, by name. An unnamed one is called `example`.
    pub fn request_examples(&self, media_type: &str) -> Map<String, Value> {
        let contents = self.body.as_ref().map(|body| body.contents.as_slice()).unwrap_or_default();
        let content = response::find_content(contents, media_type).map(|index| &contents[index]);
        content.map(|content| content.examples.clone()).unwrap_or_default()
    }

    /// Returns whether a parameter has this name.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter.name == name)
    }

    /// Returns the maximum size of the request body in bytes, or `None` if no body is declared.
    pub fn body_limit(&self) -> Option<usize> {
        self.body.as_ref().map(|body| body.limit)
    }
}

/// Returns the known scopes of an operation.
fn scopes(operation: &Value, warn: &mut impl FnMut(String)) -> Vec<Scope> {
    let mut scopes = Vec::new();
    for scope in operation["x-scopes"].as_array().into_iter().flatten() {
        match serde_json::from_value(scope.clone()) {
            Ok(scope) => scopes.push(scope),
            Err(_) => warn(format!("the scope {scope} is not known")),
        }
    }
    scopes
}

/// Returns the valid responses of the operation at `pointer`.
fn responses<'a>(
    references: &References<'a>,
    pointer: &str,
    operation: &'a Value,
    warn: &mut impl FnMut(String),
) -> Vec<ResponseSpec> {
    let mut responses = Vec::new();
    for (status, node) in operation["responses"].as_object().into_iter().flatten().filter(|(key, _)| !key.starts_with("x-")) {
        match ResponseSpec::new(references, format!("{pointer}/responses/{status}"), status, node) {
            Ok(response) => responses.push(response),
            Err(error) => warn(format!("the response {status} is left out: {error:#}")),
        }
    }
    responses
}

/// Returns the valid parameters of an operation. They override parameters of the path item with the same name and location.
fn parameters<'a>(
    references: &References<'a>,
    item: &'a Value,
    operation: &'a Value,
    template: &PathTemplate,
    warn: &mut impl FnMut(String),
) -> Vec<Parameter> {
    let mut parameters: Vec<Parameter> = Vec::new();
    for node in [&item["parameters"], &operation["parameters"]].into_iter().filter_map(Value::as_array).flatten() {
        let parameter = match Parameter::new(references, references.follow(node)) {
            Ok(parameter) => parameter,
            Err(error) => {
                warn(format!("a parameter is left out: {error:#}"));
                continue;
            }
        };
        match parameters.iter_mut().find(|shared| (&shared.name, shared.location) == (&parameter.name, parameter.location)) {
            Some(shared) => *shared = parameter,
            None => parameters.push(parameter),
        }
    }
    parameters.retain(|parameter| {
        let is_sent = parameter.location != ParameterLocation::Path || template.has_variable(&parameter.name);
        if !is_sent {
            warn(format!("a parameter is left out: the path has no variable {{{}}}", parameter.name));
        }
        is_sent
    });
    parameters
}

/// Returns whether a parameter is not validated as a parameter: OpenAPI 3.0 declares these headers elsewhere in the document
/// (Parameter Object), and the server checks those of the built-in document itself.
fn is_checked_elsewhere(parameter: &Parameter, is_builtin: bool) -> bool {
    let standard = ["accept", "content-type", "authorization"];
    let builtin = if is_builtin { ["x-client-version", "x-api-key"].as_slice() } else { &[] };
    let is = |name: &&str| parameter.name.eq_ignore_ascii_case(name);
    parameter.location == ParameterLocation::Header && standard.iter().chain(builtin).any(is)
}
