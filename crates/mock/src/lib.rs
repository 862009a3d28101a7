//! `boxoffice mock`: a server that generates its responses from an OpenAPI document, behind the same dispatcher as the platform.
//!
//! Each request is validated against the document and rejected with the platform's errors. The response to a valid request is an
//! example of the document, or data generated from its schemas. A client selects among them with the `Prefer` header.

mod authentication;
mod body;
mod callbacks;
mod config_file;
mod impairment;
mod prefer_header;
mod responses;
mod state;
mod watcher;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use boxoffice_http::client_version::ClientVersion;
use boxoffice_http::error::{Code, Error, FieldError};
use boxoffice_http::{
    ApiError, AuthorizedRequest, GracefulShutdown, IncomingRequest, Listener, RejectedRequest, RequestHandler, ServerHandle,
    check_version, etag, serve,
};
use boxoffice_openapi::{Contract, Operation, ParsedRequest};
use boxoffice_reference::ReferencePages;
use callbacks::{CallbackSender, server_url};
use dropshot::Body;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use impairment::Impairment;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use prefer_header::{PREFER, PREFERENCE_APPLIED, PreferHeader};
use responses::{GeneratedResponses, OperationResponses, RenderContext, SelectionError};
use serde_json::json;
use sha2::{Digest, Sha256};
use slog::{Logger, error, info};
use state::{MockRequest, MockStore};
use tokio::sync::Mutex;

pub use callbacks::CallbackTargets;
pub use config_file::MockConfigFile;
pub use impairment::{DelayRange, FaultRule};
pub use watcher::FileWatcher;

/// Reason of a rejection, for documents whose errors have no place for it.
const MOCK_REFUSAL: HeaderName = HeaderName::from_static("x-mock-refusal");

/// Settings of a mock.
#[derive(Debug, Clone, Default)]
pub struct MockSettings {
    /// Seed for generated data: the same request and seed produce the same data.
    pub seed: u64,
    /// The only accepted key; `None` accepts any.
    pub key: Option<String>,
    /// If true, the mock stores created and changed resources until it stops.
    pub is_stateful: bool,
    /// The delay of every response.
    pub delay: Option<DelayRange>,
    /// Rules for failing requests.
    pub faults: Vec<FaultRule>,
    /// The servers that the document's callbacks may be sent to; `None` sends none.
    pub callbacks: Option<CallbackTargets>,
}

impl MockSettings {
    /// Checks whether a mock of a document can have these settings.
    ///
    /// # Errors
    /// Returns an error if a fault names an operation that the document doesn't have.
    pub fn validate(&self, contract: &Contract) -> anyhow::Result<()> {
        Impairment::new(self, contract).map(|_| ())
    }
}

/// The handler behind the dispatcher.
struct Mock {
    settings: MockSettings,
    minimum_client_version: ClientVersion,
    /// By the operation's pointer. Operation identifiers may be missing in a document, and so not be unique.
    responses: HashMap<String, OperationResponses>,
    generated: GeneratedResponses,
    store: Option<MockStore>,
    /// Held while a request may change the store.
    changes: Mutex<()>,
    impairment: Impairment,
    callbacks: Option<CallbackSender>,
    /// The scheme of the mock's own URL.
    scheme: &'static str,
    reference_pages: Arc<ReferencePages>,
    log: Logger,
}

/// A rejection of a request.
struct Rejection {
    status: StatusCode,
    /// The reason, for the client and the log.
    reason: String,
    /// The platform's JSON body.
    body: Vec<u8>,
}

impl Rejection {
    fn new(status: StatusCode, code: &str, reason: String) -> Self {
        let body = json!({ "message": reason, "code": code }).to_string().into_bytes();
        Self { status, reason, body }
    }
}

impl From<&ApiError> for Rejection {
    fn from(error: &ApiError) -> Self {
        Self { status: error.status(), reason: error.to_string(), body: error.body().unwrap_or_default() }
    }
}

/// Starts a mock of a document.
///
/// # Errors
/// Returns an error if the server cannot listen on the address, or a fault names an operation that the document doesn't have.
pub fn start(
    contract: impl Into<Arc<Contract>>,
    settings: MockSettings,
    listener: impl Into<Listener>,
    log: &Logger,
) -> anyhow::Result<ServerHandle> {
    let (contract, listener) = (contract.into(), listener.into());
    let reference_pages = Arc::new(ReferencePages::new(Arc::clone(&contract), &address_of(&listener)));
    let responses =
        contract.operations().map(|operation| (operation.pointer.clone(), OperationResponses::new(operation))).collect();
    let generated = GeneratedResponses::default();
    let context = RenderContext { contract: &contract, seed: settings.seed, log, generated: &generated };
    let store = settings.is_stateful.then(|| MockStore::new(&context, &responses));
    let minimum_client_version = "3.0.0".parse()?;
    let impairment = Impairment::new(&settings, &contract)?;
    let scheme = if listener.certificate.is_some() { "https" } else { "http" };
    let callbacks = settings.callbacks.clone().map(|targets| CallbackSender::new(targets, &contract, scheme, log)).transpose()?;
    let mock = Mock {
        impairment,
        callbacks,
        scheme,
        settings,
        minimum_client_version,
        responses,
        generated,
        store,
        changes: Mutex::default(),
        reference_pages,
        log: log.clone(),
    };
    serve(contract, mock, listener, log)
}

