//! Dispatcher: the pipeline around every endpoint.
//!
//! It finds the operation of every request in the contract, checks the request against it, and calls the handler (the platform or
//! the mock).

use std::future::Future;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use boxoffice_openapi::{Contract, Operation, ParsedRequest, RouteError};
use dropshot::Body;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::Body as _;
use slog::{Logger, debug, error};
use uuid::Uuid;

use super::body_memory::BodyReservation;
use super::rate_limit::RateLimitStatus;
use super::request_body::{BodyReader, ReadBody, UnreadBody};
use super::request_limit::RequestLimit;
use super::shutdown::GracefulShutdown;
use super::{ApiError, request_head, response_headers};
use crate::access_log::{AccessLog, AccessLogLine};
use crate::client_ip::TrustedProxies;
use crate::client_version::ClientVersion;
use crate::connections::SMALL_RESPONSE;
use crate::error::{Code, Error, one_line};
use crate::etag;
use crate::log::Throttle;
use crate::request_handler::{
    AccessContext, AuthorizedRequest, IncomingRequest, RateLimitContext, RejectedRequest, RequestHandler,
};
use crate::responses::{
    IGNORED_PARAMETERS, allowed_methods, error_response, ignored_parameters, is_preflight, respond_options, without_body,
};
use crate::traces::{RequestTrace, Span, TRACEPARENT, Tracer};

/// Result of routing.
enum Destination<'a, F> {
    /// An endpoint, which the rest of the checks precede.
    Operation(&'a Operation, F),
    /// A resource that the contract doesn't have.
    OutsideContract(BoxFuture<'static, Response<Body>>),
    /// The answer to OPTIONS, with the methods of the path.
    Options(HeaderValue),
    /// An error with its headers.
    Error(ApiError, HeaderMap),
}

/// Runs every check before a [`RequestHandler`] and adds the common headers to its response.
///
/// # Order of checks
///
/// The first check that fails determines the response:
///
/// 1. the size of the head, the host, the path and the method;
/// 2. the client's version;
/// 3. the API key (both by [`RequestHandler::authenticate`]);
/// 4. the rate limit ([`RequestHandler::count`]), and then the scope of the key ([`RequestHandler::authorize`]);
/// 5. the access to the resource in the path, if the body may be large ([`RequestHandler::check_access`]);
/// 6. the body and all arguments, against the contract;
/// 7. the rules of the endpoint ([`RequestHandler::respond`]).
///
/// A request whose key has too low a scope counts against the rate limit, too. If an operation takes a password or a code, its body
/// is received before step 4, because the rate limit is that of the identity in the body.
pub struct Dispatcher<H> {
    pub(crate) contract: Arc<Contract>,
    pub(crate) handler: H,
    pub(crate) shutdown: Arc<GracefulShutdown>,
    pub(crate) bodies: BodyReader,
    pub(crate) requests: Arc<RequestLimit>,
    /// Proxies that forward the address of a client, and the identifier of a request.
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) is_tls: bool,
    pub(crate) log: Logger,
    pub(crate) access_log: AccessLog,
    pub(crate) tracer: Tracer,
    pub(crate) outage: Throttle,
}

/// The parts of a request that are needed after it was answered.
struct ReceivedRequest {
    /// Time at which its head was received.
    start: Instant,
    version: Version,
    /// The method that the client has sent.
    method: Method,
    client_address: IpAddr,
    id: String,
    span: Span,
}

/// Facts about a request that are known once it is answered.
#[derive(Default)]
struct RequestFacts<'a> {
    operation: Option<&'a Operation>,
    /// The identifier of the caller's key.
    key: Option<i64>,
    /// The number of the caller's account.
    account: Option<Arc<str>>,
    rate_limit: Option<RateLimitStatus>,
    /// The code of the error.
    code: Option<Code>,
}

