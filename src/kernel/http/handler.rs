//! The request handler behind the dispatcher: authenticates the caller, and runs the endpoint in a unit of work.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::anyhow;
use boxoffice_http::error::{Code, Error, Result};
use boxoffice_http::rate_limit::{Limits, RateLimitStatus};
use boxoffice_http::{
    AccessContext, ApiError, AuthorizedRequest, BodyContext, BodyOwner, IncomingRequest, RateLimitContext, RejectedRequest,
    RequestHandler, check_version, etag,
};
use boxoffice_openapi::{Contract, Operation, Scope};
use dropshot::{ApiEndpoint, Body, RequestContext};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Request, Response, Uri, header};
use serde_json::{Map, Value};

use super::api_request::{Handover, RequestParts, take_error};
use super::endpoint_metadata::EndpointMetadata;
use super::execute::{AuditContext, audit_rejection, execute};
use super::precondition::{PreconditionContext, PreconditionRegistry};
use crate::kernel::Kernel;
use crate::kernel::auth::{self, Caller};
use crate::kernel::context::Context;
use crate::kernel::db::{Precondition, UnitOfWork};
use crate::kernel::idempotency::IdempotentRequest;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The state of an application, as far as the kernel needs it.
pub trait AppState: Send + Sync + 'static {
    /// The kernel.
    fn kernel(&self) -> &Arc<Kernel>;
}

/// An endpoint.
pub struct Endpoint<A: AppState> {
    /// Its HTTP behavior.
    pub metadata: EndpointMetadata,
    run: RunFn<A>,
}

/// Calls an endpoint's handler.
type RunFn<A> =
    Box<dyn Fn(Box<IncomingRequest<Arc<A>>>, Handover<A>) -> BoxFuture<'static, Result<Response<Body>, ApiError>> + Send + Sync>;

impl<A: AppState> Endpoint<A> {
    /// An endpoint with its handler.
    pub fn new(endpoint: &ApiEndpoint<Arc<A>>, metadata: EndpointMetadata) -> Arc<Self> {
        let handler = Arc::clone(&endpoint.handler);
        let run = move |request: Box<IncomingRequest<Arc<A>>>, handover: Handover<A>| {
            let handler = Arc::clone(&handler);
            let run = async move {
                let IncomingRequest { rq, mut head, .. } = *request;
                head.extensions.insert(handover);
                // An endpoint's own errors are in its response; dropshot's error has a private type.
                let response = handler.handle_request(rq, Request::from_parts(head, Body::empty())).await;
                let response = response.map_err(|_| Error::Internal(anyhow!("dropshot rejected the request")))?;
                take_error(response)
            };
            run.boxed()
        };
        Arc::new(Self { metadata, run: Box::new(run) })
    }
}

/// The endpoints of the application.
pub struct AppHandler<A: AppState> {
    /// The endpoints by operationId.
    pub endpoints: HashMap<String, Arc<Endpoint<A>>>,
    /// The readers of the resources that have preconditions.
    pub preconditions: PreconditionRegistry<A>,
    /// The checks before a large body is read, by operationId.
    pub access_checks: HashMap<String, AccessCheck<A>>,
    /// The rate limits.
    pub limits: Limits,
}

/// Checks that a caller may change the resource with these path variables.
pub type AccessCheck<A> = Box<dyn Fn(Context<A>, Caller, Map<String, Value>) -> BoxFuture<'static, Result<()>> + Send + Sync>;

impl<A: AppState> RequestHandler for AppHandler<A> {
    type Context = Arc<A>;
    type Route = Arc<Endpoint<A>>;
    type Principal = Option<Caller>;
    const VALIDATES_RESPONSES: bool = true;

    fn look_up(&self, operation: &Operation) -> Option<Arc<Endpoint<A>>> {
        self.endpoints.get(&operation.id).cloned()
    }

