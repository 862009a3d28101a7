//! The request handler behind the dispatcher: authenticates the caller, and runs the endpoint in a unit of work.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use boxoffice_http::error::{Code, Error, Result};
use boxoffice_http::rate_limit::{Limits, RateLimitStatus};
use boxoffice_http::traces::Tracer;
use boxoffice_http::{
    AccessContext, ApiError, AuthorizedRequest, BodyOwner, GracefulShutdown, IncomingRequest, RateLimitContext, RejectedRequest,
    RequestHandler, check_version, etag,
};
use boxoffice_openapi::{Contract, Operation, ParsedRequest, Scope};
use dropshot::Body;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, header};

use super::endpoint::Endpoint;
use super::endpoint_metadata::EndpointMetadata;
use super::execute::{AuditContext, AuditSource, audit_rejection, execute};
use super::extract::EndpointRequest;
use crate::kernel::Kernel;
use crate::kernel::auth::{self, Caller};
use crate::kernel::context::Context;
use crate::kernel::idempotency::{IdempotentRequest, NewRequest};
use crate::kernel::unit_of_work::{Precondition, UnitOfWork};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The state of an application, as far as the kernel needs it.
pub trait AppState: Send + Sync + 'static {
    /// The kernel.
    fn kernel(&self) -> &Arc<Kernel>;
}

/// The application behind the dispatcher.
pub struct AppHandler<A> {
    /// The application's state.
    pub app: Arc<A>,
    /// The endpoints by operationId.
    pub endpoints: HashMap<String, Arc<Endpoint<A>>>,
    /// The endpoints that read a resource, by path.
    pub readers: HashMap<String, Arc<Endpoint<A>>>,
    /// The resources that the contract doesn't have, by path.
    pub outside_contract: HashMap<&'static str, OutsideContractFn<A>>,
    /// The rate limits.
    pub limits: Limits,
}

