//! Work that is done to its end, whoever waits for it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;

/// A future that goes on in a task of its own when it is dropped before its end: so a change is made or not, and no statement is left
/// behind half asked, when a client goes away. Whoever stays waits for no other task.
pub struct DetachOnDrop<T: Send + 'static>(Option<BoxFuture<'static, T>>);

impl<T: Send + 'static> DetachOnDrop<T> {
    /// Does this work to its end.
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(work.boxed()))
    }
}

impl<T: Send + 'static> Future for DetachOnDrop<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(mut work) = self.0.take() else { return Poll::Pending };
        let polled = work.poll_unpin(context);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        if let Some((work, runtime)) = self.0.take().zip(Handle::try_current().ok()) {
            runtime.spawn(work);
        }
    }
}
