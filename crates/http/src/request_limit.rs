//! The limit of requests in progress.
//!
//! A server that receives more requests than it can serve refuses the rest at once. If they waited, every request would take longer,
//! until clients gave up waiting for responses that the server is still working on.

use slog::{Logger, warn};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::{Code, Error, Result};
use crate::log::Throttle;

/// Counts the requests in progress, and refuses those beyond the limit with 503.
#[derive(Debug)]
pub(crate) struct RequestLimit {
    free: Semaphore,
    log: Logger,
    refusals: Throttle,
}

impl RequestLimit {
    /// Allows this many requests at the same time.
    pub(crate) fn new(maximum: usize, log: Logger) -> Self {
        Self { free: Semaphore::new(maximum), log, refusals: Throttle::default() }
    }

    /// Refuses a request if too many are in progress. Called before the request is authenticated and its body is read, so that a
    /// refusal costs little.
    ///
    /// # Errors
    /// [`Code::ServerUnavailable`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.free.available_permits() > 0 { Ok(()) } else { Err(self.refuse()) }
    }

    /// Counts a request as in progress until the permit is dropped. Called after its body was read, so that slow clients don't
    /// prevent other requests.
    ///
    /// # Errors
    /// [`Code::ServerUnavailable`] if too many requests are in progress.
    pub(crate) fn enter(&self) -> Result<SemaphorePermit<'_>> {
        self.free.try_acquire().map_err(|_| self.refuse())
    }

    /// Logs one line per second.
    fn refuse(&self) -> Error {
        if let Some(suppressed) = self.refusals.line() {
            warn!(self.log, "too many requests are in progress; others are refused"; "suppressed" => suppressed);
        }
        Code::ServerUnavailable.with_message("The server is busy. Try again shortly.")
    }
}
