//! What endpoints take from a request. The front door has held it against the contract; here it becomes a Rust type.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use dropshot::{
    ApiEndpointBodyContentType, Body, ExclusiveExtractor, ExtensionMode, ExtractorMetadata, HttpError, RequestContext,
    ServerContext, SharedExtractor, TypedBody,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ApiError;
use crate::kernel::auth::Caller;
use boxoffice_openapi::ParsedRequest;
use boxoffice_http::error::{Code, Error};

/// A request that has passed the front door, on its way to its endpoint and back.
#[derive(Debug)]
pub struct RequestExtensions {
    /// Whose key it came with; `None` for an operation that asks for none.
    pub caller: Option<Caller>,
    /// What the request says, as the contract reads it.
    pub arguments: Mutex<ParsedRequest>,
    /// The failure that the endpoint answered with. dropshot turns it into a response whose type cannot be named,
    /// so the front door takes it from here.
    pub failure: Mutex<Option<ApiError>>,
}

tokio::task_local! {
    static PASSED: Arc<RequestExtensions>;
}

impl RequestExtensions {
    /// Runs an endpoint with this request at hand.
    pub async fn with<F: Future>(self: Arc<Self>, endpoint: F) -> F::Output {
        PASSED.scope(self, endpoint).await
    }

    /// Keeps the failure that the endpoint now answers with.
    pub fn set_error(failure: ApiError) {
        let _outside_the_front_door = PASSED.try_with(|passed| {
            *passed.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        });
    }

    fn take<T>(what: impl FnOnce(&mut ParsedRequest) -> T) -> Result<T, HttpError> {
        PASSED
            .try_with(|passed| what(&mut passed.arguments.lock().unwrap_or_else(PoisonError::into_inner)))
            .map_err(|_| HttpError::for_internal_error("a request has not come through the front door".to_owned()))
    }
}

/// Refuses what fits the contract but not the Rust type, naming the argument.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, HttpError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let name = path.split(['.', '[']).next().unwrap_or_default();
        refuse(Error::invalid(name, error.into_inner().to_string()))
    })
}

/// An extractor can only refuse with dropshot's own error; the real one is kept beside it.
fn refuse(error: Error) -> HttpError {
    RequestExtensions::set_error(error.into());
    HttpError::for_bad_request(None, Code::ArgumentsInvalid.text().to_owned())
}

/// The path's variables, as `T`.
#[derive(Debug)]
pub struct Path<T>(pub T);

#[async_trait]
impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> SharedExtractor for Path<T> {
    async fn from_request<C: ServerContext>(_: &RequestContext<C>) -> Result<Self, HttpError> {
        let path = RequestExtensions::take(|arguments| std::mem::take(&mut arguments.path))?;
        read(Value::Object(path)).map(Self)
    }

    fn metadata(body: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <dropshot::Path<T> as SharedExtractor>::metadata(body)
    }
}

/// The query, as `T`.
#[derive(Debug)]
pub struct Query<T>(pub T);

#[async_trait]
impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> SharedExtractor for Query<T> {
    async fn from_request<C: ServerContext>(_: &RequestContext<C>) -> Result<Self, HttpError> {
        let query = RequestExtensions::take(|arguments| std::mem::take(&mut arguments.query))?;
        read(Value::Object(query)).map(Self)
    }

    fn metadata(body: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <dropshot::Query<T> as SharedExtractor>::metadata(body)
    }
}

/// The JSON body, as `T`.
#[derive(Debug)]
pub struct Json<T>(pub T);

#[async_trait]
impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> ExclusiveExtractor for Json<T> {
    async fn from_request<C: ServerContext>(_: &RequestContext<C>, _: hyper::Request<Body>) -> Result<Self, HttpError> {
        let body = RequestExtensions::take(|arguments| arguments.body.take())?;
        read(body).map(Self)
    }

    fn metadata(body: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <TypedBody<T> as ExclusiveExtractor>::metadata(body)
    }
}

/// Whose key the request came with.
#[async_trait]
impl SharedExtractor for Caller {
    async fn from_request<C: ServerContext>(_: &RequestContext<C>) -> Result<Self, HttpError> {
        let caller = PASSED.try_with(|passed| passed.caller.clone()).ok().flatten();
        caller.ok_or_else(|| HttpError::for_internal_error("the operation asks for no key and so has no caller".to_owned()))
    }

    fn metadata(_: ApiEndpointBodyContentType) -> ExtractorMetadata {
        ExtractorMetadata { extension_mode: ExtensionMode::None, parameters: vec![] }
    }
}
