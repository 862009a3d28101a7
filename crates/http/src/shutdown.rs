//! Graceful shutdown: responses ask clients to close their connections, then new requests are rejected, and those in flight end.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// The shortest period in which requests are still served after shutdown begins. Each response of this period closes its
/// connection, so that no client sends into a closing connection.
pub const MIN_DRAIN_PERIOD: Duration = Duration::from_millis(250);

const OPEN: u8 = 0;
const DRAINING: u8 = 1;
const CLOSED: u8 = 2;

/// Counts the requests in flight and rejects new ones after shutdown.
#[derive(Debug)]
pub struct GracefulShutdown {
    state: AtomicU8,
    /// The period in which requests are still served after shutdown begins.
    drain_period: Duration,
    /// The number of requests in flight. Receivers are notified only when it reaches 0, because notifying for each request costs
    /// time.
    in_flight: watch::Sender<usize>,
}

/// Counts one request as in flight until dropped.
#[derive(Debug)]
pub struct InFlightGuard<'a>(&'a GracefulShutdown);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.in_flight.send_if_modified(|count| {
            *count -= 1;
            *count == 0
        });
    }
}

impl GracefulShutdown {
    /// Creates the state of a server that still serves requests for this period after shutdown begins, so that load balancers
    /// notice. It is at least 250 ms.
    pub fn new(drain_period: Duration) -> Self {
        Self { state: AtomicU8::new(OPEN), drain_period: drain_period.max(MIN_DRAIN_PERIOD), in_flight: watch::Sender::default() }
    }

    /// Counts a request as in flight; returns `None` once the server is closed.
    pub fn enter(&self) -> Option<InFlightGuard<'_>> {
        // Counted before the check, so that `drain` sees every request that was still accepted.
        self.in_flight.send_if_modified(|count| {
            *count += 1;
            false
        });
        let guard = InFlightGuard(self);
        (self.state.load(Ordering::SeqCst) != CLOSED).then_some(guard)
    }

    /// Returns whether responses should close their connections.
    pub fn is_draining(&self) -> bool {
        self.state.load(Ordering::SeqCst) != OPEN
    }

    /// The number of requests in flight.
    pub fn in_flight(&self) -> usize {
        *self.in_flight.borrow()
    }

    /// Rejects new requests after the drain period and waits for those in flight.
    pub async fn drain(&self) {
        self.state.store(DRAINING, Ordering::SeqCst);
        tokio::time::sleep(self.drain_period).await;
        self.state.store(CLOSED, Ordering::SeqCst);
        let mut in_flight = self.in_flight.subscribe();
        // Fails only when the sender is dropped, and `self` owns it.
        let _drained = in_flight.wait_for(|count| *count == 0).await;
    }
}
