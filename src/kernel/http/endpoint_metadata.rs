//! What the front door reads, refuses and adds for an endpoint by itself: each rule is stated here once. The front door asks it, and
//! the document that the server emits tells it. Headers that any answer may have (`http::headers`, `RateLimit` before a limit is
//! reached, `Idempotency-Replayed`) are told of none: the contract tells them in its introduction, or where they are asked for.

use std::collections::BTreeSet;

use boxoffice_http::client_version::ClientVersion;
use boxoffice_http::error::Code;
use boxoffice_http::error_response;
use boxoffice_http::etag::EntityTag;
use boxoffice_http::rate_limit;
use boxoffice_http::string_newtype;
use dropshot::{ApiEndpoint, ServerContext};
use http::header::{CONTENT_TYPE, ETAG, RETRY_AFTER};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use schemars::r#gen::SchemaSettings;
use serde_json::{Value, json};

string_newtype!(
    /// An `Idempotency-Key`.
    IdempotencyKey, None, Some("^[!-~]+$"), Some(1), Some(255)
);

/// How one endpoint is served.
#[derive(Debug)]
pub struct EndpointMetadata {
    method: Method,
    path: String,
    is_open: bool,
    is_change: bool,
    /// The headers that its type of answer declares.
    headers: Vec<String>,
}

impl EndpointMetadata {
    /// How this endpoint is served, if nothing else is told of it.
    pub fn new<C: ServerContext>(endpoint: &ApiEndpoint<C>) -> Self {
        Self {
            method: endpoint.method.clone(),
            path: endpoint.path.clone(),
            is_open: false,
            is_change: endpoint.method != Method::GET,
            headers: endpoint.response.headers.iter().map(|header| header.name.to_lowercase()).collect(),
        }
    }

    /// The same of an endpoint that a browser fetches by itself.
    pub fn public(self) -> Self {
        Self { is_open: true, ..self }
    }

    /// The same of an endpoint that changes something, whatever its method.
    pub fn mutating(self) -> Self {
        Self { is_change: true, ..self }
    }

    /// Its path, with variables in braces.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it asks for a client's version and a key, of which so many requests may come: a browser sends neither by itself.
    pub fn needs_key(&self) -> bool {
        !self.is_open
    }

    /// Whether its requests change something, so that something is kept of them.
    pub fn is_change(&self) -> bool {
        self.is_change
    }

    /// Whether requests with one `Idempotency-Key` are carried out once: those that would do something each time they are sent
    /// (RFC 9110, section 9.2.2).
    pub fn is_idempotency_keyed(&self) -> bool {
        self.needs_key() && [Method::POST, Method::PATCH].contains(&self.method)
    }

    /// Whether `If-Match` is a condition of its requests: they change or remove what is read at their path. A POST there adds to it.
    pub fn is_conditional(&self, has_reader: bool) -> bool {
        self.needs_key() && [Method::PUT, Method::DELETE].contains(&self.method) && has_reader
    }

    /// Whether whoever has its answer is told by 304, when `If-None-Match` names its tag.
    pub fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// Whether its answer has a tag: what a GET reads, what a PUT answers, which is the same, and what declares one.
    pub fn has_tag(&self) -> bool {
        [Method::GET, Method::PUT].contains(&self.method) || self.headers.iter().any(|header| header == ETAG.as_str())
    }

    /// Tells all of this in the operation that dropshot emits for the endpoint. `refusals` are the codes that its own rules can give,
    /// `errors` the responses of the emitted document: dropshot knows no other statuses of errors than `4XX` and `5XX`.
    pub fn describe(&self, operation: &mut Value, refusals: &[Code], is_conditional: bool, errors: &Value) {
        let codes = self.codes(operation, refusals, is_conditional);
        // Its name in the contract; that `X-API-Key` stands behind it is held to the requirement (`tests/it/requirement.rs`).
        operation["security"] = if self.needs_key() { json!([{ "SessionKey": [] }]) } else { json!([]) };
        let mut parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        parameters.extend(self.parameters(is_conditional));
        operation["parameters"] = parameters.into();
        let Some(responses) = operation["responses"].as_object_mut() else { return };
        let classes = ["4XX", "5XX"].map(|class| content(errors, &responses.remove(class).unwrap_or_default()));
        if let Some(success) = responses.values_mut().next() {
            self.tell_headers(success);
            if self.is_read() {
                let headers = success["headers"].clone();
                responses.insert(StatusCode::NOT_MODIFIED.as_str().to_owned(), json!({ "headers": headers }));
            }
        }
        for code in codes {
            let [client, server] = &classes;
            let content = if code.status().is_client_error() { client } else { server };
            let error = json!({ "headers": error_headers(code), "content": content });
            responses.insert(code.status().as_str().to_owned(), error);
        }
    }

