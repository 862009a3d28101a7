//! A request's unit of work: the changes of a request, its audit record and its stored response are committed together.
//!
//! A service reads and writes through the unit of work of its [`Context`](crate::kernel::context::Context):
//!
//! - [`UnitOfWork::commit`], at the end of a `transaction!`, checks the request's precondition and keeps
//!   the transaction open. `kernel::http::execute` takes it with [`UnitOfWork::take_uncommitted`], adds the audit record and the
//!   response, and commits it.
//! - [`UnitOfWork::begin`] and [`UnitOfWork::read`] commit an open transaction first, so that the service sees its own changes.
//! - Before it awaits anything outside the database, a service calls [`UnitOfWork::commit_now`], so that no lock is held
//!   meanwhile, or registers the work with [`UnitOfWork::after_commit`].
//!
//! Jobs and commands have no request. Their unit of work is [`UnitOfWork::immediate`]: every commit is durable when it returns.

mod group_commit;
mod precondition;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use futures::future::BoxFuture;
use parking_lot::Mutex;

pub use self::group_commit::{BatchOperation, GroupCommit, PendingCommit};
pub use self::precondition::Precondition;
use crate::kernel::db::{Db, Reader, Tx};
use crate::kernel::idempotency::IdempotentRequest;

/// The unit of work of one request, or of one run of a job.
pub struct UnitOfWork {
    db: Db,
    mode: Mode,
    request: Option<Arc<IdempotentRequest>>,
    precondition: Option<Precondition>,
    /// True once [`commit_now`](Self::commit_now) has committed changes before the end of the request.
    is_committed: AtomicBool,
    open: Mutex<Open>,
    /// The span of the request.
    span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Commits at the end of the request.
    Request,
    /// Commits at once.
    Immediate,
    /// Rejects transactions.
    ReadOnly,
    /// Rejects transactions, and reads by the connections that are reserved for preconditions.
    PreconditionCheck,
}

/// The part of a unit of work that has not been committed yet.
#[derive(Default)]
struct Open {
    transaction: Option<Tx>,
    batch: Option<PendingCommit>,
    after_commit: Vec<BoxFuture<'static, ()>>,
    after_failure: Option<AfterFailure>,
}

/// Work that is repeated until it succeeds.
pub type AfterFailure = Box<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// The transaction that a request has left open for its audit record and its response.
pub enum Uncommitted {
    /// A transaction of its own.
    Transaction(Tx),
    /// A share of a batch.
    Batch(PendingCommit),
}

/// A unit of work whose transactions are rolled back; see [`UnitOfWork::dry_run`].
pub struct DryRun<'a>(&'a UnitOfWork);

impl DryRun<'_> {
    /// Begins a transaction; see [`UnitOfWork::begin`].
    ///
    /// # Errors
    /// Like [`UnitOfWork::begin`].
    pub async fn begin(&self) -> Result<Tx> {
        self.0.begin().await
    }

    /// Rolls a transaction back.
    ///
    /// # Errors
    /// Never; `transaction!` calls it like [`UnitOfWork::commit`].
    pub async fn commit(&self, tx: Tx) -> Result<()> {
        drop(tx);
        Ok(())
    }
}

impl UnitOfWork {
    /// The unit of work of a request that changes something. `request` is claimed in its first transaction, and `precondition` is
    /// checked before its first commit.
    pub fn of_request(
        db: Db,
        request: Option<Arc<IdempotentRequest>>,
        precondition: Option<Precondition>,
        span: Span,
    ) -> Arc<Self> {
        Self::new(db, Mode::Request, request, precondition, span)
    }

    /// A unit of work that commits each transaction at its end: for jobs and commands.
    pub fn immediate(db: Db) -> Arc<Self> {
        Self::new(db, Mode::Immediate, None, None, Span::default())
    }

    /// The unit of work of a request that only reads. It returns an error for every attempt to write.
    pub fn read_only(db: Db, span: Span) -> Arc<Self> {
        Self::new(db, Mode::ReadOnly, None, None, span)
    }

    /// The unit of work in which a [`Precondition`] reads. It takes no connection that another request may need to go on.
    pub fn precondition_check(db: Db, span: Span) -> Arc<Self> {
        Self::new(db, Mode::PreconditionCheck, None, None, span)
    }

    fn new(
        db: Db,
        mode: Mode,
        request: Option<Arc<IdempotentRequest>>,
        precondition: Option<Precondition>,
        span: Span,
    ) -> Arc<Self> {
        Arc::new(Self { db, mode, request, precondition, is_committed: AtomicBool::new(false), open: Mutex::default(), span })
    }

    /// Returns a connection for reading. Each statement on it sees everything that is committed when it begins.
    ///
    /// # Errors
    /// Returns an error if no connection is free in time, or an open transaction can't be committed.
    pub async fn read(&self) -> Result<Reader> {
        self.commit_now().await?;
        let reader =
            if self.mode == Mode::PreconditionCheck { self.db.read_for_precondition().await } else { self.db.read().await };
        Ok(reader?.traced(&self.span))
    }

    /// Returns a connection for reading on which all statements see what is committed when the first one begins. [`Reader::end`] ends it.
    ///
    /// # Errors
    /// Returns an error if no connection is free in time, or an open transaction can't be committed.
    pub async fn read_snapshot(&self) -> Result<Reader> {
        self.commit_now().await?;
        Ok(self.db.read_snapshot().await?.traced(&self.span))
    }

