//! How a server stops without losing a request: first every answer tells its connection to close, then nobody new is let in, and
//! whoever is inside is waited for.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// How long requests are still served once the server is to stop. A client that keeps its connection busy so gets an answer that
/// tells it to close, and never sends into a connection that is being closed; a load balancer gets to hear of it.
const DRAIN_PERIOD: Duration = Duration::from_millis(250);

const OPEN: u8 = 0;
const DRAINING: u8 = 1;
const CLOSED: u8 = 2;

/// Counts who is inside, and lets nobody in any more once they are closed.
#[derive(Debug, Default)]
pub struct GracefulShutdown {
    state: AtomicU8,
    /// Watched for nobody being inside, and told of nothing else: to tell each coming and going takes time.
    inside: watch::Sender<usize>,
}

/// A request that is being answered.
#[derive(Debug)]
pub struct InFlightGuard<'a>(&'a GracefulShutdown);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.inside.send_if_modified(|inside| {
            *inside -= 1;
            *inside == 0
        });
    }
}

impl GracefulShutdown {
    /// Lets a request in; `None` once they are closed.
    pub fn enter(&self) -> Option<InFlightGuard<'_>> {
        // Counted first, so that whoever closes them sees everyone who was still let in.
        self.inside.send_if_modified(|inside| {
            *inside += 1;
            false
        });
        let inside = InFlightGuard(self);
        (self.state.load(Ordering::SeqCst) != CLOSED).then_some(inside)
    }

    /// Whether answers are to tell that their connections close.
    pub fn is_draining(&self) -> bool {
        self.state.load(Ordering::SeqCst) != OPEN
    }

    /// How many requests are being answered.
    pub fn in_flight(&self) -> usize {
        *self.inside.borrow()
    }

    /// Closes them, and waits until nobody is inside.
    pub async fn close(&self) {
        self.state.store(DRAINING, Ordering::SeqCst);
        tokio::time::sleep(DRAIN_PERIOD).await;
        self.state.store(CLOSED, Ordering::SeqCst);
        let mut inside = self.inside.subscribe();
        // The sender is ours, so this ends in no other way.
        let _empty = inside.wait_for(|inside| *inside == 0).await;
    }
}
