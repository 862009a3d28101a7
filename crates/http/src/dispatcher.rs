//! The front door: what every request passes before its endpoint and after it.
//!
//! dropshot answers unknown paths, other methods and its extractors' refusals in its own words. So one catch-all endpoint
//! takes every request here, the contract tells which operation is asked for, and an endpoint or the mock answers it.

use std::future::Future;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use anyhow::anyhow;
use dropshot::{Body, RequestContext, ServerContext};
use futures::FutureExt;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use slog::{Logger, debug, error};

use super::request_body::BodyTimeouts;
use super::shutdown::GracefulShutdown;
use super::rate_limit::RateLimitStatus;
use super::{ApiError, request_head, response_headers};
use crate::client_version::ClientVersion;
use boxoffice_openapi::{Contract, Operation, ParsedRequest, RouteError};
use crate::error::{Code, Error};
use crate::log::Throttle;

/// What the front door leads to.
pub trait RequestHandler: Send + Sync + 'static {
    /// What dropshot gives along with each request.
    type Context: ServerContext;
    /// What answers an operation.
    type Route: Send + Sync;
    /// Who was let in.
    type Principal: Send + Sync;
    /// Whether an answer that the contract doesn't declare is a failure.
    const VALIDATES_RESPONSES: bool;

    /// What answers an operation of the contract, if anything does.
    fn look_up(&self, operation: &Operation) -> Option<Self::Route>;

    /// Steps 2 and 3 of the order of checks: the client's version, and its key.
    fn authenticate(
        &self,
        context: &Self::Context,
        operation: &Operation,
        found: &Self::Route,
        head: &Parts,
    ) -> impl Future<Output = Result<Self::Principal, ApiError>> + Send;

    /// The rest of step 4: whether who was let in may ask for this operation.
    ///
    /// # Errors
    /// When the key doesn't reach it.
    fn authorize(&self, _operation: &Operation, _guest: &Self::Principal) -> Result<(), ApiError> {
        Ok(())
    }

    /// Step 4: counts a request for the limit that holds for it, if any.
    fn count(&self, _: &RateLimitContext<'_, Self>) -> Option<RateLimitStatus> {
        None
    }

    /// Answers a request that didn't pass the checks of its operation: with the failure itself, unless it has another answer.
    ///
    /// # Errors
    /// With the failure to be told.
    fn refuse(
        &self,
        request: RejectedRequest<'_, Self>,
        failure: ApiError,
    ) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send;

    /// Answers a request that fits the contract. Its body has been read.
    fn answer(&self, request: AuthorizedRequest<'_, Self>) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send;
}

/// A request without its body. Boxed, because it goes from one to the next and is large.
pub struct IncomingRequest<C: ServerContext> {
    /// What dropshot knows of it.
    pub rq: RequestContext<C>,
    /// Its method, address and headers.
    pub head: Parts,
    /// What it says: nothing until it has been held against the contract.
    pub arguments: ParsedRequest,
}

/// A request that has passed the front door.
pub struct AuthorizedRequest<'a, B: RequestHandler + ?Sized> {
    /// The request.
    pub asked: Box<IncomingRequest<B::Context>>,
    /// What it was held against.
    pub contract: &'a Contract,
    /// What it asks for.
    pub operation: &'a Operation,
    /// What was found for it.
    pub found: B::Route,
    /// Whose it is.
    pub guest: B::Principal,
}

/// A request that is counted.
pub struct RateLimitContext<'a, B: RequestHandler + ?Sized> {
    /// What dropshot gave along with it.
    pub context: &'a B::Context,
    /// Whose it is.
    pub guest: &'a B::Principal,
    /// The other end of its connection.
    pub peer: IpAddr,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// About whom it guesses, where its operation can be used for that and is within the key's reach.
    pub brute_force_target: Option<String>,
}

/// A request that has not passed the front door.
pub struct RejectedRequest<'a, B: RequestHandler + ?Sized> {
    /// What dropshot gives along with it.
    pub context: &'a B::Context,
    /// What it was held against.
    pub contract: &'a Contract,
    /// What it asks for.
    pub operation: &'a Operation,
    /// Whose it is, if that was known already.
    pub guest: Option<&'a B::Principal>,
    /// Its address.
    pub uri: &'a Uri,
    /// Its identifier.
    pub id: &'a str,
}

/// Where a request leads.
enum Destination<'a, F> {
    /// To an endpoint, through the rest of the checks.
    Operation(&'a Operation, F),
    /// No further than this answer.
    Nowhere(Response<Body>),
}

/// Everything that stands between the socket and what answers.
pub struct Dispatcher<B> {
    contract: Contract,
    backend: B,
    doors: Arc<GracefulShutdown>,
    body_time: BodyTimeouts,
    is_tls: bool,
    log: Logger,
    outage: Throttle,
}

impl<B: RequestHandler> Dispatcher<B> {
    /// A front that leads there, behind these doors.
    pub fn new(
        contract: Contract,
        backend: B,
        doors: Arc<GracefulShutdown>,
        body_time: BodyTimeouts,
        is_tls: bool,
        log: Logger,
    ) -> Self {
        Self { contract, backend, doors, body_time, is_tls, log, outage: Throttle::default() }
    }

