//! Dispatcher: the pipeline around every endpoint.
//!
//! dropshot's own errors for unknown paths, wrong methods and invalid arguments don't match the contract. So one catch-all
//! endpoint passes every request to the dispatcher, which finds the operation in the contract and calls the handler (the
//! platform or the mock).

use std::collections::HashSet;
use std::future::Future;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use anyhow::anyhow;
use boxoffice_openapi::{Contract, Operation, ParsedRequest, RouteError};
use dropshot::{Body, RequestContext, ServerContext};
use futures::FutureExt;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use hyper::body::Body as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use slog::{Logger, debug, error};

use super::body_memory::{BodyOwner, BodyReservation};
use super::rate_limit::RateLimitStatus;
use super::request_body::{BodyReader, ReadBody, may_be_large};
use super::shutdown::GracefulShutdown;
use super::{ApiError, request_head, response_headers};
use crate::client_version::ClientVersion;
use crate::error::{Code, Error, one_line};
use crate::log::Throttle;

/// Application behind the dispatcher: the platform or the mock.
pub trait RequestHandler: Send + Sync + 'static {
    /// The application's state, which dropshot passes along with each request.
    type Context: ServerContext;
    /// The endpoint of an operation.
    type Route: Send + Sync;
    /// The authenticated caller.
    type Principal: Send + Sync;
    /// If true, a development build rejects responses that the contract doesn't declare.
    const VALIDATES_RESPONSES: bool;

    /// Returns the endpoint of an operation of the contract, if there is one.
    fn look_up(&self, operation: &Operation) -> Option<Self::Route>;

    /// Checks the client's version and its key (steps 2 and 3 of the order of checks).
    fn authenticate(
        &self,
        context: &Self::Context,
        operation: &Operation,
        route: &Self::Route,
        head: &Parts,
    ) -> impl Future<Output = Result<Self::Principal, ApiError>> + Send;

    /// Checks that the principal's scope covers this operation (the rest of step 4).
    ///
    /// # Errors
    /// 403 if it doesn't.
    fn authorize(&self, _operation: &Operation, _principal: &Self::Principal) -> Result<(), ApiError> {
        Ok(())
    }

    /// Counts a request against its rate limit, if it has one (step 4).
    fn count(&self, _: &RateLimitContext<'_, Self>) -> Option<RateLimitStatus> {
        None
    }

    /// Returns the owner of a request's body, whose memory for bodies is limited.
    fn body_owner(&self, _request: &BodyContext<'_, Self>) -> Option<BodyOwner> {
        None
    }

    /// Checks the access to the resource in the path, before a large body is read.
    ///
    /// # Errors
    /// 404 or 403.
    fn check_access(&self, _request: AccessContext<'_, Self>) -> impl Future<Output = Result<(), ApiError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Handles a request that failed a check: returns the error, or a response in its place.
    ///
    /// # Errors
    /// The error to send.
    fn reject(
        &self,
        request: RejectedRequest<'_, Self>,
        error: ApiError,
    ) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send;

    /// Handles a request that is valid by the contract. Its body has been read.
    fn respond(&self, request: AuthorizedRequest<'_, Self>) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send;
}

/// A request without its body. Boxed because it is large and moved through several layers.
pub struct IncomingRequest<C: ServerContext> {
    /// dropshot's context of the request.
    pub rq: RequestContext<C>,
    /// Its method, URI and headers.
    pub head: Parts,
    /// Its parsed arguments; empty until the request has been validated.
    pub arguments: ParsedRequest,
}

/// A request that passed all checks.
pub struct AuthorizedRequest<'a, B: RequestHandler + ?Sized> {
    /// The request.
    pub incoming: Box<IncomingRequest<B::Context>>,
    /// The contract that it was validated against.
    pub contract: &'a Contract,
    /// The requested operation.
    pub operation: &'a Operation,
    /// The operation's endpoint.
    pub route: B::Route,
    /// The authenticated caller.
    pub principal: B::Principal,
}

/// Input of the rate limiter.
pub struct RateLimitContext<'a, B: RequestHandler + ?Sized> {
    /// The application's state.
    pub context: &'a B::Context,
    /// The authenticated caller.
    pub principal: &'a B::Principal,
    /// The address of the connection's other end.
    pub peer: IpAddr,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The identity whose credentials are being tried, if the operation can be used for that and the key's scope covers it.
    pub brute_force_target: Option<String>,
}

/// A request whose body was not read yet.
pub struct BodyContext<'a, B: RequestHandler + ?Sized> {
    /// The application's state.
    pub context: &'a B::Context,
    /// The authenticated caller.
    pub principal: &'a B::Principal,
    /// The address of the connection's other end.
    pub peer: IpAddr,
    /// The headers of the request.
    pub headers: &'a HeaderMap,
}

