//! The endpoints behind the front door.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use dropshot::{ApiDescription, Body};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri, header};

use super::extract::Passed;
use super::front::{Admitted, Backend, Counted, Refused, check_version};
use super::limits::{Limits, Standing};
use super::reading::{self, Reader, Readings};
use super::{Failure, Rq};
use crate::app::App;
use crate::auth::{self, Caller};
use crate::contract::{Arguments, Astray, Contract, Operation};
use crate::db::Condition;
use crate::error::{Code, Error};
use crate::journal::{self, Attempt, Visit};

/// The methods that a path may have, to tell those it does have.
const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

type Answer = Pin<Box<dyn Future<Output = Option<Response<Body>>> + Send>>;

/// An endpoint that was found for a request.
struct Endpoint {
    operation_id: String,
    run: Run,
}

/// Runs an endpoint. Gives `None` when it fails, with the failure kept in [`Passed`].
pub type Run = Box<dyn FnOnce(Rq, Request<Body>) -> Answer + Send>;

/// dropshot's own router as a function: its types are public but cannot be named.
type Lookup = Box<dyn Fn(&Method, &str) -> Result<Endpoint, StatusCode> + Send + Sync>;

/// The endpoints, as backend of the front door.
pub struct Endpoints {
    lookup: Lookup,
    readings: Readings,
    limits: Limits,
}

impl Endpoints {
    /// These endpoints, with how the resources are read that they change, within these limits.
    pub fn new(api: ApiDescription<Arc<App>>, readings: Readings, limits: Limits) -> Self {
        let router = Arc::new(api.into_router());
        let lookup = move |method: &Method, path: &str| {
            let found = router.lookup_route(method, path.into(), None).map_err(|error| error.status_code.as_status())?;
            let operation_id = found.endpoint.operation_id.clone();
            let run = move |mut rq: Rq, request: Request<Body>| -> Answer {
                Box::pin(async move {
                    rq.endpoint = found.endpoint;
                    found.handler.handle_request(rq, request).await.ok()
                })
            };
            Ok(Endpoint { operation_id, run: Box::new(run) })
        };
        Self { lookup: Box::new(lookup), readings, limits }
    }
}

impl Backend for Endpoints {
    type Context = Arc<App>;
    type Found = Run;
    type Guest = Option<Caller>;
    const KEEPS_CONTRACT: bool = true;

    fn find<'a>(&self, contract: &'a Contract, method: &Method, path: &str) -> Result<(&'a Operation, Run), Astray> {
        match (self.lookup)(method, path) {
            // What the contract doesn't have isn't served; drift tells of it. `get` is taken for `GET`, as dropshot does.
            Ok(endpoint) => Ok((contract.operation(&endpoint.operation_id).ok_or(Astray::Path)?, endpoint.run)),
            Err(StatusCode::METHOD_NOT_ALLOWED) => {
                let allowed = METHODS.iter().filter(|method| (self.lookup)(method, path).is_ok());
                Err(Astray::Method(allowed.map(Method::to_string).collect()))
            }
            Err(_) => Err(Astray::Path),
        }
    }

    async fn admit(&self, app: &Arc<App>, operation: &Operation, head: &Parts) -> Result<Option<Caller>, Failure> {
        check_version(operation, &head.headers, app.settings.minimum_client_version)?;
        if !operation.needs_key {
            return Ok(None);
        }
        let key = api_key(head).ok_or(Code::KeyMissing)?;
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
        journal::refuse(app, visit(contract, operation, caller, uri, id), failure).await
    }

    fn count(&self, request: &Counted<'_, Self>) -> Option<Standing> {
        let guess = request.guessed.as_ref().and_then(|about| {
            let from = request.context.settings.limits.trusted_proxies.client(request.peer, request.headers);
            self.limits.count_guess(from, about)
        });
        Standing::nearest([guess, request.guest.as_ref().and_then(|caller| self.limits.count(caller.key))])
    }

    async fn answer(&self, request: Admitted<'_, Self>) -> Result<Response<Body>, Failure> {
        let Admitted { rq, contract, operation, found: run, guest: caller, head, arguments } = request;
        let Some(known) = &caller else { return run_in(None, arguments, run, rq, head).await };
        let app = Arc::clone(rq.context());
        let visit = visit(contract, operation, known, &head.uri, &rq.request_id);
        let key = head.headers.get("idempotency-key").filter(|_| operation.takes("Idempotency-Key"));
        let attempt = match key.zip(api_key(&head)) {
            Some((key, api_key)) => {
                let path = contract.without_prefix(head.uri.path());
                let key = key.to_str().unwrap_or_default();
                Some(Attempt::new((known.key, api_key), key, (&operation.method, path), &arguments, app.clock.now())?)
            }
            None => None,
        };
        let condition = self.condition(operation, &app, known, &head, &arguments);
        let answer = reading::under(condition, run_in(caller, arguments, run, rq, head));
        journal::carry_out(&app, visit, attempt, answer).await
    }
}

impl Endpoints {
    /// The condition under which the caller wants something changed, where there is one.
    fn condition(
        &self,
        operation: &Operation,
        app: &Arc<App>,
        caller: &Caller,
        head: &Parts,
        arguments: &Arguments,
    ) -> Option<Arc<Condition>> {
        if !head.headers.contains_key(header::IF_MATCH) || !operation.takes("If-Match") {
            return None;
        }
        let reader = Reader { app: Arc::clone(app), caller: caller.clone(), headers: head.headers.clone() };
        self.readings.condition(&operation.path, &reader, &arguments.path)
    }
}

/// Who asks for what, for the journal.
fn visit<'a>(contract: &'a Contract, operation: &'a Operation, caller: &Caller, uri: &Uri, id: &str) -> Visit<'a> {
    let (uri, request) = (uri.clone(), id.to_owned());
    Visit { contract, operation, key: caller.key, account: caller.account, uri, request }
}

/// The key that a request carries.
fn api_key(head: &Parts) -> Option<&str> {
    let key = head.headers.get("x-api-key").map(|value| value.to_str().unwrap_or("unreadable").trim());
    key.filter(|key| !key.is_empty())
}

/// Runs an endpoint.
async fn run_in(caller: Option<Caller>, arguments: Arguments, run: Run, rq: Rq, head: Parts) -> Result<Response<Body>, Failure> {
    let passed = Arc::new(Passed { caller, arguments: Mutex::new(arguments), failure: Mutex::new(None) });
    let response = Arc::clone(&passed).with(run(rq, Request::from_parts(head, Body::empty()))).await;
    response.ok_or_else(|| {
        let failure = passed.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.unwrap_or_else(|| Error::Internal(anyhow!("dropshot refused the request")).into())
    })
}