    async fn authenticate(
        &self,
        app: &Arc<A>,
        _: &Operation,
        endpoint: &Arc<Endpoint<A>>,
        head: &Parts,
    ) -> Result<Option<Caller>, ApiError> {
        if !endpoint.metadata.needs_key() {
            return Ok(None);
        }
        check_version(&head.headers, app.kernel().settings.minimum_client_version)?;
        let key = api_key(&head.headers).ok_or(Code::KeyMissing)?;
        Ok(Some(auth::authenticate(app.kernel(), key).await?.ok_or(Code::KeyRefused)?))
    }

    fn authorize(&self, operation: &Operation, caller: &Option<Caller>) -> Result<(), ApiError> {
        let has_scope = caller.as_ref().is_none_or(|caller| operation.scopes.contains(&caller.scope));
        if has_scope { Ok(()) } else { Err(Code::KeyRefused.into()) }
    }

    fn body_owner(&self, request: &BodyContext<'_, Self>) -> Option<BodyOwner> {
        let caller = request.principal.as_ref()?;
        // All users of an application share its key.
        if caller.scope != Scope::Public {
            return Some(BodyOwner::key(caller.key.0));
        }
        let proxies = &request.context.kernel().settings.limits.trusted_proxies;
        Some(BodyOwner::shared_key(caller.key.0, proxies.client(request.peer, request.headers)))
    }

    async fn check_access(&self, request: AccessContext<'_, Self>) -> Result<(), ApiError> {
        let AccessContext { context: app, operation, principal, path, .. } = request;
        let Some((check, caller)) = self.access_checks.get(&operation.id).zip(principal.as_ref()) else { return Ok(()) };
        let variables = operation.path_arguments(path).map_err(Error::from)?;
        let ctx = Context { app: Arc::clone(app), unit: UnitOfWork::read_only(app.kernel().db.clone()) };
        Ok(check(ctx, caller.clone(), variables).await?)
    }

    /// Writes the audit record of a rejected request, if its API key is known.
    async fn reject(&self, request: RejectedRequest<'_, Self>, error: ApiError) -> Result<Response<Body>, ApiError> {
        let RejectedRequest { context: app, contract, operation, principal, uri, id } = request;
        let Some(caller) = principal.and_then(Option::as_ref) else { return Err(error) };
        audit_rejection(app.kernel(), audit_context(contract, operation, caller, uri, id), error).boxed().await
    }

    fn count(&self, request: &RateLimitContext<'_, Self>) -> Option<RateLimitStatus> {
        let proxies = &request.context.kernel().settings.limits.trusted_proxies;
        let address = proxies.client(request.peer, request.headers);
        let attempts = request.brute_force_target.as_ref().and_then(|target| self.limits.count_attempt(address, target));
        let of_client = match request.principal {
            // All users of an application share its key.
            Some(caller) if caller.scope == Scope::Public => self.limits.count_shared(caller.key.0, address),
            Some(caller) => self.limits.count(caller.key.0),
            None => self.limits.count_keyless(address),
        };
        RateLimitStatus::most_restrictive([attempts, of_client])
    }

    async fn respond(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        let metadata = &request.route.metadata;
        let if_none_match = if metadata.is_read() { etag::if_none_match(&request.incoming.head.headers) } else { Vec::new() };
        let (has_tag, needs_key) = (metadata.has_tag(), metadata.needs_key());
        let response = self.run(request).await?;
        let has_tag = has_tag && response.status().is_success();
        if has_tag { Ok(etag::with_etag(response, needs_key, &if_none_match).await?) } else { Ok(response) }
    }
}