    /// Returns a connection to the standby that shows everything that was acknowledged before the call, if there is one. Use
    /// `read_from_standby!`. A request that changes something doesn't read from the standby.
    ///
    /// # Errors
    /// Returns an error if the primary fails.
    pub async fn standby(&self) -> Result<Option<Reader>> {
        match self.mode {
            Mode::ReadOnly | Mode::Immediate => Ok(self.db.read_standby().await?.map(|reader| reader.traced(&self.span))),
            Mode::Request | Mode::PreconditionCheck => Ok(None),
        }
    }

    /// Lets `transaction!` roll back, also if the expression succeeds.
    ///
    /// A service checks a change like this before it does slow work outside the database, such as storing an image. So the work isn't
    /// done for a change that will be rejected, and nothing is locked meanwhile. The checks run again in the transaction of the change.
    pub fn dry_run(&self) -> DryRun<'_> {
        DryRun(self)
    }

    /// Begins a transaction; on SQLite it holds the write lock from here on. Use `transaction!`, which also
    /// retries.
    ///
    /// # Errors
    /// Returns an error if no connection is free in time, SQLite's write lock is held by another process for too long, an earlier
    /// attempt has [claimed](IdempotentRequest::claim) the request, or the unit of work is read-only.
    pub async fn begin(&self) -> Result<Tx> {
        if matches!(self.mode, Mode::ReadOnly | Mode::PreconditionCheck) {
            return Err(Error::Internal(anyhow!("a request that only reads has begun a transaction")));
        }
        self.commit_now().await?;
        let mut tx = self.db.begin().await?.traced(&self.span);
        if let Some(request) = self.unclaimed_request() {
            request.claim(&mut tx).await?;
        }
        Ok(tx)
    }

    /// Ends a transaction of this unit. In a request the commit itself follows with the response.
    ///
    /// # Errors
    /// Returns an error if the precondition fails, or the database rejects the commit; then nothing was changed. If the
    /// connection is lost during an immediate commit, the outcome is unknown.
    pub async fn commit(&self, tx: Tx) -> Result<()> {
        if let Some(precondition) = &self.precondition {
            precondition.check_once().await?;
        }
        if self.mode == Mode::Request {
            self.open.lock().transaction = Some(tx);
        } else {
            tx.commit().await?;
        }
        if let Some(precondition) = &self.precondition {
            precondition.mark_satisfied();
        }
        Ok(())
    }

    /// Commits the changes that the request has made so far, because it is about to wait for something outside the database.
    ///
    /// # Errors
    /// Returns an error if the database rejects the commit; then nothing was changed.
    pub async fn commit_now(&self) -> Result<()> {
        match self.take_uncommitted() {
            None => return Ok(()),
            Some(Uncommitted::Transaction(tx)) => tx.commit().await?,
            Some(Uncommitted::Batch(pending)) => pending.commit(None).await?,
        }
        self.is_committed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Runs `work` once the changes of this request are committed, and drops it if they are not. The response waits for it, but
    /// it can't change the response any more. Without a request, changes are committed already, and `work` runs at once.
    pub async fn after_commit(&self, work: impl Future<Output = ()> + Send + 'static) {
        if self.mode == Mode::Request { self.open.lock().after_commit.push(Box::pin(work)) } else { work.await }
    }

    /// Runs the work that was registered with [`after_commit`](Self::after_commit). Called once everything is committed.
    pub async fn run_after_commit(&self) {
        let registered = std::mem::take(&mut self.open.lock().after_commit);
        for work in registered {
            work.await;
        }
    }

    /// Registers work for a failure of the server or of the database after the first commit of this request: it undoes what would
    /// be left half done. It runs in the background, and is repeated until it succeeds. A request registers it once at most.
    pub fn after_failure(&self, work: impl Fn() -> BoxFuture<'static, Result<()>> + Send + Sync + 'static) {
        let replaced = self.open.lock().after_failure.replace(Box::new(work));
        debug_assert!(replaced.is_none(), "a request has registered work for its failure twice");
    }

    /// Returns the work that was registered with [`after_failure`](Self::after_failure).
    pub fn take_after_failure(&self) -> Option<AfterFailure> {
        self.open.lock().after_failure.take()
    }

    /// The database, outside this unit of work.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The span of the request.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// The precondition of the request, if it has one.
    pub fn precondition(&self) -> Option<&Precondition> {
        self.precondition.as_ref()
    }

    /// Returns whether a change of this request has been committed already.
    pub fn is_committed(&self) -> bool {
        self.is_committed.load(Ordering::Relaxed)
    }

    /// Returns the transaction that is still open. Dropping it rolls its changes back.
    pub fn take_uncommitted(&self) -> Option<Uncommitted> {
        let mut open = self.open.lock();
        let batch = open.batch.take().map(Uncommitted::Batch);
        batch.or_else(|| open.transaction.take().map(Uncommitted::Transaction))
    }

    /// Returns the request that carries an `Idempotency-Key`, until its first commit.
    fn unclaimed_request(&self) -> Option<Arc<IdempotentRequest>> {
        self.request.clone().filter(|_| !self.is_committed())
    }

    /// Records that the request takes part in a batch. Outside a request the batch is committed at once.
    async fn join_batch(&self, pending: PendingCommit) -> Result<()> {
        if self.mode == Mode::Request {
            self.open.lock().batch = Some(pending);
            return Ok(());
        }
        pending.commit(None).await
    }
}
