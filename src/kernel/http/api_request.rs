//! The argument and the result of every endpoint.
//!
//! dropshot allows only one extractor to take the request, and erases the type of an endpoint's error. So each endpoint has one
//! extractor, [`ApiRequest`], which carries the context, the caller and the typed arguments, and its errors are part of its
//! response, [`ApiResponse`], from which the handler takes them.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use boxoffice_http::ApiError;
use boxoffice_http::error::{Error, Result};
use boxoffice_openapi::ParsedRequest;
use dropshot::{
    ApiEndpointBodyContentType, ApiEndpointResponse, Body, ExclusiveExtractor, ExtensionMode, ExtractorMetadata, HttpError,
    HttpResponse, RequestContext, ServerContext, SharedExtractor, TypedBody,
};
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kernel::auth::Caller;
use crate::kernel::context::Context;

/// Everything that the handler passes to an endpoint.
pub struct RequestParts<A> {
    /// The application's state and the unit of work.
    pub ctx: Context<A>,
    /// The caller; `None` for an operation without authentication.
    pub caller: Option<Caller>,
    /// The arguments, validated against the contract.
    pub arguments: ParsedRequest,
}

/// [`RequestParts`] in the extensions of a request, which must be cloneable. They are taken once.
pub struct Handover<A>(Arc<Mutex<Option<RequestParts<A>>>>);

impl<A> Handover<A> {
    /// Wraps the parts of a request.
    pub fn new(parts: RequestParts<A>) -> Self {
        Self(Arc::new(Mutex::new(Some(parts))))
    }

    fn take(&self) -> Option<RequestParts<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<A> Clone for Handover<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A request with arguments of type `T`: [`Path`], [`Query`], [`Json`], a tuple of them, or `()`.
pub struct ApiRequest<A, T> {
    parts: RequestParts<A>,
    arguments: std::marker::PhantomData<fn() -> T>,
}

impl<A: Send + Sync + 'static, T: Arguments> ApiRequest<A, T> {
    /// Calls `handler` with the context, the caller and the arguments, and makes its result the response.
    pub async fn respond<R, F>(self, handler: impl FnOnce(Context<A>, Caller, T) -> F) -> ApiResult<R>
    where
        F: Future<Output = Result<R>>,
    {
        let RequestParts { ctx, caller, mut arguments } = self.parts;
        let caller = caller.ok_or_else(|| Error::Internal(anyhow::anyhow!("an operation with a caller has no authentication")));
        let result = match caller.and_then(|caller| Ok((caller, T::parse(&mut arguments)?))) {
            Ok((caller, arguments)) => handler(ctx, caller, arguments).await,
            Err(error) => Err(error),
        };
        Ok(ApiResponse(result.map_err(ApiError::from)))
    }

    /// The same for an operation without authentication.
    pub async fn respond_public<R, F>(self, handler: impl FnOnce(Context<A>, T) -> F) -> ApiResult<R>
    where
        F: Future<Output = Result<R>>,
    {
        let RequestParts { ctx, mut arguments, .. } = self.parts;
        let result = match T::parse(&mut arguments) {
            Ok(arguments) => handler(ctx, arguments).await,
            Err(error) => Err(error),
        };
        Ok(ApiResponse(result.map_err(ApiError::from)))
    }
}

#[async_trait]
impl<A: Send + Sync + 'static, T: Arguments> ExclusiveExtractor for ApiRequest<A, T> {
    async fn from_request<C: ServerContext>(_: &RequestContext<C>, mut request: hyper::Request<Body>) -> Result<Self, HttpError> {
        let parts = request.extensions_mut().remove::<Handover<A>>().and_then(|handover| handover.take());
        let parts = parts.ok_or_else(|| HttpError::for_internal_error("the request did not pass the dispatcher".to_owned()))?;
        Ok(Self { parts, arguments: std::marker::PhantomData })
    }

    fn metadata(body: ApiEndpointBodyContentType) -> ExtractorMetadata {
        T::metadata(body)
    }
}