    /// Everything that its requests may be refused with: by these rules, for the arguments and the body that dropshot emits, and by
    /// its own `refusals`.
    fn codes(&self, operation: &Value, refusals: &[Code], is_conditional: bool) -> BTreeSet<Code> {
        let parameters = || operation["parameters"].as_array().into_iter().flatten();
        let rules: [(bool, &[Code]); 8] = [
            (true, &[Code::ServerError, Code::ServerUnavailable]),
            (self.needs_key(), &[Code::ClientOutdated, Code::KeyMissing, Code::KeyRefused, Code::RequestsTooMany]),
            (self.is_idempotency_keyed(), &[Code::ArgumentsInvalid, Code::IdempotencyUnderWay, Code::IdempotencyOtherRequest]),
            (is_conditional, &[Code::ResourceChanged]),
            (parameters().next().is_some(), &[Code::ArgumentsInvalid]),
            (parameters().any(|parameter| parameter["in"] == "path"), &[Code::ResourceNotFound]),
            (parameters().any(|parameter| parameter["name"] == "page"), &[Code::PagePastEnd]),
            (
                operation.get("requestBody").is_some(),
                &[Code::BodyMalformed, Code::BodyTooSlow, Code::BodyTooLarge, Code::MediaTypeUnsupported],
            ),
        ];
        let of_rules = rules.iter().filter(|(holds, _)| *holds).flat_map(|(_, codes)| *codes);
        of_rules.chain(refusals).copied().collect()
    }

    /// The headers that the front door reads.
    fn parameters(&self, is_conditional: bool) -> impl Iterator<Item = Value> {
        let read = [
            (self.needs_key(), "X-Client-Version", true, schema::<ClientVersion>()),
            (self.is_idempotency_keyed(), "Idempotency-Key", false, schema::<IdempotencyKey>()),
            (is_conditional, "If-Match", false, schema::<String>()),
            (self.is_read(), "If-None-Match", false, schema::<String>()),
        ];
        let parameter =
            |(_, name, required, schema)| json!({ "name": name, "in": "header", "required": required, "schema": schema });
        read.into_iter().filter(|(holds, ..)| *holds).map(parameter)
    }

    /// The headers of its success that dropshot doesn't tell: its tag, and those that it declares beside a body of bytes.
    fn tell_headers(&self, success: &mut Value) {
        let is_raw = success["content"].get("*/*").is_some();
        let declared = self.headers.iter().filter(|_| is_raw).map(|name| (name.as_str(), schema::<String>()));
        let tag = self.has_tag().then(|| (ETAG.as_str(), schema::<EntityTag>()));
        for (name, schema) in declared.chain(tag) {
            if success["headers"].get(name).is_none() {
                success["headers"][name] = header(schema);
            }
        }
    }
}

/// What dropshot emits as the body of the errors that a reference leads to.
fn content(errors: &Value, reference: &Value) -> Value {
    let name = reference["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    errors[name.unwrap_or_default()]["content"].clone()
}

/// The headers that an error always has, beside that of its body.
fn error_headers(code: Code) -> Value {
    let response = error_response(&code.into());
    let of_limits = rate_limit::HEADERS.into_iter().filter(|_| code == Code::RequestsTooMany);
    let names = response.headers().keys().filter(|name| *name != CONTENT_TYPE).cloned().chain(of_limits);
    let schema_of = |name| if name == RETRY_AFTER { json!({ "type": "integer", "minimum": 1 }) } else { schema::<String>() };
    names.map(|name| (name.to_string(), header(schema_of(name)))).collect()
}

/// A header that is always there.
fn header(schema: Value) -> Value {
    json!({ "required": true, "schema": schema })
}

fn schema<T: JsonSchema>() -> Value {
    json!(T::json_schema(&mut SchemaSettings::openapi3().into_generator()))
}