impl<H: RequestHandler> Dispatcher<H> {
    /// Returns the response to any request; 503 once the server is closed, or in place of the response to a GET for which there is no
    /// memory. `has_room` returns whether a body of this many bytes can be sent.
    pub fn respond(
        self: Arc<Self>,
        peer: IpAddr,
        request: Request<Body>,
        has_room: impl FnOnce(usize) -> bool + Send,
    ) -> impl Future<Output = Response<Body>> + Send {
        let start = Instant::now();
        let (mut head, body) = request.into_parts();
        let mut body = UnreadBody::new(&head, body);
        let (version, method) = (head.version, request_head::in_upper_case(head.method));
        head.method = method.clone();
        if method == Method::HEAD {
            // The same response without its body (RFC 9110, section 9.3.2).
            head.method = Method::GET;
        }
        let client_address = self.trusted_proxies.client(peer, &head.headers);
        let id = self.request_id(peer, &head.headers);
        let is_from_proxy = self.trusted_proxies.trusts(peer.to_canonical());
        let RequestTrace { span, header: traceparent } = self.tracer.request(&id, is_from_proxy.then_some(&head.headers));
        let received = ReceivedRequest { start, version, method, client_address, id: id.clone(), span: span.clone() };
        // Outside the future, which would otherwise be larger by the whole request.
        let incoming = Box::new(IncomingRequest { id, client_address, head, arguments: ParsedRequest::default(), span });
        async move {
            let guard = self.shutdown.enter();
            let mut facts = RequestFacts::default();
            let mut response = match &guard {
                Some(_) => self.dispatch(incoming, &mut body, &received.id, &mut facts).await,
                None => {
                    error_response(&Code::SERVER_UNAVAILABLE.with_message("The server is stopping. Try again shortly.").into())
                }
            };
            // After a change was committed, its response is always sent. One of unknown size, such as an export, counts as large.
            let size =
                response.body().size_hint().upper().map_or(SMALL_RESPONSE + 1, |size| size.try_into().unwrap_or(usize::MAX));
            if received.method == Method::GET && !has_room(size) {
                facts.code = Some(Code::SERVER_UNAVAILABLE);
                response = error_response(&Code::SERVER_UNAVAILABLE.with_message(NO_ROOM).into());
            }
            self.bodies.discard(body);
            self.add_headers(&mut response, &received, &facts);
            response.headers_mut().extend(traceparent.map(|traceparent| (TRACEPARENT, traceparent)));
            self.record(response.status(), &received, &facts);
            if received.method == Method::HEAD { without_body(response) } else { response }
        }
    }

    /// Adds the headers that all responses have in common, and those of the rate limit.
    fn add_headers(&self, response: &mut Response<Body>, received: &ReceivedRequest, facts: &RequestFacts<'_>) {
        let (status, headers) = (response.status(), response.headers_mut());
        response_headers::add(headers, facts.operation.is_some_and(|operation| operation.is_secret), self.is_tls);
        response_headers::add_deprecation(headers, facts.operation);
        if let Some(rate_limit) = &facts.rate_limit {
            rate_limit.write_headers(headers);
        }
        if status == StatusCode::TOO_MANY_REQUESTS && !headers.contains_key(header::RETRY_AFTER) {
            // Not the rate limit but the memory for bodies is exhausted.
            self.bodies.write_limit_headers(headers);
        }
        // HTTP/2 closes a connection with GOAWAY and forbids this header.
        let is_http_1 = received.version <= Version::HTTP_11;
        if is_http_1 && (status == StatusCode::REQUEST_TIMEOUT || self.shutdown.is_draining()) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        // The document of a mock may declare the header.
        if let Ok(id) = HeaderValue::try_from(&received.id) {
            headers.entry(REQUEST_ID).or_insert(id);
        }
    }

