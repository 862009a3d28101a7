//! The endpoints behind the front door.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use dropshot::{ApiEndpoint, Body};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Request, Response, Uri, header};

use super::api_request::RequestExtensions;
use super::front::{AuthorizedRequest, IncomingRequest, RateLimitContext, RejectedRequest, RequestHandler, check_version};
use super::rate_limit::{Limits, RateLimitStatus};
use super::endpoint_metadata::EndpointMetadata;
use super::precondition::{self, PreconditionContext, PreconditionRegistry};
use super::{ApiError, tag};
use crate::state::App;
use crate::kernel::auth::{self, Caller};
use boxoffice_openapi::{Contract, Operation, ParsedRequest};
use crate::kernel::db::Precondition;
use boxoffice_http::error::{Code, Error};
use crate::kernel::journal::{self, AuditContext, IdempotentRequest};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// An endpoint.
pub struct Endpoint {
    /// How it is served.
    pub protocol: EndpointMetadata,
    run: Run,
}

/// Runs an endpoint's handler, whose type is public but cannot be named. Gives `None` when it fails, with the failure kept in
/// [`Passed`].
type Run = Box<dyn Fn(Box<IncomingRequest<Arc<App>>>) -> BoxFuture<'static, Option<Response<Body>>> + Send + Sync>;

impl Endpoint {
    /// An endpoint as written.
    pub fn new(endpoint: &ApiEndpoint<Arc<App>>, protocol: EndpointMetadata) -> Arc<Self> {
        let handler = Arc::clone(&endpoint.handler);
        let run = move |asked: Box<IncomingRequest<Arc<App>>>| {
            let handler = Arc::clone(&handler);
            let run = async move {
                let IncomingRequest { rq, head, .. } = *asked;
                handler.handle_request(rq, Request::from_parts(head, Body::empty())).await.ok()
            };
            run.boxed()
        };
        Arc::new(Self { protocol, run: Box::new(run) })
    }
}

/// The endpoints, as backend of the front door.
pub struct AppHandler {
    /// By their operationId.
    pub endpoints: HashMap<String, Arc<Endpoint>>,
    /// How the resources are read that they change.
    pub readings: PreconditionRegistry,
    /// How often they may be asked.
    pub limits: Limits,
}

impl RequestHandler for AppHandler {
    type Context = Arc<App>;
    type Route = Arc<Endpoint>;
    type Principal = Option<Caller>;
    const VALIDATES_RESPONSES: bool = true;

    fn look_up(&self, operation: &Operation) -> Option<Arc<Endpoint>> {
        self.endpoints.get(&operation.id).cloned()
    }

    async fn authenticate(
        &self,
        app: &Arc<App>,
        _: &Operation,
        found: &Arc<Endpoint>,
        head: &Parts,
    ) -> Result<Option<Caller>, ApiError> {
        if !found.protocol.needs_key() {
            return Ok(None);
        }
        check_version(&head.headers, app.settings.minimum_client_version)?;
        let key = api_key(&head.headers).ok_or(Code::KeyMissing)?;
        Ok(Some(auth::authenticate(app, key).await?.ok_or(Code::KeyRefused)?))
    }

    fn authorize(&self, operation: &Operation, caller: &Option<Caller>) -> Result<(), ApiError> {
        let reaches = caller.as_ref().is_none_or(|caller| operation.scopes.contains(&caller.scope));
        if reaches { Ok(()) } else { Err(Code::KeyRefused.into()) }
    }

    /// What a known key asked for and was refused stands in the audit trail.
    async fn refuse(&self, request: RejectedRequest<'_, Self>, failure: ApiError) -> Result<Response<Body>, ApiError> {
        let RejectedRequest { context: app, contract, operation, guest, uri, id } = request;
        let Some(caller) = guest.and_then(Option::as_ref) else { return Err(failure) };
        journal::audit_rejection(app, audit_context(contract, operation, caller, uri, id), failure).boxed().await
    }

    fn count(&self, request: &RateLimitContext<'_, Self>) -> Option<RateLimitStatus> {
        let guess = request.brute_force_target.as_ref().and_then(|about| {
            let from = request.context.settings.limits.trusted_proxies.client(request.peer, request.headers);
            self.limits.count_guess(from, about)
        });
        RateLimitStatus::most_restrictive([guess, request.guest.as_ref().and_then(|caller| self.limits.count(caller.key))])
    }

