//! The front door: what every request passes before its endpoint and after it.
//!
//! dropshot answers unknown paths, other methods and its extractors' refusals in its own words. So one catch-all endpoint
//! takes every request here, and the endpoints' own router is asked from here.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use dropshot::{ApiDescription, Body};
use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use slog::{Logger, debug, error};

use super::extract::Passed;
use super::{Failure, Rq};
use crate::app::App;
use crate::auth::{self, Caller};
use crate::base::version::ClientVersion;
use crate::contract::{Contract, Operation};
use crate::error::{Code, Error};

/// The methods that a path may have, to tell those it does have.
const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

type Answer = Pin<Box<dyn Future<Output = Option<Response<Body>>> + Send>>;

/// An endpoint that was found for a request.
struct Found {
    operation_id: String,
    /// Runs it. `None` when it fails, with the failure kept in [`Passed`].
    run: Box<dyn FnOnce(Rq, Request<Body>) -> Answer + Send>,
}

type Lookup = Box<dyn Fn(&Method, &str) -> Result<Found, StatusCode> + Send + Sync>;

/// Where a request leads.
enum Route<'a> {
    /// To an endpoint, through the rest of the checks.
    Operation(&'a Operation, Found),
    /// No further than this answer.
    Nowhere(Response<Body>),
}

/// Everything that stands between the socket and the endpoints.
pub struct Front {
    contract: Contract,
    lookup: Lookup,
    log: Logger,
}

impl Front {
    /// A front door before these endpoints.
    pub fn new(contract: Contract, api: ApiDescription<Arc<App>>, log: Logger) -> Self {
        Self { contract, lookup: lookup(api), log }
    }

    /// Answers a request, whatever it is.
    pub async fn answer(&self, rq: Rq, request: Request<Body>) -> Response<Body> {
        let request_id = rq.request_id.clone();
        let (mut response, operation) = match self.route(&request) {
            Route::Operation(operation, found) => {
                let outcome = AssertUnwindSafe(self.pass(operation, found, rq, request)).catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the endpoint panicked")).into()));
                let refuse = |failure| self.refuse(&failure, &operation.id, &request_id);
                (outcome.unwrap_or_else(refuse), operation.id.as_str())
            }
            Route::Nowhere(response) => (response, "none"),
        };
        allow_any_origin(response.headers_mut());
        // The operation and not the path, in which an admission token's code may stand.
        debug!(self.log, "answered"; "operation" => operation, "status" => response.status().as_u16(), "request" => request_id);
        response
    }

    /// Step 1 of the order of checks: the path and the method.
    fn route(&self, request: &Request<Body>) -> Route<'_> {
        if request.method() == Method::OPTIONS {
            return Route::Nowhere(preflight());
        }
        let requested = request.uri().path();
        match (self.lookup)(request.method(), unversioned(requested)) {
            Ok(found) => match self.contract.operation(&found.operation_id) {
                Some(operation) => Route::Operation(operation, found),
                None => {
                    let failure = Error::Internal(anyhow!("it is not in the contract"));
                    Route::Nowhere(self.refuse(&failure.into(), &found.operation_id, ""))
                }
            },
            Err(StatusCode::METHOD_NOT_ALLOWED) => Route::Nowhere(self.method_not_allowed(unversioned(requested))),
            Err(_) => {
                let text = format!("The requested endpoint {requested} does not exist on this server.");
                Route::Nowhere(failure_response(&Code::EndpointUnknown.because(text).into()))
            }
        }
    }

    /// The other steps, and the endpoint.
    async fn pass(&self, operation: &Operation, found: Found, rq: Rq, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let app = Arc::clone(rq.context());
        let caller = admit(&app, operation, request.headers()).await?;
        let (head, body) = request.into_parts();
        let body = read_body(operation, &head.headers, body).await?;
        let arguments = operation.check(unversioned(head.uri.path()), head.uri.query(), &body)?;
        let passed = Arc::new(Passed { caller, arguments: Mutex::new(arguments), failure: Mutex::new(None) });
        let request = Request::from_parts(head, Body::empty());
        let response = Arc::clone(&passed).with((found.run)(rq, request)).await;
        let response = response.ok_or_else(|| {
            let failure = passed.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
            failure.unwrap_or_else(|| Error::Internal(anyhow!("dropshot refused the request")).into())
        });
        declared(operation, response)
    }

    fn method_not_allowed(&self, path: &str) -> Response<Body> {
        let allowed = METHODS.iter().filter(|method| (self.lookup)(method, path).is_ok()).map(Method::as_str);
        let allowed = allowed.collect::<Vec<_>>().join(", ");
        let mut response = failure_response(&Code::MethodNotAllowed.into());
        response.headers_mut().extend(HeaderValue::try_from(allowed).ok().map(|allowed| (header::ALLOW, allowed)));
        response
    }

    fn refuse(&self, failure: &Failure, operation: &str, request_id: &str) -> Response<Body> {
        if let Some(cause) = failure.cause() {
            error!(self.log, "failed"; "operation" => operation, "cause" => format!("{cause:#}"), "request" => request_id);
        }
        failure_response(failure)
    }
}

