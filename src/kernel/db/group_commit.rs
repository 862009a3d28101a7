//! Requests whose changes are made and committed together.
//!
//! Everyone who buys when a section goes on sale changes the same row. In transactions of their own they would wait for one
//! another's commits, each of which takes a flush of the disk. Here all that arrive while one transaction is committed are decided
//! by the next one: each has an outcome, a row in the trail and an answer of its own, and one commit makes them durable.
//!
//! A request that is refused leaves the others as they are. Where the database refuses a transaction, each of its requests is
//! carried out by itself, so that none fails for another. No condition is asked here before the commit (`db::Condition`), for what
//! comes here adds something, and changes nothing that was read before.

use std::future::Future;
use std::iter::repeat_with;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use tokio::sync::oneshot;

use super::group::{self, AuditRecord};
use super::idempotency::{IdempotentRequest, PreviousOutcome};
use crate::state::App;
use crate::kernel::db::{Batcher, RetryState, Tx, UnitOfWork};
use boxoffice_http::error::{Error, Result};

/// Requests that are decided at a time, at the most: so many that what each of them costs by itself is the most of it.
const BATCH: usize = 100;

/// Decides what several want, in their order, and does what it grants: one outcome for each. The error is the database's, and then
/// nothing is done for any of them.
pub type BatchFn<T, R> = for<'a> fn(&'a App, &'a mut Tx, &'a [&'a T]) -> BoxFuture<'a, Result<Vec<Result<R>>>>;

/// Where requests of one kind are decided together.
pub struct GroupCommit<T, R>(Arc<Parties<T, R>>);

/// Those who wait for a decision, each of whom is told of its commit.
type Parties<T, R> = Batcher<(), (T, Participant<R>), Result<()>>;

/// Who waits for an outcome.
struct Participant<R> {
    attempt: Option<Arc<IdempotentRequest>>,
    reply: oneshot::Sender<(Result<R>, oneshot::Sender<Option<AuditRecord>>)>,
}

tokio::task_local! {
    static SEAT: Arc<RequestSlot>;
}

/// A request that may come to a desk.
pub struct RequestSlot {
    unit: Arc<UnitOfWork>,
    attempt: Option<Arc<IdempotentRequest>>,
    part: Mutex<Option<PendingCommit>>,
}

/// A request's part in a transaction, which has made its changes, and is to be told what to keep of it. Dropped instead, it has
/// nothing of that transaction committed.
pub struct PendingCommit {
    kept: oneshot::Sender<Option<AuditRecord>>,
    committed: BoxFuture<'static, Result<()>>,
}

impl RequestSlot {
    /// Of a request with this unit of work, which may be a try of one that carries an `Idempotency-Key`.
    pub fn new(unit: Arc<UnitOfWork>, attempt: Option<Arc<IdempotentRequest>>) -> Arc<Self> {
        Arc::new(Self { unit, attempt, part: Mutex::default() })
    }

    /// Runs an endpoint.
    pub async fn run<F: Future>(self: &Arc<Self>, endpoint: F) -> F::Output {
        SEAT.scope(Arc::clone(self), endpoint).await
    }

    /// The try that is to claim its request, unless that has been done.
    fn claim(&self) -> Option<Arc<IdempotentRequest>> {
        self.attempt.clone().filter(|_| !self.unit.is_committed())
    }

    /// The part that the request has taken.
    pub fn part(&self) -> Option<PendingCommit> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Commits what a desk has decided for this request so far, because it goes on to wait for something. What is kept of the request
/// comes with what it does last.
///
/// # Errors
/// When it can't be committed; then nothing of it was done.
pub async fn commit_pending() -> Result<()> {
    let Ok(seat) = SEAT.try_with(Arc::clone) else { return Ok(()) };
    let Some(part) = seat.part() else { return Ok(()) };
    part.keep(None).await?;
    seat.unit.mark_committed();
    Ok(())
}

impl PendingCommit {
    /// Keeps this of the request, and waits until all is committed.
    ///
    /// # Errors
    /// When it isn't.
    pub async fn keep(self, kept: Option<AuditRecord>) -> Result<()> {
        // Nobody receives it where the transaction has ended, which the other tells.
        let _ended = self.kept.send(kept);
        self.committed.await
    }
}

impl<T: Send + Sync + 'static, R: Send + 'static> Default for GroupCommit<T, R> {
    fn default() -> Self {
        Self::with_max_weight(BATCH, |_| 1)
    }
}

impl<T: Send + Sync + 'static, R: Send + 'static> GroupCommit<T, R> {
    /// Where at most so much is decided at a time, because some want much: what is decided together is in memory together.
    pub fn with_max_weight(most: usize, weigh: fn(&T) -> usize) -> Self {
        Self(Batcher::with_max_weight(most, move |(wanted, _)| weigh(wanted)))
    }

    /// Has this decided, with whatever else is wanted meanwhile. In a request the commit comes with the answer.
    ///
    /// # Errors
    /// With the refusal, or when the database fails.
    pub async fn submit(&self, app: &Arc<App>, wanted: T, work: BatchFn<T, R>) -> Result<R> {
        let seat = SEAT.try_with(Arc::clone).ok();
        let (told, outcome) = oneshot::channel();
        let party = Participant { attempt: seat.as_ref().and_then(|seat| seat.claim()), reply: told };
        let app = Arc::clone(app);
        let committed = self.0.submit((), (wanted, party), move |(), parties| carry_out(Arc::clone(&app), parties, work));
        let committed = committed.map(Result::flatten).boxed();
        let Ok((outcome, kept)) = outcome.await else {
            committed.await?;
            return Err(Error::Internal(anyhow!("a request was not decided")));
        };
        let part = PendingCommit { kept, committed };
        match seat {
            Some(seat) => *seat.part.lock().unwrap_or_else(PoisonError::into_inner) = Some(part),
            None => part.keep(None).await?,
        }
        outcome
    }
}

async fn carry_out<T, R>(app: Arc<App>, parties: Vec<(T, Participant<R>)>, work: BatchFn<T, R>) -> Result<Vec<Result<()>>>
where
    T: Send + Sync,
    R: Send,
{
    let (wanted, parties): (Vec<T>, Vec<Participant<R>>) = parties.into_iter().unzip();
    let count = parties.len();
    match decide(&app, &wanted.iter().collect::<Vec<_>>(), &parties.iter().collect::<Vec<_>>(), work).await {
        Ok((tx, outcomes)) => {
            let committed = conclude(tx, parties, outcomes).await;
            Ok(repeat_with(|| committed.as_ref().copied().map_err(Error::clone_lossy)).take(count).collect())
        }
        Err(error) if error.is_definite() && count > 1 => {
            let mut all = Vec::with_capacity(count);
            for (wanted, party) in wanted.iter().zip(parties) {
                all.push(match decide(&app, &[wanted], &[&party], work).await {
                    Ok((tx, outcomes)) => conclude(tx, vec![party], outcomes).await,
                    Err(error) => Err(error),
                });
            }
            Ok(all)
        }
        Err(error) => Err(error),
    }
}

/// What comes of a request: its outcome, or what is known of it already.
type Decided<R> = Result<Result<R>, PreviousOutcome>;

/// What comes of each, and the transaction in which it is done.
async fn decide<T, R>(app: &App, wanted: &[&T], parties: &[&Participant<R>], work: BatchFn<T, R>) -> Result<(Tx, Vec<Decided<R>>)>
where
    T: Sync,
    R: Send,
{
    let mut attempts = RetryState::first();
    loop {
        let decided = async {
            let mut tx = app.db.begin().await?;
            let outcomes = decide_in(app, &mut tx, wanted, parties, work).await?;
            Ok((tx, outcomes))
        };
        if let ControlFlow::Break(decided) = app.db.should_retry(decided.await, &mut attempts).await {
            return decided;
        }
    }
}

async fn decide_in<T, R>(
    app: &App,
    tx: &mut Tx,
    wanted: &[&T],
    parties: &[&Participant<R>],
    work: BatchFn<T, R>,
) -> Result<Vec<Decided<R>>>
where
    T: Sync,
    R: Send,
{
    let attempts: Vec<&IdempotentRequest> = parties.iter().filter_map(|party| party.attempt.as_deref()).collect();
    let mut found = IdempotentRequest::claim_all(tx, &attempts).await?.into_iter();
    let known: Vec<Option<PreviousOutcome>> =
        parties.iter().map(|party| party.attempt.as_ref().and_then(|_| found.next().flatten())).collect();
    let new: Vec<&T> = wanted.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(wanted, _)| *wanted).collect();
    let mut outcomes = work(app, tx, &new).await?.into_iter();
    let undecided = || Err(Error::Internal(anyhow!("a request was not decided")));
    let decided = |known: Option<PreviousOutcome>| known.map_or_else(|| Ok(outcomes.next().unwrap_or_else(undecided)), Err);
    Ok(known.into_iter().map(decided).collect())
}

/// Tells everyone the outcome, takes what is to be kept of each, and commits.
async fn conclude<R>(mut tx: Tx, parties: Vec<Participant<R>>, decided: Vec<Decided<R>>) -> Result<()> {
    let mut keeping = Vec::with_capacity(parties.len());
    for (party, decided) in parties.into_iter().zip(decided) {
        let (kept, to_keep) = oneshot::channel();
        let outcome = match (decided, party.attempt) {
            (Ok(outcome), _) => {
                keeping.push(to_keep);
                outcome
            }
            // There is nothing to keep of it.
            (Err(known), Some(attempt)) => Err(attempt.set_previous(known)),
            (Err(_), None) => continue,
        };
        // Whoever has gone away drops this, too.
        let _gone = party.reply.send((outcome, kept));
    }
    let lost = |_| Error::Unavailable(anyhow!("a request that was decided together with others has failed"));
    let kept: Vec<Option<AuditRecord>> = try_join_all(keeping).await.map_err(lost)?;
    group::keep(&mut tx, kept.iter().flatten()).await?;
    tx.commit().await
}
