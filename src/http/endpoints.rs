//! The endpoints behind the front door.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use dropshot::{ApiEndpoint, Body};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Request, Response, Uri, header};

use super::extract::Passed;
use super::front::{Admitted, Asked, Backend, Counted, Refused, check_version};
use super::limits::{Limits, Standing};
use super::protocol::Protocol;
use super::reading::{self, Reader, Readings};
use super::{Failure, tag};
use crate::app::App;
use crate::auth::{self, Caller};
use crate::contract::{Arguments, Contract, Operation};
use crate::db::Condition;
use crate::error::{Code, Error};
use crate::journal::{self, Attempt, Visit};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// An endpoint.
pub struct Endpoint {
    /// How it is served.
    pub protocol: Protocol,
    run: Run,
}

/// Runs an endpoint's handler, whose type is public but cannot be named. Gives `None` when it fails, with the failure kept in
/// [`Passed`].
type Run = Box<dyn Fn(Box<Asked<Arc<App>>>) -> BoxFuture<'static, Option<Response<Body>>> + Send + Sync>;

impl Endpoint {
    /// An endpoint as written.
    pub fn new(endpoint: &ApiEndpoint<Arc<App>>, protocol: Protocol) -> Arc<Self> {
        let handler = Arc::clone(&endpoint.handler);
        let run = move |asked: Box<Asked<Arc<App>>>| {
            let handler = Arc::clone(&handler);
            let run = async move {
                let Asked { rq, head, .. } = *asked;
                handler.handle_request(rq, Request::from_parts(head, Body::empty())).await.ok()
            };
            run.boxed()
        };
        Arc::new(Self { protocol, run: Box::new(run) })
    }
}

/// The endpoints, as backend of the front door.
pub struct Endpoints {
    /// By their operationId.
    pub endpoints: HashMap<String, Arc<Endpoint>>,
    /// How the resources are read that they change.
    pub readings: Readings,
    /// How often they may be asked.
    pub limits: Limits,
}

impl Backend for Endpoints {
    type Context = Arc<App>;
    type Found = Arc<Endpoint>;
    type Guest = Option<Caller>;
    const KEEPS_CONTRACT: bool = true;

    fn look_up(&self, operation: &Operation) -> Option<Arc<Endpoint>> {
        self.endpoints.get(&operation.id).cloned()
    }

    async fn admit(&self, app: &Arc<App>, _: &Operation, found: &Arc<Endpoint>, head: &Parts) -> Result<Option<Caller>, Failure> {
        if !found.protocol.needs_key() {
            return Ok(None);
        }
        check_version(&head.headers, app.settings.minimum_client_version)?;
        let key = api_key(&head.headers).ok_or(Code::KeyMissing)?;
        Ok(Some(auth::authenticate(app, key).await?.ok_or(Code::KeyRefused)?))
    }

    fn check_reach(&self, operation: &Operation, caller: &Option<Caller>) -> Result<(), Failure> {
        let reaches = caller.as_ref().is_none_or(|caller| operation.scopes.contains(&caller.scope));
        if reaches { Ok(()) } else { Err(Code::KeyRefused.into()) }
    }

    /// What a known key asked for and was refused stands in the audit trail.
    async fn refuse(&self, request: Refused<'_, Self>, failure: Failure) -> Result<Response<Body>, Failure> {
        let Refused { context: app, contract, operation, guest, uri, id } = request;
        let Some(caller) = guest.and_then(Option::as_ref) else { return Err(failure) };
        journal::refuse(app, visit(contract, operation, caller, uri, id), failure).boxed().await
    }

    fn count(&self, request: &Counted<'_, Self>) -> Option<Standing> {
        let guess = request.guessed.as_ref().and_then(|about| {
            let from = request.context.settings.limits.trusted_proxies.client(request.peer, request.headers);
            self.limits.count_guess(from, about)
        });
        Standing::nearest([guess, request.guest.as_ref().and_then(|caller| self.limits.count(caller.key))])
    }

