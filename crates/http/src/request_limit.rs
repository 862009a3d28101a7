//! The limit of requests in progress.
//!
//! A server that receives more requests than it can serve refuses the rest at once. If they waited, every request would take longer,
//! until clients gave up waiting for responses that the server is still working on.

use slog::{Logger, warn};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::{Code, Error, Result};
use crate::log::Throttle;

/// This many times more requests may be authenticated at the same time. A database checks their keys together, so that they are rarely
/// many; but while it doesn't answer, a client can cancel requests and send others.
const AUTHENTICATING_FACTOR: usize = 8;

/// Counts the requests in progress, and refuses those beyond the limit with 503.
#[derive(Debug)]
pub struct RequestLimit {
    maximum: usize,
    free: Semaphore,
    authenticating: Semaphore,
    log: Logger,
    refusals: Throttle,
}

impl RequestLimit {
    /// Allows this many requests at the same time.
    pub(crate) fn new(maximum: usize, log: Logger) -> Self {
        let authenticating = Semaphore::new(maximum.saturating_mul(AUTHENTICATING_FACTOR).min(Semaphore::MAX_PERMITS));
        Self { maximum, free: Semaphore::new(maximum), authenticating, log, refusals: Throttle::default() }
    }

    /// The number of requests in progress.
    pub fn count(&self) -> usize {
        self.maximum - self.free.available_permits()
    }

    /// The largest number of requests in progress.
    pub fn maximum(&self) -> usize {
        self.maximum
    }

    /// Refuses a request if too many are in progress. Otherwise counts it as being authenticated until the permit is dropped. Called
    /// before its body is read, so that a refusal costs little.
    ///
    /// # Errors
    /// [`Code::SERVER_UNAVAILABLE`].
    pub(crate) fn enter_authentication(&self) -> Result<SemaphorePermit<'_>> {
        if self.free.available_permits() == 0 {
            return Err(self.refuse());
        }
        self.authenticating.try_acquire().map_err(|_| self.refuse())
    }

    /// Counts a request as in progress until the permit is dropped. Called after its body was read, so that slow clients don't
    /// prevent other requests.
    ///
    /// # Errors
    /// [`Code::SERVER_UNAVAILABLE`] if too many requests are in progress.
    pub(crate) fn enter(&self) -> Result<SemaphorePermit<'_>> {
        self.free.try_acquire().map_err(|_| self.refuse())
    }

    /// Logs one line per second.
    fn refuse(&self) -> Error {
        if let Some(suppressed) = self.refusals.line() {
            warn!(self.log, "too many requests are in progress; others are refused"; "suppressed" => suppressed);
        }
        Code::SERVER_UNAVAILABLE.with_message("The server is busy. Try again shortly.")
    }
}
