//! `boxoffice mock`: a server that answers from an OpenAPI document alone, behind the same front door as the platform.
//!
//! Each request is held against the document, and refused in the platform's words where it isn't as the document says. What
//! passes is answered with an example of the document, or with data made from its schemas; [`prefer`] tells how a caller
//! chooses among them.

mod responses;
mod body;
mod key;
pub mod prefer_header;
mod state;

use std::collections::HashMap;

use dropshot::Body;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use slog::{Logger, info};

use boxoffice_http::client_version::ClientVersion;
use boxoffice_openapi::{Contract, Operation, ParsedRequest};
use boxoffice_http::error::{Code, Error, FieldError};
use boxoffice_http::{
    ApiError, AuthorizedRequest, Listener, RejectedRequest, RequestHandler, ServerHandle, check_version, serve, etag,
};
use responses::{OperationResponses, RenderContext};
use prefer_header::{APPLIED, PREFER, PreferHeader};
use state::{MockRequest, MockStore};

/// The header that tells why a request was refused, where the document's error may not.
const REFUSAL: HeaderName = HeaderName::from_static("x-mock-refusal");

/// How a mock behaves.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What made data follow from: the same request and seed give the same data.
    pub seed: u64,
    /// The only key that is accepted; any, where there is none.
    pub key: Option<String>,
    /// Whether it keeps what it is given, until it ends.
    pub is_stateful: bool,
}

/// What answers behind the front door.
struct Mock {
    settings: Settings,
    minimum_client_version: ClientVersion,
    /// By the operations' pointers, which are never alike, as their identifiers may be where the document has none.
    answers: HashMap<String, OperationResponses>,
    state: Option<MockStore>,
    log: Logger,
}

/// Starts a mock of this document.
///
/// # Errors
/// When the address cannot be had.
pub fn start(
    contract: Contract,
    settings: Settings,
    listener: impl Into<Listener>,
    log: &Logger,
) -> anyhow::Result<ServerHandle<()>> {
    let answers = contract.operations().map(|operation| (operation.pointer.clone(), OperationResponses::of(operation))).collect();
    let making = RenderContext { contract: &contract, seed: settings.seed, log };
    let state = settings.is_stateful.then(|| MockStore::new(&making, &answers));
    let minimum_client_version = "3.0.0".parse()?;
    let mock = Mock { settings, minimum_client_version, answers, state, log: log.clone() };
    serve((), contract, mock, listener, log)
}

impl Mock {
    fn answers(&self, operation: &Operation) -> Result<&OperationResponses, ApiError> {
        let answers = self.answers.get(&operation.pointer).filter(|_| !operation.answers.is_empty());
        answers.ok_or_else(|| Error::Internal(anyhow::anyhow!("{} declares no answer", operation.pointer)).into())
    }

    fn making<'a>(&'a self, contract: &'a Contract) -> RenderContext<'a> {
        RenderContext { contract, seed: self.settings.seed, log: &self.log }
    }

    /// A request's own seed: requests that differ get data that differ, but for the path of the server.
    fn seed(&self, contract: &Contract, head: &Parts, arguments: &ParsedRequest) -> u64 {
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

    /// With the platform's error, unless the document declares errors of another shape for this status: then a header and the log
    /// tell the reason, as the body may have no place for it.
    fn refusal(&self, contract: &Contract, operation: &Operation, failure: ApiError) -> Result<Response<Body>, ApiError> {
        let status = failure.status().as_u16();
        let Some(answer) = operation.answer(status) else { return Err(failure) };
        let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))].into_iter().collect();
        if answer.wrong(&headers, &failure.body().unwrap_or_default()).is_empty() {
            return Err(failure);
        }
        let preferences = PreferHeader { code: Some(status), ..PreferHeader::default() };
        let choice = self.answers(operation)?.choose(operation, Some(&preferences), None);
        let reason = failure.to_string();
        info!(self.log, "refused"; "operation" => &operation.id, "status" => status, "reason" => &reason);
        let response = choice.map(|choice| choice.error_response(&self.making(contract), &reason, self.settings.seed));
        // What can't be made is told by the platform's error still better than by a failure.
        let Some(mut response) = response.ok().and_then(Result::ok) else { return Err(failure) };
        response.headers_mut().extend(HeaderValue::try_from(reason).ok().map(|reason| (REFUSAL, reason)));
        Ok(response)
    }
}

impl RequestHandler for Mock {
    type Context = ();
    type Route = ();
    type Principal = Option<Box<PreferHeader>>;
    /// A preference that can't be followed is 400 everywhere.
    const VALIDATES_RESPONSES: bool = false;

    fn look_up(&self, _: &Operation) -> Option<()> {
        Some(())
    }