/// A request whose large body was not read yet.
pub struct AccessContext<'a, B: RequestHandler + ?Sized> {
    /// The application's state.
    pub context: &'a B::Context,
    /// The requested operation.
    pub operation: &'a Operation,
    /// The operation's endpoint.
    pub route: &'a B::Route,
    /// The authenticated caller.
    pub principal: &'a B::Principal,
    /// Its path, without the base path of the contract's server.
    pub path: &'a str,
}

/// A request that failed a check.
pub struct RejectedRequest<'a, B: RequestHandler + ?Sized> {
    /// The application's state.
    pub context: &'a B::Context,
    /// The contract that it was validated against.
    pub contract: &'a Contract,
    /// The requested operation.
    pub operation: &'a Operation,
    /// The authenticated caller; `None` if authentication failed.
    pub principal: Option<&'a B::Principal>,
    /// Its URI.
    pub uri: &'a Uri,
    /// Its identifier.
    pub id: &'a str,
}

/// Result of routing.
enum Destination<'a, F> {
    /// An endpoint, which the rest of the checks precede.
    Operation(&'a Operation, F),
    /// A final response.
    Response(Response<Body>),
}

/// Runs every check before a [`RequestHandler`] and adds the common headers to its response.
pub struct Dispatcher<B> {
    contract: Arc<Contract>,
    handler: B,
    shutdown: Arc<GracefulShutdown>,
    bodies: BodyReader,
    is_tls: bool,
    log: Logger,
    outage: Throttle,
}

impl<B: RequestHandler> Dispatcher<B> {
    /// Creates a dispatcher for this handler.
    pub fn new(
        contract: Arc<Contract>,
        handler: B,
        shutdown: Arc<GracefulShutdown>,
        bodies: BodyReader,
        is_tls: bool,
        log: Logger,
    ) -> Self {
        Self { contract, handler, shutdown, bodies, is_tls, log, outage: Throttle::default() }
    }

    /// Returns the response to any request; 503 once the server is closed.
    pub fn respond(
        self: Arc<Self>,
        rq: RequestContext<B::Context>,
        request: Request<Body>,
    ) -> impl Future<Output = Response<Body>> + Send {
        let (mut head, body) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        if is_head {
            // The same response without its body (RFC 9110, section 9.3.2).
            head.method = Method::GET;
        }
        // Outside the future, which would otherwise be larger by the whole request.
        let incoming = Box::new(IncomingRequest { rq, head, arguments: ParsedRequest::default() });
        async move {
            let is_http_1 = incoming.head.version <= Version::HTTP_11;
            let request_id = incoming.rq.request_id.clone();
            let guard = self.shutdown.enter();
            let mut rate_limit = None;
            let (mut response, operation) = match &guard {
                Some(_) => self.dispatch(incoming, body, &request_id, &mut rate_limit).await,
                None => (
                    error_response(&Code::ServerUnavailable.with_message("The server is stopping. Try again shortly.").into()),
                    None,
                ),
            };
            response_headers::add(response.headers_mut(), operation.is_some_and(|operation| operation.is_secret), self.is_tls);
            response_headers::add_deprecation(response.headers_mut(), operation);
            if let Some(rate_limit) = rate_limit {
                rate_limit.write_headers(response.headers_mut());
            }
            if response.status() == StatusCode::TOO_MANY_REQUESTS && !response.headers().contains_key(header::RETRY_AFTER) {
                // Not the rate limit but the memory for bodies is exhausted.
                self.bodies.write_limit_headers(response.headers_mut());
            }
            // HTTP/2 closes a connection with GOAWAY and forbids this header.
            if is_http_1 && (response.status() == StatusCode::REQUEST_TIMEOUT || self.shutdown.is_draining()) {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            // The operation instead of the path, which may contain an admission token's code.
            let operation = operation.map_or("none", |operation| &operation.id);
            debug!(self.log, "answered"; "operation" => operation, "status" => response.status().as_u16(), "request" => request_id);
            if is_head { without_body(response) } else { response }
        }
    }

    /// Routes and handles a request; a panic becomes a 500. Returns the operation too, if there is one.
    async fn dispatch(
        &self,
        incoming: Box<IncomingRequest<B::Context>>,
        body: Body,
        request_id: &str,
        rate_limit: &mut Option<RateLimitStatus>,
    ) -> (Response<Body>, Option<&Operation>) {
        match self.route(&incoming.head) {
            Destination::Operation(operation, route) => {
                let ignored = ignored_parameters(operation, &incoming.head.uri);
                let handled = AssertUnwindSafe(self.handle(operation, route, incoming, body, rate_limit));
                let outcome = handled.catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the endpoint panicked")).into()));
                let mut response = outcome.unwrap_or_else(|error| self.reject(&error, &operation.id, request_id));
                response.headers_mut().extend(ignored.map(|names| (IGNORED_PARAMETERS, names)));
                (response, Some(operation))
            }
            Destination::Response(response) => (response, None),
        }
    }

    /// Checks the head's size, the host, the path and the method (step 1 of the order of checks).
    fn route(&self, head: &Parts) -> Destination<'_, B::Route> {
        let checked = request_head::check_size(&head.uri, &head.headers);
        if let Err(error) = checked.and_then(|()| request_head::check_host(head.version, &head.headers)) {
            return Destination::Response(error_response(&error));
        }
        if head.method == Method::OPTIONS {
            return Destination::Response(preflight());
        }
        match self.find(&head.method, head.uri.path()) {
            Ok((operation, route)) => Destination::Operation(operation, route),
            Err(error) => {
                let (error, allowed) = routing_error(error, head.uri.path());
                let mut response = error_response(&error);
                response.headers_mut().extend(allowed);
                Destination::Response(response)
            }
        }
    }