    /// Records an answered request in the metrics, the access log and its span.
    fn record(&self, status: StatusCode, received: &ReceivedRequest, facts: &RequestFacts<'_>) {
        let duration = received.start.elapsed();
        if let Some(operation) = facts.operation {
            self.handler.record(operation, status, duration);
        }
        // The operation instead of the path, which may contain an admission token's code.
        let line = AccessLogLine {
            method: &received.method,
            operation: facts.operation.map(|operation| operation.id.as_str()),
            status,
            code: facts.code,
            duration,
            key: facts.key,
            account: facts.account.as_deref(),
            client_address: received.client_address,
            request_id: &received.id,
        };
        self.access_log.write(&self.log, &line);
        let path = facts.operation.map(|operation| operation.path.as_str());
        received.span.end_request(&line, path, received.version, self.is_tls);
    }

    /// Returns the identifier that a trusted proxy has given to the request, or else a new one.
    fn request_id(&self, peer: IpAddr, headers: &HeaderMap) -> String {
        let given = headers.get(REQUEST_ID).filter(|_| self.trusted_proxies.trusts(peer.to_canonical()));
        let given = given.and_then(|id| id.to_str().ok()).filter(|id| (1..=MAX_REQUEST_ID_BYTES).contains(&id.len()));
        given.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned)
    }

    /// Routes and handles a request; a panic becomes a 500.
    async fn dispatch<'a>(
        &'a self,
        incoming: Box<IncomingRequest>,
        body: &mut UnreadBody,
        request_id: &str,
        facts: &mut RequestFacts<'a>,
    ) -> Response<Body> {
        match self.route(&incoming.head) {
            Destination::Operation(operation, route) => {
                facts.operation = Some(operation);
                let ignored = ignored_parameters(operation, &incoming.head.uri);
                let handled = AssertUnwindSafe(self.handle(operation, route, incoming, body, facts));
                let outcome = handled.catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the endpoint panicked")).into()));
                let mut response = outcome.unwrap_or_else(|error| {
                    facts.code = Some(error.code());
                    self.log_cause(&error, &operation.id, request_id);
                    error_response(&error)
                });
                response.headers_mut().extend(ignored.map(|names| (IGNORED_PARAMETERS, names)));
                response
            }
            Destination::OutsideContract(response) => {
                etag::revalidate(response.await, &etag::if_none_match(&incoming.head.headers))
            }
            Destination::Options(allowed) => respond_options(allowed),
            Destination::Error(error, headers) => {
                facts.code = Some(error.code());
                let mut response = error_response(&error);
                response.headers_mut().extend(headers);
                response
            }
        }
    }

    /// Checks the head's size, the host, the path and the method (step 1 of the [order of checks](Self#order-of-checks)).
    fn route(&self, head: &Parts) -> Destination<'_, H::Route> {
        let checked = request_head::check_size(&head.uri, &head.headers);
        if let Err(error) = checked.and_then(|()| request_head::check_host(head.version, &head.headers)) {
            return Destination::Error(error, HeaderMap::new());
        }
        let path = head.uri.path();
        let is_readable = request_head::is_readable(path);
        let error = match if is_readable { self.find(&head.method, path) } else { Err(RouteError::NotFound) } {
            Ok((operation, route)) => return Destination::Operation(operation, route),
            Err(error) => error,
        };
        let outside = self.handler.respond_outside_contract(path, &self.shutdown);
        let error = match outside.filter(|_| matches!(error, RouteError::NotFound)) {
            Some(response) if head.method == Method::GET => return Destination::OutsideContract(response),
            Some(_) => RouteError::MethodNotAllowed(vec![Method::GET.to_string()]),
            None => error,
        };
        let allowed = match error {
            RouteError::MethodNotAllowed(methods) => allowed_methods(methods),
            // So that the page can read the 404 that follows.
            RouteError::NotFound if is_readable && is_preflight(head) => {
                return Destination::Options(HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
            }
            RouteError::NotFound => {
                let text = format!("The requested endpoint {path} does not exist on this server.");
                return Destination::Error(Code::ENDPOINT_UNKNOWN.with_message(text).into(), HeaderMap::new());
            }
        };
        match allowed {
            Some(allowed) if head.method == Method::OPTIONS => Destination::Options(allowed),
            allowed => {
                let headers = allowed.map(|allowed| (header::ALLOW, allowed)).into_iter().collect();
                Destination::Error(Code::METHOD_NOT_ALLOWED.into(), headers)
            }
        }
    }

    fn find(&self, method: &Method, path: &str) -> Result<(&Operation, H::Route), RouteError> {
        let operation = self.contract.find(method.as_str(), self.contract.without_prefix(path))?;
        Ok((operation, self.handler.look_up(operation).ok_or(RouteError::NotFound)?))
    }

    /// Runs the remaining checks and the endpoint.
    async fn handle(
        &self,
        operation: &Operation,
        route: H::Route,
        mut incoming: Box<IncomingRequest>,
        body: &mut UnreadBody,
        facts: &mut RequestFacts<'_>,
    ) -> Result<Response<Body>, ApiError> {
        let contract = &self.contract;
        let (uri, id) = (&incoming.head.uri, incoming.id.as_str());
        let rejected = |principal| RejectedRequest { contract, operation, principal, uri, id };
        let mut principal = match self.authenticate(operation, &route, &incoming, &mut facts.rate_limit).await {
            Ok(principal) => principal,
            Err(error) => return self.handler.reject(rejected(None), error).await,
        };
        let authenticated = Instant::now();
        facts.key = self.handler.key(&principal);
        facts.account = self.handler.account(&principal);
        // The memory of the body is reserved until the response is complete, because its arguments are copies of it.
        let (arguments, _reservation) =
            match self.check(operation, &route, &principal, &incoming, body, &mut facts.rate_limit).await {
                Ok((arguments, reservation)) => (arguments, reservation),
                Err(error) => return self.handler.reject(rejected(Some(&principal)), error).await,
            };
        if authenticated.elapsed() > MAX_AUTHENTICATION_AGE {
            let again = self.authenticate(operation, &route, &incoming, &mut facts.rate_limit).await;
            principal = match again.and_then(|again| self.handler.authorize(operation, &again).map(|()| again)) {
                Ok(principal) => principal,
                Err(error) => return self.handler.reject(rejected(None), error).await,
            };
        }
        incoming.arguments = arguments;
        let _in_progress = self.requests.enter()?;
        let response = self.handler.respond(AuthorizedRequest { incoming, contract, operation, route, principal }).await;
        if H::VALIDATES_RESPONSES && cfg!(debug_assertions) { assert_documented(operation, response) } else { response }
    }

    /// Authenticates the caller. Requests that fail are limited for each address, because each of them looks for its key.
    async fn authenticate(
        &self,
        operation: &Operation,
        route: &H::Route,
        incoming: &IncomingRequest,
        rate_limit: &mut Option<RateLimitStatus>,
    ) -> Result<H::Principal, ApiError> {
        let _authenticating = self.requests.enter_authentication()?;
        let authenticated = self.handler.authenticate(operation, route, incoming).await;
        if authenticated.as_ref().is_err_and(|error| error.status().is_client_error())
            && let Some(status) = self.handler.count_failure(incoming.client_address)
        {
            status.check().inspect_err(|_| *rate_limit = Some(status))?;
        }
        authenticated
    }

    /// Runs the checks after authentication: the key's scope, the rate limit and the request's arguments.
    async fn check(
        &self,
        operation: &Operation,
        route: &H::Route,
        principal: &H::Principal,
        incoming: &IncomingRequest,
        body: &mut UnreadBody,
        rate_limit: &mut Option<RateLimitStatus>,
    ) -> Result<(ParsedRequest, Option<BodyReservation>), ApiError> {
        let IncomingRequest { client_address, head, .. } = incoming;
        let client_address = *client_address;
        // Checked before the rate limit but returned after it, so that unauthorized requests count too.
        let authorized = self.handler.authorize(operation, principal);
        let path = self.contract.without_prefix(head.uri.path());
        let owner = self.handler.body_owner(principal, client_address);
        let mut read = None;
        if operation.guessing_argument.is_some() && authorized.is_ok() {
            // The identity may be in the body.
            read = Some(self.bodies.read(operation, owner, body).await?);
        }
        let target = read.as_ref().map(|read| operation.guessing_target(path, &read.bytes));
        *rate_limit = self.handler.count(&RateLimitContext { principal, client_address, guessing_target: target });
        rate_limit.as_ref().map_or(Ok(()), RateLimitStatus::check)?;
        authorized?;
        if body.may_be_large(operation) {
            let access = AccessContext { operation, route, principal, path, span: &incoming.span };
            self.handler.check_access(access).await?;
        }
        let ReadBody { bytes, reservation } = match read {
            Some(read) => read,
            None => self.bodies.read(operation, owner, body).await?,
        };
        let arguments = operation.check(path, head.uri.query(), &head.headers, &bytes).map_err(Error::from)?;
        Ok((arguments, reservation))
    }

    /// Logs the cause of an error, if it has one.
    fn log_cause(&self, error: &ApiError, operation: &str, request_id: &str) {
        if let Some(cause) = error.cause() {
            let cause = one_line(cause);
            // During an outage every request fails alike: one line per second is logged, with the number of suppressed lines.
            match (error.code() == Code::SERVER_UNAVAILABLE).then(|| self.outage.line()) {
                None => error!(self.log, "failed"; "operation" => operation, "cause" => cause, "request" => request_id),
                Some(Some(suppressed)) => error!(self.log, "unavailable"; "operation" => operation, "cause" => cause,
                    "request" => request_id, "suppressed" => suppressed),
                Some(None) => {
                    debug!(self.log, "unavailable"; "operation" => operation, "cause" => cause, "request" => request_id);
                }
            }
        }
    }
}