    async fn authenticate(
        &self,
        (): &(),
        operation: &Operation,
        (): &(),
        head: &Parts,
    ) -> Result<Option<Box<PreferHeader>>, ApiError> {
        if operation.needs_version {
            check_version(&head.headers, self.minimum_client_version)?;
        }
        let preferences = PreferHeader::of(&head.headers);
        let role = preferences.as_ref().and_then(|preferences| preferences.role);
        key::check(operation, head, self.settings.key.as_deref(), role)?;
        Ok(preferences.map(Box::new))
    }

    async fn refuse(&self, request: RejectedRequest<'_, Self>, failure: ApiError) -> Result<Response<Body>, ApiError> {
        self.refusal(request.contract, request.operation, failure)
    }

    async fn answer(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        let AuthorizedRequest { asked, contract, operation, guest: preferences, .. } = request;
        let head = &asked.head;
        let preferences = preferences.as_deref();
        if let Some(delay) = preferences.and_then(|preferences| preferences.delay) {
            tokio::time::sleep(delay).await;
        }
        if !preferences.is_some_and(PreferHeader::choose) && self.is_changed(contract, operation, head).await? {
            return self.refusal(contract, operation, Code::ResourceChanged.into());
        }
        let mut response = self.respond(contract, operation, preferences, head, &asked.arguments)?;
        if !declares_tag(operation, &response) {
            return Ok(response);
        }
        let is_read = operation.statuses.contains(&StatusCode::NOT_MODIFIED.as_u16());
        let known = if is_read { etag::if_none_match(&head.headers) } else { Vec::new() };
        // The document's example is no tag of this body.
        if etag::is_json(response.headers()) {
            response.headers_mut().remove(header::ETAG);
        }
        Ok(etag::with_etag(response, operation.needs_key, &known).await?)
    }
}

/// Whether the document has a tag for this answer.
fn declares_tag(operation: &Operation, response: &Response<Body>) -> bool {
    let declared = operation.answer(response.status().as_u16()).filter(|_| response.status().is_success());
    declared.is_some_and(|answer| answer.headers.iter().any(|header| header.name.eq_ignore_ascii_case(header::ETAG.as_str())))
}

impl Mock {
    /// Whether `If-Match` doesn't name what a GET of this path is answered with. Where there is nothing, that is told first.
    async fn is_changed(&self, contract: &Contract, operation: &Operation, head: &Parts) -> Result<bool, ApiError> {
        if !head.headers.contains_key(header::IF_MATCH) || !operation.has_parameter("If-Match") {
            return Ok(false);
        }
        let mut reading = head.clone();
        reading.method = Method::GET;
        reading.uri = head.uri.path().parse().map_err(anyhow::Error::from).map_err(Error::Internal)?;
        let Ok(read) = contract.find("GET", contract.without_prefix(head.uri.path())) else { return Ok(false) };
        let Ok(shown) = self.respond(contract, read, None, &reading, &ParsedRequest::default()) else { return Ok(false) };
        let tag = etag::etag_of(&etag::collect_body(shown.into_body()).await?);
        Ok(!etag::matches_strong(head.headers.get_all(header::IF_MATCH), &tag))
    }

    /// Answers from what is kept, or else from the document.
    fn respond(
        &self,
        contract: &Contract,
        operation: &Operation,
        preferences: Option<&PreferHeader>,
        head: &Parts,
        arguments: &ParsedRequest,
    ) -> Result<Response<Body>, ApiError> {
        let mut problems = preferences.map(|preferences| preferences.problems.clone()).unwrap_or_default();
        let choice = self.answers(operation)?.choose(operation, preferences, head.headers.get(header::ACCEPT));
        let choice = choice.map_err(|detail| problems.push(FieldError::invalid(PREFER, detail)));
        let Some(choice) = choice.ok().filter(|_| problems.is_empty()) else { return Err(Error::Invalid(problems).into()) };
        let seed = || self.seed(contract, head, arguments);
        let making = self.making(contract);
        let kept = match self.state.as_ref().filter(|_| !preferences.is_some_and(PreferHeader::choose)) {
            Some(state) => {
                let path = contract.without_prefix(head.uri.path());
                let asked = MockRequest { operation, path, arguments, choice: &choice, making: &making, seed: seed() };
                match state.answer(&asked) {
                    Ok(kept) => kept,
                    Err(error) => return self.refusal(contract, operation, error.into()),
                }
            }
            None => None,
        };
        let response = match kept {
            Some(kept) => {
                let server = head.uri.path().strip_suffix(contract.without_prefix(head.uri.path())).unwrap_or_default();
                let location = kept.location.map(|path| format!("{server}{path}"));
                choice.with(&making, &kept.value, location.as_deref())
            }
            None => choice.response(&making, preferences.is_some_and(|preferences| preferences.is_dynamic), seed),
        };
        let mut response = response.map_err(Error::Internal)?;
        let applied = preferences.and_then(PreferHeader::applied);
        response.headers_mut().extend(applied.map(|applied| (APPLIED, applied)));
        Ok(response)
    }
}