/// Returns the URL of a listener. One that listens on every address is reached at the local one.
fn address_of(listener: &Listener) -> String {
    let scheme = if listener.certificate.is_some() { "https" } else { "http" };
    let mut address = listener.address;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    format!("{scheme}://{address}")
}

impl RequestHandler for Mock {
    type Route = ();
    type Principal = Option<Box<PreferHeader>>;
    /// Off, because an invalid preference is 400 for every operation.
    const VALIDATES_RESPONSES: bool = false;

    fn look_up(&self, _: &Operation) -> Option<()> {
        Some(())
    }

    async fn authenticate(
        &self,
        operation: &Operation,
        (): &(),
        incoming: &IncomingRequest,
    ) -> Result<Option<Box<PreferHeader>>, ApiError> {
        let head = &incoming.head;
        if operation.needs_version {
            check_version(&head.headers, self.minimum_client_version)?;
        }
        let prefer = PreferHeader::from_headers(&head.headers);
        let scope = prefer.as_ref().and_then(|prefer| prefer.scope);
        authentication::authenticate(operation, head, self.settings.key.as_deref(), scope)?;
        Ok(prefer.map(Box::new))
    }

    fn respond_outside_contract(&self, path: &str, _: &Arc<GracefulShutdown>) -> Option<BoxFuture<'static, Response<Body>>> {
        let path = boxoffice_reference::PATHS.into_iter().find(|known| *known == path)?;
        Some(self.reference_pages.respond(path))
    }

    async fn reject(&self, request: RejectedRequest<'_, Self>, error: ApiError) -> Result<Response<Body>, ApiError> {
        self.delay(request.principal.and_then(|prefer| prefer.as_deref())).await;
        self.reject(request.contract, request.operation, error)
    }

    async fn respond(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        let AuthorizedRequest { incoming: request, contract, operation, principal: prefer, .. } = request;
        let head = &request.head;
        let prefer = prefer.as_deref();
        self.delay(prefer).await;
        if let Some(status) = self.impairment.next_fault(operation) {
            return Ok(self.respond_fault(contract, operation, status));
        }
        // The check of `If-Match` and the change are one step.
        let may_change = self.store.is_some() && operation.method != "GET";
        let changing = if may_change { Some(self.changes.lock().await) } else { None };
        if !prefer.is_some_and(PreferHeader::selects_response) && self.fails_if_match(contract, operation, head).await? {
            return self.reject(contract, operation, Code::RESOURCE_CHANGED.into());
        }
        let mut response = self.respond(contract, operation, prefer, head, &request.arguments)?;
        drop(changing);
        if let Some(callbacks) =
            self.callbacks.as_ref().filter(|_| response.status().is_success() && !operation.callbacks.is_empty())
        {
            response = callbacks.send(operation, &request, response).await?;
        }
        if !declares_etag(operation, &response) {
            return Ok(response);
        }
        let is_conditional = operation.statuses.contains(&StatusCode::NOT_MODIFIED.as_u16());
        let if_none_match = if is_conditional { etag::if_none_match(&head.headers) } else { Vec::new() };
        // The example of an ETag in the document doesn't match this body.
        if etag::is_json(response.headers()) {
            response.headers_mut().remove(header::ETAG);
        }
        Ok(etag::with_etag(response, operation.needs_key, &if_none_match).await?)
    }
}

impl Mock {
    fn responses_of(&self, operation: &Operation) -> Option<&OperationResponses> {
        self.responses.get(&operation.pointer)
    }

    fn render_context<'a>(&'a self, contract: &'a Contract) -> RenderContext<'a> {
        RenderContext { contract, seed: self.settings.seed, log: &self.log, generated: &self.generated }
    }

    /// Waits for the delay that the client prefers, or else for the next one of the settings.
    async fn delay(&self, prefer: Option<&PreferHeader>) {
        let preferred = prefer.and_then(|prefer| prefer.delay);
        if let Some(delay) = preferred.or_else(|| self.impairment.next_delay()) {
            tokio::time::sleep(delay).await;
        }
    }

