//! The precondition of a change: the resource is still in the state that the client has read (`If-Match`).
//!
//! It is checked right before the commit, on a connection of its own. The connection sees only committed data, while the rows
//! that the transaction has written are locked, so no other transaction can change them between the check and the commit. Of two
//! transactions that write the same row, the later one waits for the earlier one's commit before it gets here, and then sees it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use futures::future::BoxFuture;
use tokio::time::timeout;

/// Time limit for a check. The transaction waits for it, and PostgreSQL ends one that is idle for longer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(6);

type CheckFn = Box<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// A condition under which a request's change is committed.
pub struct Precondition {
    check: CheckFn,
    is_satisfied: AtomicBool,
}

impl Precondition {
    /// Creates a precondition. `check` must be read-only; its error rejects the change.
    pub fn new(check: impl Fn() -> BoxFuture<'static, Result<()>> + Send + Sync + 'static) -> Self {
        Self { check: Box::new(check), is_satisfied: AtomicBool::new(false) }
    }

    /// Checks it, unless something was committed under it already: later commits of the request follow from the first.
    ///
    /// # Errors
    /// With the rejection, or when the database fails or takes too long.
    pub async fn check_once(&self) -> Result<()> {
        if self.is_satisfied.load(Ordering::Relaxed) {
            return Ok(());
        }
        let checked = timeout(CHECK_TIMEOUT, (self.check)()).await;
        checked.unwrap_or_else(|_| Err(Error::Unavailable(anyhow!("a precondition could not be checked in time"))))
    }

    /// Records that something was committed under it.
    pub(super) fn mark_satisfied(&self) {
        self.is_satisfied.store(true, Ordering::Relaxed);
    }
}