impl<A: AppState> AppHandler<A> {
    /// Runs the endpoint in a unit of work: once for an `Idempotency-Key`, and under the precondition of `If-Match`.
    async fn run(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        let AuthorizedRequest { incoming, contract, operation, route: endpoint, principal: caller } = request;
        let app = Arc::clone(incoming.rq.context());
        let (kernel, metadata) = (app.kernel(), &endpoint.metadata);
        let Some(principal) = caller.as_ref().filter(|_| metadata.is_mutating()) else {
            let unit = UnitOfWork::read_only(kernel.db.clone());
            return run_endpoint(&endpoint, incoming, Context { app: Arc::clone(&app), unit }, caller).await;
        };
        let audit = audit_context(contract, operation, principal, &incoming.head.uri, &incoming.rq.request_id);
        let idempotent = idempotent_request(contract, operation, metadata, principal, &incoming, kernel)?;
        let precondition = self.precondition(metadata, &app, principal, &incoming);
        let unit = UnitOfWork::of_request(kernel.db.clone(), idempotent.clone(), precondition);
        let ctx = Context { app: Arc::clone(&app), unit: Arc::clone(&unit) };
        let response = run_endpoint(&endpoint, incoming, ctx, caller).boxed();
        // Boxed to keep this future small: it is moved through several layers.
        execute(kernel, audit, &unit, idempotent, response).boxed().await
    }

    /// The precondition of the request, if it has an `If-Match` that applies.
    fn precondition(
        &self,
        metadata: &EndpointMetadata,
        app: &Arc<A>,
        caller: &Caller,
        incoming: &IncomingRequest<Arc<A>>,
    ) -> Option<Precondition> {
        let headers = &incoming.head.headers;
        if !headers.contains_key(header::IF_MATCH) || !metadata.is_conditional(self.preconditions.has(metadata.path())) {
            return None;
        }
        let unit = UnitOfWork::precondition_check(app.kernel().db.clone());
        let ctx = Context { app: Arc::clone(app), unit };
        let reader = PreconditionContext { ctx, caller: caller.clone(), headers: headers.clone() };
        self.preconditions.precondition(metadata.path(), &reader, &incoming.arguments.path)
    }
}

/// Returns the idempotent request if the operation supports `Idempotency-Key` and the client has sent one.
fn idempotent_request<A: AppState>(
    contract: &Contract,
    operation: &Operation,
    metadata: &EndpointMetadata,
    caller: &Caller,
    incoming: &IncomingRequest<Arc<A>>,
    kernel: &Kernel,
) -> Result<Option<Arc<IdempotentRequest>>> {
    let headers = &incoming.head.headers;
    let key = headers.get(IDEMPOTENCY_KEY).filter(|_| metadata.is_idempotency_keyed());
    let Some((key, api_key)) = key.zip(api_key(headers)) else { return Ok(None) };
    let target = (operation.method.as_str(), contract.without_prefix(incoming.head.uri.path()));
    let key = key.to_str().unwrap_or_default();
    let request = IdempotentRequest::new((caller.key, api_key), key, target, &incoming.arguments, kernel.clock.now())?;
    Ok(Some(Arc::new(request)))
}

fn audit_context<'a>(contract: &'a Contract, operation: &'a Operation, caller: &Caller, uri: &Uri, id: &str) -> AuditContext<'a> {
    AuditContext { contract, operation, key: caller.key, account: caller.account, uri: uri.clone(), request: id.to_owned() }
}

/// Returns the address of a request's client, which a trusted proxy may have forwarded.
pub fn client_address<A: AppState>(rq: &RequestContext<Arc<A>>) -> IpAddr {
    let proxies = &rq.context().kernel().settings.limits.trusted_proxies;
    proxies.client(rq.request.remote_addr().ip(), rq.request.headers())
}

/// Returns the API key in these headers.
pub fn api_key(headers: &HeaderMap) -> Option<&str> {
    let key = headers.get(API_KEY).map(|value| value.to_str().unwrap_or("unreadable").trim());
    key.filter(|key| !key.is_empty())
}

async fn run_endpoint<A: AppState>(
    endpoint: &Endpoint<A>,
    mut incoming: Box<IncomingRequest<Arc<A>>>,
    ctx: Context<A>,
    caller: Option<Caller>,
) -> Result<Response<Body>, ApiError> {
    let arguments = std::mem::take(&mut incoming.arguments);
    (endpoint.run)(incoming, Handover::new(RequestParts { ctx, caller, arguments })).await
}