    /// Returns a request's own seed, so that different requests get different data. The server's path prefix has no influence.
    fn request_seed(&self, contract: &Contract, head: &Parts, arguments: &ParsedRequest) -> u64 {
        let mut hash = Sha256::new();
        hash.update(self.settings.seed.to_be_bytes());
        hash.update(head.method.as_str());
        hash.update(contract.without_prefix(head.uri.path()));
        hash.update(head.uri.query().map(|query| format!("?{query}")).unwrap_or_default());
        if !arguments.body.is_null() {
            hash.update(arguments.body.to_string());
        }
        hash.finalize().iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
    }

    /// Rejects a request with the platform's error, unless the document declares another status or errors of another shape.
    fn reject(&self, contract: &Contract, operation: &Operation, error: ApiError) -> Result<Response<Body>, ApiError> {
        let rejection = Rejection::from(&error);
        let response = self.declared_rejection(contract, operation, &rejection);
        response.ok_or(error)
    }

    /// Returns the response to a request that fails by a rule.
    fn respond_fault(&self, contract: &Contract, operation: &Operation, status: StatusCode) -> Response<Body> {
        let reason = "The request fails by a rule of the mock.".to_owned();
        let fault = Rejection::new(status, "mock.fault", reason);
        let mut response = match operation.response_for(status.as_u16()) {
            Some(_) => self.respond_rejected(contract, operation, &fault),
            None => platform_error(status, &fault.body),
        };
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().entry(header::RETRY_AFTER).or_insert(HeaderValue::from_static("1"));
        }
        response
    }

    /// Returns the response to a rejected request.
    fn respond_rejected(&self, contract: &Contract, operation: &Operation, rejection: &Rejection) -> Response<Body> {
        self.declared_rejection(contract, operation, rejection)
            .unwrap_or_else(|| platform_error(rejection.status, &rejection.body))
    }

    /// Returns the response that the document declares for a rejection; `None` if the platform's own error fits. An error of another
    /// shape may have no place for the reason, which is therefore also sent in a header and logged.
    fn declared_rejection(&self, contract: &Contract, operation: &Operation, rejection: &Rejection) -> Option<Response<Body>> {
        let status = declared_status(operation, rejection.status);
        let spec = operation.response_for(status.as_u16())?;
        let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))].into_iter().collect();
        if spec.violations(&headers, &rejection.body).is_empty() {
            return (status != rejection.status).then(|| platform_error(status, &rejection.body));
        }
        let prefer = PreferHeader { code: Some(status.as_u16()), ..PreferHeader::default() };
        let selected = self.responses_of(operation)?.select(operation, Some(&prefer), None).ok()?;
        let reason = rejection.reason.as_str();
        info!(self.log, "request rejected"; "operation" => &operation.id, "status" => status.as_u16(), "reason" => reason);
        // If the body can't be generated, the platform's error is better than a 500.
        let mut response = selected.render_error(&self.render_context(contract), reason, self.settings.seed).ok()?;
        response.headers_mut().extend(HeaderValue::try_from(reason).ok().map(|reason| (MOCK_REFUSAL, reason)));
        Some(response)
    }

    /// Returns whether `If-Match` doesn't match the response to a GET of this path. If that GET fails, the operation itself
    /// reports it.
    async fn fails_if_match(&self, contract: &Contract, operation: &Operation, head: &Parts) -> Result<bool, ApiError> {
        if !head.headers.contains_key(header::IF_MATCH) || !operation.has_parameter("If-Match") {
            return Ok(false);
        }
        let Ok(get) = contract.find("GET", contract.without_prefix(head.uri.path())) else { return Ok(false) };
        let mut get_head = head.clone();
        get_head.method = Method::GET;
        get_head.uri = head.uri.path().parse().map_err(anyhow::Error::from).map_err(Error::Internal)?;
        let Ok(response) = self.respond(contract, get, None, &get_head, &ParsedRequest::default()) else { return Ok(false) };
        // The document may have an error of its own for a missing resource.
        if !response.status().is_success() {
            return Ok(false);
        }
        let tag = etag::etag_of(&etag::collect_body(response.into_body()).await?);
        Ok(!etag::matches_strong(head.headers.get_all(header::IF_MATCH), &tag))
    }

    /// Returns a response from the stored resources, or else from the document.
    fn respond(
        &self,
        contract: &Contract,
        operation: &Operation,
        prefer: Option<&PreferHeader>,
        head: &Parts,
        arguments: &ParsedRequest,
    ) -> Result<Response<Body>, ApiError> {
        let mut errors = prefer.map(|prefer| prefer.errors.clone()).unwrap_or_default();
        let Some(responses) = self.responses_of(operation).filter(|_| !operation.responses.is_empty()) else {
            let reason = format!("The document declares no response of {} {}.", operation.method, operation.path);
            return Ok(platform_error(
                StatusCode::NOT_IMPLEMENTED,
                &Rejection::new(StatusCode::NOT_IMPLEMENTED, "response.undeclared", reason).body,
            ));
        };
        // The platform sends JSON to every client.
        let accept = head.headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let accept: Vec<_> = accept.filter(|_| !operation.is_builtin).collect();
        let accept = (!accept.is_empty()).then(|| accept.join(","));
        let selected = match responses.select(operation, prefer, accept.as_deref()) {
            Ok(selected) => Some(selected),
            Err(SelectionError::UnknownPreference(detail)) => {
                errors.push(FieldError::invalid(PREFER, detail));
                None
            }
            Err(SelectionError::NotAcceptable(types)) => {
                let reason = format!("The response has none of the accepted media types. Accept one of: {types}.");
                let rejection = Rejection::new(StatusCode::NOT_ACCEPTABLE, "media-type.not-acceptable", reason);
                return Ok(self.respond_rejected(contract, operation, &rejection));
            }
            Err(SelectionError::XmlNotGenerated) => {
                let reason = "The mock generates no XML. Add an example as text to the document, or accept JSON.".to_owned();
                let rejection = Rejection::new(StatusCode::NOT_IMPLEMENTED, "xml.not-generated", reason);
                return Ok(self.respond_rejected(contract, operation, &rejection));
            }
        };
        let Some(selected) = selected.filter(|_| errors.is_empty()) else {
            return self.reject(contract, operation, Error::Invalid(errors).into());
        };
        let seed = || self.request_seed(contract, head, arguments);
        let context = self.render_context(contract);
        let path = contract.without_prefix(head.uri.path());
        let prefix = head.uri.path().strip_suffix(path).unwrap_or_default();
        let mut numbers = None;
        let stored = match self.store.as_ref().filter(|_| !prefer.is_some_and(PreferHeader::selects_response)) {
            Some(store) => {
                let request =
                    MockRequest { operation, path, prefix, arguments, selected: &selected, context: &context, seed: seed() };
                match store.respond(&request) {
                    Ok(stored) => stored,
                    Err(error) => return self.reject(contract, operation, error.into()),
                }
            }
            None => None,
        };
        let response = match stored {
            Some(stored) => {
                numbers = stored.numbers;
                let path = stored.location.map(|path| format!("{prefix}{}", percent_encode(&path)));
                let path = stored.value["self"].as_str().map(str::to_owned).or(path);
                // The document may demand an absolute URI.
                let url = path.iter().map(|path| server_url(self.scheme, head) + path);
                let locations: Vec<_> = path.iter().cloned().chain(url).collect();
                selected.render_body(&context, &stored.value, &locations)
            }
            None => selected.render(&context, prefer.is_some_and(|prefer| prefer.is_dynamic), seed),
        };
        let mut response = match response {
            Ok(response) => response,
            Err(error) => {
                let reason = format!("The response can't be generated: {error:#}");
                error!(self.log, "response not generated"; "operation" => &operation.id, "cause" => &reason);
                let rejection = Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, "response.not-generated", reason);
                return Ok(self.respond_rejected(contract, operation, &rejection));
            }
        };
        if let Some(numbers) = numbers {
            for (name, value) in response.headers_mut().iter_mut() {
                if let Some(number) = numbers.of_header(name.as_str()) {
                    *value = number.into();
                }
            }
        }
        let applied = prefer.and_then(PreferHeader::applied);
        response.headers_mut().extend(applied.map(|applied| (PREFERENCE_APPLIED, applied)));
        Ok(response)
    }
}

