//! Entity tags and responses to conditional requests.

use progenitor_client::{Error, ResponseValue};
use reqwest::StatusCode;
use reqwest::header::ETAG;

/// A response that may have an entity tag.
pub trait HasEtag {
    /// Returns the entity tag for `if_none_match` and `if_match`; `None` if the operation has none.
    fn etag(&self) -> Option<&str>;
}

impl<T> HasEtag for ResponseValue<T> {
    fn etag(&self) -> Option<&str> {
        self.headers().get(ETAG)?.to_str().ok()
    }
}

/// The result of a request with `if_none_match`.
pub trait IfChanged: Sized {
    /// The response if the content has changed.
    type Changed;
    /// The error of the request.
    type Error;

    /// Returns the response; `None` if the content hasn't changed (304).
    ///
    /// # Errors
    /// Any other error of the request.
    fn if_changed(self) -> Result<Option<Self::Changed>, Self::Error>;
}

impl<T, E> IfChanged for Result<ResponseValue<T>, Error<E>> {
    type Changed = ResponseValue<T>;
    type Error = Error<E>;

    fn if_changed(self) -> Result<Option<ResponseValue<T>>, Error<E>> {
        match self {
            Err(Error::UnexpectedResponse(response)) if response.status() == StatusCode::NOT_MODIFIED => Ok(None),
            result => result.map(Some),
        }
    }
}
