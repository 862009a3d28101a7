//! How resources are read for the conditions of the requests that change them, and what such a condition does.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use dropshot::Body;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{ApiError, tag};
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::db::Precondition;
use boxoffice_http::error::{Code, Result};

/// Who reads a resource.
#[derive(Clone)]
pub struct PreconditionContext {
    /// The platform.
    pub app: Arc<App>,
    /// Whose key the request came with.
    pub caller: Caller,
    /// The request's headers.
    pub headers: HeaderMap,
}

/// Reads what stands at a path with these variables: the bytes that a GET of it is answered with.
type Reading = Arc<dyn Fn(PreconditionContext, Map<String, Value>) -> BoxFuture<'static, Result<Vec<u8>>> + Send + Sync>;

/// How each resource is read, by its path as endpoints have it.
#[derive(Default)]
pub struct PreconditionRegistry(BTreeMap<String, Reading>);

impl PreconditionRegistry {
    /// Adds the reading of what stands at `path`: `read` gives what its GET answers.
    pub fn add<P, T, F>(&mut self, path: &str, read: impl Fn(PreconditionContext, P) -> F + Send + Sync + 'static)
    where
        P: DeserializeOwned,
        T: Serialize,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let reading = move |reader, variables| {
            let read = serde_json::from_value(Value::Object(variables)).map(|path| read(reader, path));
            async move { Ok(serde_json::to_vec(&read.map_err(anyhow::Error::from)?.await?).map_err(anyhow::Error::from)?) }
                .boxed()
        };
        self.0.insert(path.to_owned(), Arc::new(reading));
    }

    /// Whether what stands at a path is read here.
    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The condition that a request's `If-Match` makes of what stands at its path; `None` where it makes none.
    pub fn condition(
        &self,
        path: &str,
        reader: &PreconditionContext,
        variables: &Map<String, Value>,
    ) -> Option<Arc<Precondition>> {
        let wanted: Vec<HeaderValue> = reader.headers.get_all(header::IF_MATCH).into_iter().cloned().collect();
        let reading = Arc::clone(self.0.get(path).filter(|_| !wanted.is_empty())?);
        let (reader, variables) = (reader.clone(), variables.clone());
        Some(Precondition::new(move || {
            let read = reading(reader.clone(), variables.clone());
            let wanted = wanted.clone();
            async move {
                let tag = tag::etag_of(&read.await?);
                if tag::matches_strong(&wanted, &tag) { Ok(()) } else { Err(Code::ResourceChanged.into()) }
            }
        }))
    }
}

/// Answers a request under its condition. Whether the resource has changed is told before what stands against the change (400,
/// 409), and also where there was nothing to be done; but after whether it is there (404) and this caller's (403).
pub async fn with_precondition<F>(condition: Arc<Precondition>, answer: F) -> Result<Response<Body>, ApiError>
where
    F: Future<Output = Result<Response<Body>, ApiError>>,
{
    let answer = condition.scope(answer).await;
    let is_told_first = |failure: &ApiError| ![StatusCode::BAD_REQUEST, StatusCode::CONFLICT].contains(&failure.status());
    if !condition.is_satisfied() && !answer.as_ref().is_err_and(is_told_first) {
        condition.check().await?;
    }
    answer
}