    async fn answer(&self, request: Admitted<'_, Self>) -> Result<Response<Body>, Failure> {
        let protocol = &request.found.protocol;
        let known = if protocol.is_read() { tag::known(&request.asked.head.headers) } else { Vec::new() };
        let (has_tag, is_of_key) = (protocol.has_tag(), protocol.needs_key());
        let response = self.carry_out(request).await?;
        let has_tag = has_tag && response.status().is_success();
        if has_tag { Ok(tag::tagged(response, is_of_key, &known).await?) } else { Ok(response) }
    }
}

impl Endpoints {
    /// Runs the endpoint that was found, once for an `Idempotency-Key` and under the condition of `If-Match`.
    async fn carry_out(&self, request: Admitted<'_, Self>) -> Result<Response<Body>, Failure> {
        let Admitted { asked, contract, operation, found: endpoint, guest: caller } = request;
        let protocol = &endpoint.protocol;
        let Some(known) = caller.as_ref().filter(|_| protocol.is_change()) else {
            return journal::read(run_in(caller, &endpoint, asked)).await;
        };
        let Asked { rq, head, arguments } = &*asked;
        let app = Arc::clone(rq.context());
        let visit = visit(contract, operation, known, &head.uri, &rq.request_id);
        let key = if protocol.is_once() { head.headers.get(IDEMPOTENCY_KEY) } else { None };
        let attempt = match key.zip(api_key(&head.headers)) {
            Some((key, api_key)) => {
                let path = contract.without_prefix(head.uri.path());
                let key = key.to_str().unwrap_or_default();
                let what = (operation.method.as_str(), path);
                Some(Arc::new(Attempt::new((known.key, api_key), key, what, arguments, app.clock.now())?))
            }
            None => None,
        };
        let condition = self.condition(protocol, &app, known, head, arguments);
        // Boxed, as what follows: a future is as large as all that it waits for, and is moved from one to the next through whom it goes.
        let answer = run_in(caller, &endpoint, asked).boxed();
        let answer = match condition {
            Some(condition) => reading::under(condition, answer).boxed(),
            None => answer,
        };
        journal::carry_out(&app, visit, attempt, answer).boxed().await
    }

    /// The condition under which the caller wants something changed, where there is one.
    fn condition(
        &self,
        protocol: &Protocol,
        app: &Arc<App>,
        caller: &Caller,
        head: &Parts,
        arguments: &Arguments,
    ) -> Option<Arc<Condition>> {
        if !head.headers.contains_key(header::IF_MATCH) || !protocol.is_conditional(&self.readings) {
            return None;
        }
        let reader = Reader { app: Arc::clone(app), caller: caller.clone(), headers: head.headers.clone() };
        self.readings.condition(protocol.path(), &reader, &arguments.path)
    }
}

/// Who asks for what, for the journal.
fn visit<'a>(contract: &'a Contract, operation: &'a Operation, caller: &Caller, uri: &Uri, id: &str) -> Visit<'a> {
    let (uri, request) = (uri.clone(), id.to_owned());
    Visit { contract, operation, key: caller.key, account: caller.account, uri, request }
}

/// The key that a request with these headers carries.
pub fn api_key(headers: &HeaderMap) -> Option<&str> {
    let key = headers.get(API_KEY).map(|value| value.to_str().unwrap_or("unreadable").trim());
    key.filter(|key| !key.is_empty())
}

/// Runs an endpoint.
async fn run_in(caller: Option<Caller>, endpoint: &Endpoint, mut asked: Box<Asked<Arc<App>>>) -> Result<Response<Body>, Failure> {
    let arguments = Mutex::new(std::mem::take(&mut asked.arguments));
    let passed = Arc::new(Passed { caller, arguments, failure: Mutex::new(None) });
    let response = Arc::clone(&passed).with((endpoint.run)(asked)).await;
    response.ok_or_else(|| {
        let failure = passed.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.unwrap_or_else(|| Error::Internal(anyhow!("dropshot refused the request")).into())
    })
}