/// Responds to a GET of this path, which the contract doesn't have.
pub type OutsideContractFn<A> = fn(&'static str, Arc<A>, Arc<GracefulShutdown>) -> BoxFuture<'static, Response<Body>>;

impl<A: AppState> RequestHandler for AppHandler<A> {
    type Route = Arc<Endpoint<A>>;
    type Principal = Option<Caller>;
    const VALIDATES_RESPONSES: bool = true;

    fn look_up(&self, operation: &Operation) -> Option<Arc<Endpoint<A>>> {
        self.endpoints.get(&operation.id).cloned()
    }

    async fn authenticate(
        &self,
        _: &Operation,
        endpoint: &Arc<Endpoint<A>>,
        incoming: &IncomingRequest,
    ) -> Result<Option<Caller>, ApiError> {
        if !endpoint.metadata.needs_key {
            return Ok(None);
        }
        let kernel = self.app.kernel();
        let headers = &incoming.head.headers;
        check_version(headers, kernel.settings.minimum_client_version)?;
        let key = api_key(headers).ok_or(Code::KEY_MISSING)?;
        Ok(Some(auth::authenticate(kernel, key, &incoming.span).await?.ok_or(Code::KEY_REFUSED)?))
    }

    fn authorize(&self, operation: &Operation, caller: &Option<Caller>) -> Result<(), ApiError> {
        let has_scope = caller.as_ref().is_none_or(|caller| operation.scopes.contains(&caller.scope));
        if has_scope { Ok(()) } else { Err(Code::KEY_REFUSED.into()) }
    }

    fn key(&self, caller: &Option<Caller>) -> Option<i64> {
        caller.as_ref().map(|caller| caller.key.0)
    }

    fn account(&self, caller: &Option<Caller>) -> Option<Arc<str>> {
        caller.as_ref()?.account_number.clone()
    }

    fn respond_outside_contract(
        &self,
        path: &str,
        shutdown: &Arc<GracefulShutdown>,
    ) -> Option<BoxFuture<'static, Response<Body>>> {
        let (path, respond) = self.outside_contract.get_key_value(path)?;
        Some(respond(path, Arc::clone(&self.app), Arc::clone(shutdown)))
    }

    fn tracer(&self) -> Tracer {
        self.app.kernel().tracer.clone()
    }

    fn record(&self, operation: &Operation, status: StatusCode, duration: Duration) {
        self.app.kernel().metrics.record_request(&operation.id, status.as_u16(), duration);
    }

    fn body_owner(&self, caller: &Option<Caller>, client_address: IpAddr) -> Option<BodyOwner> {
        let caller = caller.as_ref()?;
        // All users of an application share its key.
        if caller.scope != Scope::Public {
            return Some(BodyOwner::key(caller.key.0));
        }
        Some(BodyOwner::shared_key(caller.key.0, client_address))
    }

    async fn check_access(&self, request: AccessContext<'_, Self>) -> Result<(), ApiError> {
        let AccessContext { operation, route: endpoint, principal, path, .. } = request;
        let Some((check, caller)) = endpoint.check_access.as_ref().zip(principal.as_ref()) else { return Ok(()) };
        let variables = operation.path_arguments(path).map_err(Error::from)?;
        let unit = UnitOfWork::read_only(self.app.kernel().db.clone(), request.span.clone());
        let ctx = Context { app: Arc::clone(&self.app), unit };
        Ok(check(ctx, caller.clone(), variables).await?)
    }

    /// Writes the audit record of a rejected request, if its API key is known.
    async fn reject(&self, request: RejectedRequest<'_, Self>, error: ApiError) -> Result<Response<Body>, ApiError> {
        let RejectedRequest { contract, operation, principal, uri, id } = request;
        let Some(caller) = principal.and_then(Option::as_ref) else { return Err(error) };
        audit_rejection(self.app.kernel(), audit_context(contract, operation, caller, uri, id), error).boxed().await
    }

    fn count(&self, request: &RateLimitContext<'_, Self>) -> Option<RateLimitStatus> {
        let address = request.client_address;
        let guesses = request.guessing_target.as_ref().and_then(|target| self.limits.count_guess(address, target));
        let of_client = match request.principal {
            // All users of an application share its key.
            Some(caller) if caller.scope == Scope::Public => self.limits.count_shared(caller.key.0, address),
            Some(caller) => self.limits.count(caller.key.0),
            None => self.limits.count_keyless(address),
        };
        RateLimitStatus::most_restrictive([guesses, of_client])
    }

    fn count_failure(&self, client_address: IpAddr) -> Option<RateLimitStatus> {
        self.limits.count_keyless(client_address)
    }

    async fn respond(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        let metadata = &request.route.metadata;
        let if_none_match = if metadata.is_read() { etag::if_none_match(&request.incoming.head.headers) } else { Vec::new() };
        let (has_tag, needs_key) = (metadata.has_tag(), metadata.needs_key);
        let response = self.run(request).await?;
        let has_tag = has_tag && response.status().is_success();
        if has_tag { Ok(etag::with_etag(response, needs_key, &if_none_match).await?) } else { Ok(response) }
    }
}

impl<A: AppState> AppHandler<A> {
    /// Runs the endpoint in a unit of work: once for an `Idempotency-Key`, and under the precondition of `If-Match`.
    async fn run(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        let AuthorizedRequest { incoming, contract, operation, route: endpoint, principal: caller } = request;
        let (kernel, metadata) = (self.app.kernel(), &endpoint.metadata);
        let Some(principal) = caller.as_ref().filter(|_| metadata.is_mutating) else {
            let ctx = self.context(UnitOfWork::read_only(kernel.db.clone(), incoming.span.clone()));
            return Ok((endpoint.run)(EndpointRequest { ctx, caller, incoming }).await?);
        };
        let uri = incoming.head.uri.clone();
        let audit = audit_context(contract, operation, principal, &uri, &incoming.id);
        let idempotent = idempotent_request(contract, operation, metadata, principal, &incoming, kernel)?;
        let precondition = self.precondition(metadata, principal, &incoming);
        let unit = UnitOfWork::of_request(kernel.db.clone(), idempotent.clone(), precondition, incoming.span.clone());
        let ctx = self.context(Arc::clone(&unit));
        let response = (endpoint.run)(EndpointRequest { ctx, caller, incoming });
        // Boxed to keep this future small: it is moved through several layers.
        execute(kernel, audit, &unit, idempotent, response).boxed().await
    }

