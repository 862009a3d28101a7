//! Readers of resources for `If-Match`: a change is carried out only if a GET of its path would still return the same ETag.

use std::collections::BTreeMap;
use std::sync::Arc;

use boxoffice_http::error::{Code, Result};
use boxoffice_http::etag;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::kernel::auth::Caller;
use crate::kernel::context::Context;
use crate::kernel::db::Precondition;

/// The context in which a reader runs.
pub struct PreconditionContext<A> {
    /// The application's state, and a unit of work that only reads.
    pub ctx: Context<A>,
    /// The caller of the change.
    pub caller: Caller,
    /// The headers of the change.
    pub headers: HeaderMap,
}

impl<A> Clone for PreconditionContext<A> {
    fn clone(&self) -> Self {
        Self { ctx: self.ctx.clone(), caller: self.caller.clone(), headers: self.headers.clone() }
    }
}

/// Returns the body of a GET response, from the path's variables.
type ReadFn<A> = Arc<dyn Fn(PreconditionContext<A>, Map<String, Value>) -> BoxFuture<'static, Result<Vec<u8>>> + Send + Sync>;

/// The readers by path.
pub struct PreconditionRegistry<A>(BTreeMap<String, ReadFn<A>>);

impl<A> Default for PreconditionRegistry<A> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<A: Send + Sync + 'static> PreconditionRegistry<A> {
    /// Adds the reader of the resource at `path`. `read` returns the same as its GET.
    pub fn add<P, T, F>(&mut self, path: &str, read: impl Fn(PreconditionContext<A>, P) -> F + Send + Sync + 'static)
    where
        P: DeserializeOwned,
        T: Serialize,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let read = move |context, variables| {
            let resource = serde_json::from_value(Value::Object(variables)).map(|path| read(context, path));
            async move {
                let resource = resource.map_err(anyhow::Error::from)?.await?;
                Ok(serde_json::to_vec(&resource).map_err(anyhow::Error::from)?)
            }
            .boxed()
        };
        self.0.insert(path.to_owned(), Arc::new(read));
    }

    /// Returns whether `path` has a reader.
    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Returns the precondition of a request's `If-Match` on `path`.
    pub fn precondition(
        &self,
        path: &str,
        context: &PreconditionContext<A>,
        variables: &Map<String, Value>,
    ) -> Option<Precondition> {
        let expected: Vec<HeaderValue> = context.headers.get_all(header::IF_MATCH).into_iter().cloned().collect();
        let read = Arc::clone(self.0.get(path).filter(|_| !expected.is_empty())?);
        let (context, variables) = (context.clone(), variables.clone());
        Some(Precondition::new(move || {
            let body = read(context.clone(), variables.clone());
            let expected = expected.clone();
            async move {
                let tag = etag::etag_of(&body.await?);
                if etag::matches_strong(&expected, &tag) { Ok(()) } else { Err(Code::ResourceChanged.into()) }
            }
            .boxed()
        }))
    }
}