    /// Returns the error and its headers for a request that dropshot's router can't pass to [`respond`](Self::respond).
    pub fn reject_unroutable(&self, request: &Request<Body>) -> (ApiError, HeaderMap) {
        let path = request.uri().path();
        let (error, mut headers) = request_head::check_size(request.uri(), request.headers()).err().map_or_else(
            || {
                let error = self.find(request.method(), path).err().filter(|_| request_head::is_readable(path));
                routing_error(error.unwrap_or(RouteError::NotFound), path)
            },
            |too_large| (too_large, HeaderMap::new()),
        );
        response_headers::add(&mut headers, false, self.is_tls);
        (error, headers)
    }

    fn find(&self, method: &Method, path: &str) -> Result<(&Operation, B::Route), RouteError> {
        let operation = self.contract.find(method.as_str(), self.contract.without_prefix(path))?;
        Ok((operation, self.handler.look_up(operation).ok_or(RouteError::NotFound)?))
    }

    /// Runs the remaining checks and the endpoint.
    async fn handle(
        &self,
        operation: &Operation,
        route: B::Route,
        mut incoming: Box<IncomingRequest<B::Context>>,
        body: Body,
        rate_limit: &mut Option<RateLimitStatus>,
    ) -> Result<Response<Body>, ApiError> {
        let contract = &self.contract;
        let (context, uri, id) = (incoming.rq.context(), &incoming.head.uri, incoming.rq.request_id.as_str());
        let rejected = |principal| RejectedRequest { context, contract, operation, principal, uri, id };
        let principal = match self.handler.authenticate(context, operation, &route, &incoming.head).await {
            Ok(principal) => principal,
            Err(error) => return self.handler.reject(rejected(None), error).await,
        };
        // The memory of the body is reserved until the response is complete, because its arguments are copies of it.
        let (arguments, _reservation) = match self.check(operation, &route, &principal, &incoming, body, rate_limit).await {
            Ok((arguments, reservation)) => (arguments, reservation),
            Err(error) => return self.handler.reject(rejected(Some(&principal)), error).await,
        };
        incoming.arguments = arguments;
        let response = self.handler.respond(AuthorizedRequest { incoming, contract, operation, route, principal }).await;
        if B::VALIDATES_RESPONSES && cfg!(debug_assertions) { assert_documented(operation, response) } else { response }
    }

    /// Runs the checks after authentication: the key's scope, the rate limit and the request's arguments.
    async fn check(
        &self,
        operation: &Operation,
        route: &B::Route,
        principal: &B::Principal,
        incoming: &IncomingRequest<B::Context>,
        mut body: Body,
        rate_limit: &mut Option<RateLimitStatus>,
    ) -> Result<(ParsedRequest, Option<BodyReservation>), ApiError> {
        let IncomingRequest { rq, head, .. } = incoming;
        // Checked before the rate limit but returned after it, so that unauthorized requests count too.
        let authorized = self.handler.authorize(operation, principal);
        let path = self.contract.without_prefix(head.uri.path());
        let peer = rq.request.remote_addr().ip();
        let owner = self.handler.body_owner(&BodyContext { context: rq.context(), principal, peer, headers: &head.headers });
        let mut read = None;
        if operation.credential_param.is_some() && authorized.is_ok() {
            // The identity may be in the body.
            read = Some(self.bodies.read(operation, owner, &mut body).await?);
        }
        let target = read.as_ref().map(|read| operation.brute_force_target(path, &read.bytes));
        *rate_limit = self.handler.count(&RateLimitContext {
            context: rq.context(),
            principal,
            peer,
            headers: &head.headers,
            brute_force_target: target,
        });
        rate_limit.as_ref().map_or(Ok(()), RateLimitStatus::check)?;
        authorized?;
        if may_be_large(operation, &body) {
            let access = AccessContext { context: rq.context(), operation, route, principal, path };
            if let Err(error) = self.handler.check_access(access).await {
                self.bodies.discard(body);
                return Err(error);
            }
        }
        let ReadBody { bytes, reservation } = match read {
            Some(read) => read,
            None => self.bodies.read(operation, owner, &mut body).await?,
        };
        let arguments = operation.check(path, head.uri.query(), &head.headers, &bytes).map_err(Error::from)?;
        Ok((arguments, reservation))
    }

