//! Tags of what was read, and answers to requests that name them.

use progenitor_client::{Error, ResponseValue};
use reqwest::StatusCode;
use reqwest::header::ETAG;

/// What was read, with the tag of its content.
pub trait HasEtag {
    /// The tag, for `if_none_match` and `if_match`; nothing where the operation has none.
    fn tag(&self) -> Option<&str>;
}

impl<T> HasEtag for ResponseValue<T> {
    fn tag(&self) -> Option<&str> {
        self.headers().get(ETAG)?.to_str().ok()
    }
}

/// An answer to a request with `if_none_match`, whose content the caller may have already.
pub trait IfChanged: Sized {
    /// What is read where it has changed.
    type Changed;
    /// What goes wrong.
    type Error;

    /// The answer; `None` where the content is still the one of that tag (304).
    ///
    /// # Errors
    /// With whatever else went wrong.
    fn if_changed(self) -> Result<Option<Self::Changed>, Self::Error>;
}

impl<T, E> IfChanged for Result<ResponseValue<T>, Error<E>> {
    type Changed = ResponseValue<T>;
    type Error = Error<E>;

    fn if_changed(self) -> Result<Option<ResponseValue<T>>, Error<E>> {
        match self {
            Err(Error::UnexpectedResponse(response)) if response.status() == StatusCode::NOT_MODIFIED => Ok(None),
            answer => answer.map(Some),
        }
    }
}
