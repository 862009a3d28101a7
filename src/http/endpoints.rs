//! The endpoints behind the front door.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use dropshot::{ApiDescription, Body};
use futures::FutureExt;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};

use super::extract::Passed;
use super::front::{Admitted, Backend, check_version};
use super::reading::{self, Reader, Readings};
use super::{Failure, Rq};
use crate::app::App;
use crate::auth::{self, Caller};
use crate::contract::{Arguments, Astray, Contract, Operation};
use crate::db::Condition;
use crate::error::{Code, Error};

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
}

impl Endpoints {
    /// These endpoints, with how the resources are read that they change.
    pub fn new(api: ApiDescription<Arc<App>>, readings: Readings) -> Self {
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
        Self { lookup: Box::new(lookup), readings }
    }
}

impl Backend for Endpoints {
    type Context = Arc<App>;
    type Found = Run;
    type Guest = Option<Caller>;
    const KEEPS_CONTRACT: bool = true;

    fn find<'a>(&self, contract: &'a Contract, method: &Method, path: &str) -> Result<(&'a Operation, Run), Astray> {
        match (self.lookup)(method, path) {
            // What the contract doesn't have isn't served; drift tells of it.
            Ok(endpoint) => {
                let operation = contract.operation(&endpoint.operation_id).ok_or(Astray::Path)?;
                Ok((operation, endpoint.run))
            }
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
        let key = head.headers.get("x-api-key").map(|value| value.to_str().unwrap_or("unreadable").trim());
        let key = key.filter(|key| !key.is_empty()).ok_or(Code::KeyMissing)?;
        let caller = auth::authenticate(app, key).await?.ok_or(Code::KeyRefused)?;
        if !operation.scopes.contains(&caller.scope) {
            return Err(Code::KeyRefused.into());
        }
        Ok(Some(caller))
    }

    async fn answer(&self, request: Admitted<'_, Self>) -> Result<Response<Body>, Failure> {
        let Admitted { rq, operation, found: run, guest: caller, head, arguments, .. } = request;
        let condition = self.condition(operation, rq.context(), caller.as_ref(), &head, &arguments);
        let passed = Arc::new(Passed { caller, arguments: Mutex::new(arguments), failure: Mutex::new(None) });
        let answer = Arc::clone(&passed).with(run(rq, Request::from_parts(head, Body::empty())));
        let answer = answer.map(|answer| {
            answer.ok_or_else(|| {
                let failure = passed.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
                failure.unwrap_or_else(|| Error::Internal(anyhow!("dropshot refused the request")).into())
            })
        });
        reading::under(condition, answer).await
    }
}

impl Endpoints {
    /// The condition under which the request wants something changed, if it is one that changes something.
    fn condition(
        &self,
        operation: &Operation,
        app: &Arc<App>,
        caller: Option<&Caller>,
        head: &Parts,
        arguments: &Arguments,
    ) -> Option<Arc<Condition>> {
        if head.method == Method::GET || !head.headers.contains_key(header::IF_MATCH) {
            return None;
        }
        let reader = Reader { app: Arc::clone(app), caller: caller?.clone(), headers: head.headers.clone() };
        self.readings.condition(&operation.path, &reader, &arguments.path)
    }
}