    async fn answer(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        let protocol = &request.found.protocol;
        let known = if protocol.is_read() { tag::if_none_match(&request.asked.head.headers) } else { Vec::new() };
        let (has_tag, is_of_key) = (protocol.has_tag(), protocol.needs_key());
        let response = self.carry_out(request).await?;
        let has_tag = has_tag && response.status().is_success();
        if has_tag { Ok(tag::with_etag(response, is_of_key, &known).await?) } else { Ok(response) }
    }
}

impl AppHandler {
    /// Runs the endpoint that was found, once for an `Idempotency-Key` and under the condition of `If-Match`.
    async fn carry_out(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        let AuthorizedRequest { asked, contract, operation, found: endpoint, guest: caller } = request;
        let protocol = &endpoint.protocol;
        let Some(known) = caller.as_ref().filter(|_| protocol.is_change()) else {
            return journal::read(run_in(caller, &endpoint, asked)).await;
        };
        let IncomingRequest { rq, head, arguments } = &*asked;
        let app = Arc::clone(rq.context());
        let visit = audit_context(contract, operation, known, &head.uri, &rq.request_id);
        let key = if protocol.is_idempotency_keyed() { head.headers.get(IDEMPOTENCY_KEY) } else { None };
        let attempt = match key.zip(api_key(&head.headers)) {
            Some((key, api_key)) => {
                let path = contract.without_prefix(head.uri.path());
                let key = key.to_str().unwrap_or_default();
                let what = (operation.method.as_str(), path);
                Some(Arc::new(IdempotentRequest::new((known.key, api_key), key, what, arguments, app.clock.now())?))
            }
            None => None,
        };
        let condition = self.condition(protocol, &app, known, head, arguments);
        // Boxed, as what follows: a future is as large as all that it waits for, and is moved from one to the next through whom it goes.
        let answer = run_in(caller, &endpoint, asked).boxed();
        let answer = match condition {
            Some(condition) => precondition::with_precondition(condition, answer).boxed(),
            None => answer,
        };
        journal::execute(&app, visit, attempt, answer).boxed().await
    }

    /// The condition under which the caller wants something changed, where there is one.
    fn condition(
        &self,
        protocol: &EndpointMetadata,
        app: &Arc<App>,
        caller: &Caller,
        head: &Parts,
        arguments: &ParsedRequest,
    ) -> Option<Arc<Precondition>> {
        if !head.headers.contains_key(header::IF_MATCH) || !protocol.is_conditional(&self.readings) {
            return None;
        }
        let reader = PreconditionContext { app: Arc::clone(app), caller: caller.clone(), headers: head.headers.clone() };
        self.readings.condition(protocol.path(), &reader, &arguments.path)
    }
}

/// Who asks for what, for the journal.
fn audit_context<'a>(contract: &'a Contract, operation: &'a Operation, caller: &Caller, uri: &Uri, id: &str) -> AuditContext<'a> {
    let (uri, request) = (uri.clone(), id.to_owned());
    AuditContext { contract, operation, key: caller.key, account: caller.account, uri, request }
}

/// The key that a request with these headers carries.
pub fn api_key(headers: &HeaderMap) -> Option<&str> {
    let key = headers.get(API_KEY).map(|value| value.to_str().unwrap_or("unreadable").trim());
    key.filter(|key| !key.is_empty())
}

/// Runs an endpoint.
async fn run_in(
    caller: Option<Caller>,
    endpoint: &Endpoint,
    mut asked: Box<IncomingRequest<Arc<App>>>,
) -> Result<Response<Body>, ApiError> {
    let arguments = Mutex::new(std::mem::take(&mut asked.arguments));
    let passed = Arc::new(RequestExtensions { caller, arguments, failure: Mutex::new(None) });
    let response = Arc::clone(&passed).with((endpoint.run)(asked)).await;
    response.ok_or_else(|| {
        let failure = passed.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.unwrap_or_else(|| Error::Internal(anyhow!("dropshot refused the request")).into())
    })
}