/// The result of an endpoint.
pub type ApiResult<T> = Result<ApiResponse<T>, ApiError>;

/// A success of type `T`, or an error. The error travels in the extensions of the response, from which `take_error` takes it.
pub struct ApiResponse<T>(Result<T, ApiError>);

impl<T: HttpResponse + Send + Sync + 'static> HttpResponse for ApiResponse<T> {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        match self.0 {
            Ok(success) => success.to_result(),
            Err(error) => {
                let mut response = Response::new(Body::empty());
                response.extensions_mut().insert(error);
                Ok(response)
            }
        }
    }

    fn response_metadata() -> ApiEndpointResponse {
        T::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        match &self.0 {
            Ok(success) => success.status_code(),
            Err(error) => error.status(),
        }
    }
}

/// Returns the response of an endpoint, or the error that an [`ApiResponse`] has put into it.
///
/// # Errors
/// With that error.
pub fn take_error(mut response: Response<Body>) -> Result<Response<Body>, ApiError> {
    match response.extensions_mut().remove::<ApiError>() {
        Some(error) => Err(error),
        None => Ok(response),
    }
}

/// The typed arguments of an operation.
pub trait Arguments: Sized + Send + 'static {
    /// Takes the arguments out of the request and deserializes them.
    ///
    /// # Errors
    /// Returns an error with the argument's name if a value conforms to the contract but not to its Rust type.
    fn parse(arguments: &mut ParsedRequest) -> Result<Self>;

    /// The parameters and the body, for the document that dropshot emits.
    fn metadata(body: ApiEndpointBodyContentType) -> ExtractorMetadata;
}

/// The path's variables.
#[derive(Debug)]
pub struct Path<T>(pub T);

/// The query's parameters.
#[derive(Debug)]
pub struct Query<T>(pub T);

/// The JSON body.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl Arguments for () {
    fn parse(_: &mut ParsedRequest) -> Result<Self> {
        Ok(())
    }

    fn metadata(_: ApiEndpointBodyContentType) -> ExtractorMetadata {
        ExtractorMetadata { extension_mode: ExtensionMode::None, parameters: vec![] }
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> Arguments for Path<T> {
    fn parse(arguments: &mut ParsedRequest) -> Result<Self> {
        let variables = Value::Object(std::mem::take(&mut arguments.path));
        serde_json::from_value(variables).map(Self).map_err(|_| Error::NOT_FOUND)
    }

    fn metadata(body: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <dropshot::Path<T> as SharedExtractor>::metadata(body)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> Arguments for Query<T> {
    fn parse(arguments: &mut ParsedRequest) -> Result<Self> {
        deserialize(Value::Object(std::mem::take(&mut arguments.query))).map(Self)
    }

    fn metadata(body: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <dropshot::Query<T> as SharedExtractor>::metadata(body)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> Arguments for Json<T> {
    fn parse(arguments: &mut ParsedRequest) -> Result<Self> {
        deserialize(arguments.body.take()).map(Self)
    }

    fn metadata(body: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <TypedBody<T> as ExclusiveExtractor>::metadata(body)
    }
}

impl<S: Arguments, T: Arguments> Arguments for (S, T) {
    fn parse(arguments: &mut ParsedRequest) -> Result<Self> {
        Ok((S::parse(arguments)?, T::parse(arguments)?))
    }

    fn metadata(body: ApiEndpointBodyContentType) -> ExtractorMetadata {
        let (mut first, second) = (S::metadata(body.clone()), T::metadata(body));
        first.parameters.extend(second.parameters);
        first
    }
}

/// Deserializes a value that the contract has accepted.
fn deserialize<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let name = path.split(['.', '[']).next().unwrap_or_default();
        Error::invalid(name, error.into_inner().to_string())
    })
}