/// Returns a path of the store as the path of a URI. The store's paths are percent-decoded, except for `%2F`.
fn percent_encode(path: &str) -> String {
    // The percent sign, and the characters that RFC 3986 does not allow in a path.
    const RESERVED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'[');
    const RESERVED_IN_PATH: &AsciiSet = &RESERVED.add(b'\\').add(b']').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');
    utf8_percent_encode(path, RESERVED_IN_PATH).to_string().replace("%252F", "%2F")
}

/// Returns the status of a rejection: 422 for invalid arguments if the document declares it and not 400.
fn declared_status(operation: &Operation, status: StatusCode) -> StatusCode {
    let is_declared = |status: StatusCode| operation.statuses.contains(&status.as_u16());
    let is_422 = status == StatusCode::BAD_REQUEST && !is_declared(status) && is_declared(StatusCode::UNPROCESSABLE_ENTITY);
    if is_422 { StatusCode::UNPROCESSABLE_ENTITY } else { status }
}

/// Returns an error response with the platform's JSON body.
fn platform_error(status: StatusCode, body: &[u8]) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_vec()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns whether the document declares an `ETag` for this response.
fn declares_etag(operation: &Operation, response: &Response<Body>) -> bool {
    let spec = operation.response_for(response.status().as_u16()).filter(|_| response.status().is_success());
    spec.is_some_and(|spec| spec.headers.iter().any(|header| header.name.eq_ignore_ascii_case(header::ETAG.as_str())))
}
