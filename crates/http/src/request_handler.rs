//! The interface between the dispatcher and the application behind it.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use boxoffice_openapi::{Contract, Operation, ParsedRequest};
use dropshot::Body;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Response, StatusCode, Uri};

use crate::ApiError;
use crate::body_memory::BodyOwner;
use crate::rate_limit::RateLimitStatus;
use crate::shutdown::GracefulShutdown;
use crate::traces::{Span, Tracer};

/// Application behind the dispatcher: the platform or the mock.
pub trait RequestHandler: Send + Sync + 'static {
    /// The endpoint of an operation.
    type Route: Send + Sync;
    /// The authenticated caller.
    type Principal: Send + Sync;
    /// If true, a development build rejects responses that the contract doesn't declare.
    const VALIDATES_RESPONSES: bool;

    /// Returns the endpoint of an operation of the contract, if there is one.
    fn look_up(&self, operation: &Operation) -> Option<Self::Route>;

    /// Checks the client's version and its key (steps 2 and 3 of the [order of checks](crate::Dispatcher#order-of-checks)).
    fn authenticate(
        &self,
        operation: &Operation,
        route: &Self::Route,
        incoming: &IncomingRequest,
    ) -> impl Future<Output = Result<Self::Principal, ApiError>> + Send;

    /// Checks that the principal's scope covers this operation (step 4 of the [order of checks](crate::Dispatcher#order-of-checks)).
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

    /// Counts a request whose authentication failed against the limit of its address, if there is one.
    fn count_failure(&self, _client_address: IpAddr) -> Option<RateLimitStatus> {
        None
    }

    /// Returns the owner of a request's body, whose memory for bodies is limited.
    fn body_owner(&self, _principal: &Self::Principal, _client_address: IpAddr) -> Option<BodyOwner> {
        None
    }

    /// Checks the access to the resource in the path, before a large body is read (step 5).
    ///
    /// # Errors
    /// 404 or 403.
    fn check_access(&self, _request: AccessContext<'_, Self>) -> impl Future<Output = Result<(), ApiError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Returns the identifier of the principal's key, for the log.
    fn key(&self, _principal: &Self::Principal) -> Option<i64> {
        None
    }

    /// Returns the number of the principal's account, for the log.
    fn account(&self, _principal: &Self::Principal) -> Option<Arc<str>> {
        None
    }

    /// Begins the response to a GET of a path that the contract doesn't have, such as a health check, if there is one.
    fn respond_outside_contract(
        &self,
        _path: &str,
        _shutdown: &Arc<GracefulShutdown>,
    ) -> Option<BoxFuture<'static, Response<Body>>> {
        None
    }

    /// Returns the tracer, which creates no spans by default.
    fn tracer(&self) -> Tracer {
        Tracer::default()
    }

    /// Counts a request of the contract that was answered.
    fn record(&self, _operation: &Operation, _status: StatusCode, _duration: Duration) {}

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
#[derive(Debug)]
pub struct IncomingRequest {
    /// Its identifier, which the response has in `X-Request-ID`.
    pub id: String,
    /// The address of its client, which a trusted proxy may have forwarded.
    pub client_address: IpAddr,
    /// Its method, URI and headers.
    pub head: Parts,
    /// Its parsed arguments; empty until the request has been validated.
    pub arguments: ParsedRequest,
    /// Its span.
    pub span: Span,
}

/// A request that passed all checks.
pub struct AuthorizedRequest<'a, H: RequestHandler + ?Sized> {
    /// The request.
    pub incoming: Box<IncomingRequest>,
    /// The contract that it was validated against.
    pub contract: &'a Contract,
    /// The requested operation.
    pub operation: &'a Operation,
    /// The operation's endpoint.
    pub route: H::Route,
    /// The authenticated caller.
    pub principal: H::Principal,
}

/// Input of the rate limiter.
pub struct RateLimitContext<'a, H: RequestHandler + ?Sized> {
    /// The authenticated caller.
    pub principal: &'a H::Principal,
    /// The address of the client.
    pub client_address: IpAddr,
    /// The identity whose credentials are being tried, if the operation can be used for that and the key's scope covers it.
    pub guessing_target: Option<String>,
}

/// A request whose large body was not read yet.
pub struct AccessContext<'a, H: RequestHandler + ?Sized> {
    /// The requested operation.
    pub operation: &'a Operation,
    /// The operation's endpoint.
    pub route: &'a H::Route,
    /// The authenticated caller.
    pub principal: &'a H::Principal,
    /// Its path, without the base path of the contract's server.
    pub path: &'a str,
    /// Its span.
    pub span: &'a Span,
}

/// A request that failed a check.
pub struct RejectedRequest<'a, H: RequestHandler + ?Sized> {
    /// The contract that it was validated against.
    pub contract: &'a Contract,
    /// The requested operation.
    pub operation: &'a Operation,
    /// The authenticated caller; `None` if authentication failed.
    pub principal: Option<&'a H::Principal>,
    /// Its URI.
    pub uri: &'a Uri,
    /// Its identifier.
    pub id: &'a str,
}
