//! A request's unit of work: what it changes, and what is kept of the request itself, are committed together.
//!
//! Inside a unit the end of a [`transaction!`](super::transaction) commits nothing: the transaction is *parked*, and whoever
//! opened the unit takes it from there when the request has been answered, adds what is to be kept, and commits. A service
//! notices nothing of this but in two cases:
//!
//! - It begins another transaction, or reads: then what is parked is committed first, so that it sees its own work.
//! - It goes on to wait for something outside the database. No lock may be held meanwhile, so it either commits first
//!   ([`settle`]), or has that done after the commit ([`afterwards`]).
//!
//! Outside a unit (jobs, commands, tests) a transaction commits at its end, and both of these do the obvious.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;

use super::transaction::Tx;
use crate::state::App;
use boxoffice_http::error::Result;

/// What runs first in the first transaction of a unit, before the service's own work. Its error ends the transaction and is the
/// service's. It may run several times: again when the transaction is run again, but never once one has been committed.
pub type BeginHook = Box<dyn for<'a> Fn(&'a mut Tx) -> BoxFuture<'a, Result<()>> + Send + Sync>;

type AfterCommit = Box<dyn for<'a> FnOnce(&'a App) -> BoxFuture<'a, ()> + Send>;

tokio::task_local! {
    static UNIT: Arc<UnitOfWork>;
}

/// The unit of work of one request.
#[derive(Default)]
pub struct UnitOfWork {
    opening: Option<BeginHook>,
    /// Whether a transaction of this unit has been committed, or one that it had a part in.
    is_committed: AtomicBool,
    parked: Mutex<Option<Tx>>,
    afterwards: Mutex<Vec<AfterCommit>>,
}

impl UnitOfWork {
    /// A unit in whose first transaction this runs first.
    pub fn new(opening: Option<BeginHook>) -> Arc<Self> {
        Arc::new(Self { opening, ..Self::default() })
    }

    /// Runs an endpoint in this unit.
    pub async fn run<F: Future>(self: &Arc<Self>, endpoint: F) -> F::Output {
        UNIT.scope(Arc::clone(self), endpoint).await
    }

    /// Whether something of it is committed already.
    pub fn is_committed(&self) -> bool {
        self.is_committed.load(Ordering::Relaxed)
    }

    /// Remembers that something of it has been committed.
    pub fn mark_committed(&self) {
        self.is_committed.store(true, Ordering::Relaxed);
    }

    /// The transaction that was left open, once the endpoint has ended. Outside the unit its [`Tx::commit`] commits; dropped, it
    /// leaves nothing behind.
    pub fn take_deferred(&self) -> Option<Tx> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Does what was put off until the unit's work is committed, which it now is.
    pub async fn run_after_commit(&self, app: &App) {
        let afterwards = std::mem::take(&mut *self.afterwards.lock().unwrap_or_else(PoisonError::into_inner));
        for work in afterwards {
            work(app).await;
        }
    }
}

/// The unit that this runs in.
fn current() -> Option<Arc<UnitOfWork>> {
    UNIT.try_with(Arc::clone).ok()
}

/// Commits what this request has done so far, because it goes on to wait for something.
///
/// # Errors
/// When the database refuses; then nothing of it was done.
pub async fn commit_now() -> Result<()> {
    let Some(unit) = current() else { return Ok(()) };
    let Some(parked) = unit.take_deferred() else { return Ok(()) };
    parked.commit_immediately().await?;
    unit.mark_committed();
    Ok(())
}

/// Does something once the work of this request is committed, and not at all if it fails to be. The request is answered after
/// it, but no error of it can change that answer.
pub async fn after_commit<W>(app: &App, work: W)
where
    W: for<'a> FnOnce(&'a App) -> BoxFuture<'a, ()> + Send + 'static,
{
    match current() {
        Some(unit) => unit.afterwards.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(work)),
        None => work(app).await,
    }
}

/// Runs the unit's opening in a transaction that has just begun.
pub(super) async fn open(tx: &mut Tx) -> Result<()> {
    let Some(unit) = current().filter(|unit| !unit.is_committed()) else { return Ok(()) };
    match &unit.opening {
        Some(opening) => opening(tx).await,
        None => Ok(()),
    }
}

/// Parks a transaction whose work is done; outside a unit it is given back, to be committed.
pub(super) fn defer_commit(tx: Tx) -> Option<Tx> {
    let Some(unit) = current() else { return Some(tx) };
    *unit.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(tx);
    None
}
