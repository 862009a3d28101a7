//! Endpoints: a method, a path and a function.
//!
//! dropshot describes them for the document that drift compares with the contract. It doesn't call them: the handler does, because
//! dropshot's own server lacks limits of connections and the contract's errors.

use std::sync::Arc;

use anyhow::anyhow;
use boxoffice_http::ApiError;
use boxoffice_http::error::{Code, Error, Result};
use dropshot::{ApiEndpoint, ApiEndpointParameter, ApiEndpointVersions, Body, HttpResponse, StubContext};
use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use http::{Method, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::endpoint_metadata::EndpointMetadata;
use super::extract::{EndpointRequest, Extract};
use super::handler::AppState;
use super::response::Success;
use crate::kernel::auth::Caller;
use crate::kernel::context::Context;

/// An endpoint of the application.
pub struct Endpoint<A> {
    /// The name of the operation in the contract.
    pub operation_id: String,
    /// The tag of the operation in the contract. [`Routes::add`](super::Routes::add) sets it.
    pub tag: String,
    /// Its HTTP behavior.
    pub metadata: EndpointMetadata,
    /// The error codes of its own rules. Codes that follow from authentication, arguments or a body are added by
    /// [`EndpointMetadata`].
    pub errors: &'static [Code],
    /// Calls its function.
    pub run: RunFn<A>,
    /// For a GET: reads the resource for the `If-Match` of another request. Usually the same as `run`.
    pub read_for_if_match: RunFn<A>,
    /// Checks access before a large body is read.
    pub check_access: Option<AccessCheck<A>>,
    /// Returns its description for dropshot, from the operationId, the method and the path.
    pub describe: fn(&str, Method, &str) -> ApiEndpoint<StubContext>,
}

/// Calls an endpoint's function with the arguments in the request.
pub type RunFn<A> = Arc<dyn Fn(EndpointRequest<A>) -> BoxFuture<'static, Result<Response<Body>>> + Send + Sync>;

/// Checks that a caller may change the resource with these path variables.
pub type AccessCheck<A> = Box<dyn Fn(Context<A>, Caller, Map<String, Value>) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// A function that can be an endpoint: an async function of the context and up to four other arguments. `T` is a tuple of the kind of
/// its [`Success`] and their types.
pub trait EndpointFunction<A, T>: Send + Sync + 'static {
    /// The successful response.
    type Response: HttpResponse + Send + Sync + 'static;

    /// Returns the parameters and the body that the arguments are taken from.
    fn parameters() -> Vec<ApiEndpointParameter>;

    /// Takes the arguments out of the request and calls the function.
    fn call(&self, request: EndpointRequest<A>) -> BoxFuture<'static, Result<Self::Response>>;
}

macro_rules! implement_endpoint_function {
    ($($type:ident $name:ident),*) => {
        impl<A, F, O, R, Kind, $($type),*> EndpointFunction<A, (Kind, $($type,)*)> for F
        where
            A: AppState,
            F: Fn(Context<A>, $($type),*) -> O + Send + Sync + 'static,
            O: Future<Output = Result<R>> + Send + 'static,
            Kind: 'static,
            R: Success<Kind> + 'static,
            $($type: Extract<A>,)*
        {
            type Response = R::Response;

            fn parameters() -> Vec<ApiEndpointParameter> {
                <($($type,)*) as Extract<A>>::parameters()
            }

            fn call(&self, mut request: EndpointRequest<A>) -> BoxFuture<'static, Result<R::Response>> {
                match <($($type,)*)>::extract(&mut request) {
                    Ok(($($name,)*)) => self(request.ctx, $($name),*).map_ok(Success::into_response).boxed(),
                    Err(error) => futures::future::ready(Err(error)).boxed(),
                }
            }
        }
    };
}

implement_endpoint_function!();
implement_endpoint_function!(T1 first);
implement_endpoint_function!(T1 first, T2 second);
implement_endpoint_function!(T1 first, T2 second, T3 third);
implement_endpoint_function!(T1 first, T2 second, T3 third, T4 fourth);

/// An endpoint for GET. `operation_id` is its name in the contract; `path` has variables in braces.
pub fn get<A: AppState, T>(operation_id: &str, path: &str, function: impl EndpointFunction<A, T>) -> Endpoint<A> {
    endpoint(Method::GET, operation_id, path, function)
}