    /// Answers a request, whatever it is, unless the server is about to stop.
    pub fn answer(
        self: Arc<Self>,
        rq: RequestContext<B::Context>,
        request: Request<Body>,
    ) -> impl Future<Output = Response<Body>> + Send {
        let (head, body) = request.into_parts();
        // Not within the future, which would be larger by all of it.
        let asked = Box::new(IncomingRequest { rq, head, arguments: ParsedRequest::default() });
        async move {
            let is_http_1 = asked.head.version <= Version::HTTP_11;
            let request_id = asked.rq.request_id.clone();
            let inside = self.doors.enter();
            let mut standing = None;
            let (mut response, operation) = match &inside {
                Some(_) => self.dispatch(asked, body, &request_id, &mut standing).await,
                None => (
                    error_response(&Code::ServerUnavailable.with_message("The server is stopping. Try again shortly.").into()),
                    None,
                ),
            };
            response_headers::add(response.headers_mut(), operation.is_some_and(|operation| operation.is_secret), self.is_tls);
            if let Some(standing) = standing {
                standing.write_headers(response.headers_mut());
            }
            // HTTP/2 says it in another way, and forbids this one.
            if is_http_1 && (response.status() == StatusCode::REQUEST_TIMEOUT || self.doors.is_draining()) {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            // The operation and not the path, in which an admission token's code may stand.
            let operation = operation.map_or("none", |operation| &operation.id);
            debug!(self.log, "answered"; "operation" => operation, "status" => response.status().as_u16(), "request" => request_id);
            response
        }
    }

    /// Answers a request by what it leads to; tells the operation, if it is one.
    async fn dispatch(
        &self,
        asked: Box<IncomingRequest<B::Context>>,
        body: Body,
        request_id: &str,
        standing: &mut Option<RateLimitStatus>,
    ) -> (Response<Body>, Option<&Operation>) {
        match self.route(&asked.head) {
            Destination::Operation(operation, found) => {
                let passed = AssertUnwindSafe(self.handle(operation, found, asked, body, standing));
                let outcome = passed.catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the endpoint panicked")).into()));
                (outcome.unwrap_or_else(|failure| self.refuse(&failure, &operation.id, request_id)), Some(operation))
            }
            Destination::Nowhere(response) => (response, None),
        }
    }

    /// Step 1 of the order of checks: the head's size, the path and the method.
    fn route(&self, head: &Parts) -> Destination<'_, B::Route> {
        if let Err(failure) = request_head::check_size(&head.uri, &head.headers) {
            return Destination::Nowhere(error_response(&failure));
        }
        if head.method == Method::OPTIONS {
            return Destination::Nowhere(preflight());
        }
        match self.find(&head.method, head.uri.path()) {
            Ok((operation, found)) => Destination::Operation(operation, found),
            Err(astray) => {
                let (failure, allowed) = routing_error(astray, head.uri.path());
                let mut response = error_response(&failure);
                response.headers_mut().extend(allowed);
                Destination::Nowhere(response)
            }
        }
    }

    /// Refuses a request that doesn't get as far as [`answer`](Self::answer), because dropshot's router can't lead it there; with
    /// the headers of the refusal.
    pub fn reject_unroutable(&self, request: &Request<Body>) -> (ApiError, HeaderMap) {
        let path = request.uri().path();
        let (failure, mut headers) = request_head::check_size(request.uri(), request.headers()).err().map_or_else(
            || {
                let astray = self.find(request.method(), path).err().filter(|_| request_head::is_readable(path));
                routing_error(astray.unwrap_or(RouteError::NotFound), path)
            },
            |too_large| (too_large, HeaderMap::new()),
        );
        response_headers::add(&mut headers, false, self.is_tls);
        (failure, headers)
    }

    fn find(&self, method: &Method, path: &str) -> Result<(&Operation, B::Route), RouteError> {
        let operation = self.contract.find(method.as_str(), self.contract.without_prefix(path))?;
        Ok((operation, self.backend.look_up(operation).ok_or(RouteError::NotFound)?))
    }

    /// The other steps, and the endpoint.
    async fn handle(
        &self,
        operation: &Operation,
        found: B::Route,
        mut asked: Box<IncomingRequest<B::Context>>,
        body: Body,
        standing: &mut Option<RateLimitStatus>,
    ) -> Result<Response<Body>, ApiError> {
        let contract = &self.contract;
        let (context, uri, id) = (asked.rq.context(), &asked.head.uri, asked.rq.request_id.as_str());
        let refused = |guest| RejectedRequest { context, contract, operation, guest, uri, id };
        let guest = match self.backend.authenticate(context, operation, &found, &asked.head).await {
            Ok(guest) => guest,
            Err(failure) => return self.backend.refuse(refused(None), failure).await,
        };
        asked.arguments = match self.check(operation, &guest, &asked, body, standing).await {
            Ok(arguments) => arguments,
            Err(failure) => return self.backend.refuse(refused(Some(&guest)), failure).await,
        };
        let response = self.backend.answer(AuthorizedRequest { asked, contract, operation, found, guest }).await;
        if B::VALIDATES_RESPONSES && cfg!(debug_assertions) { assert_documented(operation, response) } else { response }
    }