    fn context(&self, unit: Arc<UnitOfWork>) -> Context<A> {
        Context { app: Arc::clone(&self.app), unit }
    }

    /// The precondition of the request, if it has an `If-Match` that applies: a GET of its path would still return the same
    /// entity tag.
    fn precondition(&self, metadata: &EndpointMetadata, caller: &Caller, incoming: &IncomingRequest) -> Option<Precondition> {
        let expected: Vec<HeaderValue> = incoming.head.headers.get_all(header::IF_MATCH).into_iter().cloned().collect();
        let reader = self.readers.get(metadata.path()).filter(|_| !expected.is_empty())?;
        if !metadata.is_conditional(true) {
            return None;
        }
        let unit = UnitOfWork::precondition_check(self.app.kernel().db.clone(), incoming.span.clone());
        let (read, ctx) = (Arc::clone(&reader.read_for_if_match), self.context(unit));
        let (id, client_address, span) = (incoming.id.clone(), incoming.client_address, incoming.span.clone());
        let (head, path) = (incoming.head.clone(), incoming.arguments.path.clone());
        let caller = caller.clone();
        Some(Precondition::new(move || {
            let arguments = ParsedRequest { path: path.clone(), ..ParsedRequest::default() };
            let (id, head, span) = (id.clone(), head.clone(), span.clone());
            let incoming = Box::new(IncomingRequest { id, client_address, head, arguments, span });
            let response = read(EndpointRequest { ctx: ctx.clone(), caller: Some(caller.clone()), incoming });
            let expected = expected.clone();
            async move {
                let tag = etag::etag_of(&etag::collect_body(response.await?.into_body()).await?);
                if etag::matches_strong(&expected, &tag) { Ok(()) } else { Err(Code::RESOURCE_CHANGED.into()) }
            }
            .boxed()
        }))
    }
}

/// Returns the idempotent request if the operation supports `Idempotency-Key` and the client has sent one.
fn idempotent_request(
    contract: &Contract,
    operation: &Operation,
    metadata: &EndpointMetadata,
    caller: &Caller,
    incoming: &IncomingRequest,
    kernel: &Kernel,
) -> Result<Option<Arc<IdempotentRequest>>> {
    let headers = &incoming.head.headers;
    let idempotency_key = headers.get(IDEMPOTENCY_KEY).filter(|_| metadata.is_idempotency_keyed());
    let Some((idempotency_key, api_key)) = idempotency_key.zip(api_key(headers)) else { return Ok(None) };
    let request = IdempotentRequest::new(&NewRequest {
        key: caller.key,
        api_key,
        idempotency_key: idempotency_key.to_str().unwrap_or_default(),
        method: operation.method.as_str(),
        path: contract.without_prefix(incoming.head.uri.path()),
        arguments: &incoming.arguments,
        now: kernel.clock.now(),
    })?;
    Ok(Some(Arc::new(request)))
}

fn audit_context<'a>(
    contract: &'a Contract,
    operation: &'a Operation,
    caller: &Caller,
    uri: &'a Uri,
    id: &str,
) -> AuditContext<'a> {
    let is_public = caller.scope == Scope::Public;
    let source = AuditSource::Request { contract, operation, key: caller.key, account: caller.account, is_public, uri };
    AuditContext { source, request: id.to_owned() }
}

/// Returns the API key in these headers.
pub fn api_key(headers: &HeaderMap) -> Option<&str> {
    let key = headers.get(API_KEY).map(|value| value.to_str().unwrap_or("unreadable").trim());
    key.filter(|key| !key.is_empty())
}
