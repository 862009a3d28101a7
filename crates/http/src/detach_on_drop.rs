//! Future that is not cancelled by dropping it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;

/// A future that continues in a task of its own if it is dropped before it completes. So a client that disconnects never cancels
/// a change or a database statement halfway. A client that stays connected costs no extra task.
pub struct DetachOnDrop<T: Send + 'static>(Option<BoxFuture<'static, T>>);

impl<T: Send + 'static> DetachOnDrop<T> {
    /// Wraps a future.
    pub fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(future.boxed()))
    }
}

impl<T: Send + 'static> Future for DetachOnDrop<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(mut future) = self.0.take() else { return Poll::Pending };
        let polled = future.poll_unpin(context);
        if polled.is_pending() {
            self.0 = Some(future);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        if let Some((future, runtime)) = self.0.take().zip(Handle::try_current().ok()) {
            runtime.spawn(future);
        }
    }
}
