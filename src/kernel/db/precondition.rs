//! What must still be so when a request's change is committed, such as that nobody else has changed the resource meanwhile.
//!
//! It is asked at the last moment, right before the commit, and by a connection of its own. That one sees what is committed and
//! nothing of the change, while what the transaction has written is locked: nobody can change it between the question and
//! the commit. Of two transactions that write the same, the later one waits for the earlier one's commit before it gets so far,
//! and then sees it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use boxoffice_http::error::Result;

type CheckFn = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

/// A condition of a request's change.
pub struct Precondition {
    question: CheckFn,
    was_met: AtomicBool,
}

tokio::task_local! {
    /// The condition of the request that runs.
    static CONDITION: Arc<Precondition>;
    /// There while a condition is asked about.
    static ASKING: ();
}

impl Precondition {
    /// A condition that this question finds out about, by reading alone; it gives the error with which the change is refused.
    pub fn new<F: Future<Output = Result<()>> + Send + 'static>(question: impl Fn() -> F + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { question: Box::new(move || Box::pin(question())), was_met: AtomicBool::new(false) })
    }

    /// Runs what commits under this condition.
    pub async fn scope<F: Future>(self: &Arc<Self>, work: F) -> F::Output {
        CONDITION.scope(Arc::clone(self), work).await
    }

    /// Whether something was committed under it.
    pub fn is_satisfied(&self) -> bool {
        self.was_met.load(Ordering::Relaxed)
    }

    /// Asks.
    ///
    /// # Errors
    /// With the refusal, or when the database fails.
    pub async fn check(&self) -> Result<()> {
        ASKING.scope((), (self.question)()).await
    }
}

/// Whether a condition is being asked about.
pub(super) fn is_asking() -> bool {
    ASKING.try_with(|()| ()).is_ok()
}

/// Asks about the condition of the request that runs, if it has one and nothing was committed under it so far: what comes
/// after its first commit follows from that.
pub(super) async fn ask() -> Result<()> {
    match current() {
        Some(condition) if !condition.is_satisfied() => condition.check().await,
        _ => Ok(()),
    }
}

/// Notes that something was committed.
pub(super) fn mark_satisfied() {
    if let Some(condition) = current() {
        condition.was_met.store(true, Ordering::Relaxed);
    }
}

fn current() -> Option<Arc<Precondition>> {
    CONDITION.try_with(Arc::clone).ok()
}