/// Every path is served with and without the version before it.
fn unversioned(path: &str) -> &str {
    path.strip_prefix("/v3").filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(path)
}

/// Steps 2 to 4 of the order of checks: the client's version, its key, and the key's scope.
async fn admit(app: &App, operation: &Operation, headers: &HeaderMap) -> Result<Option<Caller>, Failure> {
    if operation.needs_version {
        let version = headers.get("x-client-version").and_then(|value| value.to_str().ok());
        let version = version.and_then(|text| text.parse::<ClientVersion>().ok());
        if version.is_none_or(|version| version < app.settings.minimum_client_version) {
            return Err(Code::ClientOutdated.into());
        }
    }
    if !operation.needs_key {
        return Ok(None);
    }
    let key = headers.get("x-api-key").map(|value| value.to_str().unwrap_or("unreadable").trim());
    let key = key.filter(|key| !key.is_empty()).ok_or(Code::KeyMissing)?;
    let caller = auth::authenticate(app, key).await?.ok_or(Code::KeyRefused)?;
    if !operation.scopes.contains(&caller.scope) {
        return Err(Code::KeyRefused.into());
    }
    Ok(Some(caller))
}

/// What is read at the most of a body that is too large, so that its sender gets to read why it was refused.
const DISCARDED: usize = 16 * 1024 * 1024;

/// The whole body, unless it is too large or not JSON. What an operation without a body is sent is not read.
async fn read_body(operation: &Operation, headers: &HeaderMap, mut body: Body) -> Result<Vec<u8>, Failure> {
    let Some(limit) = operation.body_limit() else { return Ok(Vec::new()) };
    let (mut bytes, mut seen) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Code::BodyMalformed.because("The request's body ended before it was whole."))?;
        let Ok(data) = frame.into_data() else { continue };
        seen += data.len();
        if seen <= limit {
            bytes.extend_from_slice(&data);
        } else if seen > DISCARDED {
            break;
        }
    }
    if seen > limit {
        return Err(Code::BodyTooLarge.because(format!("The request's body is larger than {limit} bytes.")).into());
    }
    let media_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let essence = media_type.map(|value| value.split(';').next().unwrap_or_default().trim());
    match essence {
        Some(essence) if !bytes.is_empty() && !essence.eq_ignore_ascii_case("application/json") => {
            Err(Code::MediaTypeUnsupported.into())
        }
        _ => Ok(bytes),
    }
}

/// In a development build, an answer that the contract doesn't declare is a failure, so that a test shows it.
fn declared(operation: &Operation, response: Result<Response<Body>, Failure>) -> Result<Response<Body>, Failure> {
    if !cfg!(debug_assertions) {
        return response;
    }
    let status = response.as_ref().map_or_else(Failure::status, Response::status);
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

fn failure_response(failure: &Failure) -> Response<Body> {
    let body = failure.body().unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = failure.status();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Tells a browser that any origin may send any of the API's requests: keys are sent by programs, never by the browser itself.
fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

fn allow_any_origin(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let exposed = HeaderValue::from_static("allow, etag, location, retry-after, x-request-id");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

/// The endpoints' router as a function: its types are public but cannot be named.
fn lookup(api: ApiDescription<Arc<App>>) -> Lookup {
    let router = Arc::new(api.into_router());
    Box::new(move |method, path| {
        let found = router.lookup_route(method, path.into(), None).map_err(|error| error.status_code.as_status())?;
        let operation_id = found.endpoint.operation_id.clone();
        let run = move |mut rq: Rq, request: Request<Body>| -> Answer {
            Box::pin(async move {
                rq.endpoint = found.endpoint;
                found.handler.handle_request(rq, request).await.ok()
            })
        };
        Ok(Found { operation_id, run: Box::new(run) })
    })
}