    /// What follows once it is known who asks: the key's reach, how often it has asked, and what the request says.
    async fn check(
        &self,
        operation: &Operation,
        guest: &B::Principal,
        asked: &IncomingRequest<B::Context>,
        mut body: Body,
        standing: &mut Option<RateLimitStatus>,
    ) -> Result<ParsedRequest, ApiError> {
        let IncomingRequest { rq, head, .. } = asked;
        // Asked first, and told once it is counted: one who is refused asks no more often than anybody else.
        let reach = self.backend.authorize(operation, guest);
        let path = self.contract.without_prefix(head.uri.path());
        let peer = rq.request.remote_addr().ip();
        let mut bytes = None;
        if operation.credential_param.is_some() && reach.is_ok() {
            // Whom it guesses about may stand in the body.
            bytes = Some(self.body_time.read(operation, &mut body).await?);
        }
        let guessed = bytes.as_deref().map(|bytes| operation.guessed(path, bytes));
        *standing = self.backend.count(&RateLimitContext {
            context: rq.context(),
            guest,
            peer,
            headers: &head.headers,
            brute_force_target: guessed,
        });
        standing.as_ref().map_or(Ok(()), RateLimitStatus::check)?;
        reach?;
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => self.body_time.read(operation, &mut body).await?,
        };
        Ok(operation.check(path, head.uri.query(), &head.headers, &bytes).map_err(Error::from)?)
    }

    fn refuse(&self, failure: &ApiError, operation: &str, request_id: &str) -> Response<Body> {
        if let Some(cause) = failure.cause() {
            let cause = format!("{cause:#}");
            // While what the server stands on is away, everything fails alike: a line a second tells it, and how many it stands for.
            match (failure.code() == Code::ServerUnavailable).then(|| self.outage.line()) {
                None => error!(self.log, "failed"; "operation" => operation, "cause" => cause, "request" => request_id),
                Some(Some(untold)) => error!(self.log, "unavailable"; "operation" => operation, "cause" => cause,
                    "request" => request_id, "others_untold" => untold),
                Some(None) => {
                    debug!(self.log, "unavailable"; "operation" => operation, "cause" => cause, "request" => request_id);
                }
            }
        }
        error_response(failure)
    }
}

const CLIENT_VERSION: HeaderName = HeaderName::from_static("x-client-version");

/// Step 2 of the order of checks: the client's version.
///
/// # Errors
/// When it is missing, unreadable or below `minimum`.
pub fn check_version(headers: &HeaderMap, minimum: ClientVersion) -> Result<(), ApiError> {
    let version = headers.get(CLIENT_VERSION).and_then(|value| value.to_str().ok());
    let version = version.and_then(|text| text.parse::<ClientVersion>().ok());
    if version.is_some_and(|version| version >= minimum) { Ok(()) } else { Err(Code::ClientOutdated.into()) }
}

/// Seconds after which whoever was told that the server can't is to ask again. Short, because an outage that is over is soon
/// noticed; the waiting for what is away bounds how often anybody can ask.
const RETRY_AFTER: &str = "1";

/// Why a request leads nowhere, with the header of the methods that would have led somewhere.
fn routing_error(astray: RouteError, path: &str) -> (ApiError, HeaderMap) {
    match astray {
        RouteError::MethodNotAllowed(allowed) => {
            let allowed = HeaderValue::try_from(allowed.join(", ")).ok().map(|allowed| (header::ALLOW, allowed));
            (Code::MethodNotAllowed.into(), allowed.into_iter().collect())
        }
        RouteError::NotFound => {
            let text = format!("The requested endpoint {path} does not exist on this server.");
            (Code::EndpointUnknown.with_message(text).into(), HeaderMap::new())
        }
    }
}

/// In a development build, an answer that the contract doesn't declare is a failure, so that a test shows it.
fn assert_documented(operation: &Operation, response: Result<Response<Body>, ApiError>) -> Result<Response<Body>, ApiError> {
    let status = response.as_ref().map_or_else(ApiError::status, Response::status);
    if operation.statuses.contains(&status.as_u16()) {
        return response;
    }
    let undeclared = anyhow!("the contract does not declare {status} for {}", operation.id);
    Err(Error::Internal(match response {
        Err(failure) => undeclared.context(failure.to_string()),
        Ok(_) => undeclared,
    })
    .into())
}

/// What a failure is answered with.
pub fn error_response(failure: &ApiError) -> Response<Body> {
    let body = failure.body().unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = failure.status();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if failure.code() == Code::ServerUnavailable {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    }
    response
}

/// Tells a browser that any origin may send any of the API's requests: keys are sent by programs, never by the browser itself.
fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    // `*` means every header but this one (Fetch, section 4.9).
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}