/// An endpoint for POST.
pub fn post<A: AppState, T>(operation_id: &str, path: &str, function: impl EndpointFunction<A, T>) -> Endpoint<A> {
    endpoint(Method::POST, operation_id, path, function)
}

/// An endpoint for PUT.
pub fn put<A: AppState, T>(operation_id: &str, path: &str, function: impl EndpointFunction<A, T>) -> Endpoint<A> {
    endpoint(Method::PUT, operation_id, path, function)
}

/// An endpoint for PATCH.
pub fn patch<A: AppState, T>(operation_id: &str, path: &str, function: impl EndpointFunction<A, T>) -> Endpoint<A> {
    endpoint(Method::PATCH, operation_id, path, function)
}

/// An endpoint for DELETE.
pub fn delete<A: AppState, T>(operation_id: &str, path: &str, function: impl EndpointFunction<A, T>) -> Endpoint<A> {
    endpoint(Method::DELETE, operation_id, path, function)
}

fn endpoint<A: AppState, T, F: EndpointFunction<A, T>>(
    method: Method,
    operation_id: &str,
    path: &str,
    function: F,
) -> Endpoint<A> {
    let run = run_fn(function);
    Endpoint {
        operation_id: operation_id.to_owned(),
        tag: String::new(),
        metadata: EndpointMetadata::new(&describe_response::<A, T, F>(operation_id, method, path)),
        errors: &[],
        read_for_if_match: Arc::clone(&run),
        run,
        check_access: None,
        describe: describe::<A, T, F>,
    }
}

fn describe<A, T, F: EndpointFunction<A, T>>(operation_id: &str, method: Method, path: &str) -> ApiEndpoint<StubContext> {
    ApiEndpoint { parameters: F::parameters(), ..describe_response::<A, T, F>(operation_id, method, path) }
}

/// Returns the description without the parameters: they take most of the time, and only the document needs them.
fn describe_response<A, T, F: EndpointFunction<A, T>>(
    operation_id: &str,
    method: Method,
    path: &str,
) -> ApiEndpoint<StubContext> {
    let (id, versions) = (operation_id.to_owned(), ApiEndpointVersions::All);
    ApiEndpoint::new_for_types::<(), Result<F::Response, ApiError>>(id, method, "application/json", path, versions)
}

fn run_fn<A: 'static, T, F: EndpointFunction<A, T>>(function: F) -> RunFn<A> {
    Arc::new(move |request| {
        let success = function.call(request);
        async move {
            let response = success.await?.to_result();
            response.map_err(|error| Error::Internal(anyhow!(error.internal_message)))
        }
        .boxed()
    })
}

impl<A: AppState> Endpoint<A> {
    /// Sets the error codes of its own rules.
    pub fn errors(self, errors: &'static [Code]) -> Self {
        Self { errors, ..self }
    }

    /// Removes the need for an API key and a client version: a browser requests it by itself.
    pub fn without_key(mut self) -> Self {
        self.metadata.needs_key = false;
        self
    }

    /// Marks a GET that changes something.
    pub fn mutating(mut self) -> Self {
        self.metadata.is_mutating = true;
        self
    }

    /// Removes the entity tag from its responses, because they are streamed.
    pub fn untagged(mut self) -> Self {
        self.metadata.is_tagged = false;
        self
    }

    /// Sets another function that reads the resource for the `If-Match` of a PUT or DELETE.
    pub fn read_for_if_match<T>(self, function: impl EndpointFunction<A, T>) -> Self {
        Self { read_for_if_match: run_fn(function), ..self }
    }

    /// Sets a check that decides if the caller may change the resource, before a large body is read.
    pub fn check_access<P, F>(self, check: impl Fn(Context<A>, Caller, P) -> F + Send + Sync + 'static) -> Self
    where
        P: DeserializeOwned,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let check = move |ctx, caller, variables| {
            let checked = serde_json::from_value(Value::Object(variables)).map(|path| check(ctx, caller, path));
            async move { checked.map_err(anyhow::Error::from)?.await }.boxed()
        };
        Self { check_access: Some(Box::new(check)), ..self }
    }
}