    fn reject(&self, error: &ApiError, operation: &str, request_id: &str) -> Response<Body> {
        if let Some(cause) = error.cause() {
            let cause = one_line(cause);
            // During an outage every request fails alike: one line per second is logged, with the number of suppressed lines.
            match (error.code() == Code::ServerUnavailable).then(|| self.outage.line()) {
                None => error!(self.log, "failed"; "operation" => operation, "cause" => cause, "request" => request_id),
                Some(Some(untold)) => error!(self.log, "unavailable"; "operation" => operation, "cause" => cause,
                    "request" => request_id, "suppressed" => untold),
                Some(None) => {
                    debug!(self.log, "unavailable"; "operation" => operation, "cause" => cause, "request" => request_id);
                }
            }
        }
        error_response(error)
    }
}

const CLIENT_VERSION: HeaderName = HeaderName::from_static("x-client-version");

/// Checks the client's version (step 2 of the order of checks).
///
/// # Errors
/// 412 if it is missing, malformed or below `minimum`.
pub fn check_version(headers: &HeaderMap, minimum: ClientVersion) -> Result<(), ApiError> {
    let version = headers.get(CLIENT_VERSION).and_then(|value| value.to_str().ok());
    let version = version.and_then(|text| text.parse::<ClientVersion>().ok());
    if version.is_some_and(|version| version >= minimum) { Ok(()) } else { Err(Code::ClientOutdated.into()) }
}

/// Response header with the names of the query parameters that the operation doesn't define.
const IGNORED_PARAMETERS: HeaderName = HeaderName::from_static("x-ignored-parameters");
/// Maximum length of that header, in bytes. `...` replaces the names that don't fit.
const MAX_IGNORED_PARAMETERS_BYTES: usize = 1024;
/// The characters of a name that are not percent-encoded in that header: letters, digits and the other unreserved ones (RFC 3986).
const ESCAPED_IN_NAMES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the names of the query parameters that the operation ignores, each once, percent-encoded and separated by commas.
fn ignored_parameters(operation: &Operation, uri: &Uri) -> Option<HeaderValue> {
    let (mut list, mut listed) = (String::new(), HashSet::new());
    for name in operation.undefined_parameters(uri.query()?) {
        if listed.contains(&name) {
            continue;
        }
        let separator = if list.is_empty() { "" } else { ", " };
        let encoded = utf8_percent_encode(&name, ESCAPED_IN_NAMES).to_string();
        if list.len() + encoded.len() > MAX_IGNORED_PARAMETERS_BYTES - ", , ...".len() {
            list.extend([separator, "..."]);
            break;
        }
        list.extend([separator, &encoded]);
        listed.insert(name);
    }
    HeaderValue::try_from(list).ok().filter(|names| !names.is_empty())
}

/// Removes the body of a response, and keeps its length in `Content-Length`, if it is known.
fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        head.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Body::empty())
}

/// `Retry-After` of a 503, in seconds. Short, so that clients return soon after an outage; the timeouts of the failing dependency
/// limit how often a client can retry.
const RETRY_AFTER: &str = "1";

/// Returns the error for a routing error, with an `Allow` header for 405.
fn routing_error(error: RouteError, path: &str) -> (ApiError, HeaderMap) {
    match error {
        RouteError::MethodNotAllowed(mut allowed) => {
            if let Some(get) = allowed.iter().position(|method| method == Method::GET.as_str()) {
                allowed.insert(get + 1, Method::HEAD.to_string());
            }
            let allowed = HeaderValue::try_from(allowed.join(", ")).ok().map(|allowed| (header::ALLOW, allowed));
            (Code::MethodNotAllowed.into(), allowed.into_iter().collect())
        }
        RouteError::NotFound => {
            let text = format!("The requested endpoint {path} does not exist on this server.");
            (Code::EndpointUnknown.with_message(text).into(), HeaderMap::new())
        }
    }
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

/// Returns the response for an error.
pub fn error_response(error: &ApiError) -> Response<Body> {
    let body = error.body().unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = error.status();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(rate_limit) = error.rate_limit() {
        rate_limit.write_headers(response.headers_mut());
    }
    if error.code() == Code::ServerUnavailable {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    }
    response
}

/// CORS preflight response that allows any origin. Safe, because a browser never attaches API keys by itself.
fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    // `*` covers every header except this one (Fetch, section 4.9).
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}
