//! Metadata of endpoints: the request headers that the handler reads, and the errors and response headers that it adds. Each rule
//! is stated once. The handler follows it, and the emitted OpenAPI document describes it.
//!
//! The security headers common to all responses (`boxoffice_http::response_headers`) are not listed per operation.

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

/// Extension of an emitted response: its error codes, for the error catalogue.
pub const CODES: &str = "x-codes";

/// The metadata of an endpoint.
#[derive(Debug)]
pub struct EndpointMetadata {
    method: Method,
    path: String,
    /// True if requests need an API key and a client version. A browser sends neither by itself.
    pub(super) needs_key: bool,
    /// True if requests change something, so that they run in a unit of work and are audited.
    pub(super) is_mutating: bool,
    /// False for a GET whose responses have no entity tag, because they are streamed.
    pub(super) is_tagged: bool,
    /// The headers that the response type declares.
    headers: Vec<String>,
}

impl EndpointMetadata {
    /// Creates the metadata of an endpoint with authentication. It changes something unless its method is GET.
    pub fn new<C: ServerContext>(endpoint: &ApiEndpoint<C>) -> Self {
        Self {
            method: endpoint.method.clone(),
            path: endpoint.path.clone(),
            needs_key: true,
            is_mutating: endpoint.method != Method::GET,
            is_tagged: true,
            headers: endpoint.response.headers.iter().map(|header| header.name.to_lowercase()).collect(),
        }
    }

    /// Returns the method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the path, with variables in braces.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns whether `Idempotency-Key` is supported. Only methods that are not idempotent by themselves need it (RFC 9110,
    /// section 9.2.2).
    pub fn is_idempotency_keyed(&self) -> bool {
        self.needs_key && [Method::POST, Method::PATCH].contains(&self.method)
    }

    /// Returns whether `If-Match` is supported: for requests that change or delete the resource that a GET of the same path
    /// reads. A POST only adds to it.
    pub fn is_conditional(&self, has_reader: bool) -> bool {
        self.needs_key && [Method::PUT, Method::DELETE].contains(&self.method) && has_reader
    }

    /// Returns whether `If-None-Match` is supported: a matching entity tag results in 304.
    pub fn is_read(&self) -> bool {
        self.method == Method::GET && self.is_tagged
    }

    /// Returns whether a success has an entity tag: for GET, for PUT, which returns the same representation, and for a response
    /// type that declares it.
    pub fn has_tag(&self) -> bool {
        self.is_tagged && [Method::GET, Method::PUT].contains(&self.method)
            || self.headers.iter().any(|header| header == ETAG.as_str())
    }

    /// Adds the metadata to the operation that dropshot emits for the endpoint. `own_codes` are the error codes of its own rules,
    /// `error_responses` the error responses of the emitted document. dropshot emits errors as `4XX` and `5XX` only; they are
    /// replaced by the status of each code.
    pub fn describe(&self, operation: &mut Value, own_codes: &[Code], is_conditional: bool, error_responses: &Value) {
        let codes = self.codes(operation, own_codes, is_conditional);
        // The scheme's name in the contract. `tests/conformance/requirement.rs` checks that it is the header `X-API-Key`.
        operation["security"] = if self.needs_key { json!([{ "SessionKey": [] }]) } else { json!([]) };
        let mut parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        parameters.extend(self.parameters(is_conditional));
        operation["parameters"] = parameters.into();
        let Some(responses) = operation["responses"].as_object_mut() else { return };
        let classes = ["4XX", "5XX"].map(|class| content(error_responses, &responses.remove(class).unwrap_or_default()));
        if let Some(success) = responses.values_mut().next() {
            self.describe_headers(success);
            if self.is_read() {
                let headers = success["headers"].clone();
                responses.insert(StatusCode::NOT_MODIFIED.as_str().to_owned(), json!({ "headers": headers }));
            }
        }
        for code in codes {
            let [client, server] = &classes;
            let content = if code.status().is_client_error() { client } else { server };
            let error = json!({ "headers": error_headers(code), "content": content, CODES: [] });
            let response = responses.entry(code.status().as_str()).or_insert(error);
            response[CODES].as_array_mut().into_iter().for_each(|codes| codes.push(code.as_str().into()));
        }
        for (status, response) in responses {
            self.describe_optional_headers(status, response);
        }
    }

