//! Streams over the entries of all pages of a list.

use futures_core::Stream;
use futures_util::stream::{iter, try_unfold};
use futures_util::{StreamExt, TryStreamExt};
use progenitor_client::Error;

use crate::types;

/// A page of a list.
pub trait Page {
    /// An entry of the list.
    type Entry;

    /// Returns the entries of this page, and the number of entries on all pages.
    fn into_parts(self) -> (Vec<Self::Entry>, i64);
}

/// An operation that returns a list page by page.
pub trait List: Clone + Send {
    /// A page of the list.
    type Page: Page<Entry: Send> + Send;

    /// Reads the page of this number, from 1.
    fn load(self, page: i64) -> impl Future<Output = Result<Self::Page, Error<types::Error>>> + Send;

    /// Returns a stream of the entries of all pages. It begins with the first page, also if `page` was set. A page is read when its
    /// first entry is needed. An error ends the stream.
    ///
    /// The server evaluates the list again for each page: an entry may be missing or come twice if the list changes in between.
    fn stream(self) -> impl Stream<Item = Result<<Self::Page as Page>::Entry, Error<types::Error>>> + Send {
        let first = Progress { next: Some(1), received: 0 };
        let pages = try_unfold((self, first), |(list, progress)| async move {
            let Some(number) = progress.next else { return Ok(None) };
            let (entries, total) = match list.clone().load(number).await {
                Ok(page) => page.into_parts(),
                Err(error) if number > 1 && is_past_end(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            let received = progress.received + i64::try_from(entries.len()).unwrap_or(i64::MAX);
            let is_last = entries.is_empty() || received >= total;
            let progress = Progress { next: (!is_last).then_some(number + 1), received };
            Ok(Some((iter(entries).map(Ok), (list, progress))))
        });
        pages.try_flatten()
    }
}

/// The position in a list.
struct Progress {
    /// The number of the next page; `None` after the last one.
    next: Option<i64>,
    /// Number of entries on the pages so far. A page may have fewer entries than it was asked for, so page numbers don't reveal it.
    received: i64,
}

/// Returns whether the list has fewer pages.
fn is_past_end(error: &Error<types::Error>) -> bool {
    matches!(error, Error::ErrorResponse(response) if response.code == types::ErrorCode::PagePastEnd)
}
