//! Permits for the connections of a pool, so that it makes do with fewer while the database refuses to open more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// Pause between two attempts to open a connection while the server refuses them.
const REFUSAL_PAUSE: Duration = Duration::from_millis(100);

/// The connections that a pool may have at the moment: fewer than its maximum while the server refuses to open more, so that callers
/// wait in turn for those that are open.
#[derive(Debug)]
pub(super) struct ConnectionPermits {
    free: Arc<Semaphore>,
    /// Permits that were withdrawn, because the server has refused the connection.
    withdrawn: Mutex<u32>,
    /// Callers that wait for a permit.
    waiting: AtomicUsize,
}

/// Counts a caller that waits for a permit.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConnectionPermits {
    /// Creates the permits of a pool with this maximum.
    pub(super) fn new(max_size: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(max_size)), withdrawn: Mutex::default(), waiting: AtomicUsize::default() }
    }

    /// Waits for a permit. Returns `None` if the pool is closed.
    pub(super) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Withdraws the permit of a connection that the server has refused, and returns it later: one permit after the other, so that few
    /// callers are refused.
    pub(super) fn withdraw(self: &Arc<Self>, permit: OwnedSemaphorePermit) {
        permit.forget();
        let mut withdrawn = self.withdrawn.lock();
        *withdrawn += 1;
        let (permits, pause) = (Arc::clone(self), REFUSAL_PAUSE * *withdrawn);
        tokio::spawn(async move {
            sleep(pause).await;
            permits.restore(1);
        });
    }

    /// Returns up to this many of the withdrawn permits.
    pub(super) fn restore(&self, maximum: u32) {
        let mut withdrawn = self.withdrawn.lock();
        let count = maximum.min(*withdrawn);
        *withdrawn -= count;
        self.free.add_permits(count as usize);
    }

    /// Returns the number of callers that wait for a permit.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Ends all waiting, and lets all later callers fail.
    pub(super) fn close(&self) {
        self.free.close();
    }
}
