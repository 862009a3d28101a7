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
mod rejection;
mod responses;
mod state;
mod valid_request;
mod watcher;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use boxoffice_http::client_version::ClientVersion;
use boxoffice_http::error::{Code, Error};
use boxoffice_http::{
    ApiError, AuthorizedRequest, GracefulShutdown, IncomingRequest, Listener, RejectedRequest, RequestHandler, ServerHandle,
    check_version, etag, serve,
};
use boxoffice_openapi::{Contract, Operation, ParsedRequest};
use boxoffice_reference::ReferencePages;
use callbacks::CallbackSender;
use dropshot::Body;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Method, Response, StatusCode, header};
use impairment::Impairment;
use prefer_header::PreferHeader;
use responses::{GeneratedResponses, OperationResponses, RenderContext};
use slog::Logger;
use state::MockStore;
use tokio::sync::Mutex;
use valid_request::ValidRequest;

pub use callbacks::CallbackTargets;
pub use config_file::MockConfigFile;
pub use impairment::{DelayRange, FaultRule};
pub use watcher::FileWatcher;

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
        self.respond_rejected(request.contract, request.operation, error.into())
    }

    async fn respond(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        let AuthorizedRequest { incoming: request, contract, operation, principal: prefer, .. } = request;
        let head = &request.head;
        let prefer = prefer.as_deref();
        self.delay(prefer).await;
        if let Some(status) = self.impairment.next_fault(operation) {
            return self.respond_fault(contract, operation, status);
        }
        // The check of `If-Match` and the change are one step.
        let may_change = self.store.is_some() && operation.method != "GET";
        let changing = if may_change { Some(self.changes.lock().await) } else { None };
        if !prefer.is_some_and(PreferHeader::selects_response) && self.fails_if_match(contract, operation, head).await? {
            return self.respond_rejected(contract, operation, ApiError::from(Code::RESOURCE_CHANGED).into());
        }
        let valid = ValidRequest { contract, operation, prefer, head, arguments: &request.arguments };
        let mut response = self.build_response(&valid)?;
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
    /// Waits for the delay that the client prefers, or else for the next one of the settings.
    async fn delay(&self, prefer: Option<&PreferHeader>) {
        let preferred = prefer.and_then(|prefer| prefer.delay);
        if let Some(delay) = preferred.or_else(|| self.impairment.next_delay()) {
            tokio::time::sleep(delay).await;
        }
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
        let arguments = &ParsedRequest::default();
        let get = ValidRequest { contract, operation: get, prefer: None, head: &get_head, arguments };
        let Ok(response) = self.build_response(&get) else { return Ok(false) };
        // The document may have an error of its own for a missing resource.
        if !response.status().is_success() {
            return Ok(false);
        }
        let tag = etag::etag_of(&etag::collect_body(response.into_body()).await?);
        Ok(!etag::matches_strong(head.headers.get_all(header::IF_MATCH), &tag))
    }
}

/// Returns whether the document declares an `ETag` for this response.
fn declares_etag(operation: &Operation, response: &Response<Body>) -> bool {
    let spec = operation.response_for(response.status().as_u16()).filter(|_| response.status().is_success());
    spec.is_some_and(|spec| spec.headers.iter().any(|header| header.name.eq_ignore_ascii_case(header::ETAG.as_str())))
}