    /// Adds the headers that the server sends with any response: the request's identifier, ignored query parameters, the rate
    /// limit if the request was counted, and a mark if the response is a replay.
    fn describe_optional_headers(&self, status: &str, response: &mut Value) {
        let is_error = status.starts_with('4') && status != StatusCode::TOO_MANY_REQUESTS.as_str();
        let may_be_replay = is_error || status.starts_with('2') && self.is_idempotency_keyed();
        let names = ["x-request-id", "x-ignored-parameters", "ratelimit", "ratelimit-policy"];
        for name in names.into_iter().chain(may_be_replay.then_some("idempotency-replayed")) {
            if response["headers"].get(name).is_none() {
                response["headers"][name] = json!({ "schema": schema::<String>() });
            }
        }
    }

    /// Returns all codes with which requests may be rejected: by the rules of the metadata, for the parameters and the body that
    /// dropshot emits, and by the endpoint's own rules.
    fn codes(&self, operation: &Value, own_codes: &[Code], is_conditional: bool) -> BTreeSet<Code> {
        let parameters = || operation["parameters"].as_array().into_iter().flatten();
        let rules: [(bool, &[Code]); 8] = [
            (true, &[Code::REQUESTS_TOO_MANY, Code::SERVER_ERROR, Code::SERVER_UNAVAILABLE]),
            (self.needs_key, &[Code::CLIENT_OUTDATED, Code::KEY_MISSING, Code::KEY_REFUSED, Code::RESOURCE_NOT_YOURS]),
            (
                self.is_idempotency_keyed(),
                &[Code::ARGUMENTS_INVALID, Code::IDEMPOTENCY_UNDER_WAY, Code::IDEMPOTENCY_OTHER_REQUEST],
            ),
            (is_conditional, &[Code::RESOURCE_CHANGED]),
            (parameters().any(|parameter| parameter["in"] != "path"), &[Code::ARGUMENTS_INVALID]),
            (parameters().any(|parameter| parameter["in"] == "path"), &[Code::RESOURCE_NOT_FOUND]),
            (parameters().any(|parameter| parameter["name"] == "page"), &[Code::PAGE_PAST_END]),
            (
                operation.get("requestBody").is_some(),
                &[Code::BODY_MALFORMED, Code::BODY_TOO_SLOW, Code::BODY_TOO_LARGE, Code::MEDIA_TYPE_UNSUPPORTED],
            ),
        ];
        let implied = rules.iter().filter(|(applies, _)| *applies).flat_map(|(_, codes)| *codes);
        implied.chain(own_codes).copied().collect()
    }

    /// Returns the request headers that the handler reads, as parameters of the operation.
    fn parameters(&self, is_conditional: bool) -> impl Iterator<Item = Value> {
        let headers = [
            (self.needs_key, "X-Client-Version", true, schema::<ClientVersion>()),
            (self.is_idempotency_keyed(), "Idempotency-Key", false, schema::<IdempotencyKey>()),
            (is_conditional, "If-Match", false, schema::<String>()),
            (self.is_read(), "If-None-Match", false, schema::<String>()),
        ];
        let parameter =
            |(_, name, required, schema)| json!({ "name": name, "in": "header", "required": required, "schema": schema });
        headers.into_iter().filter(|(applies, ..)| *applies).map(parameter)
    }

    /// Adds the response headers that dropshot doesn't emit: the entity tag, and the declared headers of a response that is not
    /// JSON.
    fn describe_headers(&self, success: &mut Value) {
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

/// Returns the content of the error response that `reference` refers to.
fn content(errors: &Value, reference: &Value) -> Value {
    let name = reference["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    errors[name.unwrap_or_default()]["content"].clone()
}

/// Returns the headers that an error always has, without the content type.
fn error_headers(code: Code) -> Value {
    let response = error_response(&code.into());
    let of_limits = rate_limit::HEADERS.into_iter().filter(|_| code == Code::REQUESTS_TOO_MANY);
    let names = response.headers().keys().filter(|name| *name != CONTENT_TYPE).cloned().chain(of_limits);
    let schema_of = |name| if name == RETRY_AFTER { json!({ "type": "integer", "minimum": 1 }) } else { schema::<String>() };
    names.map(|name| (name.to_string(), header(schema_of(name)))).collect()
}

/// Returns the description of a header that is always present.
fn header(schema: Value) -> Value {
    json!({ "required": true, "schema": schema })
}

fn schema<T: JsonSchema>() -> Value {
    json!(T::json_schema(&mut SchemaSettings::openapi3().into_generator()))
}