/// Text of the error in place of a response for which there is no memory.
const NO_ROOM: &str =
    "The server is sending too many large responses at the moment. Try again shortly, or ask for fewer records.";
/// Time after which a caller is authenticated again, because the key may have been revoked while the body was received.
const MAX_AUTHENTICATION_AGE: Duration = Duration::from_secs(1);
/// Maximum length of an identifier that a proxy gives to a request.
const MAX_REQUEST_ID_BYTES: usize = 128;
/// Header with the identifier of the request, which the log has too.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CLIENT_VERSION: HeaderName = HeaderName::from_static("x-client-version");

/// Checks the client's version (step 2 of the [order of checks](Dispatcher#order-of-checks)).
///
/// # Errors
/// 412 if it is missing, malformed or below `minimum`.
pub fn check_version(headers: &HeaderMap, minimum: ClientVersion) -> Result<(), ApiError> {
    let version = headers.get(CLIENT_VERSION).and_then(|value| value.to_str().ok());
    let version = version.and_then(|text| text.parse::<ClientVersion>().ok());
    if version.is_some_and(|version| version >= minimum) { Ok(()) } else { Err(Code::CLIENT_OUTDATED.into()) }
}

/// Turns a response that the contract doesn't declare into an error. Development builds only, so that tests find it.
fn assert_documented(operation: &Operation, response: Result<Response<Body>, ApiError>) -> Result<Response<Body>, ApiError> {
    let status = response.as_ref().map_or_else(ApiError::status, Response::status);
    if operation.statuses.contains(&status.as_u16()) {
        return response;
    }
    let undeclared = anyhow!("the contract does not declare {status} for {}", operation.id);
    Err(Error::Internal(match response {
        Err(error) => undeclared.context(error.to_string()),
        Ok(_) => undeclared,
    })
    .into())
}
